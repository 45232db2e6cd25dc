//! Heap caches: a thread's stacks of free blocks of first-class heaps.
//!
//! Relies on owners for a heap's number, and for blocks. A thread has a few *places*; a heap's number determines its
//! place. The hard idea: threads are not notified of a heap's end. Cached blocks carry their heap's number, and numbers
//! are never reused, so blocks of a destroyed heap are never found, and are dropped unread when another heap needs the
//! place. Only blocks up to [`SIZE_MAX`] are cached. A heap that finds another one's blocks in its place is served from
//! pages for a while before it takes the place over, because two heaps used in turn would flush each other's blocks all
//! the time.

use core::ptr;

use super::{Shared, Stack, ThreadCache, all};
use crate::blocks::owner::Owner;
use crate::blocks::slot;
use crate::memory::class::{Class, FIRST, MIN_ALIGN};
use crate::memory::metadata;
use crate::platform::bounds::Bounded;
use crate::platform::sync::{AtomicUsize, Cell, Ordering};

/// Whether threads cache blocks of heaps at all. The hardened build returns each to its page when it is freed, where it
/// is checked.
const IS_ENABLED: bool = !cfg!(feature = "secure");
/// Heaps whose blocks a thread caches at once: a power of two.
pub(super) const PLACES: usize = 8;
/// The largest blocks that are cached, in bytes; larger ones and batches take the heap's lock.
pub(crate) const SIZE_MAX: usize = 16 << 10;
/// Classes up to that size: a power of two, so that an index needs no test.
const CLASSES: usize = Class::of_size(SIZE_MAX).index() - FIRST + 1;
/// Bytes of a class that are cached at most, and blocks; but at least `BLOCKS_MIN` blocks.
const BYTES_MAX: usize = 4 << 10;
const BLOCKS_MAX: usize = 48;
const BLOCKS_MIN: usize = 5;
/// The number of times that a heap finds its place taken before it takes the place over.
const WAITS_MAX: u32 = 16;

/// A thread's free blocks of one heap.
#[repr(C)]
pub(crate) struct HeapCache {
    /// The heap's number; 0 for none. Written by the thread, read by others.
    number: AtomicUsize,
    owner: Shared<Owner>,
    /// The number of times that another heap wanted this place.
    waits: Cell<u32>,
    stacks: [Stack; CLASSES],
    /// The blocks of all classes; a zero is below the lowest of each.
    entries: [Cell<usize>; ENTRIES],
}

const ENTRIES: usize = {
    let (mut entries, mut index) = (0, 0);
    while index < CLASSES {
        entries += 1 + capacity(class_at(index));
        index += 1;
    }
    entries
};

/// The words of a [`HeapCache`].
const WORDS: usize = size_of::<HeapCache>().div_ceil(size_of::<usize>());

const fn class_at(index: usize) -> Class {
    match Class::from_code((FIRST + index) as u8) {
        Some(class) => class,
        None => panic!("there are so many classes"),
    }
}

/// The number of blocks of a class that are cached.
const fn capacity(class: Class) -> usize {
    match BYTES_MAX / class.size() {
        few if few < BLOCKS_MIN => BLOCKS_MIN,
        many if many > BLOCKS_MAX => BLOCKS_MAX,
        blocks => blocks,
    }
}

impl HeapCache {
    /// This thread's cache of the heap of `owner`, if it has one.
    #[inline(always)]
    pub(crate) fn of(owner: &'static Owner) -> Option<&'static HeapCache> {
        HeapCache::of_number(owner.number())
    }

    /// The same for the heap with this number.
    #[inline(always)]
    pub(crate) fn of_number(number: usize) -> Option<&'static HeapCache> {
        let cache = slot::get().cache()?;
        // SAFETY: A place holds null or a heap cache that is never freed.
        let cached = unsafe { cache.heaps[number % PLACES].get().as_ref() }?;
        (cached.number() == number).then_some(cached)
    }

