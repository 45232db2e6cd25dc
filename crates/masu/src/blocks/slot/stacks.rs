//! Stacks of free blocks: for each class one that only its thread touches, and the static ones of threads without a cache.
//!
//! Relies on the class map, which holds offsets into them. Allocating pops a pointer, freeing pushes one: no lock, no atomic
//! read-modify-write, no access to the block. Two tricks keep both to one comparison. A zero lies below the lowest entry of
//! every stack, so an empty stack shows in the popped value. And codes of memory that no cache takes (foreign, large) have a
//! stack that is always full, so pushing such a pointer takes the slow path without a test of its own.

use core::mem::offset_of;
use core::{hint, ptr};

use super::register;
use crate::blocks::ownership::Shard;
use crate::diagnostics::{guards, sampling};
use crate::memory::class::{CLASSES, CODES, Class, TABLE_LENGTH};
use crate::memory::ranges::Parked;
use crate::platform::sync::{AtomicBool, AtomicPtr, AtomicUsize, Cell, Count, Ordering};

/// Whether this build can count requests.
pub(crate) const CAN_COUNT: bool = sampling::IS_BUILT_IN || guards::IS_BUILT_IN;

/// A pointer that its thread writes and other threads may read.
#[repr(transparent)]
pub(crate) struct Shared<T>(AtomicPtr<T>);

impl<T> Shared<T> {
    pub(crate) const fn new(pointer: *mut T) -> Shared<T> {
        Shared(AtomicPtr::new(pointer))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> *mut T {
        // ORDERING: Relaxed: the thread itself needs no order, and other threads only count.
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, pointer: *mut T) {
        // ORDERING: Relaxed, as above.
        self.0.store(pointer, Ordering::Relaxed);
    }

    /// Sets it to an object that this thread has just made, for other threads to read.
    pub(crate) fn publish(&self, made: *mut T) {
        // ORDERING: Release publishes the object; it pairs with the Acquire in `published`.
        self.0.store(made, Ordering::Release);
    }

    /// The object that another thread published.
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

/// The state of a thread's stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// The static ones that every thread starts with: always empty and full.
    Empty,
    /// A thread's own.
    Live,
    /// The static ones that a thread ends with: late frees go directly to pages.
    Ended,
    /// The static ones that hide a thread's own while requests are counted, so that each request and each free takes a
    /// slow path; see `threads/cache/counted.rs`.
    Counting,
}

/// The part of a cache that the fast paths touch, which is all there is of the static ones.
#[repr(C)]
pub(crate) struct Stacks {
    // COUPLING: First, because the class map holds offsets into this array in units of 8 bytes. By code.
    pub(crate) stacks: [Stack; CODES],
    /// The offset of the stack for a size, in bytes from the start of this structure, by size in steps of 16 bytes. For
    /// laned classes, the stack of the thread's own lane. All zero, the first stack, until [`Stacks::init`].
    // Atomics, because the thread that starts a heap profile changes them for all threads. `usize`, because compilers extend
    // a shorter atomic with an instruction of its own in `malloc`.
    pub(crate) offsets: [AtomicUsize; TABLE_LENGTH],
    pub(crate) state: State,
    /// Whether requests are counted; see `threads/cache/counted.rs`.
    pub(crate) counts: AtomicBool,
    /// Zeros, so that every byte of [`Inert`] has a value.
    filler: [u8; FILLER],
}

const FILLER: usize =
    align_of::<Stack>() - 2 - size_of::<[AtomicUsize; TABLE_LENGTH]>() % align_of::<Stack>();

/// The part of a thread's cache that layers below the cache read. A cache begins with it.
#[repr(C)]
pub(crate) struct CacheHead {
    // COUPLING: First, so that the address of a live thread's stacks is the address of this.
    pub(crate) stacks: Stacks,
    pub(crate) shard: Shard,
    /// The last bits of the cache's number, by which its thread's stripe is chosen.
    pub(crate) number: u8,
    /// The session that the thread has noticed; 0 for none.
    pub(crate) session: Cell<u32>,
    /// The large block that was freed last, where the next one is likely to have its size.
    pub(crate) parked: Parked,
    /// Blocks that this thread returned to pages of other shards.
    pub(crate) returned_blocks: Count,
}

impl CacheHead {
    /// For a thread that takes blocks from `shard`, without any.
    pub(crate) const fn new(shard: Shard, number: u8) -> CacheHead {
        CacheHead {
            stacks: Stacks::new(State::Live),
            shard,
            number,
            session: Cell::new(0),
            parked: Parked::new(),
            returned_blocks: Count::new(0),
        }
    }

