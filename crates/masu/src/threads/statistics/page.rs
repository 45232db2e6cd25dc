//! The statistics page: the statistics of this process for other processes.
//!
//! Relies on a file in memory. The page is made when the first thread starts, if the option is on. From then on slow
//! paths read the clock now and then, and rewrite the page when it is old, so no thread waits for it or is dedicated to
//! it. A program that makes no slow calls leaves it as it is.
//!
//! The hard part is `fork`: the mapping is shared, and a child that kept writing would overwrite its parent's numbers.
//! So a child unmaps the page and makes its own at once, in the handler of `fork`: later it may be in a sandbox that
//! kills the process for such calls. Where no handler runs (`_Fork`, `clone`), the child recognizes itself by a *mark*
//! in memory that the kernel wipes in children, and then leaves the parent's page mapped and unused.
//!
//! A writer makes the sequence number odd, writes, and makes it even. A reader that sees the same even number before
//! and after has read one state.

use core::ptr::{self, NonNull};

use super::{CLASSES, ClassStatistics, Statistics, ThreadStatistics, VERSION, collect, threads};
use crate::blocks::slot;
use crate::diagnostics::stale;
use crate::memory::slice::SLICE_BYTES;
use crate::platform::kernel::{self, Advice, Clock, Protection, SharedFile};
use crate::platform::libc;
use crate::platform::sync::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use crate::settings;
use crate::threads::cache::{User, all};

// COUPLING: `crates/masu-run/src/process/page.rs` and `docs/observing.md` have the same layout; a change is a new
// version. Words of 64 bits in the machine's byte order.
const MAGIC: usize = usize::from_ne_bytes(*b"masustat");
// Magic, version, bytes of the page, sequence, process number; the time of writing by `CLOCK_MONOTONIC` and how long
// the page stays as it is, in nanoseconds; how many totals; how many classes, and numbers of each; how many thread
// caches, and numbers of each.
const HEAD_WORDS: usize = 16;
const SEQUENCE_AT: usize = 3;
const TOTAL_WORDS: usize = 48;
const ROW_WORDS: usize = 16;
/// Further threads are only in the sums.
const THREADS_MAX: usize = 128;
const CLASSES_AT: usize = HEAD_WORDS + TOTAL_WORDS;
const THREADS_AT: usize = CLASSES_AT + CLASSES * ROW_WORDS;
const WORDS: usize = THREADS_AT + THREADS_MAX * ROW_WORDS;

const _: () = assert!(Statistics::LENGTH <= TOTAL_WORDS);
const _: () = assert!(ClassStatistics::LENGTH <= ROW_WORDS);
const _: () = assert!(ThreadStatistics::LENGTH <= ROW_WORDS);

/// The page is written at most once in this many nanoseconds, and writing takes at most one part in `SHARE` of the
/// time. The first interval is shorter and doubles each time, because most programs allocate most when they start.
const INTERVAL: usize = 100_000_000;
const INTERVAL_FIRST: usize = 250_000;
/// No longer, however long writing took: the process may have been stopped in between.
const INTERVAL_MAX: usize = 10_000_000_000;
const SHARE: usize = 64;
const SHARE_FIRST: usize = 4;
/// The clock is read after so many bytes of large blocks.
const CHECK_BYTES: usize = 1 << 20;

/// The page's words; null where there is no page.
static PAGE: AtomicPtr<AtomicUsize> = AtomicPtr::new(ptr::null_mut());
/// The mark, in memory that is wiped in children: not 0 in the process that made the page. Null where the kernel cannot
/// wipe it.
static MARK: AtomicPtr<AtomicUsize> = AtomicPtr::new(ptr::null_mut());
/// When to write next, by the clock.
static NEXT: AtomicUsize = AtomicUsize::new(0);
const NEVER: usize = usize::MAX;
/// The number of calls of [`is_due`].
static CHECKS: AtomicUsize = AtomicUsize::new(0);
/// Bytes of large blocks since the clock was read last.
static LARGE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Whether a thread makes or writes the page now. In a forked child that thread may not exist.
static BUSY: AtomicBool = AtomicBool::new(false);
/// The file behind the page: its descriptor, device and inode. Written by the thread that set [`BUSY`].
static FILE: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Rewrites the page if statistics have changed and it is old. Called at the start of slow paths.
#[inline(always)]
pub(crate) fn refresh_if_stale() {
    if stale::is_marked() {
        refresh_if_stale_slow();
    }
}

