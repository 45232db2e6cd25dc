//! The cost of waiting for locks: one price, for every judge.
//!
//! A wait that is over at once costs a call; a wait that sleeps costs a switch and a wake-up. Two clocks that see no
//! lock show how many slept: the kernel's count of switches, without stops for counting, and its time, which contains
//! no stop. Each is a lower limit: switches are lost if stops are as many, and the time may belong to other calls.

use super::super::facts::{CallFacts, Facts};
use masu_run::prices::Service;

/// Waits for locks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waits {
    /// The number of waits, including those that samples missed.
    pub(super) count: u64,
    pub(super) cost_s: f64,
    /// The cost if each of the waits slept, in seconds.
    pub(super) most_s: f64,
}

impl Waits {
    /// Estimates the waits from the `counted` ones.
    pub(super) fn of(facts: &Facts, counted: u64) -> Waits {
        let each = price_s(facts);
        let calls = facts.calls.as_ref();
        let switches = facts.clock.voluntary_switches as f64;
        let all = calls.map_or(0, |calls| calls.futex_waits).max(counted) as f64;
        // A kernel that counts no switches says nothing of them.
        let slept = if switches > 0.0 { (switches / all.max(1.0)).min(1.0) } else { 1.0 };
        // Threads stopped for samples meet more rarely. Switches that no other call or fault explains are unseen waits.
        let unseen = match calls.filter(|calls| calls.sampled.is_some()) {
            Some(calls) => {
                let faults = facts.memory.minor_faults + facts.memory.major_faults;
                let sleepers = calls.all_but_wakes() + faults;
                (switches / (sleepers as f64).max(1.0)).max(1.0)
            }
            None => 1.0,
        };
        let count = (counted as f64 * unseen) as u64;
        let sleeps = count as f64 * slept;
        let by_switches_s =
            sleeps * each + (count as f64 - sleeps) * facts.price_s(Service::SystemCall);
        let by_time_s =
            calls.map_or(0.0, |calls| futex_s(facts, calls)) * counted as f64 / all.max(1.0);
        let most_s = count as f64 * each.max(facts.price_s(Service::SystemCall));
        Waits { count, cost_s: by_switches_s.max(by_time_s).min(most_s), most_s }
    }
}

/// The price of a wait that sleeps, in seconds.
fn price_s(facts: &Facts) -> f64 {
    facts.price_s(Service::ContextSwitch) + facts.price_s(Service::FutexWake)
}

/// The least time that the kernel took for waits and wake-ups, in seconds: the time that faults and other calls leave,
/// if each of these calls slept too.
fn futex_s(facts: &Facts, calls: &CallFacts) -> f64 {
    let others = calls.all_but_wakes().saturating_sub(calls.futex_waits) as f64;
    let is_futex = |name: &str| name == "futex";
    let known_s: f64 =
        calls.kinds.iter().filter(|kind| !is_futex(&kind.name)).map(|kind| kind.seconds).sum();
    let others_s = known_s.max(others * price_s(facts));
    let faults_s = facts.memory.minor_faults as f64 * facts.price_s(Service::PageFault);
    (facts.clock.own_sys_s - others_s - faults_s).max(0.0)
}