    /// Whether this thread has noticed the current session, and so has no sampled block in its stacks.
    #[inline(always)]
    pub(crate) fn has_noticed(&self) -> bool {
        self.session.get() == sampling::session()
    }
}

/// The zero below the lowest entry of stacks without an array, which makes them always empty and full.
static NO_ENTRIES: AtomicUsize = AtomicUsize::new(0);

/// Stacks without arrays, shared by threads because they are never written: those of a starting thread and, one stack
/// further on, those of an ended thread. Both share the same memory: all stacks are alike, every size leads to the first of
/// them, and each view has its own state.
#[repr(C)]
pub(crate) struct Inert {
    pub(crate) stacks: Stacks,
    rest: [u8; size_of::<Stack>()],
}

// SAFETY: These stacks are empty and full at once, so no fast path writes to them, and slow paths check `state` first.
unsafe impl Sync for Inert {}

/// The stacks of a thread's slot at first.
// In a section that the dynamic linker makes read-only: it is never written, and its OS page is touched for other pointers
// anyway.
#[unsafe(link_section = ".data.rel.ro.masu_inert")]
pub(crate) static EMPTY: Inert = Inert::new();

/// The stacks of an ended thread's slot.
pub(crate) fn ended() -> &'static Stacks {
    let stacks = (&raw const EMPTY).cast::<Stack>();
    // SAFETY: `Inert` has room for stacks that start one stack further on, and what they contain there is valid: stacks,
    // zeros where their last stack meets the first ones' offsets, and their state.
    unsafe { &*stacks.add(1).cast() }
}

