//! Actions on the whole process: the heap profile, options at run time, statistics.
//!
//! The hard idea: while the option `memory_limit` is set, a refusal is no fault. A count of its changes, read before and
//! after a request, shows whether it was set at any time during the request.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use masu::options::{self, Description, Unit};
use masu::statistics::{self, ClassStatistics, ThreadStatistics};
use masu::{c, profile};

use crate::finding::Finding;
use crate::random::Random;

/// Whether memory is limited.
#[derive(Default)]
pub(crate) struct Limit {
    /// Odd while there is a limit; only grows.
    changes: AtomicUsize,
    change: Mutex<()>,
    /// Odd while calls for memory are refused; only grows.
    refusals: AtomicUsize,
    /// The most bytes that may be live and kept together: the limit, or the bytes that were live and kept when it was
    /// set, or when calls were no longer refused, if they were more.
    most: AtomicUsize,
}

impl Limit {
    /// The counts of changes, for [`Limit::may_refuse`] afterwards.
    pub(crate) fn now(&self) -> [usize; 2] {
        // ORDERING: SeqCst: another thread sets the option between two changes of the count.
        [&self.changes, &self.refusals].map(|changes| changes.load(Ordering::SeqCst))
    }

    /// Whether there was a limit, or calls were refused, at any time since `before`.
    pub(crate) fn may_refuse(&self, before: [usize; 2]) -> bool {
        before.iter().any(|changes| changes % 2 == 1) || self.now() != before
    }

    fn is_set(&self) -> bool {
        self.now()[0] % 2 == 1
    }

    /// Has the kernel refuse calls for memory now and then, or no more.
    pub(crate) fn change_refusals(&self, random: &mut Random) {
        let rate = random.doubling(2, 200);
        let _turn = self.change.lock().expect("no thread panicked");
        let begins = self.now()[1].is_multiple_of(2);
        if !begins {
            refuse_calls(0);
        }
        // ORDERING: As in `now`.
        self.refusals.fetch_add(1, Ordering::SeqCst);
        if begins {
            refuse_calls(rate);
        } else {
            // ORDERING: Relaxed: as in `note_most`.
            self.note_most(self.most.load(Ordering::Relaxed));
        }
    }

    fn note_most(&self, least: usize) {
        // ORDERING: Relaxed: the value is read where only one walker runs, in the same thread.
        self.most.store(least.max(taken_bytes()), Ordering::Relaxed);
    }

    /// Sets the limit a little over the live bytes, or removes it.
    fn change(&self, random: &mut Random) {
        let _turn = self.change.lock().expect("no thread panicked");
        if self.is_set() {
            options::set("memory_limit", None).expect("no limit is accepted");
            // ORDERING: As in `now`.
            self.changes.fetch_add(1, Ordering::SeqCst);
        } else {
            // ORDERING: As in `now`.
            self.changes.fetch_add(1, Ordering::SeqCst);
            let limit = c::statistics().live_bytes + random.doubling(1 << 20, 32 << 20);
            options::set("memory_limit", Some(limit)).expect("a limit over the least");
            self.note_most(limit);
        }
    }

    /// Compares live and kept bytes with the limit, where no other thread allocates.
    pub(crate) fn check(&self) -> Result<(), Finding> {
        /// Bytes that later calls return.
        const OWED_BYTES: usize = 4 << 20;
        let (taken, most) = (taken_bytes(), self.most.load(Ordering::Relaxed) + OWED_BYTES);
        // Memory that the kernel refuses to take back counts as well.
        if self.now()[1].is_multiple_of(2) && self.is_set() && taken > most {
            return Err(Finding::Statistics {
                what: "bytes under a limit",
                counted: taken,
                expected: most,
            });
        }
        Ok(())
    }

    /// Removes the limit for good, and has no more calls refused.
    pub(crate) fn end(&self) {
        refuse_calls(0);
        options::set("memory_limit", None).expect("no limit is accepted");
        // ORDERING: As in `now`; no walker runs.
        self.changes.store(0, Ordering::SeqCst);
        // ORDERING: As above.
        self.refusals.store(0, Ordering::SeqCst);
    }
}

/// Bytes in runs that are handed out or kept. Guarded blocks lie in slots, outside all runs. Some guarded blocks may be
/// in caches, which count as free bytes.
fn taken_bytes() -> usize {
    let now = c::statistics();
    now.live_bytes + now.free_bytes + now.metadata_bytes - now.guarded_bytes
}

