//! Sampled guards: one block in many lies between inaccessible OS pages, so that a program that misuses it ends at the
//! faulting instruction, with a report of the stacks that allocated and freed the block. For production: a few programs
//! of many find bugs that no test has found.
//!
//! Relies on an arena of its own, on the unwinder, on the heap profile for the samples of guarded blocks, on counted caches
//! for the choice of blocks (`threads/cache/counted.rs`), and on the C library's door for faults. While the option
//! `guard_rate` is 0, nothing here runs, and no fast path tests for it. A Rust program needs the feature `guards`; the
//! hardened build, which checks every block, has no guards.
//!
//! A *slot* is a range of addresses. OS pages in its middle are opened for a block, which lies at their start or end. A free
//! closes them and puts the slot behind all slots freed before it. The hard idea: a thread that does not know of guards yet
//! may free a guarded block by its layout; the block then goes onto a stack and is handed out again as a block of its class.
//! So a block that may be freed by a layout has the size and alignment of its class. A block that only C's functions free
//! has the requested size, to the byte.

mod report;
mod slots;

use core::ffi::c_void;

use crate::diagnostics::{sampling, unwind};
use crate::memory::class::Class;
use crate::platform::sync::{AtomicU32, AtomicUsize, Ordering, Visit, this_holder};
use crate::platform::{kernel, libc};
use crate::settings;
use report::Misuse;
use slots::{FRAMES_MAX, Pool, State};

/// Whether this build has guards.
pub(crate) const IS_BUILT_IN: bool = cfg!(all(feature = "guards", not(feature = "secure")));

/// One block in this many is guarded; 0 for none.
static RATE: AtomicUsize = AtomicUsize::new(0);
/// The option's value when it was applied last.
static APPLIED: AtomicUsize = AtomicUsize::new(0);
/// Blocks that were to be guarded but found no slot.
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// One block in this many is guarded on average; `None` while none is.
#[inline(always)]
pub(crate) fn rate() -> Option<usize> {
    if !IS_BUILT_IN {
        return None;
    }
    // ORDERING: Relaxed: a thread that sees it late guards a few blocks more or less. The pool was published with Release.
    Some(RATE.load(Ordering::Relaxed)).filter(|rate| *rate != 0)
}

/// Whether blocks are guarded now.
#[inline(always)]
pub(crate) fn are_on() -> bool {
    rate().is_some()
}

/// Whether the option still has the value that was applied last.
#[inline(always)]
pub(crate) fn is_rate_current() -> bool {
    // ORDERING: Relaxed, as above.
    !IS_BUILT_IN || settings::guard_rate() == APPLIED.load(Ordering::Relaxed)
}

/// Applies the option; returns whether the rate changed. The caller holds the lock of all threads. Calls `admit` with
/// each slice that guarded blocks may lie in.
#[cold]
#[inline(never)]
pub(crate) fn apply_rate(admit: impl Fn(&'static crate::memory::slice::Slice)) -> bool {
    let wanted = settings::guard_rate();
    // ORDERING: Relaxed in this function: the lock orders, and a thread that reads without it may be late.
    if APPLIED.load(Ordering::Relaxed) == wanted {
        return false;
    }
    let is_ready = wanted == 0 || Pool::get().is_some() || Pool::make(&admit);
    let rate = if is_ready { wanted } else { 0 };
    // Where there is no memory for slots, the next thread that starts tries again.
    APPLIED.store(rate, Ordering::Relaxed);
    RATE.swap(rate, Ordering::Relaxed) != rate
}

/// A block to guard.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) class: Class,
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Whether only C's functions free it, so that its size is exact.
    pub(crate) is_exact: bool,
}

/// A guarded block; 0 where there is no slot or no memory, or the block does not fit a slot.
#[cold]
#[inline(never)]
pub(crate) fn take(request: Request, random: u64) -> usize {
    if !IS_BUILT_IN {
        return 0;
    }
    let Some(pool) = Pool::get() else { return 0 };
    let Some(room) = pool.room_for(request) else { return 0 };
    let Some(slot) = pool.take_oldest() else {
        // ORDERING: Relaxed: a count.
        SKIPPED.fetch_add(1, Ordering::Relaxed);
        return 0;
    };
    if !slot.open(room, random & 1 == 0) {
        slot.put_back();
        return 0;
    }
    let mut frames = [0; FRAMES_MAX];
    let count = unwind::capture(&mut frames);
    slot.note_allocated(request, kernel::thread_number(), &frames[..count]);
    slot.address()
}