impl Inert {
    pub(crate) const fn new() -> Inert {
        let stacks = Stacks::new(State::Empty);
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

    /// A stack that is always full and never popped.
    const fn shut() -> Stack {
        Stack { top: Shared::new(ptr::null_mut()), limit: Cell::new(ptr::null_mut()) }
    }

    /// Makes this a stack without an array.
    pub(crate) fn make_inert(&self) {
        self.top.set((&raw const NO_ENTRIES).cast_mut().cast());
        self.limit.set(ptr::null_mut());
    }

    /// The block on top, or null.
    #[inline(always)]
    pub(crate) fn pop(&self) -> *mut u8 {
        let top = self.top.get();
        // SAFETY: `top` points into the stack's array, at the lowest to the zero below the entries.
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
        let offsets = [const { AtomicUsize::new(0) }; TABLE_LENGTH];
        Stacks { stacks, offsets, state, counts: AtomicBool::new(false), filler: [0; FILLER] }
    }

    /// Sets up the offsets, and the stacks of laned classes for the lane of `shard`.
    pub(crate) fn init(&mut self, shard: Shard) {
        // `black_box` hides the length: the unrolled loop is 1.3 KiB long.
        for (offset, plain) in self.offsets.iter_mut().zip(hint::black_box(&OFFSETS[..])) {
            *offset.get_mut() = usize::from(*plain);
        }
        let mut size = 0;
        while Class::of_size(size).laned().is_laned() {
            let code = Class::of_size(size).laned().code_in(shard.0);
            self.stacks[usize::from(code)] = Stack::inert();
            *self.offsets[size / 16].get_mut() = usize::from(code) * size_of::<Stack>();
            size += 16;
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// The part of a cache that begins with these stacks, or that they hide.
    #[inline]
    pub(crate) fn head(&'static self) -> Option<&'static CacheHead> {
        if self.state == State::Live {
            // SAFETY: Live stacks are the first field of a `CacheHead`.
            return Some(unsafe { &*ptr::from_ref(self).cast() });
        }
        // SAFETY: These stacks are only reached through the slot, whose second word leads to the hidden cache.
        self.hides_cache().then(|| unsafe { super::hidden() })
    }

    /// A free block for a layout of `size` bytes, at most [`crate::memory::class::TABLE_LIMIT`], or null. It comes from the
    /// stack of the plain class.
    #[inline(always)]
    pub(crate) fn pop_for_layout(&self, size: usize) -> *mut u8 {
        self.stack_at_run_time(usize::from(OFFSETS[(size + 15) >> 4])).pop()
    }

    /// A free block of a plain class, or null.
    #[inline(always)]
    pub(crate) fn pop(&self, class: Class) -> *mut u8 {
        self.stack_at_run_time(class.index() * size_of::<Stack>()).pop()
    }

    /// A free block for `size` bytes, at most [`crate::memory::class::TABLE_LIMIT`], or null.
    #[inline(always)]
    pub(crate) fn pop_for_size(&self, size: usize) -> *mut u8 {
        const TABLE: usize = offset_of!(Stacks, offsets);
        let step = (size + 15) >> 4;
        debug_assert!(step < TABLE_LENGTH);
        // SAFETY: The table has a place for each size up to the limit.
        let stack = unsafe { register::moved_by_table::<Stacks, TABLE>(self, step) };
        // SAFETY: Every offset in the table leads to a stack of this cache.
        unsafe { &*stack.cast::<Stack>() }.pop()
    }

    /// Pushes a block with this `double_code` in the class map; false where its stack is full, as it is for everything
    /// that is no block of a page.
    #[inline(always)]
    pub(crate) fn push(&self, double_code: usize, block: *mut u8) -> bool {
        self.stack_at_run_time(double_code * 8).push(block)
    }

    /// Pushes a block whose layout has `size` bytes, at most [`crate::memory::class::TABLE_LIMIT`]; false where its stack is
    /// full.
    #[inline(always)]
    pub(crate) fn push_for_layout(&self, size: usize, block: *mut u8) -> bool {
        self.stack_at_run_time(usize::from(OFFSETS[(size + 15) >> 4])).push(block)
    }

    /// Pushes a block of a plain class; false where its stack is full.
    #[inline(always)]
    pub(crate) fn push_class(&self, class: Class, block: *mut u8) -> bool {
        self.stack_at_run_time(class.index() * size_of::<Stack>()).push(block)
    }

    /// [`Stacks::stack_at`] for an offset that the compiler does not know.
    #[inline(always)]
    fn stack_at_run_time(&self, offset: usize) -> &Stack {
        // SAFETY: It is the pointer that was put in.
        unsafe { &*register::in_one(self.stack_at(offset)) }
    }

    #[inline(always)]
    fn stack_at(&self, offset: usize) -> &Stack {
        debug_assert!(offset.is_multiple_of(size_of::<Stack>()));
        debug_assert!(offset < size_of_val(&self.stacks));
        // SAFETY: Offsets come from the table above or from the class map; both hold multiples of a stack's size below the
        // number of codes.
        unsafe { &*ptr::from_ref(self).byte_add(offset).cast::<Stack>() }
    }

    /// Whether requests are counted.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        // ORDERING: Relaxed: a thread that sees it late counts a few blocks less.
        CAN_COUNT && self.counts.load(Ordering::Relaxed)
    }

    /// Whether these stacks hide a thread's cache.
    #[inline(always)]
    pub(crate) fn hides_cache(&self) -> bool {
        CAN_COUNT && self.state == State::Counting
    }
}

/// The offset of the plain class's stack for a size, as in [`Stacks`]; `const`, so that a size known at compile time folds
/// away in other crates too.
const OFFSETS: [u16; TABLE_LENGTH] = offsets();

/// Whether layouts of these sizes, at most [`crate::memory::class::TABLE_LIMIT`], have one class.
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
