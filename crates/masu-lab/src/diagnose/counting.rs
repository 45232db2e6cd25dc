//! The time that counting took from a run, so that the run's times can be reported without it.
//!
//! Relies on prices and counts. If stops are few, they cost their number times their price. If they are many, above all
//! on a busy machine, they take longer than their price: a stopped thread waits for its tracer, and the tracer waits
//! for a CPU. Then the counted services at their prices replace the time in the kernel, and the clock is the program's
//! work plus its sleep. Between few and many the two are mixed, so that a few stops more or less change no verdict. Few
//! stops take longer than their price too, if the tracer has to wait for a CPU: a run works, sleeps, waits for a CPU or
//! is stopped, so the time that is none of the others was a stop. A process that is attached to runs undisturbed for a
//! short time before: the kernel's share of its CPU time is the one of that time. If samples of calls were counted, all of
//! this applies to the part of the run in which they were.

use super::facts::{Clock, Facts, Threads};
use super::thresholds::{LOOKS_MIN, LOOKS_MIN_FOR_STOPS, STOPS_SHARE, STOPS_SHARE_MUCH};
use masu_run::kernel;
use masu_run::prices::Service;

/// A run is repeated if counting took at least this much of the program's own time, and if that is no longer than this,
/// in seconds.
const MUCH: f64 = 0.5;
const REPEATED_MOST_S: f64 = 16.0;

/// Notes the time that stops for counting took from the run.
pub(super) fn note_counting(facts: &mut Facts) {
    note_clock(facts);
    scale_kinds(facts);
}

/// Whether counting took so much of the run of a short program that its times are better taken from another run.
pub(super) fn is_much(facts: &Facts) -> bool {
    let own_s = facts.clock.own_wall_s(facts.cpus);
    facts.clock.counting_s >= MUCH * own_s && own_s <= REPEATED_MOST_S && facts.has_ended_well()
}

/// Makes the times of calls no longer than the kernel's time.
fn scale_kinds(facts: &mut Facts) {
    let kinds = facts.calls.as_mut().map_or(&mut [][..], |calls| &mut calls.kinds);
    let all_s: f64 = kinds.iter().map(|kind| kind.seconds).sum();
    // The calls were timed by the wall clock, which also runs while a thread waits for a CPU.
    let scale = (facts.clock.own_sys_s / all_s.max(1e-9)).min(1.0);
    kinds.iter_mut().for_each(|kind| kind.seconds *= scale);
}

impl Facts {
    /// Takes everything but the counts, and what was measured apart, from another run that was not counted.
    pub(super) fn replace_by_uncounted(&mut self, mut uncounted: Facts) {
        // A run that is over too soon does not meet the refusal.
        let samples = self.samples.take().and(uncounted.samples.take());
        let clock = Clock {
            counting_s: 0.0,
            stops: 0,
            own_sys_s: uncounted.clock.sys_s,
            counted_run_s: self.clock.wall_s,
            ..uncounted.clock
        };
        *self = Facts {
            clock,
            samples,
            calls: self.calls.take(),
            inside: self.inside.take(),
            prices: std::mem::take(&mut self.prices),
            ..uncounted
        };
        scale_kinds(self);
    }
}

fn note_clock(facts: &mut Facts) {
    let priced_s = |service| facts.clock.stops as f64 * facts.price_s(service);
    let (all_s, cpu_s) = (priced_s(Service::CountedCall), priced_s(Service::CountedCallCpu));
    let (clock, threads) = (facts.clock, &facts.threads);
    // Nothing was stopped while calls were not counted: there is nothing to take out of the kernel's time or the
    // clock's.
    let sampled = facts.calls.as_ref().and_then(|calls| calls.sampled).unwrap_or_default();
    let unseen_sys_s = sampled.unseen_sys_s.min(clock.sys_s);
    let seen_sys_s = clock.sys_s - unseen_sys_s;
    // Page faults are the program's, even where the stops at their price take all of the kernel's time.
    let faults_s = facts.memory.minor_faults as f64 * facts.price_s(Service::PageFault);
    let own_sys_s = (seen_sys_s - cpu_s).max(faults_s.min(seen_sys_s));
    let finished = |seen: Clock| {
        let whole = Clock { own_sys_s: unseen_sys_s + seen.own_sys_s, ..seen };
        let whole = without_waits_for_the_tracer(whole, threads);
        // Prices are means: the stops of a short run at their prices can be longer than the run.
        let own_s = sampled.paused_s.max(whole.least_s(facts.cpus));
        let counting_s = whole.counting_s.min((clock.wall_s - own_s).max(0.0));
        Clock { counting_s, ..whole }
    };
    if let Some(share) = clock.kernel_share_before {
        let user_s = clock.user_s.max(1.0 / kernel::ticks_a_second());
        let own_sys_s = (user_s * share / (1.0 - share).max(1e-9)).min(clock.sys_s);
        facts.clock = finished(Clock { own_sys_s, ..clock });
        return;
    }
    let is_met = threads.looks >= LOOKS_MIN_FOR_STOPS;
    // Threads are stopped side by side: their stops together may be longer than the run.
    let by_price = Clock { own_sys_s, counting_s: all_s.min(clock.wall_s), ..clock };
    let share = cpu_s / seen_sys_s.max(1e-9);
    let doubt = ((share - STOPS_SHARE) / (STOPS_SHARE_MUCH - STOPS_SHARE)).clamp(0.0, 1.0);
    if !is_met || doubt == 0.0 {
        facts.clock = finished(by_price);
        return;
    }
    let known_sys_s = own_sys_s.min(known_sys_s(facts));
    let at_once = if threads.together_s > threads.alone_s { facts.cpus.max(1) } else { 1 };
    let own_wall_s = threads.idle_s + (clock.user_s + unseen_sys_s + known_sys_s) / at_once as f64;
    let counting_s = (clock.wall_s - clock.queued_s - own_wall_s).max(0.0);
    let between = |one: f64, other: f64| one + doubt * (other - one);
    let between = Clock {
        own_sys_s: between(by_price.own_sys_s, known_sys_s),
        counting_s: between(by_price.counting_s, counting_s),
        ..clock
    };
    facts.clock = finished(between);
}