/// Has one in `rate` of masu's calls for memory refused, none with 0. An optimized build has no such function.
pub(crate) fn refuse_calls(rate: usize) {
    #[cfg(debug_assertions)]
    options::refuse_calls(rate);
    #[cfg(not(debug_assertions))]
    let _ = rate;
}

/// Adds stripes of free runs `times` times, as far as more are allowed.
pub(crate) fn widen(times: usize) {
    (0..times).for_each(|_| _ = options::widen_stripes());
}

/// A value that the option accepts, or its default.
fn value(row: &Description, random: &mut Random) -> Option<usize> {
    let low = row.least.max(1);
    match (random.below(4), row.unit) {
        (0, _) => None,
        (1, _) => Some(row.least),
        (_, Unit::Switch) => Some(1),
        (_, Unit::Count) => Some(row.least + random.below(row.most - row.least + 1)),
        (2, _) => Some(random.doubling(low, row.most.min(1 << 30).max(low))),
        (_, Unit::Milliseconds) => Some(random.below(20)),
        (_, Unit::Bytes) => Some(row.most),
    }
}

/// Changes an option, `memory_limit` only with `limit`, `abort_on_oom` only if `dies`.
pub(crate) fn change_option(
    random: &mut Random,
    limit: Option<&Limit>,
    dies: bool,
) -> Result<(), Finding> {
    let row = &options::ALL[random.below(options::ALL.len())];
    let value = value(row, random);
    match row.name {
        "memory_limit" => {
            if let Some(limit) = limit.filter(|_| !dies) {
                limit.change(random);
            }
            return Ok(());
        }
        "abort_on_oom" if !dies => return Ok(()),
        // Nearly all random values would guard no block.
        "guard_rate" | "guard_slots" => change_guards(random),
        _ => options::set(row.name, value).expect("the value is one that is accepted"),
    }
    Ok(())
}

/// Sets the options that bound the stacks of free blocks.
pub(crate) fn change_depth(random: &mut Random) {
    let cache = [None, Some(0), Some(random.doubling(256, 4 << 20))][random.below(3)];
    options::set("cache_size", cache).expect("any number is accepted");
}

/// Sets the options of guards.
pub(crate) fn change_guards(random: &mut Random) {
    let slots = [None, Some(1), Some(7), Some(600)][random.below(4)];
    options::set("guard_slots", slots).expect("so many are accepted");
    let rate = [0, 0, 1, 2, 16, 300][random.below(6)];
    options::set("guard_rate", Some(rate)).expect("a rate");
}

