//! Less to rest on: a busy machine, and calls that were sampled.

use super::super::super::facts::{Facts, Others};
use super::super::super::finding::{Confidence, Id};
use super::super::judge;
use super::{calling, contended, first, ids, quiet, serial, storm};
use crate::calls::{Owner, Sampling};

fn busy(facts: Facts, share: f64, waited_share: f64) -> Facts {
    let others = Others { share: Some(share), waited_share, ..Others::default() };
    Facts { others, ..facts }
}

#[test]
fn on_a_busy_machine_the_same_is_found_first_and_is_less_sure() {
    for facts in [storm(), quiet(), serial()] {
        let alone = first(&facts);
        let beside = first(&busy(facts.clone(), 0.9, 0.8));
        assert_eq!(alone.id, beside.id);
        assert!(beside.confidence < Confidence::High, "{beside:?}");
        assert!(alone.confidence >= beside.confidence);
        // Others that leave it a CPU are no reason.
        assert_eq!(first(&busy(facts.clone(), 0.1, 0.3)), alone);
    }
    let alone = first(&storm());
    let said = first(&busy(storm(), 0.6, 0.2)).evidence.pop().unwrap();
    assert!(!alone.evidence.contains(&said) && said.contains("60 % of the CPUs"), "{said}");
}

#[test]
fn work_that_takes_turns_for_a_cpu_is_hardly_called_serial() {
    let phase = judge(&busy(serial(), 0.9, 0.8));
    let phase = phase.iter().find(|one| one.id == Id::SerialPhase).unwrap();
    assert_eq!(phase.confidence, Confidence::Low);
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
    // Few meet where others have the CPUs, and the holder waits for one: 300 waits, more than half of the time asleep.
    let facts = calling(contended(Owner::Malloc, 8), |calls| calls.locks[0].waits = 300);
    assert_ne!(first(&facts).id, Id::MallocLock);
    let found = first(&busy(facts.clone(), 0.75, 0.8));
    assert_eq!((found.id, found.confidence), (Id::MallocLock, Confidence::Medium));
    // A lock of the program's may be held for long, and hardly anybody sleeps for this one.
    let own = calling(contended(Owner::Program, 8), |calls| calls.locks[0].waits = 300);
    assert_ne!(first(&busy(own, 0.75, 0.8)).id, Id::OneLock);
    let mut brief = facts;
    brief.threads.lock_waited = vec![(Owner::Malloc, 0.5)];
    assert_ne!(first(&busy(brief, 0.75, 0.8)).id, Id::MallocLock);
}