/// Marks the guarded block as sampled by the heap profile, which its free reports.
#[cold]
pub(crate) fn note_sampled(address: usize) {
    if IS_BUILT_IN && let Some(slot) = Pool::get().and_then(|pool| pool.slot_at(address)) {
        slot.note_sampled();
    }
}

/// Frees the guarded block at an address in a guarded slice. Ends the program with a report where no block begins there, or
/// it was freed before.
#[cold]
#[inline(never)]
pub(crate) fn free(address: usize) {
    if !IS_BUILT_IN {
        return;
    }
    let slot = slot_of(address);
    if slot.address() != address || !slot.begin_to_free() {
        stop_call(
            address,
            if slot.address() == address { Misuse::FreedTwice } else { Misuse::NotABlock },
        );
    }
    if let Some(written) = slot.first_written() {
        stop_call(written, Misuse::Written);
    }
    let mut frames = [0; FRAMES_MAX];
    let count = unwind::capture(&mut frames);
    if slot.note_freed(kernel::thread_number(), &frames[..count]) {
        // Before the slot can be used again: the next block has a sample of its own.
        sampling::remove(address);
    }
    slot.close();
}

/// The size of the live guarded block at an address in a guarded slice. Ends the program with a report where there is none.
#[cold]
#[inline(never)]
pub(crate) fn usable_size(address: usize) -> usize {
    if !IS_BUILT_IN {
        return 0;
    }
    let slot = slot_of(address);
    if slot.address() != address {
        stop_call(address, Misuse::NotABlock);
    }
    if slot.state() != State::Live {
        stop_call(address, Misuse::UsedFreed);
    }
    slot.size()
}

/// The slot of an address in a guarded slice.
fn slot_of(address: usize) -> slots::Slot {
    match Pool::get().and_then(|pool| pool.slot_at(address)) {
        Some(slot) => slot,
        None => crate::platform::fault::stop(crate::platform::fault::Fault::NeverHandedOut),
    }
}

/// The number of the thread that writes a report; else `NONE` or `WRITTEN`, which no thread has as its number.
static REPORT: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = 0;
const WRITTEN: u32 = 1;

/// Writes the one report of a process's life with `write`; waits where another thread writes it.
fn once(write: impl FnOnce()) {
    // ORDERING: Relaxed in this function: a report depends on nothing that another thread wrote here.
    match REPORT.compare_exchange(NONE, this_holder(), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            write();
            REPORT.store(WRITTEN, Ordering::Relaxed);
            kernel::wake_one(&REPORT);
        }
        Err(WRITTEN) => {}
        // Waits for a second at most: in a child of a `fork` without handlers the writing thread may not exist.
        Err(writer) => {
            kernel::wait_while(&REPORT, writer);
            // The writer wakes one thread, and each that it woke the next.
            kernel::wake_one(&REPORT);
        }
    }
}

/// In a forked child, forgets a report that a thread of the parent was writing: this process may have one of its own.
pub(crate) fn after_fork() {
    // ORDERING: Relaxed in both: there is one thread.
    let writer = REPORT.load(Ordering::Relaxed);
    if IS_BUILT_IN && writer > WRITTEN && writer != this_holder() {
        REPORT.store(NONE, Ordering::Relaxed);
    }
}

/// Ends the program because of an address that was passed to the allocator.
#[cold]
#[inline(never)]
fn stop_call(address: usize, misuse: Misuse) -> ! {
    once(|| {
        let mut frames = [0; FRAMES_MAX];
        let count = unwind::capture(&mut frames);
        report::write(&slot_of(address), address, misuse, &frames[..count]);
    });
    libc::abort()
}

/// Called by the signal handler of a memory fault: writes a report if the address lies in a slot. Uses a stack of its own,
/// because the program's alternate stack may be small. Takes no lock that the interrupted code may hold: records are read
/// without one.
fn handle_fault(fault: &libc::signals::MemoryFault) {
    let Some(pool) = Pool::get().filter(|pool| pool.slot_at(fault.address).is_some()) else {
        return;
    };
    once(|| {
        let argument = core::ptr::from_ref(fault).cast_mut().cast();
        // SAFETY: There is one report, so nothing else uses that stack; and this is the function's argument.
        unsafe { libc::signals::call_on(pool.stack(), report_fault, argument) };
    });
}

