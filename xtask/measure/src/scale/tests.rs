//! The report, the figures, the names, the tables; and the plugin itself, on a line whose moves are known.

use super::queue::{Demands, Prices};
use super::report::{Report, STEADY};
use super::results::{Figure, Results, Run};
use super::symbols::Symbols;
use super::watch::{LIMIT, QEMU, Watch};
use super::{Workload, page};
use crate::mallocs::Malloc;
use xtask::{commands, machine};

const REPORT: &str = include_str!("tests/report.txt");

#[test]
fn a_report_is_read_as_it_was_written() {
    let report = Report::parse(REPORT).unwrap();
    let steady = report.of(STEADY);
    assert_eq!(steady.moved(), 10);
    assert_eq!((report.turns, report.slips, report.threads.len()), (7, 0, 1));
    assert_eq!(report.names[0].1, "the program's rings");
    assert_eq!(report.lines[0].address, 0x4000);
    assert_eq!(report.lines[0].by, [(0x7f_1010, 5), (0x40_1000, 3)]);
    assert_eq!(report.sites[0].moves, 6);
    assert_eq!(report.busiest(STEADY).map(|lock| (lock.held, lock.calls)), Some((250, 1)));
    assert_eq!(report.maps.lines().count(), 4);
}

#[test]
fn a_report_that_is_not_whole_is_refused() {
    assert!(Report::parse("").is_err());
    assert!(Report::parse(REPORT.trim_end_matches("end\n")).is_err());
    assert!(Report::parse(&REPORT.replace("slips", "slides")).is_err());
    assert!(Report::parse(&REPORT.replace("atomics 20", "atomics many")).is_err());
}

#[test]
fn figures_are_of_one_operation() {
    let report = Report::parse(REPORT).unwrap();
    let of = |figure: Figure| figure.of(&report, STEADY);
    let figures = [Figure::Moved, Figure::MovedByLibraries, Figure::Atomics, Figure::Calls].map(of);
    assert_eq!(figures.map(|figure| format!("{figure:.1}")), ["1.0", "0.4", "2.0", "0.5"]);
    assert_eq!(format!("{:.0}", of(Figure::Held)), "25");
    // A run that did nothing divides by nothing.
    assert!(Figure::Moved.of(&Report::default(), STEADY).is_finite());
}

#[test]
fn what_lies_at_an_address_has_a_name() {
    let (report, mut symbols) = (Report::parse(REPORT).unwrap(), Symbols::default());
    let mut place = |address| symbols.place(&report, address);
    assert_eq!(place(0x4800), "the program's rings");
    assert_eq!(place(0x8_fff0), "a thread's stack");
    assert_eq!(place(0x9_0010), "a thread's local storage");
    assert_eq!(place(0x7f_2010), "libm alloc.so+0x2010");
    assert_eq!(place(0x80_0010), "heap");
    assert_eq!(place(0x100), "memory that was given back");
}

#[test]
fn a_queue_grows_with_threads_up_to_what_its_lock_lets_through() {
    let threads = |demands: &Demands, threads| demands.throughput(threads) * demands.beside;
    // Without a lock every thread works.
    let free = Demands { locks: vec![], beside: 100.0 };
    assert!((threads(&free, 64) - 64.0).abs() < 1e-9);
    // One lock for an eleventh of the time: at most eleven threads, and two of them seldom meet.
    let locked = Demands { locks: vec![10.0], beside: 100.0 };
    assert!((locked.throughput(1) - 1.0 / 110.0).abs() < 1e-9);
    // One of two threads finds the other at the lock in 10 of 110 cases, and waits 10 longer then.
    assert!((locked.throughput(2) - 2.0 / (110.0 + 100.0 / 110.0)).abs() < 1e-9);
    assert!(locked.throughput(64) > 0.09 && locked.throughput(64) <= 0.1);
}

#[test]
fn what_lies_under_locks_is_not_beside_them() {
    let prices = Prices { instruction: 1.0, moved: 10.0, call: 100.0 };
    let demands = Demands::of(&Report::parse(REPORT).unwrap(), prices);
    // Ten operations of 500 instructions, 10 moves and 5 calls in all.
    assert_eq!(demands, Demands { locks: vec![37.0, 2.5], beside: 110.0 - 39.5 });
}

