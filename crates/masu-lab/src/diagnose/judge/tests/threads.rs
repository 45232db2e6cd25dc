//! Findings about threads: locks that they wait for, threads that come and go, phases in which one thread works alone.

use super::*;
use masu_run::calls::Sampling;

/// Eight threads on two CPUs; each waits half of the time for a lock.
pub(super) fn contended(owner: Owner, threads: usize) -> Facts {
    let lock = Lock { process: 7, address: 0x7f00_0000_0030, owner, waits: 400_000, threads };
    let threads = Threads {
        most_at_once: 9,
        lock_waited: vec![(owner, 20.0)],
        cpu_s: 15.0,
        together_s: 9.0,
        ..quiet().threads
    };
    let clock =
        Clock { wall_s: 10.0, user_s: 10.0, sys_s: 5.0, own_sys_s: 5.0, ..Clock::default() };
    calling(Facts { clock, threads, ..quiet() }, |calls| {
        calls.locks = vec![lock];
        calls.threads_started = 8;
    })
}

#[test]
fn waiting_for_the_mallocs_lock_names_arenas_and_another_malloc() {
    let finding = first(&contended(Owner::Malloc, 8));
    assert_eq!((finding.id, finding.confidence), (Id::MallocLock, Confidence::High));
    assert!((finding.share.unwrap() - 20.0 / 35.0).abs() < 0.01, "{finding:?}");
    assert_eq!(variants(&finding, RemedyKind::Setting), ["glibc:arenas=9"]);
    assert_eq!(variants(&finding, RemedyKind::Allocator), ["masu"]);
}

#[test]
fn waiting_for_little_is_no_cause() {
    let mut facts = calling(contended(Owner::Malloc, 8), |calls| calls.locks[0].waits = 100_000);
    assert_eq!(causes(&facts), [Id::MallocLock]);
    facts.threads.lock_waited = vec![(Owner::Malloc, 1.0)];
    assert_eq!(causes(&facts), []);
    // Few looks meet many brief waits, which cost the price of sleeping and being woken.
    let many = calling(facts, |calls| calls.locks[0].waits = 1_000_000);
    assert_eq!(causes(&many), [Id::MallocLock]);
    // A few waits are no finding, however long: the reason is the work under the lock.
    let few = calling(contended(Owner::Malloc, 8), |calls| calls.locks[0].waits = 600);
    assert_eq!(causes(&few), []);
}

#[test]
fn no_more_waits_sleep_than_the_kernel_counted_switches() {
    let mut facts = contended(Owner::Malloc, 8);
    let share = |facts: &Facts| judge(facts)[0].share.unwrap();
    facts.threads.lock_waited.clear();
    // The kernel's time does not show more sleeping waits either.
    (facts.clock.user_s, facts.clock.own_sys_s) = (14.0, 1.0);
    let all = share(&facts);
    // Stops are none of them.
    facts.clock.stops = 500_000;
    facts.clock.voluntary_switches = 200_000;
    let slept = share(&facts);
    assert!(slept < 0.6 * all && slept > 0.4 * all, "{slept}, {all}");
    // Waits for other locks than the malloc's sleep as often.
    let shared = calling(facts, |calls| calls.futex_waits = 800_000);
    assert_ne!(judge(&shared)[0].id, Id::MallocLock);
}