/// # Safety
///
/// - `fault` leads to the [`libc::signals::MemoryFault`] that the handler was called with.
#[cold]
unsafe extern "C" fn report_fault(fault: *mut c_void) {
    // SAFETY: The caller's condition.
    let fault = unsafe { &*fault.cast::<libc::signals::MemoryFault>() };
    let mut frames = [0; FRAMES_MAX];
    // SAFETY: The handler was called with it.
    let count = unsafe { unwind::capture_interrupted(fault.context, &mut frames) };
    // SAFETY: As above.
    let write = unsafe { libc::signals::was_write(fault.context) };
    report::write(
        &slot_of(fault.address),
        fault.address,
        Misuse::Access { write },
        &frames[..count],
    );
}

/// Statistics of guarded blocks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Live blocks, and their bytes.
    pub(crate) blocks: usize,
    pub(crate) bytes: usize,
    /// Bytes of live blocks with an exact size, which no class counts.
    pub(crate) exact_bytes: usize,
    pub(crate) made: usize,
    pub(crate) skipped: usize,
}

/// The statistics of all guarded blocks.
#[cold]
#[inline(never)]
pub(crate) fn counts() -> Counts {
    if !IS_BUILT_IN {
        return Counts::default();
    }
    // ORDERING: Relaxed: a count.
    let skipped = SKIPPED.load(Ordering::Relaxed);
    let Some(pool) = Pool::get() else { return Counts { skipped, ..Counts::default() } };
    let live = pool.slots().filter(|slot| slot.state() == State::Live);
    live.fold(Counts { made: pool.made(), skipped, ..Counts::default() }, |sum, slot| Counts {
        blocks: sum.blocks + 1,
        bytes: sum.bytes + slot.size(),
        exact_bytes: sum.exact_bytes + if slot.is_exact() { slot.size() } else { 0 },
        ..sum
    })
}

/// Live blocks that a class counts, and how many there ever were.
#[cold]
#[inline(never)]
pub(crate) fn counts_of(class: Class) -> (usize, usize) {
    if !IS_BUILT_IN {
        return (0, 0);
    }
    Pool::get().map_or((0, 0), |pool| pool.counts_of(class.page_index()))
}

/// Visits this module's lock, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    if IS_BUILT_IN {
        slots::each_lock(visit);
    }
}

/// The number of blocks to count up to and including the next guarded block: uniform from 1 to twice the rate minus 1,
/// whose mean is the rate.
pub(crate) fn blocks_to_guard(random: u64, rate: usize) -> usize {
    let numbers = (2 * rate - 1) as u64;
    // The upper half of the product of a 32-bit fraction and the range: rates are below 2³¹.
    1 + (((random >> 32) * numbers) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_a_report_of_its_own() {
        let has_report = || {
            let mut is_written = false;
            once(|| is_written = true);
            is_written
        };
        let others = this_holder() ^ 1 << 16;
        REPORT.store(others, Ordering::Relaxed);
        after_fork();
        assert_eq!(has_report(), IS_BUILT_IN, "the parent's thread is not in the child");
        after_fork();
        assert!(!has_report(), "one is written before the fork");
        REPORT.store(this_holder(), Ordering::Relaxed);
        after_fork();
        assert_eq!(REPORT.load(Ordering::Relaxed), this_holder(), "this thread goes on writing");
        REPORT.store(NONE, Ordering::Relaxed);
    }

    #[test]
    fn one_block_in_the_rate_is_guarded() {
        let mut random = 1_u64;
        for rate in [1, 2, 16, 1_000, 5_000] {
            const DRAWS: usize = 20_000;
            let mut sum = 0;
            for _ in 0..DRAWS {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                let blocks = blocks_to_guard(random, rate);
                assert!((1..2 * rate).contains(&blocks) || blocks == 1);
                sum += blocks;
            }
            // The standard deviation of the mean is 0.41 % of the rate; five of them.
            let mean = sum as f64 / DRAWS as f64;
            assert!((mean / rate as f64 - 1.0).abs() < 0.021, "{mean} at {rate}");
        }
    }
}