/// Starts a profile, unless one is being taken.
pub(crate) fn start_profile(random: &mut Random) {
    let intervals = [Some(1), Some(64), Some(2 << 10), Some(2 << 10), Some(64 << 10), None];
    let interval = intervals[random.below(intervals.len())];
    match profile::start(interval) {
        Ok(()) | Err(profile::Refusal::Running | profile::Refusal::Feature) => {}
        // Memory is limited.
        Err(profile::Refusal::Memory) => {}
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Writes the profile, if there is one, and checks that the file is not empty.
pub(crate) fn write_profile() {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    // ORDERING: Relaxed: the number publishes nothing.
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("masu-oracle-{}-{number}.pb", process::id());
    let path = std::env::temp_dir().join(name);
    let c_path = CString::new(path.to_str().expect("a plain folder")).expect("no zeros");
    match profile::write(&c_path) {
        Ok(()) => {
            let length = std::fs::metadata(&path).expect("it was written").len();
            std::fs::remove_file(&path).expect("it was made here");
            assert!(length > 0, "the profile is empty");
        }
        Err(profile::Refusal::None | profile::Refusal::Memory) => {}
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Reads the statistics in one of their forms.
pub(crate) fn read_statistics(random: &mut Random) {
    let mut bytes = 0;
    let mut count = |piece: &[u8]| bytes += piece.len();
    match random.below(4) {
        0 => statistics::text(&mut count),
        1 => statistics::json(&mut count),
        2 => bytes = statistics::classes().count() + statistics::threads().count(),
        _ => bytes = c::statistics().committed_bytes,
    }
    // The number may be 0 if memory is limited.
    std::hint::black_box(bytes);
}

/// Checks that all memory goes back, where no block is live and no other thread uses masu.
pub(crate) fn check_returned() -> Result<(), Finding> {
    c::trim(0);
    let now = c::statistics();
    let pages = statistics::classes().map(|class| class.pages * class.page_bytes).sum();
    // In the hardened build blocks are in quarantine.
    let kept = if cfg!(feature = "secure") { 0 } else { pages };
    for (what, counted) in [("bytes of pages", kept), ("kept bytes", now.kept_bytes)] {
        if counted != 0 {
            return Err(Finding::Statistics { what, counted, expected: 0 });
        }
    }
    Ok(())
}

/// Compares the statistics with the live bytes, while no other thread allocates.
pub(crate) fn check_statistics(live_bytes: usize) -> Result<(), Finding> {
    let now = c::statistics();
    let classes: Vec<ClassStatistics> = statistics::classes().collect();
    let over_classes = |of: fn(&ClassStatistics) -> usize| classes.iter().map(of).sum::<usize>();
    let threads: Vec<ThreadStatistics> = statistics::threads().collect();
    let over_threads = |of: fn(&ThreadStatistics) -> usize| threads.iter().map(of).sum::<usize>();
    let apart = now.large_bytes + now.heap_bytes + now.guarded_apart_bytes;
    let in_classes = over_classes(ClassStatistics::live_bytes);
    equal("live bytes", now.live_bytes, live_bytes)?;
    equal("live bytes of classes, large blocks and heaps", in_classes + apart, live_bytes)?;
    let of_classes = over_classes(ClassStatistics::cached_bytes);
    equal("cached bytes of classes", of_classes, now.cached_bytes)?;
    for (what, of_threads, all) in [
        ("cached bytes of threads", over_threads(|t| t.cached_bytes), now.thread_cached_bytes),
        ("refilled blocks of threads", over_threads(|t| t.refilled_blocks), now.refilled_blocks),
        ("lane blocks of threads", over_threads(|t| t.lane_blocks), now.lane_blocks),
        ("shard blocks of threads", over_threads(|t| t.shard_blocks), now.shard_blocks),
    ] {
        equal(what, of_threads, all)?;
    }
    // Guarded blocks count for a class and lie in none of its pages; heaps have pages of their own. In the hardened build
    // runs are also guards and the quarantine.
    if now.guarded_made > 0 || now.heaps > 0 || cfg!(feature = "secure") {
        return Ok(());
    }
    let parked_bytes = over_threads(|thread| thread.parked_bytes);
    let runs =
        over_classes(|class| class.pages * class.page_bytes) + now.large_bytes + parked_bytes;
    equal("bytes of runs", runs, now.live_bytes + now.free_bytes - now.kept_bytes)?;
    for class in &classes {
        let out = class.live_blocks + class.thread_cached_blocks + class.transfer_blocks;
        let bytes = (out + class.free_blocks) * class.size + class.tail_bytes;
        equal("bytes of a class's pages", bytes, class.pages * class.page_bytes)?;
        equal("blocks taken from pages", class.taken_blocks - class.returned_blocks, out)?;
    }
    Ok(())
}

/// Compares the blocks of each class with the usable sizes of all live blocks outside heaps, while no other thread
/// allocates. Blocks that grew to 64 KiB look like those of the class of that size, so these are compared together.
pub(crate) fn check_classes(live: impl Iterator<Item = usize>) -> Result<(), Finding> {
    let now = c::statistics();
    // Guarded blocks and those of the hardened build are as long as was asked for.
    if now.guarded_made > 0 || cfg!(feature = "secure") {
        return Ok(());
    }
    let mut expected = BTreeMap::<usize, usize>::new();
    live.for_each(|usable| *expected.entry(usable.min(64 << 10)).or_default() += 1);
    for class in statistics::classes() {
        let large = if class.size == 64 << 10 { now.large_blocks } else { 0 };
        let live = expected.remove(&class.size).unwrap_or_default();
        // Large blocks of heaps are counted with the others.
        if large == 0 || now.heaps == 0 {
            equal("live blocks of a class", class.live_blocks + large, live)?;
        }
    }
    equal("live blocks of no class", expected.len(), 0)
}

fn equal(what: &'static str, counted: usize, expected: usize) -> Result<(), Finding> {
    match counted == expected {
        true => Ok(()),
        false => Err(Finding::Statistics { what, counted, expected }),
    }
}
