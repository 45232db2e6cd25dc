//! The properties of the table that hold without running a case.

use clap::Parser;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::cases::{self, Case};
use super::check::differences;
use super::page;
use super::run::{Outcome, Results};
use super::verdict::{Tally, Verdict};
use super::{MALLOCS, Request};
use crate::mallocs::Malloc;

fn ended(code: i32) -> ExitStatus {
    ExitStatus::from_raw(code << 8)
}

fn killed(signal: i32) -> ExitStatus {
    ExitStatus::from_raw(signal)
}

fn tally(verdicts: &[Verdict]) -> Tally {
    let mut tally = Tally::default();
    verdicts.iter().for_each(|verdict| tally.add(*verdict));
    tally
}

/// Results of one case with small blocks.
fn results(small: [&[Verdict]; 2]) -> Results {
    let case = Case { name: "twice".to_owned(), size_min: 1, about: "double free".to_owned() };
    let malloc = Malloc {
        name: "masu".to_owned(),
        title: "masu".to_owned(),
        version: None,
        environment: Vec::new(),
    };
    let sizes = [24, 100, 5_000, 40_000, 300_000, 4 << 20];
    let verdicts = [small[0], small[1], &[], &[], &[], &[]];
    let outcome = |(size, verdicts): (usize, &[Verdict])| Outcome {
        case: case.clone(),
        size,
        malloc: malloc.name.clone(),
        tally: tally(verdicts),
    };
    let outcomes = sizes.into_iter().zip(verdicts).map(outcome).collect();
    Results { cases: vec![case], mallocs: vec![malloc], runs: 3, outcomes }
}

#[test]
fn verdicts_come_from_marks_and_the_process_s_end() {
    let of = |marks: &str, status| Verdict::of(marks, status).unwrap().unwrap();
    assert_eq!(of("b", killed(6)), Verdict::Call);
    assert_eq!(of("b", ended(1)), Verdict::Call);
    assert_eq!(of("b", killed(11)), Verdict::Fault);
    assert_eq!(of("t", killed(11)), Verdict::Access);
    assert_eq!(of("tw", killed(11)), Verdict::Fault);
    assert_eq!(of("tw", killed(6)), Verdict::Call);
    assert_eq!(of("ba", killed(11)), Verdict::Later);
    assert_eq!(of("bad", killed(6)), Verdict::Later);
    assert_eq!(of("bae", ended(1)), Verdict::Later);
    assert_eq!(of("bae", ended(0)), Verdict::Silent);
    assert_eq!(of("bade", ended(0)), Verdict::Damage);
    assert_eq!(of("bare", ended(0)), Verdict::Refused);
    assert_eq!(of("taze", ended(0)), Verdict::Wiped);
    assert_eq!(of("ba", killed(14)), Verdict::Hangs);
}

#[test]
fn memory_that_was_handed_out_twice_stays_so_however_the_program_ends() {
    for (marks, status) in [("bao", ended(0)), ("bado", killed(6)), ("bao", killed(14))] {
        assert_eq!(Verdict::of(marks, status), Ok(Some(Verdict::Handed)));
    }
}

#[test]
fn a_run_that_shows_nothing_has_no_verdict() {
    assert_eq!(Verdict::of("n", ended(0)), Ok(None));
    for (marks, status) in [("", killed(11)), ("", ended(2)), ("ba", ended(9)), ("b", killed(9))] {
        assert!(Verdict::of(marks, status).is_err(), "{marks}");
    }
}

#[test]
fn a_tally_names_each_verdict_and_the_worst() {
    use Verdict::{Call, Handed, Silent};
    let mixed = tally(&[Handed, Call, Call, Silent]);
    assert_eq!(mixed.text(), "call 2, silent 1, **handed** 1");
    assert_eq!((mixed.worst(), mixed.main()), (Some(Handed), Some(Call)));
    assert_eq!(tally(&[Silent, Silent]).text(), "silent");
    assert_eq!(tally(&[Call, Handed]).main(), Some(Handed), "the worse of two");
    assert_eq!(tally(&[]).text(), "–");
}

#[test]
fn the_page_holds_what_it_was_made_from_and_nothing_else() {
    use Verdict::{Call, Handed, Silent};
    let recorded = results([&[Call, Call, Call], &[Call, Silent, Silent]]);
    let text = page::tables(&recorded);
    assert!(text.contains("| `twice`: double free | call; call 1, silent 2 |"), "{text}");
    assert_eq!(differences(&text, &recorded), []);
    // A random draw may give another outcome.
    assert_eq!(differences(&text, &results([&[Call], &[Call]])), []);
    assert_eq!(differences(&text, &results([&[Call, Silent, Call], &[Silent]])), []);
    for worse in [[&[Silent][..], &[Silent]], [&[Call], &[Handed]], [&[], &[Call]]] {
        let wrong = differences(&text, &results(worse));
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].0 == "twice" && wrong[0].1.contains("twice, masu"), "{wrong:?}");
    }
    assert!(!differences("", &recorded).is_empty(), "a page without the table");
}

#[test]
fn cases_are_read_with_the_sizes_that_they_are_for() {
    let cases = cases::read("a\t1\tabout a\nb\t4097\tabout b\nc\t0\tabout c\n").unwrap();
    let sizes: Vec<usize> = cases.iter().map(|case| case.sizes().len()).collect();
    assert_eq!(sizes, [6, 4, 1]);
    assert!(cases::read("").is_err() && cases::read("a 1 about").is_err());
}

#[test]
fn a_record_holds_everything_and_a_check_only_ours() {
    let parse = |words: &str| Request::try_parse_from(words.split(' '));
    let check = parse("misuse --check").unwrap();
    let wanted = |request: &Request| MALLOCS.iter().filter(|one| request.wants(one)).count();
    assert_eq!((check.runs(), wanted(&check)), (3, 3));
    let shown = parse("misuse --malloc glibc --runs 5").unwrap();
    assert_eq!((shown.runs(), wanted(&shown)), (5, 1));
    assert_eq!(wanted(&parse("misuse --record").unwrap()), MALLOCS.len());
}