    /// The same; takes a place in this thread's `cache` for the heap, if it has none and may.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_place(
        cache: &'static ThreadCache,
        owner: &'static Owner,
    ) -> Option<&'static HeapCache> {
        if !IS_ENABLED {
            return None;
        }
        let number = owner.number();
        let place = &cache.heaps[number % PLACES];
        // SAFETY: As above.
        let cached = match unsafe { place.get().as_ref() } {
            Some(cached) => cached,
            None => {
                let cached = HeapCache::make()?;
                place.publish(ptr::from_ref(cached).cast_mut());
                cached
            }
        };
        if cached.number() != number {
            if !cached.is_replaceable() {
                return None;
            }
            cached.flush();
            cached.assign(owner, number);
        }
        Some(cached)
    }

    /// An empty heap cache.
    fn make() -> Option<&'static HeapCache> {
        let words = metadata::words(WORDS)?;
        words.fill(0);
        let start = words.as_ptr().cast::<HeapCache>();
        // SAFETY: The words are long enough and aligned, and zeros are a valid value: numbers, no owner, null pointers.
        let cached: &'static HeapCache = unsafe { &*start };
        let mut base = ptr::from_ref(&cached.entries).cast::<usize>().cast_mut();
        for (index, stack) in cached.stacks.iter().enumerate() {
            let limit = base.wrapping_add(capacity(class_at(index)));
            stack.top.set(base);
            stack.limit.set(limit);
            base = limit.wrapping_add(1);
        }
        Some(cached)
    }

    /// Whether another heap may take the place.
    fn is_replaceable(&self) -> bool {
        let is_gone = self.owner().is_none();
        let waits = if is_gone { WAITS_MAX } else { self.waits.get() + 1 };
        self.waits.set(waits % WAITS_MAX);
        waits >= WAITS_MAX
    }

    /// The owner, if the heap still exists.
    pub(super) fn owner(&self) -> Option<&'static Owner> {
        // SAFETY: It is null or leads to an owner, and owners are never unmapped.
        let owner = unsafe { self.owner.published().as_ref() };
        let number = self.number();
        owner.filter(|owner| number != 0 && owner.number() == number)
    }

    fn assign(&self, owner: &'static Owner, number: usize) {
        self.owner.publish(ptr::from_ref(owner).cast_mut());
        self.set_number(number);
    }

    #[inline(always)]
    fn number(&self) -> usize {
        // ORDERING: Relaxed: the thread itself needs no order, and other threads only count.
        self.number.load(Ordering::Relaxed)
    }

    fn set_number(&self, number: usize) {
        // ORDERING: Relaxed, as above.
        self.number.store(number, Ordering::Relaxed);
    }

    #[inline(always)]
    fn stack(&self, class: Class) -> &Stack {
        debug_assert!(class.index() - FIRST < CLASSES);
        &self.stacks[(class.index() - FIRST) % CLASSES]
    }

    /// The classes that are cached.
    #[cfg(debug_assertions)]
    pub(super) fn classes() -> impl Iterator<Item = Class> {
        (0..CLASSES).map(class_at)
    }

    /// The zero below a stack's entries.
    pub(super) fn base(&self, class: Class) -> *mut usize {
        self.stack(class).limit.get().wrapping_sub(capacity(class))
    }

    /// A free block for `size` bytes, at most [`SIZE_MAX`], or null.
    #[inline(always)]
    pub(crate) fn pop(&self, size: usize) -> *mut u8 {
        self.stack(Class::of_size(size)).pop()
    }

    /// Caches a free block of `size` bytes, at most [`SIZE_MAX`]; false where there is no room.
    #[inline(always)]
    pub(crate) fn push(&self, size: usize, block: *mut u8) -> bool {
        self.stack(Class::of_size(size)).push(block)
    }

    /// Caches a free block of the class of `code`; false where there is no room, the class is over [`SIZE_MAX`], or the
    /// code is no class's.
    #[inline(always)]
    pub(crate) fn push_code(&self, code: u8, block: *mut u8) -> bool {
        let stack = self.stacks.get(usize::from(code).wrapping_sub(FIRST));
        stack.is_some_and(|stack| stack.push(block))
    }

    /// A block of a class whose stack is empty, and some more for later. Null without memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn pop_slow(&self, owner: &'static Owner, class: Class) -> *mut u8 {
        let mut blocks = [0; BLOCKS_MAX];
        let wanted = capacity(class).div_ceil(2);
        let taken = owner.take(class, blocks.at_mut(..wanted));
        let fetched = blocks.at(wanted - taken..wanted);
        let Some((last, kept)) = fetched.split_last() else { return ptr::null_mut() };
        let stack = self.stack(class);
        for block in kept {
            let _ = stack.push(ptr::with_exposed_provenance_mut(*block));
        }
        ptr::with_exposed_provenance_mut(*last)
    }

    /// Caches a block of a class whose stack is full: flushes the older half first.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_slow(&self, owner: &'static Owner, class: Class, block: *mut u8) {
        let stack = self.stack(class);
        let count = self.count(class);
        let (kept, flushed) = (count / 2, count - count / 2);
        let first = self.base(class).wrapping_add(1);
        // SAFETY: The stack holds so many entries from there on, which only this thread touches.
        let entries = unsafe { core::slice::from_raw_parts_mut(first, count) };
        owner.put(class, entries.at(..flushed));
        entries.move_to_start(flushed);
        stack.top.set(self.base(class).wrapping_add(kept));
        let _ = stack.push(block);
    }

    /// The number of blocks of a class that are cached.
    pub(super) fn count(&self, class: Class) -> usize {
        (self.stack(class).top.get().addr() - self.base(class).addr()) / size_of::<usize>()
    }

    /// Flushes the cached blocks, or drops them where the heap is gone; the place is then free.
    #[inline(never)]
    fn flush(&self) {
        let (number, owner) = (self.number(), self.owner());
        self.set_number(0);
        for class in (0..CLASSES).map(class_at) {
            let count = self.count(class);
            let base = self.base(class);
            self.stack(class).top.set(base);
            if count > 0
                && let Some(owner) = owner
            {
                // SAFETY: As in `push_slow`.
                let blocks = unsafe { core::slice::from_raw_parts(base.wrapping_add(1), count) };
                owner.put_if(number, class, blocks);
            }
        }
    }

    /// The number of cached blocks, and their bytes.
    #[inline(never)]
    fn cached(&self) -> (usize, usize) {
        (0..CLASSES).map(class_at).fold((0, 0), |(blocks, bytes), class| {
            let count = self.count(class);
            (blocks + count, bytes + count * class.size())
        })
    }
}