/// Two threads, one of which frees the other's blocks, as recorded: of 232,000 waits samples were counted, and looks
/// met no thread asleep.
fn handed_over(switches: u64, own_sys_s: f64) -> Facts {
    let lock = Lock {
        process: 7,
        address: 0x7f00_0000_0030,
        owner: Owner::Malloc,
        waits: 217_000,
        threads: 2,
    };
    let threads = Threads {
        most_at_once: 3,
        cpu_s: 6.7,
        parallel_cpu_s: 6.7,
        looked_s: 4.7,
        together_s: 4.6,
        arenas: 2,
        ..quiet().threads
    };
    let clock = Clock {
        wall_s: 4.7,
        user_s: 3.0,
        sys_s: 3.7,
        own_sys_s,
        stops: 55_000,
        voluntary_switches: switches,
        ..Clock::default()
    };
    let mut facts = calling(Facts { clock, threads, ..quiet() }, |calls| {
        calls.locks = vec![lock];
        calls.threads_started = 2;
        calls.futex_waits = 232_000;
        calls.counts = [("futex", 606_000), ("mprotect", 7_200)].into();
        calls.sampled = Some(Sampling::default());
    });
    facts.memory.minor_faults = 3_600;
    let prices = [price(Service::ContextSwitch, 1_500.0), price(Service::FutexWake, 15_000.0)];
    facts.prices.known.retain(|one| !prices.iter().any(|it| it.service == one.service));
    facts.prices.known.extend(prices);
    facts
}

#[test]
fn the_kernels_time_says_what_waits_cost_where_its_switches_do_not() {
    let finding = first(&handed_over(5_000, 2.9));
    assert_eq!(finding.id, Id::RemoteFrees, "{finding:?}");
    assert!((finding.share.unwrap() - 0.45).abs() < 0.05, "{finding:?}");
    // No wait costs more than going to sleep and being woken.
    let more = first(&handed_over(5_000, 20.0));
    assert!((more.share.unwrap() - 217_000.0 * 16.5e-6 / 23.0).abs() < 0.01, "{more:?}");
    // Other calls may have taken the time.
    let reads = calling(handed_over(5_000, 2.9), |calls| {
        calls.counts.insert("read", 170_000);
    });
    assert!(!causes(&reads).contains(&Id::RemoteFrees), "{:?}", causes(&reads));
}

#[test]
fn memory_is_not_fine_beside_many_waits_for_the_mallocs_locks() {
    let findings = judge(&handed_over(5_000, 0.05));
    let open = findings.iter().find(|one| one.id == Id::MemoryOpen).expect("it is left open");
    assert!(findings.iter().all(|one| one.id != Id::MemoryIsFine), "{findings:?}");
    assert_eq!(variants(open, RemedyKind::Allocator), ["masu"]);
    assert!(open.evidence.iter().any(|said| said.contains("217,000 waits")), "{open:?}");
    // A few waits, as the start and the end of threads make, are no finding.
    let few = calling(handed_over(5_000, 0.05), |calls| calls.locks[0].waits = 400);
    assert!(ids(&few).contains(&Id::MemoryIsFine));
}

#[test]
fn where_each_thread_has_an_arena_a_waiting_thread_frees_the_blocks_of_another() {
    let mut facts = contended(Owner::Malloc, 2);
    facts.threads.most_at_once = 3;
    facts.threads.arenas = 2;
    let finding = first(&facts);
    assert_eq!((finding.id, finding.confidence), (Id::RemoteFrees, Confidence::Medium));
    assert_eq!(variants(&finding, RemedyKind::Setting), [""; 0]);
    // A thread that only frees has no arena; but then no thread waits for the first.
    facts.threads.arenas = 1;
    assert_eq!(first(&facts).id, Id::RemoteFrees);
    let first_arena = |calls: &mut CallFacts| {
        let lock = Lock { address: 0x7f00_0012_3450, ..calls.locks[0].clone() };
        calls.locks.push(lock);
    };
    assert_eq!(first(&calling(facts.clone(), first_arena)).id, Id::MallocLock);
    // With this many arenas there is no room for more, and threads share them.
    facts.threads.arenas = 16;
    facts.threads.most_at_once = 33;
    assert_eq!(first(&facts).id, Id::MallocLock);
    facts.threads.arenas = 0;
    assert_eq!(first(&facts).id, Id::MallocLock);
}

