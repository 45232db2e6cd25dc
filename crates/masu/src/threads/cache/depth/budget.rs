//! The budget: how many bytes the stacks of one thread may hold.
//!
//! Relies on the counts of threads and of live memory. A thread whose requests are many and small runs best with a deep
//! stack for each class, and one that waits for work needs none; but no other thread can empty a stack. So the hard
//! idea is that all threads together have a budget, and each a share of it, which it learns at its start and at the end
//! of each epoch. As many threads as there are CPUs have all that helps. With many more, a share is *scarce*: then it
//! holds to the byte, and stacks start shallower. But most of many threads wait, and those that do not need more than a
//! share: a thread whose epochs have been short for a while is *busy*, and has as much as one of few.

use crate::blocks::slot;
use crate::memory::ranges::now_ms;
use crate::platform::sync::{AtomicUsize, Cell, Ordering};
use crate::settings;
use crate::threads::cache::{ThreadCache, all};

const KIB: usize = 1 << 10;
/// The most that a share is without much live memory, in a program with one thread. With several threads it is double,
/// because a trip to the pages costs more.
const BYTES: usize = 512 << 10;
/// The least of a share.
const BYTES_MIN: usize = 128 << 10;
/// The shares of all threads together, where they are not more because of CPUs or live memory.
const ALL_BYTES_MIN: usize = 64 << 20;
/// All threads' stacks may hold one part in this many of the live memory. Each stack of smaller blocks is bounded as if
/// it were a quarter of that.
const LIVE_SHARE: usize = 2;
const SMALLER_SHARE: usize = 4;

/// The longest epoch of a busy thread with a CPU of its own, and how long its epochs must have been so short, in
/// milliseconds: longer than it takes to serve a usual request.
const BUSY_EPOCH_MS: usize = 100;
const BUSY_AFTER_MS: usize = 50;
/// About how long a thread waits for each other one that its CPU runs, in milliseconds.
const TURN_MS: usize = 6;

/// The time for which a thread has been making slow calls in quick succession.
pub(in crate::threads::cache) struct Pace {
    /// The last epoch's end, and the end of the last one that was long, in milliseconds.
    last: Cell<u32>,
    slow: Cell<u32>,
}

impl Pace {
    pub(in crate::threads::cache) const fn new() -> Pace {
        Pace { last: Cell::new(0), slow: Cell::new(0) }
    }

    /// Notes the end of an epoch of a thread that shares its CPU with `others`; whether it is busy.
    fn note_epoch(&self, now: usize, others: usize) -> bool {
        let now = now as u32;
        if now.wrapping_sub(self.last.replace(now)) as usize > BUSY_EPOCH_MS + TURN_MS * others {
            self.slow.set(now);
        }
        now.wrapping_sub(self.slow.get()) as usize >= BUSY_AFTER_MS
    }
}

/// The CPUs, once there are several threads; 0 before.
static CPUS: AtomicUsize = AtomicUsize::new(0);

/// Sets how many CPUs there are.
pub(in crate::threads::cache) fn note_cpus(cpus: usize) {
    // ORDERING: Relaxed: a thread that misses it has a smaller share for an epoch.
    CPUS.store(cpus, Ordering::Relaxed);
}

/// The most that a share is without much live memory.
fn most() -> usize {
    BYTES << usize::from(slot::are_several())
}

/// The share of one of `threads` threads, where so many bytes are live.
fn share(threads: usize, cpus: usize, live: usize, most: usize) -> usize {
    let all = ALL_BYTES_MIN.max(cpus * most).min(threads * most);
    all.max(live / LIVE_SHARE).checked_div(threads).unwrap_or(0).max(BYTES_MIN)
}

/// As if this were the share where stacks of smaller blocks are bounded.
fn of_smaller(share: usize) -> usize {
    if share < BYTES { share } else { (2 * BYTES).max(share / SMALLER_SHARE) }
}

