//! Epochs: finding unused blocks without a counter on the fast path.
//!
//! Relies on its parent for limits and flushes, and on slow paths to count. At the start of an epoch a zero, the *mark*, is
//! planted at half the depth of a stack. A pop that reaches it misses, and the slow path removes the mark. A mark that is
//! still there at the end of the epoch proves that all blocks below it were unused the whole time; they are flushed.
//!
//! Slow calls also tell free memory what time it is, for a thread that takes and frees no run.

use super::{BIG, Destination, classes_in, refill};
use crate::blocks::slot;
use crate::diagnostics::stale;
use crate::memory::class::{Class, LANED_FIRST};
use crate::memory::ranges::{SharedRanges, now_ms, stripes};
use crate::platform::sync::Cell;
use crate::threads::cache::ThreadCache;

/// Slow calls of a thread per epoch. Epochs of big blocks in a program with one thread are shorter.
const EPOCH: usize = 256;
const EPOCH_ALONE: usize = 64;
/// Slow calls between two looks at the clock where they are rare: where no two looks are in the same turn of so many
/// milliseconds.
const LOOKS_EVERY_RARE: usize = 4;
const TURN_MS: usize = 16;

/// When a thread looks at the clock, so that free memory goes back although no run is taken or freed. Two bytes, because a
/// cache has no room for more in the OS pages that it fills.
pub(in crate::threads::cache) struct Looks {
    /// Slow calls between two looks, a power of two, less one.
    mask: Cell<u8>,
    /// The turn of the last look, modulo 256.
    turn: Cell<u8>,
}

impl Looks {
    pub(in crate::threads::cache) const fn new() -> Looks {
        Looks { mask: Cell::new(EPOCH_ALONE as u8 - 1), turn: Cell::new(0) }
    }

    #[inline(always)]
    fn is_due(&self, calls: usize) -> bool {
        calls as u8 & self.mask.get() == 0
    }

    /// Notes a look at `now`; whether slow calls are rare.
    fn note(&self, now: usize) -> bool {
        let turn = (now / TURN_MS) as u8;
        let is_rare = self.turn.replace(turn) != turn;
        self.mask.set(if is_rare { LOOKS_EVERY_RARE } else { EPOCH_ALONE } as u8 - 1);
        is_rare
    }
}

/// The classes of [`BIG`] blocks, as a set. The laned ones behind them are the smallest.
const BIG_CLASSES: u128 = (1 << LANED_FIRST) - (1 << Class::of_size(BIG).index());

impl ThreadCache {
    /// Replaces the mark by its block; whether there was a mark.
    #[inline(always)]
    pub(in crate::threads::cache) fn remove_mark(&self, class: Class) -> bool {
        let depth = self.depth(class);
        let mark = depth.mark.replace(0) as usize;
        if mark == 0 {
            return false;
        }
        // SAFETY: The mark lies in the array: what shortens the stack removes the mark first.
        unsafe { depth.base.get().add(mark).write(depth.marked.get()) };
        true
    }

    fn set_mark(&self, class: Class) {
        let (depth, count) = (self.depth(class), self.count_inline(class));
        let mark = count.div_ceil(2);
        if mark == 0 {
            return;
        }
        // SAFETY: The mark lies within the stack's entries.
        let entry = unsafe { &mut *depth.base.get().add(mark) };
        depth.marked.set(core::mem::take(entry));
        depth.mark.set(mark as u16);
    }

    /// Counts a slow call for `class`, whose stack must not change now, or for a large block.
    #[inline]
    pub(crate) fn count_slow_call(&'static self, class: Option<Class>) {
        let calls = self.traffic.slow_calls.get().wrapping_add(1);
        self.traffic.slow_calls.set(calls);
        if self.looks.is_due(calls) {
            self.look(calls, class);
        }
    }

    /// Looks at the clock behind so many slow calls, and ends the epochs that are over, except that of `class`.
    #[inline(never)]
    fn look(&'static self, calls: usize, class: Option<Class>) {
        let (ranges, now) = (stripes::for_thread(self.number), now_ms());
        if self.looks.note(now) {
            ranges.pass_time(now);
        }
        if calls.is_multiple_of(EPOCH_ALONE) {
            self.end_epochs(calls, class, ranges);
        }
    }

    /// Ends the epochs that are over after so many slow calls, except that of `class`.
    fn end_epochs(&'static self, calls: usize, class: Option<Class>, ranges: &SharedRanges) {
        let all = calls.is_multiple_of(EPOCH);
        let mut ending = self.opened.get();
        if all {
            self.update_share(ranges.estimated_live_bytes());
            // The budget may have changed since, and the ceilings with it.
            classes_in(ending).for_each(|any| self.depth(any).at_ceiling.set(false));
        } else {
            ending &= if slot::are_several() { 0 } else { BIG_CLASSES };
        }
        if let Some(class) = class {
            ending &= !(1 << class.index());
        }
        classes_in(ending).for_each(|other| self.end_epoch(other));
        if all {
            if slot::are_several() {
                self.end_remote_epoch();
            }
            // An option or further threads may have reduced the budget since.
            if self.budget_is_strict() {
                self.take_from_others(class, 0);
            }
        }
        stale::mark();
    }

    /// Flushes unused blocks, and plants the next mark.
    #[inline(always)]
    fn end_epoch(&'static self, class: Class) {
        let depth = self.depth(class);
        let surplus = depth.mark.get() as usize;
        if surplus > 0 {
            self.flush_surplus(class, surplus);
        }
        self.set_mark(class);
    }

    #[inline(never)]
    fn flush_surplus(&'static self, class: Class, surplus: usize) {
        self.send_oldest(class, surplus, Destination::Pages);
        let depth = self.depth(class);
        let limit = depth.limit.get() as usize;
        self.set_limit(
            class,
            limit.saturating_sub(surplus).max(self.initial_limit(class)).min(limit),
        );
        depth.refill.set(refill::first(class));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::class::CLASSES;

    #[test]
    fn a_thread_of_rare_slow_calls_looks_at_the_clock_sooner() {
        let looks = Looks::new();
        let found = [6_000, 7_000, 7_007, 7_019, 39_000, 39_001]
            .map(|now| (looks.note(now), looks.is_due(4)));
        let (rare, often) = ((true, true), (false, false));
        assert_eq!(found, [rare, rare, often, rare, rare, often]);
    }

    #[test]
    fn big_classes_are_those_of_big_blocks() {
        for class in (0..CLASSES).filter_map(Class::from_index) {
            let is_big = BIG_CLASSES & 1 << class.index() != 0;
            assert_eq!(is_big, class.size() >= BIG, "{} bytes", class.size());
        }
    }
}
