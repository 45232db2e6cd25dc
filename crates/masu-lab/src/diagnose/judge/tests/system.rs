//! Programs that are mostly system calls.

use super::super::super::facts::{Clock, Facts, Others};
use super::super::super::finding::{Confidence, Id};
use super::{MIB, calling, first, ids, price, quiet};
use masu_run::calls::CallKind;
use masu_run::prices::Service;

/// A program that spends nine seconds of ten in the kernel, for these calls.
fn calling_the_kernel(kinds: &[(&str, u64, f64)]) -> Facts {
    let kind = |(name, calls, seconds): &(&str, u64, f64)| CallKind {
        name: (*name).to_owned(),
        calls: *calls,
        seconds: *seconds,
    };
    let clock = Clock { wall_s: 10.0, user_s: 1.0, sys_s: 9.0, own_sys_s: 9.0, ..Clock::default() };
    let facts = Facts { clock, ..quiet() };
    calling(facts, |calls| calls.kinds = kinds.iter().map(kind).collect())
}

#[test]
fn a_program_that_is_mostly_system_calls_gets_their_names() {
    let facts = calling_the_kernel(&[
        ("read", 4_000_000, 4.0),
        ("brk", 1_000, 2.0),
        ("lseek", 4_000_000, 1.0),
        ("close", 100_000, 0.5),
        ("fstat", 100_000, 0.4),
    ]);
    let found = first(&facts);
    assert_eq!((found.id, found.confidence), (Id::SystemCalls, Confidence::Medium));
    assert!(found.title.ends_with("read, lseek, close"), "{found:?}");
    assert!((found.share.unwrap() - 0.67).abs() < 0.01, "{found:?}");
    // A single call that took long yielded to others.
    let single = calling_the_kernel(&[("read", 4_000_000, 6.0), ("sched_getaffinity", 1, 1.0)]);
    assert!(first(&single).title.ends_with("calls: read"), "{:?}", first(&single));
    let few = calling_the_kernel(&[("read", 400_000, 3.0), ("brk", 1_000, 5.0)]);
    assert!(!ids(&few).contains(&Id::SystemCalls));
    // If hardly any calls are known, none is blamed; and page faults may have taken longer than their price.
    let mut unknown = calling_the_kernel(&[("read", 400_000, 1.0)]);
    let found = first(&unknown);
    assert_eq!((found.id, found.confidence), (Id::SystemCalls, Confidence::Low));
    assert!(found.title.ends_with("system calls"), "{found:?}");
    let mut short = unknown.clone();
    short.clock =
        Clock { wall_s: 0.03, user_s: 0.008, sys_s: 0.016, own_sys_s: 0.016, ..short.clock };
    short.calls.as_mut().unwrap().kinds[0].seconds = 0.0024;
    assert!(!ids(&short).contains(&Id::SystemCalls), "counting took longer");
    let mut huge = unknown.clone();
    huge.memory.huge_bytes = 64 * MIB;
    assert!(!ids(&huge).contains(&Id::SystemCalls), "the kernel cleared huge pages");
    let mut stolen = unknown.clone();
    stolen.others = Others { stolen_share: Some(0.43), ..stolen.others };
    assert!(!ids(&stolen).contains(&Id::SystemCalls), "stops took longer than their price");
    let mut stopped = calling_the_kernel(&[("read", 4_000_000, 4.0)]);
    stopped.clock.stops = 200_000;
    stopped.prices.known.push(price(Service::CountedCallCpu, 10_000.0));
    assert!(ids(&stopped).contains(&Id::SystemCalls), "stops took four seconds at most");
    stopped.clock.stops = 400_000;
    assert!(!ids(&stopped).contains(&Id::SystemCalls), "stops may have taken eight seconds");
    unknown.memory.minor_faults = 4_000_000;
    assert!(!ids(&unknown).contains(&Id::SystemCalls));
}

#[test]
fn a_server_that_works_half_of_the_time_is_mostly_system_calls_too() {
    // The program was watched as it ran, so its calls were not counted.
    let facts = |user_s, sys_s| {
        let clock = Clock { wall_s: 5.0, user_s, sys_s, own_sys_s: sys_s, ..Clock::default() };
        Facts { ending: None, clock, calls: None, ..quiet() }
    };
    let found = first(&facts(0.5, 1.75));
    assert_eq!((found.id, found.confidence), (Id::SystemCalls, Confidence::Medium));
    assert!(found.evidence[0].contains("not known"), "{found:?}");
    assert!(!ids(&facts(2.0, 1.0)).contains(&Id::SystemCalls), "it is mostly its own code's");
    assert!(!ids(&facts(0.1, 0.5)).contains(&Id::SystemCalls), "it mostly waits");
}
