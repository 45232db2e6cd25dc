//! Stacks of free blocks: for each class one that its thread alone touches, and the static ones that threads begin and end with.
//!
//! Relies on the class map to hold offsets into them. Allocating pops a pointer, freeing pushes one: no lock, no atomic, no
//! touch of the block. Two tricks keep both to one comparison. Below the lowest entry of every stack lies a zero, so an empty
//! stack is found by the value that was popped. And codes that no cache takes (foreign, large) have a stack that is always
//! full, so a push of such a pointer ends in the slow path without a test of its own.

use core::mem::offset_of;
use core::ptr;

use crate::blocks::whose::Shard;
use crate::diagnostics::{guards, sampling};
use crate::memory::class::{CLASSES, CODES, Class, HOMED, TABLE_LENGTH};
use crate::memory::ranges::Parked;
use crate::platform::sync::{AtomicBool, AtomicPtr, AtomicUsize, Cell, Count, Ordering};

/// Whether anything can count requests in this program.
pub(crate) const CAN_COUNT: bool = sampling::IS_BUILT_IN || guards::IS_BUILT_IN;

/// A pointer that its thread writes and others may look at.
#[repr(transparent)]
pub(crate) struct Shared<T>(AtomicPtr<T>);

impl<T> Shared<T> {
    pub(crate) const fn new(pointer: *mut T) -> Shared<T> {
        Shared(AtomicPtr::new(pointer))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> *mut T {
        // ORDERING: Relaxed: its own thread needs no order, and others only count.
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, pointer: *mut T) {
        // ORDERING: Relaxed, as above.
        self.0.store(pointer, Ordering::Relaxed);
    }

    /// Sets it to what this thread has just made, for others to read in.
    pub(crate) fn publish(&self, made: *mut T) {
        // ORDERING: Release orders what was written to make it before this; it pairs with the Acquire in `published`.
        self.0.store(made, Ordering::Release);
    }

    /// What another thread published, to be read in.
    pub(crate) fn published(&self) -> *mut T {
        // ORDERING: Acquire pairs with the Release in `publish`.
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn replace(&self, pointer: *mut T) -> *mut T {
        let old = self.get();
        self.set(pointer);
        old
    }
}

/// The stack of one class: `top` points at the last entry, `limit` at the last place.
#[repr(C)]
pub(crate) struct Stack {
    pub(crate) top: Shared<usize>,
    pub(crate) limit: Cell<*mut usize>,
}

/// What a thread's cache is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// The static one that every thread starts with: it holds and takes nothing.
    Empty,
    /// A thread's own.
    Live,
    /// The static one that a thread ends with: late frees go straight to pages.
    Ended,
    /// The static one that stands before a thread's own while a heap profile is taken, so that each request
    /// and each free takes a slow path; see `threads/cache/counted.rs`.
    Counting,
}

/// The part of a cache that the fast paths touch, and all there is of the static ones.
#[repr(C)]
pub(crate) struct Stacks {
    // COUPLING: first, for the class map holds offsets into this array in units of 8 bytes. By code
    // in the class map.
    pub(crate) stacks: [Stack; CODES],
    /// Where the stack for a size lies, in bytes from the start of this structure, modulo all addresses, by size in
    /// steps of 16 bytes. For homed classes, the stack of the thread's own lane.
    // Atomics, because the thread that starts a heap profile changes them for all threads. Shorter ones would cost
    // `malloc` an instruction, for compilers widen them apart from the load.
    pub(crate) offsets: [AtomicUsize; TABLE_LENGTH],
    pub(crate) state: State,
    /// Whether allocations are counted for a heap profile; see `threads/cache/counted.rs`.
    pub(crate) counts: AtomicBool,
    /// Zeros, so that every byte of [`Inert`] has a value.
    filler: [u8; FILLER],
}

const FILLER: usize =
    align_of::<Stack>() - 2 - size_of::<[AtomicUsize; TABLE_LENGTH]>() % align_of::<Stack>();

/// What a thread has that the layers below its cache look at: its cache begins with it.
#[repr(C)]
pub(crate) struct Own {
    // COUPLING: first, so that the address of a live thread's stacks is the address of this.
    pub(crate) stacks: Stacks,
    pub(crate) shard: Shard,
    /// The heap profile that the thread has noticed, by number; 0 for none.
    pub(crate) session: Cell<u32>,
    /// The large block that was freed last, where the next one is likely to be as long.
    pub(crate) parked: Parked,
    /// Blocks that this thread brought home to pages of another shard than its own.
    pub(crate) brought_blocks: Count,
}

impl Own {
    /// A thread that takes blocks from `shard`, and has none.
    pub(crate) const fn new(shard: Shard) -> Own {
        Own {
            stacks: Stacks::new(State::Live),
            shard,
            session: Cell::new(0),
            parked: Parked::new(),
            brought_blocks: Count::new(0),
        }
    }

