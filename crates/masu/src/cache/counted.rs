//! Counted caches: those whose thread's allocations are counted for a heap profile.
//!
//! Relies on the profile to say whether one is taken. `malloc` has no test for it: what it finds is
//! a stack that is always empty, so that it ends in the slow path, which counts and then takes a
//! block from the true stack. For C's family the table from sizes to stacks leads there, and frees
//! stay as they are. Rust's layouts lead to their stacks by numbers that are part of the program,
//! so where there are any, the stacks themselves are *hidden*: they lie elsewhere, and what is seen
//! in their place is empty and full at once. Their frees are then slow too, which is how sampled blocks
//! are told from others there. The hard idea is who may do that: tables change from any thread, but stacks
//! are their own thread's, which hides them when it counts for the first time.

use core::cell::Cell;
use core::ptr;

use super::{OFFSETS, Shared, Stack, ThreadCache};
use crate::class::{CLASSES, Class, HOMED_FIRST, TABLE_LENGTH, TABLE_LIMIT};
use crate::profile::chance;
use crate::sync::Ordering;
use crate::{kernel, metadata, options, profile, thread};

/// The stack of code 0, foreign memory: always empty, always full.
const NOTHING: u32 = 0;

/// What a thread counts.
pub(super) struct Countdown {
    /// Bytes up to the next sample, that one included; 0 at first.
    left: Cell<usize>,
    random: Cell<u64>,
    /// The profile this was drawn for.
    session: Cell<u32>,
    /// Inside a sample: what is allocated there is not sampled.
    is_sampling: Cell<bool>,
    /// The stacks without a home while others are seen in their place.
    // Its thread hides and reveals them; whoever counts blocks from outside looks here too.
    hidden: Shared<[Stack; CLASSES]>,
    /// Where the true stack for a size lies, in the form of [`super::Stacks::offsets`]; [`NOTHING`] before
    /// the thread has drawn, and while that stack is hidden.
    offsets: [Cell<u16>; TABLE_LENGTH],
}

impl Countdown {
    pub(super) const fn new() -> Countdown {
        Countdown {
            left: Cell::new(0),
            random: Cell::new(0),
            session: Cell::new(0),
            is_sampling: Cell::new(false),
            hidden: Shared::new(ptr::null_mut()),
            offsets: [const { Cell::new(NOTHING as u16) }; TABLE_LENGTH],
        }
    }

    /// The stacks that are hidden, if any are.
    #[inline(always)]
    fn hidden(&self) -> Option<&'static [Stack; CLASSES]> {
        // SAFETY: It is null or leads to stacks in memory that is never unmapped; given back, it is
        // numbers still, of which others make a count that they check.
        unsafe { self.hidden.get().as_ref() }
    }
}

impl super::Stacks {
    /// Whether allocations are counted.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        // ORDERING: Relaxed: whoever sees it late counts a few blocks less.
        profile::IS_BUILT_IN && self.counts.load(Ordering::Relaxed)
    }

    /// A block for `size` bytes from its true stack, counted, where this thread's allocations are. Null where
    /// there is more to do, as when the next sample is due: nothing is counted then.
    #[inline(always)]
    pub(crate) fn pop_counted(&'static self, size: usize) -> *mut u8 {
        if !self.counts() {
            return ptr::null_mut();
        }
        // SAFETY: Only a live cache counts, and its stacks are its first part.
        let cache: &'static ThreadCache = unsafe { &*ptr::from_ref(self).cast() };
        cache.pop_counted(size)
    }

    /// The same for a layout of `size` bytes, at most [`TABLE_LIMIT`], from the hidden stack of its class.
    #[inline(always)]
    pub(crate) fn pop_counted_for_layout(&'static self, size: usize) -> *mut u8 {
        let Some((cache, stack)) = self.hidden_stack(size) else { return ptr::null_mut() };
        cache.count_pop(size, stack)
    }

    /// Keeps a block whose layout has `size` bytes, at most [`TABLE_LIMIT`], in the hidden stack of its class; false where
    /// that is full or nothing is hidden.
    #[inline(always)]
    pub(crate) fn push_hidden(&'static self, size: usize, block: *mut u8) -> bool {
        self.hidden_stack(size).is_some_and(|(_, stack)| stack.push(block))
    }

    /// The true stack for a layout of `size` bytes where another is seen in its place, and its cache.
    #[inline(always)]
    fn hidden_stack(&'static self, size: usize) -> Option<(&'static ThreadCache, &'static Stack)> {
        if !self.counts() {
            return None;
        }
        // SAFETY: As above.
        let cache: &'static ThreadCache = unsafe { &*ptr::from_ref(self).cast() };
        let hidden = ptr::from_ref(cache.countdown.hidden()?).cast::<Stack>();
        let offset = usize::from(OFFSETS[(size + 15) >> 4]);
        // SAFETY: Offsets from the first stack are those of stacks without a home, which are all there.
        Some((cache, unsafe { &*hidden.byte_add(offset) }))
    }
}