#[test]
fn switches_that_nothing_else_explains_are_waits_that_samples_missed() {
    let sampled = |switches| {
        let mut facts = calling(contended(Owner::Malloc, 8), |calls| {
            calls.locks[0].waits = 30_000;
            calls.futex_waits = 40_000;
            calls.counts = [("futex", 80_000)].into();
            calls.sampled = Some(Sampling::default());
        });
        facts.threads.lock_waited = Vec::new();
        facts.clock.voluntary_switches = switches;
        facts
    };
    assert_eq!(causes(&sampled(40_000)), []);
    assert_eq!(causes(&sampled(1_000_000)), [Id::MallocLock]);
    // Calls that may sleep explain the switches, and so do faults; if all calls were counted, no wait was missed.
    let reads = calling(sampled(1_000_000), |calls| {
        calls.counts.insert("read", 1_000_000);
    });
    assert_eq!(causes(&reads), []);
    let counted = calling(sampled(1_000_000), |calls| calls.sampled = None);
    assert_eq!(causes(&counted), []);
}

#[test]
fn the_statistics_of_masu_decide_which_thread_frees_the_blocks_of_which() {
    let inside = |remote_blocks| {
        Some(Inside { fetched_blocks: 1_000_000, remote_blocks, ..Inside::default() })
    };
    let facts = Facts { inside: inside(900_000), ..contended(Owner::Malloc, 8) };
    let finding = first(&facts);
    assert_eq!((finding.id, finding.confidence), (Id::RemoteFrees, Confidence::High));
    let facts = Facts { inside: inside(1_000), ..contended(Owner::Malloc, 8) };
    assert_eq!(first(&facts).id, Id::MallocLock);
}

#[test]
fn one_hot_lock_of_the_program_is_named_and_many_warm_ones_are_not() {
    let facts = contended(Owner::Program, 8);
    let finding = first(&facts);
    assert_eq!(finding.id, Id::OneLock);
    assert!(finding.remedies.iter().all(|remedy| remedy.kind == RemedyKind::NeedsCode));
    let many = calling(facts, |calls| calls.more_lock_waits = 500_000);
    assert_eq!(causes(&many), []);
}

#[test]
fn a_lock_that_only_samples_of_calls_met_is_no_cause() {
    let sampled = |owner, slept_s| {
        let mut facts =
            calling(contended(owner, 2), |calls| calls.sampled = Some(Sampling::default()));
        facts.threads.lock_waited = vec![(owner, slept_s)];
        causes(&facts)
    };
    assert_eq!(sampled(Owner::Program, 0.02 * quiet().threads.cpu_s), []);
    assert_eq!(sampled(Owner::Program, 0.2 * quiet().threads.cpu_s), [Id::OneLock]);
    assert_eq!(sampled(Owner::Malloc, 0.02 * quiet().threads.cpu_s).len(), 1);
}

#[test]
fn threads_for_little_work_each_are_churn_and_a_pool_is_not() {
    let churn = calling(quiet(), |calls| calls.threads_started = 100_000);
    let finding = first(&churn);
    assert_eq!(finding.id, Id::ThreadChurn);
    assert!((finding.share.unwrap() - 0.2).abs() < 0.001, "{finding:?}");
    // The stacks of ended threads are given back and touched again, which is no storm of its own.
    let stacks = |refaults| {
        let memory = Memory { refaults: Some(refaults), ..quiet().memory };
        calling(Facts { memory, ..quiet() }, |calls| {
            calls.threads_started = 100_000;
            calls.moves = Moves { purges: 100_000, returned_bytes: 400 << 30, ..Moves::default() };
        })
    };
    assert_eq!(causes(&stacks(200_000)), [Id::ThreadChurn]);
    assert_eq!(causes(&stacks(2_000_000)).len(), 2);
    let pool = calling(quiet(), |calls| calls.threads_started = 64);
    assert_eq!(causes(&pool), []);
}

