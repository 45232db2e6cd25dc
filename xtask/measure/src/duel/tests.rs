//! What hyperfine writes is understood, and the page counts right and wrong answers as they are.

use masu_lab::statistics::{Ratio, Verdict};

use super::{Answer, Duel, Extent, Hyperfine, Pairing, record};

const TABLE: &str = "\
command,mean,stddev,median,user,system,min,max
./work 1000:a,0.100,0.010,0.1,0.1,0.0,0.09,0.2
./work 1030:b,0.090,0.012,0.1,0.1,0.0,0.09,0.2
";

const SAID: &str = "Benchmark 1: ./work 1000:a\n\nSummary\n  './work 1030:b' ran\n    \
                    1.11 ± 0.19 times faster than './work 1000:a'\n";

#[test]
fn hyperfines_table_and_sentence_are_read() {
    let read = Hyperfine::read(TABLE, SAID).unwrap();
    assert_eq!(read.times, [(0.1, 0.01), (0.09, 0.012)]);
    assert_eq!(read.claim, "'./work 1030:b' ran 1.11 ± 0.19 times faster than './work 1000:a'");
    assert!((read.ratio() - 0.9).abs() < 1e-12);
    // As its sentence has it the other way round: 0.19 of 1.11 is 0.15 of 0.9.
    assert!((read.deviation() - 0.15).abs() < 0.001, "{}", read.deviation());
    assert!(Hyperfine::read("command,mean\n", SAID).is_err());
}

#[test]
fn the_page_counts_answers_against_the_truth() {
    let pairing = |interval: (f64, f64), verdict| Pairing {
        hyperfine: Hyperfine::read(TABLE, SAID).unwrap(),
        masu: Answer {
            ratio: Some(Ratio { estimate: 1.02, interval: Some(interval), pairs: 40 }),
            verdict,
        },
    };
    let unsure = Verdict::NoDifferenceShown { could_have_seen: 0.05 };
    let duel = Duel {
        extent: Extent { runs: 40, repeats: 2 },
        pairings: vec![
            vec![pairing((0.99, 1.05), unsure), pairing((1.01, 1.03), Verdict::Slower)],
            vec![pairing((1.01, 1.05), Verdict::Slower)],
        ],
        versions: ["hyperfine 1".to_owned(), "masu 1".to_owned()],
        commit: "abc".to_owned(),
        took_s: 1.0,
    };
    let text = record::text(&duel);
    assert!(text.contains("sure in 1 of 2, and its interval holds the truth in 1 of 2"), "{text}");
    assert!(text.contains("the wrong command as faster in 1"), "{text}");
    assert!(text.contains("sure in 1 of 1, and its interval holds the truth in 1 of 1"), "{text}");
    assert!(text.contains("no difference shown; could have seen 5.0 %"), "{text}");
}
