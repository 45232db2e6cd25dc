//! Processes, spinning, and growth.

use std::path::PathBuf;

use super::super::super::facts::{Clock, Facts, Failure, Growth};
use super::super::super::finding::{Confidence, Id};
use super::super::super::samples::{Place, Sampled};
use super::super::may_leak;
use super::{MIB, calling, causes, first, ids, quiet};
use masu_run::Ending;
use masu_run::calls::Sampling;

#[test]
fn a_program_for_each_little_thing_is_a_storm_and_a_few_are_not() {
    let starting = |processes, programs| {
        calling(quiet(), |calls| {
            calls.processes = processes;
            calls.counts.insert("execve", programs);
        })
    };
    let storm = first(&starting(4_001, 4_001));
    assert_eq!((storm.id, storm.confidence), (Id::ForkStorm, Confidence::Medium));
    assert!((storm.share.unwrap() - 0.2).abs() < 0.01, "{storm:?}");
    // A program that is searched for in many folders runs once.
    assert_eq!(first(&starting(4_001, 40_001)).share, storm.share);
    assert_eq!(causes(&starting(150, 150)), []);
    assert_eq!(causes(&starting(1_001, 1)), [], "1 % of ten seconds");
    assert_eq!(causes(&starting(8_001, 1)), [Id::ForkStorm]);
    // If the processes wait for a CPU, the wall-clock time says little.
    let mut waiting = starting(6_001, 1);
    waiting.clock = Clock { wall_s: 60.0, user_s: 0.6, own_sys_s: 0.8, ..waiting.clock };
    assert_eq!(causes(&waiting), []);
    waiting.others.share = Some(0.9);
    assert_eq!(causes(&waiting), [Id::ForkStorm]);
}

#[test]
fn threads_that_yield_over_and_over_spin() {
    let yielding = |yields| {
        calling(quiet(), |calls| {
            calls.counts.insert("sched_yield", yields);
        })
    };
    assert_eq!(causes(&yielding(10_000_000)), [Id::Spinning]);
    assert_eq!(causes(&yielding(1_000_000)), [], "1 % of ten seconds");
    // If each yield goes to another thread, the kernel takes longer.
    let mut busy = yielding(150_000);
    busy.clock.own_sys_s = 2.0;
    assert_eq!(causes(&busy), [Id::Spinning]);
    let beside = calling(busy, |calls| {
        calls.counts.insert("write", 150_000);
    });
    assert_eq!(causes(&beside), [], "it may be the writes");
    // Samples of calls may miss most of them; switches to another thread are all counted.
    let mut sampled = yielding(8_000);
    sampled.clock.own_sys_s = 2.0;
    sampled.clock.involuntary_switches = 150_000;
    assert_eq!(causes(&sampled), []);
    let sampling = Sampling { from_s: 0.5, share: 0.01, ..Sampling::default() };
    let sampled = calling(sampled, |calls| calls.sampled = Some(sampling));
    assert_eq!(causes(&sampled), [Id::Spinning]);
    // If the yields are seen and no thread is switched, the kernel's time says enough.
    let mut alone = sampled;
    alone.clock.involuntary_switches = 0;
    alone.clock.own_sys_s = 2.0;
    alone.clock.wall_s = 1.0;
    alone.clock.user_s = 0.5;
    assert_eq!(causes(&alone), [Id::Spinning]);
    // A program with a third of the CPUs yields less often.
    let mut fewer = yielding(30_000);
    fewer.clock.own_sys_s = 2.0;
    assert_eq!(causes(&fewer), []);
    fewer.others.share = Some(0.66);
    assert_eq!(causes(&fewer), [Id::Spinning]);
}

#[test]
fn openmp_that_waits_is_distinguished_from_openmp_that_works() {
    let sampled = |file: &str, share| {
        let place = Place { file: PathBuf::from(file), share, ..Place::default() };
        let sampled = Sampled { samples: 5_000, places: vec![place], ..Sampled::default() };
        Facts { samples: Some(sampled), ..quiet() }
    };
    let waits = first(&sampled("/usr/lib/libgomp.so.1.0.0", 0.4));
    assert_eq!(waits.id, Id::Spinning);
    assert!(waits.remedies[0].what.contains("OMP_THREAD_LIMIT=1"), "{waits:?}");
    assert_eq!(causes(&sampled("/usr/lib/libgomp.so.1.0.0", 0.05)), []);
    assert_eq!(causes(&sampled("/usr/bin/tesseract", 0.9)), []);
}

#[test]
fn growth_is_a_finding_where_the_program_did_not_end_by_itself() {
    let growing = |ending: Option<&str>, bytes| {
        let growth = Some(Growth { bytes, over_s: 4.0 });
        let mut facts = Facts { ending: ending.map(str::to_owned), ..quiet() };
        facts.memory.growth = growth;
        facts.memory.peak_rss_bytes = 100 * MIB;
        facts
    };
    let found = first(&growing(None, 60 * MIB));
    assert_eq!((found.id, found.confidence), (Id::Growth, Confidence::Medium));
    assert!(found.title.contains("15.0 MiB a second"), "{}", found.title);
    assert_eq!(causes(&growing(Some("was stopped"), 60 * MIB)), [Id::Growth]);
    let by_signal = growing(Some("was ended by signal 9 (SIGKILL)"), 60 * MIB);
    assert_eq!(causes(&by_signal), [Id::Growth]);
    // A program that ends by itself may have needed the memory; a sentence says so.
    let ended = growing(Some("returned 0"), 60 * MIB);
    assert_eq!((causes(&ended), may_leak(&by_signal)), (vec![], None));
    assert!(may_leak(&ended).expect("it is said").contains("60.0 MiB within 4.00 s"));
    assert_eq!(may_leak(&growing(Some("returned 0"), 2 * MIB)), None);
    assert_eq!(causes(&growing(None, 2 * MIB)), []);
    // With a tenth of the CPUs the program grows by less.
    let mut slow = growing(None, 12 * MIB);
    assert_eq!(causes(&slow), []);
    slow.others.share = Some(0.9);
    assert_eq!(causes(&slow), [Id::Growth]);
    slow.memory.growth = Some(Growth { bytes: 2 * MIB, over_s: 4.0 });
    assert_eq!(causes(&slow), []);
    // A kill over the memory limit comes first.
    let ending = Ending::OutOfMemory { process: String::new(), bytes: 1 << 30 };
    let mut killed = growing(Some("was killed"), 60 * MIB);
    killed.failure = Failure::of(&ending, "");
    assert_eq!(ids(&killed)[..2], [Id::ProgramFailed, Id::Growth]);
}