/// The first thread works alone for eight seconds, then it waits for four others.
pub(super) fn serial() -> Facts {
    let mut busiest = vec![thread("main", true, 8.0, 8.0, 0.0)];
    busiest.extend((0..4).map(|_| thread("main", false, 0.9, 0.0, 1.9)));
    let threads = Threads {
        most_at_once: 5,
        busiest,
        cpu_s: 11.6,
        alone_s: 8.0,
        together_s: 1.9,
        ..quiet().threads
    };
    let clock =
        Clock { wall_s: 10.0, user_s: 11.6, sys_s: 0.0, own_sys_s: 0.0, ..Clock::default() };
    Facts { clock, threads, ..quiet() }
}

#[test]
fn one_thread_that_works_before_the_others_is_a_serial_phase() {
    let finding = first(&serial());
    assert_eq!(finding.id, Id::SerialPhase);
    assert!((finding.share.unwrap() - 0.8).abs() < 0.001, "{finding:?}");
    // On one CPU the threads could not work at once anyway.
    assert_eq!(causes(&Facts { cpus: 1, ..serial() }), []);
}

#[test]
fn a_process_beside_that_works_alone_for_longer_hides_no_serial_phase() {
    let mut facts = serial();
    let beside = ThreadTime { process: 8, ..thread("gzip", true, 9.0, 9.0, 0.0) };
    facts.threads.busiest.insert(0, beside);
    facts.threads.looked_s = 20.0;
    let finding = first(&facts);
    assert_eq!(finding.id, Id::SerialPhase);
    assert!(finding.evidence[0].contains("`main`"), "{finding:?}");
}

#[test]
fn a_serial_phase_is_named_beside_a_lock_only_where_nobody_waited_for_one() {
    let mut facts = contended(Owner::Program, 3);
    facts.threads.alone_s = serial().threads.alone_s;
    facts.threads.busiest = serial().threads.busiest;
    assert_eq!(causes(&facts).len(), 2);
    assert!(causes(&facts).contains(&Id::SerialPhase));
    // One thread works alone because the others wait for it.
    facts.threads.busiest[0].serial_s = 0.5;
    assert_eq!(causes(&facts), [Id::OneLock]);
}

/// A tenth of the run is parallel, and threads wait for a lock there: 600 ms that they slept, 20 ms of price.
fn hidden(waits: u64) -> Facts {
    let mut facts = calling(serial(), |calls| {
        let owner = Owner::Program;
        calls.locks =
            vec![Lock { process: 7, address: 0x5500_0000_0030, owner, waits, threads: 5 }];
    });
    facts.threads.lock_waited = vec![(Owner::Program, 0.6)];
    facts.threads.parallel_cpu_s = 0.8;
    facts
}

#[test]
fn a_lock_that_holds_back_the_parallel_part_is_named_behind_the_serial_phase_that_hides_it() {
    let findings = judge(&hidden(4_000));
    assert_eq!([findings[0].id, findings[1].id], [Id::SerialPhase, Id::OneLock]);
    let lock = &findings[1];
    assert_eq!(lock.confidence, Confidence::Medium);
    // The lock has 0.6 of 1.4 s in the parallel part, in a run whose CPU time is 11.6 s.
    assert!((lock.share.unwrap() - 0.6 / 1.4 * 0.8 / 11.6).abs() < 0.001, "{lock:?}");
    assert!(lock.evidence.iter().any(|said| said.contains("800 ms of CPU time")), "{lock:?}");
    // A lock of the malloc is found in the same way.
    let mut facts = calling(hidden(4_000), |calls| calls.locks[0].owner = Owner::Malloc);
    facts.threads.lock_waited = vec![(Owner::Malloc, 0.6)];
    assert_eq!(causes(&facts), [Id::SerialPhase, Id::MallocLock]);
    // In the parallel part the lock does not explain the malloc's share of the whole run.
    facts.samples = sampled(0.3);
    assert_eq!(causes(&facts), [Id::SerialPhase, Id::ManyAllocations, Id::MallocLock]);
}

