//! The tables for invented runs, whose right answer is known.

use clap::Parser;
use std::path::Path;

use masu_lab::statistics::Measure;
use masu_lab::{Ending, Output, Run};

use super::figures::{Figures, geometric_mean, is_peer};
use xtask::machine;

use super::{Pattern, Request, Share, pattern, programs, table};

fn run_of(variant: usize, round: usize, wall_s: f64) -> Run {
    let stdout = Output { bytes: 1, hash: "same".to_owned(), tail: String::new() };
    let mut run = Run::default();
    (run.variant, run.round, run.stdout) = (variant, Some(round), stdout);
    (run.wall_s, run.user_s) = (wall_s, wall_s / 2.0);
    (run.peak_rss_bytes, run.minor_faults) = (2_000_000, 100);
    run
}

/// Twelve rounds in which the variants take these seconds.
fn figures(name: &str, group: &str, times: &[(&str, f64)], spoil: impl Fn(&mut Run)) -> Figures {
    let labels: Vec<String> = times.iter().map(|(label, _)| (*label).to_owned()).collect();
    let mut runs = Vec::new();
    for round in 0..12 {
        for (variant, (_, wall_s)) in times.iter().enumerate() {
            // One round in a hundred slower than the other, all variants alike.
            let drift = 1.0 + f64::from(u32::try_from(round).unwrap()) / 100.0;
            let mut run = run_of(variant, round, wall_s * drift);
            spoil(&mut run);
            runs.push(run);
        }
    }
    Figures { pattern: Pattern::unscaled(name, group), labels, runs, floor: Vec::new() }
}

const QUICK_MASU: &[(&str, f64)] = &[("glibc", 2.0), ("masu", 0.8), ("jemalloc", 1.0)];
const SLOW_MASU: &[(&str, f64)] = &[("glibc", 1.0), ("masu", 3.0), ("jemalloc", 2.0)];

fn time(patterns: &[&Figures]) -> String {
    table::ratios(patterns, Measure::Wall, table::ALL_PEERS)
}

fn as_they_are(_: &mut Run) {}

#[test]
fn masu_is_held_against_the_quickest_peer_the_reference_included() {
    let win = figures("pair", "small", QUICK_MASU, as_they_are);
    let standing = win.standing(Measure::Wall, is_peer).unwrap();
    assert_eq!(standing.peer, "jemalloc");
    assert!((standing.ratio.estimate - 0.8).abs() < 1e-9);
    let loss = figures("ring", "threads", SLOW_MASU, as_they_are);
    let standing = loss.standing(Measure::Wall, is_peer).unwrap();
    assert_eq!(standing.peer, "glibc");
    assert!((standing.ratio.estimate - 3.0).abs() < 1e-9);
}

#[test]
fn losses_are_named() {
    let both = [
        figures("pair", "small", QUICK_MASU, as_they_are),
        figures("ring", "threads", SLOW_MASU, as_they_are),
    ];
    let text = table::verdicts(&both.each_ref());
    assert!(text.contains("ahead in 1 and behind in 1; in 0"), "{text}");
    assert!(text.ends_with("Behind, the worst first: ring 3.00 (glibc)."), "{text}");
}

#[test]
fn a_malloc_that_crashes_or_does_other_work_fails() {
    let crash = |run: &mut Run| {
        if run.variant == 2 && run.round == Some(3) {
            run.ending = Ending::Exited(3);
        }
    };
    let other = |run: &mut Run| {
        if run.variant == 2 {
            "other".clone_into(&mut run.stdout.hash);
        }
    };
    for spoiled in
        [figures("pair", "small", QUICK_MASU, crash), figures("pair", "small", QUICK_MASU, other)]
    {
        assert!(spoiled.works(1) && !spoiled.works(2));
        assert_eq!(spoiled.standing(Measure::Wall, is_peer).unwrap().peer, "glibc");
        let spoiled = [&spoiled];
        for text in [time(&spoiled), table::memory(&spoiled, None), table::work(&spoiled)] {
            assert!(text.lines().last().unwrap().contains("| fails |"), "{text}");
        }
    }
}

#[test]
fn the_time_table_has_units_ratios_intervals_and_the_best_in_bold() {
    let text = time(&[&figures("pair", "small", QUICK_MASU, as_they_are)]);
    assert_eq!(
        text,
        "| pattern | glibc, ms | **masu** | jemalloc | masu / best peer |\n\
         |---|---:|---:|---:|---:|\n\
         | pair | 2110 | **0.40 (0.40–0.40)** | 0.50 (0.50–0.50) | 0.80 (0.80–0.80) jemalloc |\n"
    );
}

#[test]
fn means_are_geometric_by_group_and_clip_only_the_last_column() {
    let crash = |run: &mut Run| {
        if run.variant == 2 {
            run.ending = Ending::Signalled(11);
        }
    };
    let patterns = [
        figures("pair", "small", QUICK_MASU, as_they_are),
        figures("left-out", "small", SLOW_MASU, crash),
        figures("ring", "threads", SLOW_MASU, as_they_are),
        figures("idle-threads", "threads", SLOW_MASU, as_they_are),
    ];
    let patterns = patterns.each_ref();
    let text = table::means(&patterns, Measure::Wall);
    let rows: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(
        rows,
        [
            "| small (1) | 1.00 | 0.40 | 0.50 | 0.80 jemalloc |",
            "| threads (1) | 1.00 | 3.00 | 2.00 | 2.00 glibc |",
            // √(0.4 × 3), √(0.5 × 2); clipped against jemalloc √(0.8 × 1.5), glibc √(0.5 × 2).
            "| all (2) | 1.00 | 1.10 | 1.00 | 1.10 jemalloc |",
        ]
    );
    assert!(table::means(&patterns, Measure::PeakRss).contains("| threads (2) |"));
    assert_eq!(geometric_mean(&[]), None);
}