/// The clock with all time that was neither work nor sleep nor waiting for a CPU counted as stops.
fn without_waits_for_the_tracer(clock: Clock, threads: &Threads) -> Clock {
    if threads.looks < LOOKS_MIN {
        return clock;
    }
    // In the time that no look covers, the program waited for a CPU as much as in the rest.
    let (worked_s, unseen_s) = (clock.own_cpu_s(), (clock.wall_s - threads.looked_s).max(0.0));
    let unseen_s = unseen_s * worked_s / (worked_s + clock.queued_s).max(1e-9);
    let own_wall_s = clock.own_cpu_s() + threads.idle_s + unseen_s;
    let counting_s = (clock.wall_s - clock.queued_s - own_wall_s).max(clock.counting_s);
    Clock { counting_s, ..clock }
}

/// The kernel's work for the program, as far as it was counted and has a price.
fn known_sys_s(facts: &Facts) -> f64 {
    let Some(calls) = &facts.calls else { return f64::INFINITY };
    let cost = |count: u64, service| count as f64 * facts.price_s(service);
    let locks: u64 = calls.locks.iter().map(|lock| lock.waits).sum();
    let is_counted = |name: &str| calls.counts.contains_key(name);
    let others = calls.kinds.iter().filter(|kind| !is_counted(&kind.name));
    cost(calls.counts.values().sum(), Service::SystemCall)
        + others.map(|kind| kind.seconds).sum::<f64>()
        + cost(calls.moves.break_pairs(), Service::BreakPair)
        + cost(calls.moves.map_pairs(), Service::MapPair)
        + cost(facts.memory.minor_faults, Service::PageFault)
        + cost(facts.memory.minor_faults, Service::PageReturn)
        + facts.small_writes_s()
        + cost(calls.threads_started, Service::Thread)
        + cost(locks, Service::ContextSwitch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::facts::CallFacts;
    use crate::diagnose::judge::tests::reading::facts;
    use crate::diagnose::samples::Sampled;
    use masu_run::calls::{CallKind, Sampling};

    /// A second in the kernel; stops at their price took this share of it.
    fn stopped(share: f64) -> Clock {
        let mut facts = made(share);
        note_counting(&mut facts);
        facts.clock
    }

    fn made(share: f64) -> Facts {
        let mut facts = facts(
            "clock = wall_s 4, user_s 2, sys_s 1
             calls =
             threads = looks 400, looked_s 4, alone_s 3, idle_s 1
             price counted_call 10_000
             price counted_call_cpu 5_000
             price system_call 100
             price page_fault 1_000
             cpus 2",
        );
        facts.clock.stops = (share / 5e-6) as u64;
        facts
    }

    #[test]
    fn the_kernel_has_the_share_that_it_had_before_a_process_was_attached_to() {
        for (before, own_sys_s) in [(0.0, 0.0), (0.2, 0.5), (1.0, 1.0)] {
            let mut facts = made(0.5);
            facts.clock.kernel_share_before = Some(before);
            note_counting(&mut facts);
            assert!((facts.clock.own_sys_s - own_sys_s).abs() < 1e-6, "{:?}", facts.clock);
        }
    }

    #[test]
    fn a_little_more_counting_changes_the_clock_by_little() {
        for step in 0..100 {
            let (one, next) = (f64::from(step) / 100.0, f64::from(step + 1) / 100.0);
            let (one, next) = (stopped(one), stopped(next));
            let apart = |of: fn(&Clock) -> f64| (of(&one) - of(&next)).abs();
            assert!(apart(|clock| clock.own_sys_s) < 0.06, "{one:?}, {next:?}");
            assert!(apart(|clock| clock.counting_s) < 0.12, "{one:?}, {next:?}");
        }
    }

    #[test]
    fn while_calls_were_not_counted_nothing_was_stopped() {
        // The stops take more, at their price, than the run's time.
        let mut facts = made(3.0);
        let sampled = Sampling { unseen_sys_s: 0.75, paused_s: 3.5, ..Sampling::default() };
        facts.calls = Some(CallFacts { sampled: Some(sampled), ..CallFacts::default() });
        note_counting(&mut facts);
        assert!((facts.clock.own_sys_s - 0.75).abs() < 1e-6, "{:?}", facts.clock);
        assert!(facts.clock.counting_s <= 0.5 + 1e-9, "{:?}", facts.clock);
    }

    #[test]
    fn counting_leaves_a_short_run_its_own_time() {
        let mut facts = made(0.5);
        let clock = facts.clock;
        facts.clock = Clock { wall_s: 0.005, user_s: 0.004, sys_s: 0.001, stops: 2000, ..clock };
        facts.threads = Threads::default();
        note_counting(&mut facts);
        let Clock { wall_s, counting_s, .. } = facts.clock;
        assert!((wall_s - counting_s - 0.002).abs() < 1e-9, "{:?}", facts.clock);
    }

    #[test]
    fn calls_take_no_longer_than_the_kernel_worked() {
        let mut facts = made(0.5);
        let kind = |seconds| CallKind { seconds, ..CallKind::default() };
        facts.calls.as_mut().unwrap().kinds = vec![kind(9.0), kind(3.0)];
        note_counting(&mut facts);
        let kinds = &facts.calls.as_ref().unwrap().kinds;
        assert!((kinds[0].seconds + kinds[1].seconds - facts.clock.own_sys_s).abs() < 1e-9);
        assert!((kinds[0].seconds - 3.0 * kinds[1].seconds).abs() < 1e-9, "{kinds:?}");
    }

    #[test]
    fn few_stops_take_their_price_and_many_all_that_is_not_known() {
        let few = stopped(0.05);
        assert!((few.own_sys_s - 0.95).abs() < 1e-6 && (few.counting_s - 0.1).abs() < 1e-6);
        let many = stopped(0.5);
        assert!(many.own_sys_s < 1e-6, "{many:?}");
        assert!((many.counting_s - 1.0).abs() < 1e-6, "{many:?}");
    }

    #[test]
    fn the_kernel_served_page_faults_whatever_stops_took() {
        for (faults, own_sys_s) in [(0, 0.0), (100_000, 0.1), (9_000_000, 1.0)] {
            let mut facts = made(3.0);
            facts.memory.minor_faults = faults;
            note_counting(&mut facts);
            assert!((facts.clock.own_sys_s - own_sys_s).abs() < 1e-6, "{:?}", facts.clock);
        }
    }

    #[test]
    fn a_tracer_that_waits_for_a_cpu_is_no_time_of_the_program() {
        let threads = Threads { looks: 40, looked_s: 4.0, idle_s: 0.5, ..Threads::default() };
        let clock = Clock { wall_s: 4.0, user_s: 0.4, queued_s: 2.0, ..Clock::default() };
        let busy = without_waits_for_the_tracer(clock, &threads);
        assert!((busy.own_wall_s(2) - 0.9).abs() < 1e-9, "{busy:?}");
        // The time that no look covers may be the program's, except for a part that waited for a CPU like the rest.
        let unseen = Threads { looked_s: 3.4, ..threads.clone() };
        let less = without_waits_for_the_tracer(clock, &unseen);
        assert!((less.own_wall_s(2) - 1.0).abs() < 1e-9, "{less:?}");
        let few = Threads { looks: 3, ..threads };
        assert_eq!(without_waits_for_the_tracer(clock, &few), clock);
    }

    #[test]
    fn a_short_run_that_counting_slowed_much_is_replaced_by_one_that_was_not_counted() {
        let mut facts = Facts { ending: Some("returned 0".to_owned()), ..made(0.5) };
        let kind = CallKind { name: "lseek".to_owned(), calls: 20_000, seconds: 0.7 };
        facts.calls.as_mut().unwrap().kinds.push(kind);
        note_counting(&mut facts);
        assert!(!is_much(&facts), "counting took a third of its own time");
        facts.clock.counting_s = 2.0;
        assert!(is_much(&facts));
        let long = Clock { wall_s: 60.0, counting_s: 35.0, ..facts.clock };
        assert!(!is_much(&Facts { clock: long, ..facts.clone() }));
        assert!(!is_much(&Facts { ending: Some("returned 1".to_owned()), ..facts.clone() }));
        let clock = Clock { wall_s: 0.2, user_s: 0.1, sys_s: 0.01, stops: 7, ..Clock::default() };
        facts.samples = None;
        let samples = Some(Sampled::default());
        facts.replace_by_uncounted(Facts { clock, samples, ..Facts::default() });
        assert_eq!(facts.samples, None, "the kernel refused them");
        let Clock { wall_s, own_sys_s, counting_s, counted_run_s, stops, .. } = facts.clock;
        assert_eq!((wall_s, own_sys_s, counting_s, counted_run_s, stops), (0.2, 0.01, 0.0, 4.0, 0));
        let kinds = &facts.calls.as_ref().unwrap().kinds;
        assert!((kinds[0].seconds - 0.01).abs() < 1e-9 && kinds[0].calls == 20_000);
        assert!(facts.price_s(Service::SystemCall) > 0.0, "prices are kept");
    }
}
