//! How deep the stacks of a thread cache may grow: the policy, and the slow paths that apply it.
//!
//! Relies on shards and on the transfer cache for blocks. A fixed depth is too small for programs that allocate and
//! free in long waves, or too large for idle threads, so depths adapt. A stack starts shallow. A miss doubles its
//! limit, up to a bound for each class and a budget for the thread (`depth/budget.rs`); a class that is denied often
//! takes budget from the others. Unused blocks are returned to their pages: `depth/epoch.rs`, which is the hard idea.

pub(super) mod budget;
pub(super) mod epoch;
mod refill;

use core::ptr::{self, NonNull};

use super::{Shared, Stack, ThreadCache, idle};
use crate::blocks::shard::{self, Pages};
use crate::blocks::slot;
use crate::blocks::transfer;
use crate::memory::class::{Class, LARGEST_ALWAYS_SMALL, LARGEST_SMALL};
use crate::memory::metadata;
use crate::platform::bounds::Bounded;
use crate::platform::fault::{self, Fault};
use crate::platform::sync::Cell;

/// The most that one stack may hold, as one part in this many of the budget.
const CLASS_SHARE: usize = 16;
/// The same for a thread that is alone and blocks over 4 KiB: a program that replaces a few buffers of 32 to
/// 64 KiB would make and give back a page for nearly each, because few blocks are a page.
const CLASS_SHARE_SINGLE: usize = 4;
/// The initial limit of a stack, below which it never shrinks: the smaller of both. Where the budget was set or is
/// scarce, also at most one part in `INITIAL_SHARE` of it.
const FLOOR_ENTRIES: usize = 60;
const INITIAL_BYTES: usize = 8 << 10;
const INITIAL_SHARE: usize = 64;
/// The length of a stack's first array in words, because many classes see few blocks. It bounds the limit until the
/// first miss or overflow.
const WORDS_FIRST: usize = 16;
/// Denials after which other classes must give up depth.
const DENIALS_MAX: u8 = 32;
/// Blocks that one call sends away: it must not take long.
const SENT_MAX: usize = 2048;
/// Stacks that hold less than this always grow when full.
const SHALLOW_BYTES: usize = 4 << 10;
/// Stacks of blocks of at least this size grow at a miss only after an overflow, because each further block keeps a
/// further page from becoming empty.
const BIG: usize = 4 << 10;
/// Stacks of blocks of more than this size may use all that a thread's share of much live memory is.
const DEEP: usize = 8 << 10;

/// The policy's data of one stack.
pub(super) struct Depth {
    /// The array: the zero, then entries. Null until first used.
    base: Shared<usize>,
    /// Words of the array, a power of two. `u16`, because idle threads hold one of these for each class.
    words: Cell<u16>,
    /// The limit in entries, at most `words - 1`.
    limit: Cell<u16>,
    /// Entries that the next refill fetches.
    refill: Cell<u16>,
    /// The index of the planted zero, the mark; 0 for none.
    mark: Cell<u16>,
    /// The block that the mark replaced. Without a mark the one that the last refill put at the bottom, unless a mark came between:
    /// then it is only compared.
    marked: Cell<usize>,
    /// Whether a pop missed since the last overflow, and the reverse.
    pub(super) missed: Cell<bool>,
    pub(super) overflowed: Cell<bool>,
    /// Whether the last blocks that were sent away belonged to many shards.
    scattered: Cell<bool>,
    /// Whether the limit has reached its ceiling, which holds for an epoch.
    at_ceiling: Cell<bool>,
}

impl Depth {
    pub(super) const fn new() -> Depth {
        Depth {
            base: Shared::new(ptr::null_mut()),
            words: Cell::new(0),
            limit: Cell::new(0),
            refill: Cell::new(0),
            mark: Cell::new(0),
            marked: Cell::new(0),
            missed: Cell::new(false),
            overflowed: Cell::new(false),
            scattered: Cell::new(false),
            at_ceiling: Cell::new(false),
        }
    }

    #[inline(always)]
    pub(super) fn base(&self) -> *mut usize {
        self.base.get()
    }

    /// The place of the mark, 0 for none, and the block that it stands for.
    #[cfg(debug_assertions)]
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.mark.get() as usize, self.marked.get())
    }

    #[inline(always)]
    pub(super) fn limit(&self) -> usize {
        self.limit.get() as usize
    }
}