#[test]
fn the_programs_are_those_that_the_chore_installs_and_are_chosen_by_name() {
    let root = xtask::root().unwrap();
    let all = programs::suite(root, Path::new("/made"), &[], 5).unwrap();
    assert!(all.entries.len() >= 6);
    let provided: Vec<&str> =
        machine::needs(machine::PROGRAMS).iter().map(|need| need.name).collect();
    for entry in &all.entries {
        let words: Vec<&str> = entry.command.iter().map(|word| word.to_str().unwrap()).collect();
        let is_provided = words.iter().take(4).any(|word| provided.contains(word));
        assert!(is_provided, "nothing installs what {words:?} starts");
        // Sources lie beside the suite's file, or are made.
        for word in words.iter().flat_map(|word| word.split(' ')) {
            let path = root.join("workloads").join(word);
            assert!(!word.starts_with("programs/") || path.is_file(), "{}", path.display());
        }
    }
    let two = ["perl".to_owned(), "z3".to_owned()];
    let some = programs::suite(root, Path::new("/made"), &two, 5).unwrap();
    assert_eq!(some.values[0].1, "/made");
    assert_eq!(some.entries.len(), 2);
    let wrong = programs::suite(root, Path::new("/made"), &["pearl".to_owned()], 5);
    assert!(wrong.unwrap_err().to_string().contains("no workload `pearl`; known: python, "));
}

#[test]
fn the_floor_is_no_peer_and_stands_beside_where_it_is_below_both() {
    let with_floor = |times, floor_s| {
        let mut figures = figures("pair", "small", times, as_they_are);
        figures.floor = (0..12).map(|round| run_of(usize::MAX, round, floor_s)).collect();
        figures
    };
    // Medians are 5.5 % above these values, except the floor's.
    let figures = with_floor(QUICK_MASU, 0.422);
    assert_eq!(figures.standing(Measure::Wall, is_peer).unwrap().peer, "jemalloc");
    assert_eq!(table::means(&[&figures], Measure::Wall).matches("floor").count(), 0);
    let text = table::floors(&[&figures]);
    assert_eq!(text.lines().last(), Some("| pair | 422 | 844 | 1055 | 0.67 |"));
    let above = with_floor(QUICK_MASU, 0.9);
    assert_eq!(table::floors(&[&above]).lines().last(), Some("| pair | 900 | 844 | 1055 | – |"));
    let mut refused = with_floor(QUICK_MASU, 0.4);
    refused.floor[3].ending = Ending::Signalled(4);
    assert_eq!(table::floors(&[&refused]).lines().last(), Some("| pair | – | 844 | 1055 | – |"));
}

#[test]
fn a_pattern_is_cut_down_but_stays_itself() {
    let listed = "\
ring      threads threads 2 size 256 live 8192    ops 30000000 one thread allocates, its partner frees
random-4m small   threads 1 size 128 live 4000000 ops 8000000  a large heap with random replacement";
    let all = pattern::understand(listed).unwrap();
    let [ring, random] = all.as_slice() else { panic!("two patterns were listed") };
    assert_eq!((&*ring.group, ring.threads), ("threads", 2));
    let parts = [Share::Usual, Share::Quick, Share::Musl].map(|share| ring.scaled(share));
    assert_eq!(parts, [Some(3_750_000), Some(750_000), Some(75_000)]);
    assert!([Share::Usual, Share::Musl].map(|share| random.scaled(share)) == [Some(5_000_000); 2]);
    let command = ring.command("patterns", Share::Quick);
    assert_eq!(command, ["patterns", "ring", "--ops", "750000"]);

    let chosen = pattern::choose(all.clone(), &["random-4m".to_owned()]).unwrap();
    assert_eq!(chosen, std::slice::from_ref(random));
    let wrong = pattern::choose(all, &["rings".to_owned()]).unwrap_err();
    assert_eq!(wrong.to_string(), "nothing is named `rings`; there are ring, random-4m");
    assert!(pattern::understand("ring threads ops many").is_err());
}

#[test]
fn what_is_measured_follows_from_the_options() {
    let parse = |words: &str| Request::try_parse_from(words.split(' ')).unwrap();
    let request = parse("bench --pattern a --quick --pattern b");
    assert_eq!((request.record(), request.rounds(5)), (None, 3));
    assert_eq!((Request::default().record(), Request::default().rounds(5)), (Some("first"), 12));
    assert_eq!(parse("bench --quick --record second").record(), Some("second"));
    let parts = |words: &str| {
        let request = parse(words);
        (request.wants_patterns(), request.wants_programs(), request.record().is_some())
    };
    assert_eq!(parts("bench"), (true, true, true));
    assert_eq!(parts("bench --patterns"), (true, false, false));
    assert_eq!(parts("bench --programs"), (false, true, false));
    assert_eq!(parts("bench --program perl"), (false, true, false));
    assert_eq!(parts("bench --program perl --pattern ring"), (true, true, false));
    assert_eq!(parts("bench --musl"), (true, false, false));
}