    /// Whether this thread has noticed the profile that is taken: no sampled block is in its stacks.
    #[inline(always)]
    pub(crate) fn has_noticed(&self) -> bool {
        self.session.get() == sampling::session()
    }
}

/// The zero below the lowest entry of stacks that have no array: always empty, always full.
static NO_ENTRIES: AtomicUsize = AtomicUsize::new(0);

/// Stacks without arrays, shared by threads because nothing is ever written to them: those of a
/// thread at first and, one stack further on, those of an ended thread. Both see the same memory:
/// all stacks are alike, every size leads to the first of them, and each finds a state of its own.
#[repr(C)]
pub(crate) struct Inert {
    pub(crate) stacks: Stacks,
    rest: [u8; size_of::<Stack>()],
}

// SAFETY: These stacks are empty and full at once, so no fast path writes, and slow paths look at
// `state` before they do.
unsafe impl Sync for Inert {}

/// What every thread's slot leads to at first.
// Never written, so it may lie where the dynamic linker takes the right to: that page is written for
// other pointers anyway.
#[unsafe(link_section = ".data.rel.ro.masu_inert")]
pub(crate) static EMPTY: Inert = Inert::new();

/// What the slot of an ended thread leads to.
pub(crate) fn ended() -> &'static Stacks {
    let stacks = (&raw const EMPTY).cast::<Stack>();
    // SAFETY: `Inert` is as long as stacks that start one stack further on, and what they find there
    // is valid: stacks, zeros where their last stack meets the first ones' offsets, and their state.
    unsafe { &*stacks.add(1).cast() }
}

impl Inert {
    pub(crate) const fn new() -> Inert {
        let mut stacks = Stacks::new(State::Empty);
        stacks.offsets = [const { AtomicUsize::new(0) }; TABLE_LENGTH];
        let mut rest = [0; size_of::<Stack>()];
        rest[offset_of!(Stacks, state) + size_of::<Stack>() - size_of::<Stacks>()] =
            State::Ended as u8;
        Inert { stacks, rest }
    }
}

impl Stack {
    pub(crate) const fn inert() -> Stack {
        let zero = (&raw const NO_ENTRIES).cast_mut().cast();
        Stack { top: Shared::new(zero), limit: Cell::new(ptr::null_mut()) }
    }

    /// A stack that is always full and never asked for a block.
    const fn shut() -> Stack {
        Stack { top: Shared::new(ptr::null_mut()), limit: Cell::new(ptr::null_mut()) }
    }

    /// Makes this a stack without an array.
    pub(crate) fn make_inert(&self) {
        let inert = Stack::inert();
        self.top.set(inert.top.get());
        self.limit.set(inert.limit.get());
    }

    /// The block on top, or null.
    #[inline(always)]
    pub(crate) fn pop(&self) -> *mut u8 {
        let top = self.top.get();
        // SAFETY: `top` points into the stack's array, at its lowest at the zero below the entries.
        let block = unsafe { top.read() };
        if block != 0 {
            // SAFETY: Below an entry lies another one, or the zero.
            self.top.set(unsafe { top.sub(1) });
        }
        ptr::with_exposed_provenance_mut(block)
    }

    /// Puts a block on top; false where the stack is full.
    #[inline(always)]
    pub(crate) fn push(&self, block: *mut u8) -> bool {
        let top = self.top.get().wrapping_add(1);
        if top > self.limit.get() {
            return false;
        }
        // SAFETY: Up to the limit there is room.
        unsafe { top.write(block.expose_provenance()) };
        self.top.set(top);
        true
    }
}

impl Stacks {
    const fn new(state: State) -> Stacks {
        let mut stacks = [const { Stack::shut() }; CODES];
        let mut code = 0;
        while code < CLASSES {
            stacks[code] = Stack::inert();
            code += 1;
        }
        let mut offsets = [const { AtomicUsize::new(0) }; TABLE_LENGTH];
        let mut step = 0;
        while step < TABLE_LENGTH {
            offsets[step] = AtomicUsize::new(OFFSETS[step] as usize);
            step += 1;
        }
        Stacks { stacks, offsets, state, counts: AtomicBool::new(false), filler: [0; FILLER] }
    }

    /// Has homed classes keep the blocks that `shard` is home to.
    pub(crate) fn settle(&mut self, shard: Shard) {
        let mut size = 0;
        while Class::of_size(size).homed().is_homed() {
            let code = Class::of_size(size).homed().code_in(shard.0);
            self.stacks[usize::from(code)] = Stack::inert();
            *self.offsets[size / 16].get_mut() = usize::from(code) * size_of::<Stack>();
            size += 16;
        }
    }