/// Whether blocks of `class` pass through the transfer cache, and a stack begins with room for one. Such a class is not laned.
#[inline(always)]
const fn is_single(class: Class) -> bool {
    class.index() >= transfer::FIRST.index() && !class.is_laned()
}

/// The number of blocks of `class` that fit `bytes`.
#[inline]
fn entries_in(bytes: usize, class: Class) -> usize {
    if bytes <= LARGEST_SMALL { class.block_index(bytes) } else { entries_in_many(bytes, class) }
}

#[cold]
#[inline(never)]
fn entries_in_many(bytes: usize, class: Class) -> usize {
    bytes / class.size()
}

/// Bytes that an entry takes from the budget: its block and its word.
pub(super) fn entry_bytes(class: Class) -> usize {
    class.size() + size_of::<usize>()
}

/// Where flushed blocks go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// Blocks over 4 KiB to the transfer cache, because other threads may want them soon; others to their pages.
    Transfer,
    /// To their pages.
    Pages,
}

/// The classes in a set of indices. No class has the index behind the last one.
fn classes_in(mut set: u128) -> impl Iterator<Item = Class> {
    core::iter::from_fn(move || {
        let class = Class::from_index(set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(class)
    })
}

impl ThreadCache {
    #[inline(always)]
    pub(super) fn stack(&self, class: Class) -> &Stack {
        // SAFETY: There is a stack for each code.
        unsafe { self.stacks.stacks.get_unchecked(usize::from(class.code_in(self.shard.0))) }
    }

    /// The largest limit of a stack in entries.
    fn ceiling(&self, class: Class) -> usize {
        let least = if class.size() > LARGEST_ALWAYS_SMALL { 1 } else { 2 };
        let budget = if class.size() <= DEEP { self.budget_of_smaller() } else { self.budget() };
        // Several threads share such blocks by the transfer cache.
        let is_alone = is_single(class) && !slot::are_several();
        let share = if is_alone { CLASS_SHARE_SINGLE } else { CLASS_SHARE };
        entries_in(budget / share, class).clamp(least, metadata::WORDS_MAX - 1)
    }

    /// The initial limit of a stack in entries.
    #[inline(never)]
    fn initial_limit(&self, class: Class) -> usize {
        if is_single(class) {
            return 1;
        }
        let bytes = if self.budget_is_strict() {
            INITIAL_BYTES.min(self.budget() / INITIAL_SHARE)
        } else {
            INITIAL_BYTES
        };
        entries_in(bytes, class).clamp(1, FLOOR_ENTRIES)
    }

    #[inline(always)]
    pub(super) fn depth(&self, class: Class) -> &Depth {
        &self.depths[class.index()]
    }

    /// The classes that have an array.
    pub(super) fn opened(&self) -> impl Iterator<Item = Class> + use<> {
        classes_in(self.opened.get())
    }

    /// Bytes of the blocks in the thread's own stacks, as the thread sees them.
    pub(super) fn kept_bytes(&self) -> usize {
        self.opened().map(|class| self.count_inline(class) * class.size()).sum()
    }

    /// Entries in the stack.
    #[inline(never)]
    pub(super) fn count(&self, class: Class) -> usize {
        self.count_inline(class)
    }

    /// The same inlined, for the loop over all classes when a thread ends.
    #[inline(always)]
    fn count_inline(&self, class: Class) -> usize {
        let base = self.depth(class).base.get();
        if base.is_null() {
            return 0;
        }
        (self.stack(class).top.get().addr() - base.addr()) / size_of::<usize>()
    }

    /// Entries in the stack as another thread sees them: approximate, and 0 during a change.
    pub(super) fn count_from_outside(&self, class: Class) -> usize {
        let (top, base) = (self.stack(class).top.get(), self.depth(class).base.get());
        let count = top.addr().wrapping_sub(base.addr()) / size_of::<usize>();
        if base.is_null() || count > metadata::WORDS_MAX { 0 } else { count }
    }

    /// A block of `class` after its stack was found empty: takes one from another thread, or fetches a batch. Null only without
    /// memory.
    #[inline(never)]
    pub(crate) fn pop_slow(&'static self, class: Class) -> *mut u8 {
        // A thread that has just started may have got a stack with blocks.
        let block = self.stack(class).pop();
        if !block.is_null() {
            return block;
        }
        shard::purge_step();
        self.count_slow_call(Some(class));
        let depth = self.depth(class);
        if depth.base.get().is_null() {
            if !self.open(class) {
                return ptr::with_exposed_provenance_mut(self.shard.refill_one(class));
            }
        } else if self.remove_mark(class) {
            return self.stack(class).pop();
        } else {
            self.note_used_up(class);
            if depth.overflowed.replace(false) || class.size() < BIG {
                self.deepen(class);
            }
        }
        depth.missed.set(true);
        if is_single(class) {
            let block = transfer::take_one(class);
            if block != 0 {
                self.traffic.refills.add(1);
                self.traffic.refilled_blocks.add(1);
                return ptr::with_exposed_provenance_mut(block);
            }
        }
        if self.fetch(class) == 0 { ptr::null_mut() } else { self.stack(class).pop() }
    }

    /// Pushes a block of `class` after its stack was found full: makes room first.
    #[inline(always)]
    pub(crate) fn push_slow(&'static self, class: Class, block: *mut u8) {
        if is_single(class) {
            self.push_single(class, block);
        } else {
            self.push_batch(class, block);
        }
    }

    #[inline(never)]
    fn push_batch(&'static self, class: Class, block: *mut u8) {
        // There may be room: a thread that has just started may have got another stack, a counting stack was found full
        // in place of the hidden one, and without a class map no stack was tried.
        if self.stack(class).push(block) {
            return;
        }
        self.count_slow_call(Some(class));
        let depth = self.depth(class);
        if depth.base.get().is_null() {
            if !self.open(class) {
                let _ = shard::flush_one(class, block.expose_provenance());
                return;
            }
        } else {
            let limit = depth.limit.get() as usize;
            // A stack that is only freed into need not be deep.
            let shallow =
                || limit * class.size() < SHALLOW_BYTES || limit < self.initial_limit(class);
            let is_used = depth.missed.replace(false) || shallow();
            // Nor does it keep any block, if its thread never found it empty since it was full last.
            let empties = !is_used && depth.overflowed.get();
            let grows = is_used || depth.scattered.get();
            let sent = if empties { limit } else { limit / 2 }.clamp(1, SENT_MAX);
            self.check_freed_in_a_row(class, block, if empties { sent } else { 0 });
            if !(grows && self.deepen(class)) {
                depth.overflowed.set(true);
                self.send_oldest(class, sent, Destination::Pages);
                // The program may not call for a long time.
                shard::purge_step();
            }
        }
        let pushed = self.stack(class).push(block);
        debug_assert!(pushed, "room was made");
    }

    /// Ends the program if `block`, for which the stack is full, or a block in its newer half was freed twice in a row.
    /// The pages would notice only if both entries were returned, as the lowest `sent` are about to be. The older half was
    /// checked when it was the newer one, usually: `docs/design.md`, section 3, says what this finds and costs.
    #[inline(always)]
    fn check_freed_in_a_row(&self, class: Class, block: *mut u8, sent: usize) {
        let have = self.count_inline(class);
        let base = self.depth(class).base();
        // SAFETY: The stack holds `have` entries above the zero.
        let entries = unsafe { core::slice::from_raw_parts(base, have + 1) };
        // A mark has no other zero beside it here.
        let newer = entries.at(have.div_ceil(2).max(sent.min(have))..);
        // Compares all, because the compiler vectorizes that.
        let pairs = newer.iter().zip(newer.at(1..));
        let any_twice = pairs.fold(false, |any, (one, next)| any | (one == next));
        if any_twice || newer.last() == Some(&block.addr()) {
            fault::stop(Fault::FreedTwice);
        }
    }

    /// Gives a class its array. False without memory, or without budget where that is strict.
    pub(super) fn open(&'static self, class: Class) -> bool {
        let limit = self.initial_limit(class).min(WORDS_FIRST - 1);
        if self.budget_is_strict() && !self.fits_budget(class, limit * entry_bytes(class)) {
            return false;
        }
        let Some(words) = self.arrays.take(limit + 1) else { return false };
        *words.at_mut(0) = 0;
        let depth = self.depth(class);
        depth.words.set(words.len() as u16);
        depth.base.set(words.as_mut_ptr());
        self.opened.set(self.opened.get() | 1 << class.index());
        self.start(class);
        true
    }

    /// Makes an array without blocks the class's stack, at the initial limit or the array's length.
    fn start(&self, class: Class) {
        let depth = self.depth(class);
        let limit = self.initial_limit(class).min(depth.words.get() as usize - 1);
        depth.limit.set(limit as u16);
        depth.at_ceiling.set(false);
        depth.refill.set(refill::first(class));
        self.limit_bytes.set(self.limit_bytes.get() + limit * entry_bytes(class));
        let base = depth.base.get();
        self.stack(class).top.set(base);
        self.stack(class).limit.set(base.wrapping_add(limit));
    }

    /// Doubles the limit of a class, if its ceiling, the budget and memory allow it. Up to the floor the budget allows
    /// it always, unless it is strict.
    #[inline(always)]
    pub(super) fn deepen(&'static self, class: Class) -> bool {
        !self.depth(class).at_ceiling.get() && self.deepen_slow(class)
    }

    #[inline(never)]
    fn deepen_slow(&'static self, class: Class) -> bool {
        let depth = self.depth(class);
        let (limit, floor) = (depth.limit.get() as usize, self.initial_limit(class));
        let wanted = if limit < floor { floor } else { (limit * 2).min(self.ceiling(class)) };
        if wanted <= limit {
            depth.at_ceiling.set(true);
            return false;
        }
        let is_free = limit < floor && !self.budget_is_strict();
        if !(is_free || self.fits_budget(class, (wanted - limit) * entry_bytes(class))) {
            return false;
        }
        self.raise_limit(class, wanted)
    }

    /// Raises a limit, if there is memory; whether it did.
    #[inline(never)]
    fn raise_limit(&self, class: Class, limit: usize) -> bool {
        let fits = limit < self.depth(class).words.get() as usize;
        let raises = fits || self.lengthen(class, limit + 1);
        if raises {
            self.set_limit(class, limit);
        }
        raises
    }

    #[inline(never)]
    pub(super) fn fits_budget(&'static self, class: Class, more_bytes: usize) -> bool {
        let budget = self.budget();
        let fits = || self.limit_bytes.get() + more_bytes <= budget;
        if fits() {
            return true;
        }
        self.denials.set(self.denials.get() + 1);
        if self.denials.get() >= DENIALS_MAX {
            self.denials.set(0);
            self.take_from_others(Some(class), more_bytes);
        }
        fits()
    }

    /// Makes other classes, in turn, give up a quarter of their limits until `more_bytes` fit; where the budget is
    /// strict and that was not enough, all of them.
    fn take_from_others(&'static self, class: Option<Class>, more_bytes: usize) {
        let budget = self.budget();
        let mut turns = self.opened.get().count_ones() as usize;
        let again = if self.budget_is_strict() { turns } else { 0 };
        turns += again;
        while turns > 0 && self.limit_bytes.get() + more_bytes > budget {
            turns -= 1;
            let Some(donor) = self.next_donor() else { return };
            if Some(donor) == class {
                continue;
            }
            let (limit, floor) =
                (self.depth(donor).limit.get() as usize, self.initial_limit(donor));
            if limit > floor {
                self.lower_limit(donor, floor.max(limit * 3 / 4));
            } else if turns < again {
                self.close_remote();
                self.shut(donor);
            }
        }
    }

    /// The next class with an array behind the last donor.
    fn next_donor(&self) -> Option<Class> {
        let opened = self.opened.get();
        let behind = opened & !((2 << self.last_donor.get()) - 1);
        let donor = classes_in(if behind != 0 { behind } else { opened }).next()?;
        self.last_donor.set(donor.index() as u8);
        Some(donor)
    }

    /// Moves a stack to a longer array. False without memory.
    fn lengthen(&self, class: Class, words: usize) -> bool {
        let Some(longer) = self.arrays.take(words) else { return false };
        let (stack, depth) = (self.stack(class), self.depth(class));
        let (base, count) = (depth.base.get(), self.count(class));
        // SAFETY: The zero and the entries are initialized; a mark among them moves along.
        let entries = unsafe { core::slice::from_raw_parts(base, count + 1) };
        longer.copy_from(entries);
        self.give_array_back(class);
        depth.words.set(longer.len() as u16);
        depth.base.set(longer.as_mut_ptr());
        stack.top.set(depth.base.get().wrapping_add(count));
        true
    }

    fn give_array_back(&self, class: Class) {
        let depth = self.depth(class);
        if let Some(array) = NonNull::new(depth.base.replace(ptr::null_mut())) {
            // SAFETY: The array came from `Arrays::take` with this length, and the stack is about to get another one or
            // none.
            unsafe { self.arrays.give_back(array, depth.words.replace(0) as usize) };
        }
    }

    /// Takes a class's array away.
    fn shut(&'static self, class: Class) {
        self.lower_limit(class, 0);
        self.give_array_back(class);
        self.make_inert(class);
    }

    /// Makes the stack of a class without an array inert.
    fn make_inert(&self, class: Class) {
        self.stack(class).make_inert();
        self.opened.set(self.opened.get() & !(1 << class.index()));
    }

    #[inline(never)]
    fn set_limit(&self, class: Class, limit: usize) {
        let depth = self.depth(class);
        let bytes = |entries| entries * entry_bytes(class);
        // The option `cache_size` may have changed since the array was made.
        debug_assert!(
            limit == 0 || limit < usize::from(depth.words.get()),
            "an array's length holds"
        );
        let without = self.limit_bytes.get() - bytes(depth.limit.get() as usize);
        self.limit_bytes.set(without + bytes(limit));
        depth.limit.set(limit as u16);
        depth.at_ceiling.set(false);
        self.stack(class).limit.set(depth.base.get().wrapping_add(limit));
    }

    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.depth_lower_limit")]
    fn lower_limit(&'static self, class: Class, limit: usize) {
        let surplus = self.count(class).saturating_sub(limit);
        if surplus > 0 {
            self.send_oldest(class, surplus, Destination::Transfer);
        }
        self.set_limit(class, limit);
    }

    /// Sends the `count` lowest entries of a stack away, which were unused longest.
    pub(super) fn send_oldest(&'static self, class: Class, count: usize, destination: Destination) {
        self.remove_mark(class);
        let have = self.count(class);
        let base = self.depth(class).base.get();
        // SAFETY: The stack holds `have` entries above the zero.
        let entries = unsafe { core::slice::from_raw_parts_mut(base.wrapping_add(1), have) };
        let mut count = count.min(have);
        self.traffic.flushes.add(1);
        self.traffic.flushed_blocks.add(count);
        let pages = match destination {
            Destination::Transfer if is_single(class) => transfer::give(class, entries.at(..count)),
            _ => shard::flush(class, entries.at(..count)),
        };
        self.depth(class).scattered.set(pages == Pages::Scattered);
        if pages == Pages::Sparse {
            self.send_from_sparse(class, entries.at(count..));
            count = have;
        }
        if let [left] = *entries.at(count..) {
            *entries.at_mut(0) = left;
        } else if count < have {
            entries.move_to_start(count);
        }
        self.stack(class).top.set(base.wrapping_add(have - count));
    }

    /// Flushes a class's whole stack, because its few blocks keep many pages.
    #[cold]
    #[inline(never)]
    pub(super) fn send_from_sparse(&self, class: Class, blocks: &[usize]) {
        let _ = shard::flush(class, blocks);
        self.traffic.flushed_blocks.add(blocks.len());
        self.set_limit(
            class,
            self.initial_limit(class).min(self.depth(class).limit.get() as usize),
        );
        idle::empty_warm();
    }

    /// Flushes all stacks, which stay.
    pub(crate) fn empty_stacks(&'static self) {
        self.empty_remote();
        for class in self.opened() {
            let count = self.count(class);
            if count > 0 {
                self.send_oldest(class, count, Destination::Pages);
            }
        }
    }

    /// Flushes all stacks and resets them to a new thread's; short arrays stay for the next thread.
    pub(crate) fn close(&'static self) {
        self.close_remote();
        self.empty_stacks();
        self.limit_bytes.set(0);
        for class in self.opened() {
            let depth = self.depth(class);
            depth.missed.set(false);
            depth.overflowed.set(false);
            depth.scattered.set(false);
            let shortest =
                (self.initial_limit(class) + 1).next_power_of_two().max(metadata::WORDS_MIN);
            if depth.words.get() as usize > shortest {
                self.give_array_back(class);
                depth.limit.set(0);
                self.make_inert(class);
            } else {
                self.start(class);
            }
        }
    }
}

const _: () =
    assert!(metadata::WORDS_MAX <= u16::MAX as usize, "lengths of stacks are short numbers");

#[cfg(all(test, not(loom)))]
mod tests;