/// The budget of a thread in a program of few, in bytes: what the stacks that ended threads left may hold together.
pub(in crate::threads::cache) fn of_few() -> usize {
    settings::cache_size().unwrap_or_else(most)
}

impl ThreadCache {
    /// The budget of this thread's stacks, in bytes.
    pub(super) fn budget(&self) -> usize {
        settings::cache_size().unwrap_or_else(|| self.share())
    }

    /// The budget that bounds each stack of smaller blocks: deeper ones hold many pages, and gain little. A program
    /// with one thread may have as deep ones as others, because lists of a thousand blocks are usual.
    pub(super) fn budget_of_smaller(&self) -> usize {
        settings::cache_size().unwrap_or_else(|| of_smaller(self.share()))
    }

    /// Whether what stacks start with counts against the budget too, as it does where the budget was set or is small.
    pub(in crate::threads::cache) fn budget_is_strict(&self) -> bool {
        settings::cache_size().is_some() || self.share() < BYTES
    }

    /// Sets the thread's share, at its start and at the end of an epoch, where so many bytes are live.
    pub(in crate::threads::cache) fn update_share(&self, live: usize) {
        if slot::are_several() {
            self.update_share_of_several(live);
        } else {
            self.set_share(share(1, 1, live, BYTES));
        }
    }

    /// The same where there are several threads.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.several.budget_update_share")]
    fn update_share_of_several(&self, live: usize) {
        let (threads, cpus) = threads_and_cpus();
        let share = share(threads, cpus, live, most());
        let is_busy = || self.pace.note_epoch(now_ms(), threads.checked_div(cpus).unwrap_or(0));
        self.set_share(if share < BYTES && is_busy() { most() } else { share });
    }

    fn share(&self) -> usize {
        self.share_kib.get() as usize * KIB
    }

    fn set_share(&self, bytes: usize) {
        // More than 4 TiB of stacks are as good as that.
        self.share_kib.set(u32::try_from(bytes / KIB).unwrap_or(u32::MAX));
    }
}

/// The number of threads and of CPUs, each at least 1.
fn threads_and_cpus() -> (usize, usize) {
    // ORDERING: Relaxed, as above.
    (all::threads().max(1), CPUS.load(Ordering::Relaxed).max(1))
}

#[cfg(test)]
mod tests {
    use super::{ALL_BYTES_MIN, BYTES, BYTES_MIN, Pace, of_smaller, share};

    #[test]
    fn a_share_follows_threads_cpus_and_live_memory() {
        let most = 2 * BYTES;
        assert_eq!(share(1, 1, 0, BYTES), BYTES, "one thread");
        assert_eq!(share(32, 2, 0, most), most);
        assert_eq!(share(64, 64, 0, most), most, "each has a CPU");
        assert_eq!(share(64, 2, 0, most), ALL_BYTES_MIN / 64);
        assert_eq!(share(100_000, 2, 0, most), BYTES_MIN);
        assert_eq!(share(64, 2, 8 << 30, most), 64 << 20, "half of 8 GiB, divided by 64");
    }

    #[test]
    fn stacks_are_as_deep_with_one_thread_as_with_several_and_shallow_where_shares_are_scarce() {
        assert_eq!(of_smaller(BYTES), of_smaller(2 * BYTES), "one thread, and several");
        assert_eq!(of_smaller(BYTES_MIN), BYTES_MIN, "scarce");
        assert_eq!(of_smaller(64 << 20), 16 << 20, "much live memory");
    }

    #[test]
    fn a_thread_is_busy_after_short_epochs_and_no_more_after_a_long_one() {
        let pace = Pace::new();
        let busy = [7_000, 7_010, 7_040, 7_060, 7_150, 7_251, 7_300, 7_301]
            .map(|now| pace.note_epoch(now, 0));
        assert_eq!(busy, [false, false, false, true, true, false, false, true]);
        assert!(pace.note_epoch(8_000, 150), "150 others had their turns");
    }
}