impl ThreadCache {
    pub(super) fn places(&self) -> impl Iterator<Item = &'static HeapCache> {
        // SAFETY: A place holds null or a heap cache that is never freed.
        self.heaps.iter().filter_map(|place| unsafe { place.published().as_ref() })
    }

    /// Flushes the blocks of all heaps.
    #[inline(never)]
    pub(crate) fn flush_heaps(&self) {
        self.places().filter(|cached| cached.number() != 0).for_each(HeapCache::flush);
    }

    /// The number of cached blocks of heaps whose owners `of` selects, and their bytes, for other threads.
    pub(crate) fn cached_of_heaps(&self, of: impl Fn(&'static Owner) -> bool) -> (usize, usize) {
        let selected = self.places().filter(|cached| cached.owner().is_some_and(&of));
        selected.map(HeapCache::cached).fold((0, 0), |sum, held| (sum.0 + held.0, sum.1 + held.1))
    }
}

/// Blocks that all threads cache of the heaps whose owners `of` selects, and their bytes.
pub(crate) fn cached_by_all(of: impl Fn(&'static Owner) -> bool) -> (usize, usize) {
    let held = all::caches().map(|cache| cache.cached_of_heaps(&of));
    held.fold((0, 0), |sum, held| (sum.0 + held.0, sum.1 + held.1))
}

const _: () = assert!(CLASSES.is_power_of_two() && PLACES.is_power_of_two());
const _: () = assert!(WORDS <= 1024, "a thread keeps eight of these");
const _: () = assert!(WORDS <= metadata::WORDS_MAX && align_of::<HeapCache>() <= MIN_ALIGN);