#[cold]
#[inline(never)]
fn refresh_if_stale_slow() {
    if stale::take() {
        refresh_slow();
    }
}

/// Rewrites the page if it is on and old. For slow paths that are taken rarely.
#[inline]
pub(crate) fn refresh() {
    if settings::statistics_page() {
        refresh_slow();
    }
}

/// The same after a large block of `slices` was allocated or freed.
#[inline]
pub(crate) fn refresh_for_large(slices: usize) {
    if settings::statistics_page() {
        refresh_for_large_slow(slices * SLICE_BYTES);
    }
}

/// Called when a thread has started: the first one makes the page.
#[inline]
pub(crate) fn begin() {
    if settings::statistics_page() {
        note_thread();
        refresh_slow();
    }
}

#[cold]
#[inline(never)]
fn refresh_for_large_slow(bytes: usize) {
    // ORDERING: Relaxed: what threads add at the same moment may be lost, which only delays the next check.
    let sum = LARGE_BYTES.load(Ordering::Relaxed).saturating_add(bytes);
    LARGE_BYTES.store(if sum < CHECK_BYTES { sum } else { 0 }, Ordering::Relaxed);
    if sum >= CHECK_BYTES {
        refresh_slow();
    }
}

#[cold]
#[inline(never)]
fn refresh_slow() {
    note_thread();
    if is_copy() {
        forget();
    }
    if !is_due() {
        return;
    }
    // ORDERING: Acquire pairs with the Release below: the last writer has finished.
    if BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    // ORDERING: Relaxed: made by this thread, or before the Release that the swap saw.
    let mut page = PAGE.load(Ordering::Relaxed);
    if page.is_null() {
        page = make();
    }
    if !page.is_null() {
        // SAFETY: The page is that long, and unmapped only in `after_fork`, which runs with one thread.
        write(unsafe { core::slice::from_raw_parts(page, WORDS) });
    }
    // ORDERING: Release publishes the page to the next writer's Acquire.
    BUSY.store(false, Ordering::Release);
}

/// Whether the page should be written: it is old, or there were twice as many calls as when it last was for this
/// reason. Many programs allocate everything at once and then wait; without the second condition the page would never
/// show that.
#[inline(never)]
fn is_due() -> bool {
    // ORDERING: Relaxed in this function: simultaneous calls may be counted once, and at worst both threads return
    // true, and one of them writes.
    let next = NEXT.load(Ordering::Relaxed);
    let checks = CHECKS.load(Ordering::Relaxed).wrapping_add(1);
    CHECKS.store(checks, Ordering::Relaxed);
    let has_doubled = checks.is_power_of_two() && next != NEVER;
    has_doubled || kernel::nanoseconds(Clock::Exact) >= next
}

/// Records this thread's number in its cache.
#[inline(never)]
fn note_thread() {
    if let Some(cache) = slot::get().cache()
        && cache.traffic.user() == User::Unknown
    {
        let number = kernel::thread_number();
        cache.traffic.note_user(User::Thread(number), all::generation());
    }
}

/// Whether this process is a forked copy of the one that made the page.
fn is_copy() -> bool {
    // ORDERING: Relaxed: the mark stays once it is made.
    let mark = NonNull::new(MARK.load(Ordering::Relaxed));
    // ORDERING: Acquire pairs with the Release in `forget`: a thread that finds the mark finds no page of the parent's.
    // SAFETY: The mark's memory is never unmapped.
    mark.is_some_and(|mark| unsafe { mark.as_ref() }.load(Ordering::Acquire) == 0)
}