    /// What these stacks are good for.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// What the thread has whose stacks these are, or stand before it.
    #[inline]
    pub(crate) fn own(&'static self) -> Option<&'static Own> {
        if self.state == State::Live {
            // SAFETY: Live stacks are the first part of what a thread has.
            return Some(unsafe { &*ptr::from_ref(self).cast() });
        }
        // SAFETY: Only the slot leads to these stacks, and says what stands behind them.
        self.stands_before_a_cache().then(|| unsafe { super::behind() })
    }

    /// A free block for a layout of `size` bytes, at most [`crate::memory::class::TABLE_LIMIT`]; or null. It comes
    /// from a stack without a home.
    #[inline(always)]
    pub(crate) fn pop_for_layout(&self, size: usize) -> *mut u8 {
        self.stack_at(usize::from(OFFSETS[(size + 15) >> 4])).pop()
    }

    /// A free block of `class`, which has no home, or null.
    #[inline(always)]
    pub(crate) fn pop(&self, class: Class) -> *mut u8 {
        self.stacks[class.index()].pop()
    }

    /// A free block for `size` bytes, at most [`crate::memory::class::TABLE_LIMIT`]; or null.
    #[inline(always)]
    pub(crate) fn pop_for_size(&self, size: usize) -> *mut u8 {
        // ORDERING: Relaxed: the number stands for itself, and whatever it is leads to a stack.
        let offset = self.offsets[(size + 15) >> 4].load(Ordering::Relaxed);
        let stack = ptr::from_ref(self).wrapping_byte_add(offset);
        // SAFETY: Offsets in this table lead to stacks of this cache.
        unsafe { &*stack.cast::<Stack>() }.pop()
    }

    /// Keeps a block for whose address the class map says `double_code`; false where its stack is
    /// full, as it is for everything that is no block of a page.
    #[inline(always)]
    pub(crate) fn push(&self, double_code: usize, block: *mut u8) -> bool {
        self.stack_at(double_code * 8).push(block)
    }

    /// Keeps a block whose layout has `size` bytes, at most [`crate::memory::class::TABLE_LIMIT`]; false where its
    /// stack is full.
    #[inline(always)]
    pub(crate) fn push_for_layout(&self, size: usize, block: *mut u8) -> bool {
        self.stack_at(usize::from(OFFSETS[(size + 15) >> 4])).push(block)
    }

    /// Keeps a block of `class`, which has no home; false where its stack is full.
    #[inline(always)]
    pub(crate) fn push_class(&self, class: Class, block: *mut u8) -> bool {
        self.stacks[class.index()].push(block)
    }

    #[inline(always)]
    pub(crate) fn stack_at(&self, offset: usize) -> &Stack {
        debug_assert!(offset.is_multiple_of(size_of::<Stack>()));
        debug_assert!(offset < size_of_val(&self.stacks));
        // SAFETY: Offsets come from the table above or from the class map, which both hold
        // multiples of a stack's size below the number of codes.
        unsafe { &*ptr::from_ref(self).byte_add(offset).cast::<Stack>() }
    }

    /// Whether allocations are counted.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        // ORDERING: Relaxed: a thread that sees it late counts a few blocks less.
        CAN_COUNT && self.counts.load(Ordering::Relaxed)
    }

    /// Whether these are the ones that stand before a thread's cache.
    #[inline(always)]
    pub(crate) fn stands_before_a_cache(&self) -> bool {
        CAN_COUNT && self.state == State::Counting
    }
}

/// Sizes of homed classes, in steps of 16 bytes from 0 on.
pub(crate) const HOMED_STEPS: usize = HOMED + 1;

const _: () = assert!(
    Class::of_size((HOMED_STEPS - 1) * 16).homed().is_homed()
        && !Class::of_size(HOMED_STEPS * 16).homed().is_homed()
);

/// Where the stack without a home for a size lies, as in [`Stacks`]; `const` so that a size known at
/// compile time folds away in other crates too.
pub(crate) const OFFSETS: [u16; TABLE_LENGTH] = offsets();

/// Whether blocks for layouts of these sizes, at most [`crate::memory::class::TABLE_LIMIT`], are of one class.
#[inline(always)]
pub(crate) fn share_stack(one_size: usize, other_size: usize) -> bool {
    OFFSETS[(one_size + 15) >> 4] == OFFSETS[(other_size + 15) >> 4]
}

const fn offsets() -> [u16; TABLE_LENGTH] {
    let mut offsets = [0; TABLE_LENGTH];
    let mut step = 0;
    while step < TABLE_LENGTH {
        offsets[step] = (Class::of_size(step * 16).index() * size_of::<Stack>()) as u16;
        step += 1;
    }
    offsets
}

const _: () = assert!(offset_of!(Stacks, filler) + FILLER == size_of::<Stacks>());
const _: () = assert!(size_of::<Stack>() == 16, "the class map's unit times two");
const _: () = assert!(CODES * 2 <= 256, "twice a code fits the class map's byte");