fn results(moved: &[(&str, u64)]) -> Results {
    let run = |&(malloc, moved): &(&str, u64)| Run {
        workload: "private".to_owned(),
        threads: 8,
        malloc: malloc.to_owned(),
        seed: 1,
        report: Report::parse(&REPORT.replace("upgrade 4", &format!("upgrade {moved}"))).unwrap(),
    };
    let malloc = |&(name, _): &(&str, u64)| Malloc {
        name: name.to_owned(),
        title: name.to_owned(),
        version: None,
        environment: Vec::new(),
    };
    Results {
        workloads: vec![Workload { name: "private".to_owned(), about: "alone".to_owned() }],
        threads: vec![8],
        mallocs: moved.iter().map(malloc).collect(),
        seeds: 1,
        ops: 10,
        runs: moved.iter().map(run).collect(),
        failures: Vec::new(),
    }
}

fn findings(moved: &[(&str, u64)]) -> String {
    page::findings(&results(moved), page::Detail::Full)
}

#[test]
fn masu_is_behind_where_it_moves_more_than_the_best_peer() {
    let behind = findings(&[("masu", 24), ("jemalloc", 14), ("glibc", 94)]);
    assert!(behind.contains("| private | 8 | 3.00 | jemalloc | 2.00 | 1.50 |"), "{behind}");
    assert!(behind.contains("60 % by") || behind.contains("20 % by"), "{behind}");
    let level = findings(&[("masu", 14), ("jemalloc", 14)]);
    assert!(level.contains("Nowhere.") && !level.contains("| private |"), "{level}");
}

#[test]
fn a_run_is_about_the_library_that_was_given() {
    let subject = |names: &[&str]| {
        let all: Vec<(&str, u64)> = names.iter().map(|name| (*name, 4)).collect();
        results(&all).subject().to_owned()
    };
    assert_eq!(subject(&["masu", "glibc", "libmine.so"]), "libmine.so");
    assert_eq!(subject(&["jemalloc", "masu"]), "masu");
    assert_eq!(subject(&["jemalloc", "glibc"]), "jemalloc");
    let alone = findings(&[("libmine.so", 4)]);
    assert!(
        alone.contains("The hottest lines of libmine.so")
            && alone.contains("10 lines moved in all"),
        "{alone}"
    );
}

#[test]
fn a_case_that_did_not_run_is_an_empty_cell() {
    let mut results = results(&[("masu", 4), ("a", 4)]);
    results.runs.retain(|run| run.malloc == "masu");
    results.failures.push("private, 8 threads, a, seed 1: it did not end".to_owned());
    let tables = page::tables(&results);
    assert!(tables.contains("| masu | 1.00 |") && tables.contains("| a | – |"), "{tables}");
    assert!(tables.contains("- private, 8 threads, a, seed 1: it did not end"), "{tables}");
}

/// The one test of the plugin itself: two threads hand one line to and fro, which moves once for each of them and round;
/// as a lock, it is held as often.
#[test]
fn a_line_that_two_threads_write_in_turns_moves_once_for_each() {
    if !machine::is_program(QEMU) {
        eprintln!("skipped: {QEMU} is not here; `apt-get install qemu-user` brings it");
        return;
    }
    let root = xtask::root().unwrap();
    let made = commands::target_folder().unwrap().join("scale-test");
    commands::make(&root.join("workloads/scale"), &made).unwrap();
    let watch = Watch::new(&made).unwrap();
    const ROUNDS: u64 = 50;
    for (how, moved, holds) in
        [("together", 2 * ROUNDS, 0), ("apart", 0, 0), ("locked", 2 * ROUNDS, 2 * ROUNDS)]
    {
        let out = made.join(format!("pingpong-{how}"));
        let mut command = watch.emulated("pingpong", &out, 1, &[]);
        command.arg(ROUNDS.to_string()).arg(how);
        commands::output(&mut commands::behind(&LIMIT, &command)).unwrap();
        let report = Report::parse(&std::fs::read_to_string(&out).unwrap()).unwrap();
        let counts = report.of(STEADY);
        assert_eq!((counts.operations, counts.atomics), (2 * ROUNDS, 2 * ROUNDS));
        assert_eq!((counts.moved(), counts.by_program, counts.calls), (moved, 0, 0), "{counts:?}");
        // Nobody tries for it while it is held: the threads write in turns.
        let held: u64 = report.locks.iter().map(|lock| lock.holds).sum();
        assert_eq!((held, report.busiest(STEADY)), (holds, None), "{how}");
    }
}