/// In a forked child, which has one thread: unmaps the parent's page, and makes a new one at once if it `may_refresh`,
/// because that takes locks.
#[inline(never)]
pub(crate) fn after_fork(may_refresh: bool) {
    // ORDERING: Relaxed in this function: there is one thread.
    let parents = PAGE.load(Ordering::Relaxed);
    // The thread that was making or writing the page may not exist.
    let was_busy = BUSY.swap(false, Ordering::Relaxed);
    if let Some(start) = NonNull::new(parents) {
        forget();
        let [descriptor, device, inode] =
            FILE.each_ref().map(|number| number.load(Ordering::Relaxed));
        // SAFETY: This is the only thread, and cannot reach the page any more. If a signal handler forked while it was
        // writing, it continues to write, to a page that no one reads.
        let is_replaced = was_busy
            && unsafe { kernel::replace(start.cast(), WORDS * size_of::<usize>()) }.is_ok();
        if !is_replaced {
            // SAFETY: As above; if it was writing, there is no memory for another page.
            unsafe { kernel::unmap(start.cast(), WORDS * size_of::<usize>()) };
        }
        SharedFile { descriptor, identity: [device, inode] }.close();
    } else if was_busy {
        // It was making the first page, and had set `NEXT` so that no other thread tries.
        forget();
    } else {
        return;
    }
    if may_refresh {
        refresh();
    }
}

/// Forgets the page of the process that this one is a copy of. The page stays mapped, because another thread may be
/// about to write it.
#[cold]
#[inline(never)]
fn forget() {
    // ORDERING: Relaxed in this function but for the mark: at worst two threads run it in turn, and a page made in
    // between is made again.
    PAGE.store(ptr::null_mut(), Ordering::Relaxed);
    CHECKS.store(0, Ordering::Relaxed);
    NEXT.store(0, Ordering::Relaxed);
    BUSY.store(false, Ordering::Relaxed);
    if let Some(mark) = NonNull::new(MARK.load(Ordering::Relaxed)) {
        // ORDERING: Release, and last: another thread that finds the mark would write the parent's page if it still
        // found that. SAFETY: The mark's memory is never unmapped.
        unsafe { mark.as_ref() }.store(1, Ordering::Release);
    }
}

/// Makes the page and the mark. Null where that fails, and then no thread tries again. The caller has set [`BUSY`].
#[inline(never)]
fn make() -> *mut AtomicUsize {
    // ORDERING: Relaxed in this function: the Release with which the caller clears `BUSY` publishes everything.
    NEXT.store(NEVER, Ordering::Relaxed);
    if libc::is_secure() {
        return ptr::null_mut();
    }
    let Ok((start, file)) = kernel::share(c"masu-statistics", WORDS * size_of::<usize>()) else {
        return ptr::null_mut();
    };
    let [device, inode] = file.identity;
    for (place, number) in FILE.iter().zip([file.descriptor, device, inode]) {
        place.store(number, Ordering::Relaxed);
    }
    if MARK.load(Ordering::Relaxed).is_null() {
        make_mark();
    }
    let page = start.cast().as_ptr();
    PAGE.store(page, Ordering::Relaxed);
    page
}

/// Makes the mark, if the kernel can wipe it in children.
#[inline(never)]
fn make_mark() {
    let length = kernel::page_size();
    let Ok(start) = kernel::map(length, Protection::ReadWrite) else { return };
    // SAFETY: The range was mapped just now.
    if unsafe { kernel::advise(start, length, Advice::WipeOnFork) }.is_err() {
        // SAFETY: Nothing else knows of it.
        return unsafe { kernel::unmap(start, length) };
    }
    let mark = start.cast::<AtomicUsize>();
    // ORDERING: Relaxed: there is one writer, and no other memory depends on the mark.
    // SAFETY: The range is zero, which is a valid value, and stays mapped.
    unsafe { mark.as_ref() }.store(1, Ordering::Relaxed);
    // ORDERING: Relaxed, as above.
    MARK.store(mark.as_ptr(), Ordering::Relaxed);
}

