//! Findings with less evidence: on a busy machine, and with sampled calls.

use super::super::super::facts::{Clock, Facts, Memory, Others, Waiting};
use super::super::super::finding::{Confidence, Id};
use super::super::{judge, waits_of_threads};
use super::{calling, contended, first, ids, quiet, sampled, serial, storm};
use masu_run::calls::{Owner, Sampling};

fn busy(facts: Facts, share: f64, waited_share: f64) -> Facts {
    let others = Others { share: Some(share), waited_share, ..Others::default() };
    Facts { others, ..facts }
}

#[test]
fn on_a_busy_machine_the_same_is_found_first_and_is_less_sure() {
    for facts in [storm(), quiet()] {
        let alone = first(&facts);
        let beside = first(&busy(facts.clone(), 0.9, 0.8));
        assert_eq!(alone.id, beside.id);
        assert!(beside.confidence < Confidence::High, "{beside:?}");
        assert!(alone.confidence >= beside.confidence);
        let claims_less = beside.title.starts_with("As far as so busy a machine shows, it ");
        assert_eq!(claims_less, beside.confidence == Confidence::Low, "{beside:?}");
        // Others that leave the program a CPU are no reason to doubt.
        assert_eq!(first(&busy(facts.clone(), 0.1, 0.3)), alone);
    }
    let alone = first(&storm());
    let said = first(&busy(storm(), 0.6, 0.2)).evidence.pop().unwrap();
    assert!(!alone.evidence.contains(&said) && said.contains("60 % of the CPUs"), "{said}");
}

#[test]
fn work_that_takes_turns_for_a_cpu_is_not_called_serial() {
    let is_accused = |facts: &Facts| ids(facts).contains(&Id::SerialPhase);
    assert!(is_accused(&busy(serial(), 0.1, 0.6)), "they wait for each other");
    assert!(is_accused(&busy(serial(), 0.5, 0.3)), "there was a CPU for one of them");
    assert!(!is_accused(&busy(serial(), 0.5, 0.6)));
    assert!(!is_accused(&busy(serial(), 0.9, 0.8)));
}

#[test]
fn what_of_threads_cannot_be_seen_beside_others_is_said() {
    let threads = |facts| calling(facts, |calls| calls.threads_started = 4);
    let said = |facts: &Facts| waits_of_threads(facts, &judge(facts)).unwrap_or_default();
    assert!(said(&busy(threads(serial()), 0.9, 0.8)).contains("while one of them works alone"));
    assert!(
        said(&busy(threads(serial()), 0.5, 0.3))
            .starts_with("whether threads wait for each other's locks")
    );
    let lock = contended(Owner::Malloc, 8);
    assert_eq!(said(&busy(lock.clone(), 0.5, 0.3)), "", "the lock was seen");
    assert!(said(&busy(lock, 0.9, 0.8)).contains("90 % of the CPUs"));
    // One thread waits for no other, and on a quiet machine all waits were seen.
    assert_eq!(said(&busy(quiet(), 0.9, 0.8)), "");
    assert_eq!(said(&threads(serial())), "");
}

#[test]
fn estimates_are_certain_only_of_what_is_large() {
    let sampled = |facts| {
        let sampling = Sampling { from_s: 0.5, share: 0.1, ..Sampling::default() };
        calling(facts, |calls| calls.sampled = Some(sampling))
    };
    let large = first(&sampled(storm()));
    assert_eq!((large.id, large.confidence), (Id::HeapCallStorm, Confidence::High));
    let mut facts = storm();
    facts.clock.wall_s = 18.0;
    facts.clock.user_s = 17.9;
    assert_eq!(first(&facts).confidence, Confidence::High);
    assert_eq!(first(&sampled(facts.clone())).confidence, Confidence::Medium);
    assert_eq!(ids(&facts), ids(&sampled(facts)));
}

#[test]
fn a_lock_of_the_mallocs_is_named_on_a_busy_machine_by_the_sleep_alone() {
    // Few threads meet if others have the CPUs, and a lock's holder waits for one: 300 waits, more than half of the
    // time asleep.
    let facts = calling(contended(Owner::Malloc, 8), |calls| calls.locks[0].waits = 300);
    assert_ne!(first(&facts).id, Id::MallocLock);
    let found = first(&busy(facts.clone(), 0.75, 0.8));
    assert_eq!((found.id, found.confidence), (Id::MallocLock, Confidence::Low));
    // The lock's share is a lower bound, so it explains the malloc's time, as on a quiet machine.
    let mut little = calling(facts.clone(), |calls| calls.locks[0].waits = 3_000);
    (little.threads.lock_waited, little.samples) = (vec![(Owner::Malloc, 3.0)], sampled(0.6));
    let little = busy(little, 0.75, 0.8);
    assert!(judge(&little)[0].share.unwrap() < 0.05, "{:?}", judge(&little));
    assert_eq!(ids(&little), [Id::MallocLock]);
    // A lock of the program's may be held for long, and hardly any thread sleeps for this one.
    let own = calling(contended(Owner::Program, 8), |calls| calls.locks[0].waits = 300);
    assert_ne!(first(&busy(own, 0.75, 0.8)).id, Id::OneLock);
    let mut brief = facts;
    brief.threads.lock_waited = vec![(Owner::Malloc, 0.5)];
    assert_ne!(first(&busy(brief, 0.75, 0.8)).id, Id::MallocLock);
}

#[test]
fn time_in_which_others_had_the_cpu_is_no_time_that_the_program_had() {
    // The program sleeps for four seconds and works for one, which takes ten beside others.
    let mut facts = quiet();
    facts.clock = Clock { wall_s: 5.0, user_s: 1.0, ..Clock::default() };
    facts.threads.idle_s = 4.0;
    facts.threads.idle_for = vec![(Waiting::Time, 4.0)];
    facts.threads.looked_s = 5.0;
    // A hundred page faults and more read from the disk in each of the five seconds.
    let memory = Memory { swapped_bytes: 40 << 20, major_faults: 600, ..facts.memory };
    let alone = Facts { memory, ..facts };
    let mut beside = busy(alone.clone(), 0.9, 0.9);
    (beside.clock.wall_s, beside.clock.queued_s, beside.threads.looked_s) = (14.0, 9.0, 14.0);
    assert_eq!(ids(&alone), ids(&beside));
    assert_eq!(first(&alone).id, Id::Swap);
    let waits = Facts { memory: quiet().memory, ..beside };
    assert_eq!(first(&waits).id, Id::IoBound);
}