impl ThreadCache {
    /// Has allocations of this cache's thread counted from here on. The caller, of any thread, holds
    /// the lock of all threads.
    pub(crate) fn begin_counting(&self) {
        for offset in &self.stacks.offsets {
            // ORDERING: Relaxed, as where they are read.
            offset.store(NOTHING, Ordering::Relaxed);
        }
        // ORDERING: Relaxed: before it is seen, the slow path takes from the true stacks as well.
        self.stacks.counts.store(true, Ordering::Relaxed);
    }

    /// Ends [`ThreadCache::begin_counting`]. Its own thread calls this and holds the lock of all threads.
    pub(crate) fn end_counting(&self) {
        self.reveal();
        self.countdown.left.set(0);
        for (step, offset) in self.stacks.offsets.iter().enumerate() {
            // ORDERING: Relaxed, as above.
            offset.store(self.own_offset(step) as u32, Ordering::Relaxed);
        }
        // ORDERING: Relaxed, as above.
        self.stacks.counts.store(false, Ordering::Relaxed);
    }

    /// Where the stack of this thread's for sizes of `step` times 16 bytes lies, in bytes.
    fn own_offset(&self, step: usize) -> usize {
        let class = Class::of_size(step * 16).homed();
        let own = usize::from(class.code_in(self.shard.0)) * size_of::<Stack>();
        debug_assert!(class.is_homed() || own == usize::from(OFFSETS[step]));
        own
    }

    /// Notes where the true stacks are.
    fn note_true_stacks(&self) {
        let has_hidden = self.countdown.hidden().is_some();
        for (step, offset) in self.countdown.offsets.iter().enumerate() {
            let is_hidden = has_hidden && !Class::of_size(step * 16).homed().is_homed();
            let own = if is_hidden { NOTHING as usize } else { self.own_offset(step) };
            offset.set(own as u16);
        }
    }

    #[inline(always)]
    fn pop_counted(&'static self, size: usize) -> *mut u8 {
        if size > TABLE_LIMIT {
            return ptr::null_mut();
        }
        let offset = usize::from(self.countdown.offsets[(size + 15) >> 4].get());
        self.count_pop(size, self.stacks.stack_at(offset))
    }

    /// A block from this stack, counted as `size` bytes. Null where there is none or the next sample is due: nothing is
    /// counted then.
    #[inline(always)]
    fn count_pop(&self, size: usize, stack: &Stack) -> *mut u8 {
        let left = self.countdown.left.get();
        if size >= left || self.countdown.session.get() != profile::session() {
            return ptr::null_mut();
        }
        let block = stack.pop();
        if !block.is_null() {
            self.countdown.left.set(left - size);
        }
        block
    }

    /// Counts bytes that are allocated; whether none of them is to be sampled. If not,
    /// [`ThreadCache::is_hit`] is next.
    #[inline(always)]
    pub(crate) fn passes(&self, bytes: usize) -> bool {
        let left = self.countdown.left.get();
        if bytes >= left || self.countdown.session.get() != profile::session() {
            return false;
        }
        self.countdown.left.set(left - bytes);
        true
    }