/// Writes the page. The caller has set [`BUSY`], so this thread is the only writer.
#[inline(never)]
fn write(page: &[AtomicUsize]) {
    let began = kernel::nanoseconds(Clock::Exact);
    let sequence = &page[SEQUENCE_AT];
    // ORDERING: Relaxed: only this thread writes. A child's first page starts at 0, an existing one is even.
    let before = sequence.load(Ordering::Relaxed) & !1;
    sequence.store(before + 1, Ordering::Relaxed);
    // ORDERING: Release: a reader that sees a word written below sees the odd number too.
    fence(Ordering::Release);
    let total = collect(&mut |row, class| {
        put(page, CLASSES_AT + row * ROW_WORDS, class.values());
    });
    put(page, HEAD_WORDS, total.values());
    let mut rows = 0;
    for thread in threads().take(THREADS_MAX) {
        put(page, THREADS_AT + rows * ROW_WORDS, thread.values());
        rows += 1;
    }
    let ended = kernel::nanoseconds(Clock::Exact);
    let interval = interval_after(before / 2, ended.wrapping_sub(began));
    // The words behind the sequence.
    let behind = [
        kernel::process_number(),
        ended,
        interval,
        Statistics::LENGTH,
        CLASSES,
        ClassStatistics::LENGTH,
        rows,
        ThreadStatistics::LENGTH,
    ];
    put(page, 0, &[MAGIC, VERSION, WORDS * size_of::<usize>()]);
    put(page, SEQUENCE_AT + 1, &behind);
    // ORDERING: Release: a reader that sees the even number sees every word above.
    sequence.store(before + 2, Ordering::Release);
    // ORDERING: Relaxed, as where it is read.
    NEXT.store(ended.saturating_add(interval), Ordering::Relaxed);
}

/// The time that the page stays as it is after so many earlier writes and one that `took` so long, in nanoseconds.
fn interval_after(writes: usize, took: usize) -> usize {
    let doublings = writes.min(INTERVAL.ilog2() as usize);
    let interval = INTERVAL.min(INTERVAL_FIRST << doublings);
    // The first time is slowest, because much of what is read was never touched before.
    let share = SHARE.min(SHARE_FIRST << doublings);
    interval.max(took.saturating_mul(share)).min(INTERVAL_MAX)
}

/// Stores numbers from the word `start` on.
#[inline(never)]
fn put(page: &[AtomicUsize], start: usize, values: &[usize]) {
    let words = page.get(start..).unwrap_or_default();
    for (word, value) in words.iter().zip(values) {
        // ORDERING: Relaxed, between the two stores of the sequence.
        word.store(*value, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::alloc::Layout;

    use super::*;
    use crate::platform::alone::{self, run_alone};
    use crate::{Heap, options};

    /// How often the page was written, by its sequence number; 0 where there is none.
    fn writes() -> usize {
        // SAFETY: Null, or the page, which is that long and stays.
        let page = unsafe { PAGE.load(Ordering::Relaxed).cast::<[AtomicUsize; WORDS]>().as_ref() };
        page.map_or(0, |page| page[SEQUENCE_AT].load(Ordering::Relaxed) / 2)
    }

    #[test]
    fn a_program_that_uses_heaps_alone_has_a_page_that_is_written_again() {
        run_alone!();
        options::set("statistics_page", Some(1)).expect("an option");
        let heap = Heap::new();
        for layout in [Layout::new::<[u64; 4]>(), Layout::new::<[u64; 100_000]>()] {
            assert!(heap.alloc(layout).is_some());
            let before = writes();
            // The page is old.
            NEXT.store(0, Ordering::Relaxed);
            let calls = 2 * SLICE_BYTES / layout.size() + 2;
            let blocks = (0..calls).map(|_| heap.alloc(layout).expect("memory"));
            assert!(blocks.count() == calls && writes() > before, "{layout:?}");
        }
    }

    #[test]
    fn a_process_that_was_stopped_while_it_wrote_soon_writes_again() {
        const MINUTE: usize = 60_000_000_000;
        assert_eq!(interval_after(0, 0), INTERVAL_FIRST);
        assert_eq!(interval_after(1000, 10_000_000), 640_000_000);
        assert_eq!(interval_after(1000, MINUTE), INTERVAL_MAX);
    }

    #[test]
    fn a_child_forked_while_the_first_page_was_made_tries_again() {
        // ORDERING: Relaxed throughout: no other test touches the page, which is off.
        let state = |next| {
            BUSY.store(true, Ordering::Relaxed);
            NEXT.store(next, Ordering::Relaxed);
            after_fork(true);
            (BUSY.load(Ordering::Relaxed), NEXT.load(Ordering::Relaxed))
        };
        assert_eq!(state(NEVER), (false, 0));
        // Where it could not be made, it is not tried again.
        NEXT.store(NEVER, Ordering::Relaxed);
        after_fork(true);
        assert_eq!(NEXT.load(Ordering::Relaxed), NEVER);
        NEXT.store(0, Ordering::Relaxed);
    }
}