#[test]
fn a_lock_that_costs_little_of_the_parallel_part_is_no_cause() {
    // The waits cost 15 ms of 800, which is too little.
    assert_eq!(causes(&hidden(3_000)), [Id::SerialPhase]);
    // The waits cost 30 ms, but hardly any thread sleeps.
    let mut brief = hidden(6_000);
    brief.threads.lock_waited = vec![(Owner::Program, 0.05)];
    assert_eq!(causes(&brief), [Id::SerialPhase]);
    // A few waits like these are the start and the end of threads.
    let mut few = hidden(400);
    few.prices.known.iter_mut().for_each(|price| price.median_ns *= 100.0);
    assert_eq!(causes(&few), [Id::SerialPhase]);
}

#[test]
fn sleep_while_nobody_works_is_no_part_of_the_parallel_part() {
    let mut facts = hidden(4_000);
    // 400 ms are left beside 800 ms of work: a third, which is 2.3 % of the whole run.
    facts.threads.lock_waited_idle = vec![(Owner::Program, 0.2), (Owner::Malloc, 9.0)];
    let findings = judge(&facts);
    assert_eq!([findings[0].id, findings[1].id], [Id::SerialPhase, Id::OneLock]);
    assert!(findings[1].evidence.iter().any(|said| said.contains("400 ms")), "{findings:?}");
    facts.threads.lock_waited_idle[0].1 = 0.3;
    assert_eq!(causes(&facts), [Id::SerialPhase]);
}

#[test]
fn nothing_is_held_against_a_parallel_part_that_is_hardly_there_or_hidden_by_nothing() {
    let mut short = hidden(4_000);
    short.threads.parallel_cpu_s = 0.05;
    assert_eq!(causes(&short), [Id::SerialPhase]);
    // Without a serial phase, waits in a small part of the run do not matter.
    let mut open = hidden(4_000);
    open.threads.busiest[0].serial_s = 1.0;
    open.threads.busiest[0].alone_s = 1.0;
    assert_eq!(causes(&open), []);
    // The same holds if one thread works alone because the others wait for it.
    let mut held = hidden(4_000);
    held.threads.busiest[0].serial_s = 1.0;
    assert_eq!(causes(&held), [Id::SerialPhase]);
}

#[test]
fn stops_are_no_time_in_which_threads_could_work_at_once() {
    let mut facts = serial();
    facts.threads.looked_s = 40.0;
    assert_eq!(causes(&facts), []);
    facts.threads.stopped_s = 30.0;
    assert_eq!(causes(&facts), [Id::SerialPhase]);
}

#[test]
fn helpers_of_a_run_time_are_no_workers() {
    let mut facts = serial();
    for (index, name) in ["C1 Compiler", "C2 Compiler", "GC", "Signal"].into_iter().enumerate() {
        facts.threads.busiest[index + 1].name = name.to_owned();
    }
    assert_eq!(causes(&facts), []);
}

#[test]
fn threads_that_hardly_help_are_no_workers() {
    let mut facts = serial();
    for helper in &mut facts.threads.busiest[1..] {
        helper.cpu_s = 0.1;
    }
    facts.threads.cpu_s = 8.4;
    assert_eq!(causes(&facts), []);
}

#[test]
fn one_worker_that_has_more_to_do_is_uneven() {
    let mut busiest = vec![thread("main", true, 0.0, 0.0, 0.0)];
    busiest.push(thread("worker-0", false, 9.0, 6.0, 3.0));
    busiest.extend((1..4).map(|index| thread(&format!("worker-{index}"), false, 1.0, 0.0, 3.0)));
    let threads = Threads { busiest, cpu_s: 12.0, together_s: 3.0, ..serial().threads };
    let finding = first(&Facts { threads, ..serial() });
    assert_eq!(finding.id, Id::UnevenCores);
    assert!(finding.evidence[0].contains("worker-0"), "{finding:?}");
}

#[test]
fn phases_are_not_blamed_on_threads_that_come_and_go() {
    let facts = calling(serial(), |calls| calls.threads_started = 100_000);
    assert_eq!(causes(&facts), [Id::ThreadChurn]);
}