    /// Whether one of these bytes, which did not pass, is sampled indeed; draws how many go by until
    /// the next.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_hit(&'static self, bytes: usize) -> bool {
        if self.countdown.is_sampling.get() {
            return false;
        }
        let Some((interval, session)) = profile::current() else {
            thread::end_counting(self);
            return false;
        };
        if self.countdown.session.replace(session) != session || self.countdown.left.get() == 0 {
            // Any start will do, as long as no two threads draw the same, nor two processes.
            let (process, place) = (kernel::file::process(), ptr::from_ref(self).addr());
            self.countdown.random.set((process << 32 ^ place) as u64 ^ u64::from(session) << 48);
            self.hide();
            self.note_true_stacks();
            self.countdown.left.set(self.draw(interval));
            if self.passes(bytes) {
                return false;
            }
        }
        self.countdown.left.set(self.draw(interval));
        true
    }

    /// Has a thread that begins with this cache, or started a profile, see each of its blocks.
    pub(crate) fn notice_profile(&self) {
        if self.stacks.counts() && profile::is_running() {
            self.hide();
        }
    }

    /// Draws anew at the next chance: a forked child's samples are not to be its parent's.
    pub(crate) fn forget_draw(&self) {
        self.countdown.left.set(0);
    }

    /// A block of `class` from its true stack. Null only for want of memory.
    #[inline(always)]
    pub(crate) fn pop_true(&'static self, class: Class) -> *mut u8 {
        let block = self.stack(class).pop();
        if block.is_null() { self.pop_slow(class) } else { block }
    }

    fn draw(&self, interval: usize) -> usize {
        let (state, random) = chance::next_random(self.countdown.random.get());
        self.countdown.random.set(state);
        chance::bytes_to_hit(random, interval)
    }

    /// Notes the sampled block at `address`; what that allocates itself is not sampled.
    pub(crate) fn sample(&self, address: usize, bytes: usize) {
        self.countdown.is_sampling.set(true);
        profile::add(address, bytes);
        self.countdown.is_sampling.set(false);
    }

    /// The first of the true stacks of classes without a home, be they hidden or not.
    #[inline(always)]
    pub(super) fn true_stacks(&self) -> *const Stack {
        let visible = self.stacks.stacks.as_ptr();
        self.countdown.hidden().map_or(visible, |hidden| hidden.as_ptr())
    }

    /// Hides the stacks where layouts lead to them. Without memory for that, nothing is counted there.
    fn hide(&self) {
        if self.countdown.hidden().is_some() || !options::layouts_are_used() {
            return;
        }
        const WORDS: usize = size_of::<[Stack; CLASSES]>() / size_of::<usize>();
        let Some(words) = metadata::words(WORDS) else { return };
        let place = words.as_mut_ptr().cast::<[Stack; CLASSES]>();
        // SAFETY: The words are as many as these stacks need, aligned as they are, and nobody else's.
        unsafe { place.write([const { Stack::inert() }; CLASSES]) };
        // SAFETY: Written just now, and never given back: a thread may begin with this cache again.
        let hidden: &'static [Stack; CLASSES] = unsafe { &*place };
        self.countdown.hidden.set(ptr::from_ref(hidden).cast_mut());
        self.swap(hidden);
    }

    /// Puts hidden stacks back.
    fn reveal(&self) {
        if let Some(hidden) = self.countdown.hidden() {
            self.countdown.hidden.set(ptr::null_mut());
            self.swap(hidden);
            let place = ptr::NonNull::from(hidden).cast();
            const WORDS: usize = size_of::<[Stack; CLASSES]>() / size_of::<usize>();
            // SAFETY: The array came from `metadata::words`, which rounds up to this length, and nothing
            // leads to it any more.
            unsafe { metadata::give_back(place, WORDS.next_power_of_two()) };
        }
    }

    /// Exchanges the stacks without a home with others, hidden ones or those that hid them.
    fn swap(&self, others: &[Stack; CLASSES]) {
        for (visible, other) in self.stacks.stacks[..HOMED_FIRST].iter().zip(others) {
            let top = visible.top.replace(other.top.get());
            other.top.set(top);
            other.limit.swap(&visible.limit);
        }
        self.note_true_stacks();
    }
}
