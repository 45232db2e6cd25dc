//! Slices: the 64 KiB units of arenas, with a record for each.
//!
//! Relies on the layout of an arena's head: an arena starts at a multiple of 1 GiB with 64 bytes for each of its slices, and
//! the bitmaps of its pages follow, 512 bytes a slice. So the record of a pointer's slice is a mask, a shift and an addition
//! away. Records lie together, apart from the blocks, because headers in front of pages would all fall into the same few
//! cache sets.

use core::ptr::{self, NonNull};

pub(crate) use crate::memory::class::{SLICE_BYTES, SLICE_SHIFT};
use crate::platform::sync::{AtomicU8, Cell, Ordering};

/// The unit of the record of purged memory: the smallest OS page.
pub(crate) const PIECE_BYTES: usize = SLICE_BYTES / u16::BITS as usize;
/// Bytes of an arena's addresses, and its alignment. A longer block has a longer arena of its own.
pub(crate) const ARENA_BYTES: usize = 1 << 30;
/// Slices of a whole arena.
pub(crate) const ARENA_SLICES: usize = ARENA_BYTES / SLICE_BYTES;
/// The offset of the bitmaps, behind the slices' records.
pub(crate) const BITMAPS_AT: usize = ARENA_SLICES * size_of::<Slice>();
/// Words of a slice's bitmap: one bit for each 16 bytes.
pub(crate) const BITMAP_WORDS: usize = SLICE_BYTES / 16 / 64;

/// The use of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Head of the arena, never handed out, or inside a run, whose first slice has its kind.
    Opaque = 0,
    /// First or last slice of a free run.
    Free = 1,
    /// A page of blocks: every slice of it.
    Page = 2,
    /// First slice of a large block.
    Large = 3,
    /// Metadata.
    Metadata = 4,
    /// First slice of a large block that is free and parked.
    Parked = 5,
    /// A page of blocks of a first-class heap: every slice of it.
    HeapPage = 6,
    /// First slice of a large block of a first-class heap.
    HeapLarge = 7,
    /// A slice that several classes of a first-class heap share.
    HeapMixed = 8,
    /// First or last slice of a free run that is not merged yet.
    Unmerged = 9,
}

/// A [`Kind`] that neighbors may read while it changes.
#[repr(transparent)]
pub(crate) struct AtomicKind(AtomicU8);

impl AtomicKind {
    pub(crate) fn get(&self) -> Kind {
        // ORDERING: Relaxed: whether a slice is free changes under the ranges' lock only.
        match self.0.load(Ordering::Relaxed) {
            1 => Kind::Free,
            2 => Kind::Page,
            3 => Kind::Large,
            4 => Kind::Metadata,
            5 => Kind::Parked,
            6 => Kind::HeapPage,
            7 => Kind::HeapLarge,
            8 => Kind::HeapMixed,
            9 => Kind::Unmerged,
            _ => Kind::Opaque,
        }
    }

    /// Whether it is `kind`.
    #[inline(always)]
    pub(crate) fn is(&self, kind: Kind) -> bool {
        // ORDERING: Relaxed, as above.
        self.0.load(Ordering::Relaxed) == kind as u8
    }

    pub(crate) fn set(&self, kind: Kind) {
        // ORDERING: Relaxed, as above.
        self.0.store(kind as u8, Ordering::Relaxed);
    }
}

/// A slice's links in a [`List`](crate::memory::list::List). All zero: in none, or alone in one.
#[repr(C)]
pub(crate) struct Links {
    pub(crate) next: Cell<Option<&'static Slice>>,
    pub(crate) previous: Cell<Option<&'static Slice>>,
}

/// The record of a slice, or of the run that it starts.
#[repr(C, align(64))]
pub(crate) struct Slice {
    /// Links of the run's list: free runs (the ranges' lock), or pages with free blocks (the lock of the page's shard and
    /// class).
    pub(crate) links: Links,
    /// Slices of the run: of a free one under the ranges' lock, of a large block its owner's.
    pub(crate) count: Cell<u32>,
    /// The distance to the first slice of the run, in its other slices (of pages and at the ends of free runs). Constant for
    /// a page's life, so that `free` reads it without a lock.
    pub(crate) back: Cell<u32>,
    /// Bytes of a free run that may be resident: the ranges' lock. In a page: the free blocks at its last purge, under the
    /// lock of the page's shard and class.
    pub(crate) dirty: Cell<u32>,
    /// Free blocks of a page, under the lock of the page's shard and class, like `first_free`. In a free run that is away,
    /// the thread that has it: the ranges' lock.
    pub(crate) free_blocks: Cell<u32>,
    /// Words of the page's bitmap before this one are zero.
    pub(crate) first_free: Cell<u32>,
    /// The use of the slice. It changes from and to free only under the ranges' lock; neighbors read it at any time.
    pub(crate) kind: AtomicKind,
    /// The code of the page's class; of a first-class heap's page in each of its slices. Constant for a page's life, like
    /// `shard`.
    pub(crate) code: Cell<u8>,
    /// The shard that owns the page.
    pub(crate) shard: Cell<u8>,
    /// Whether a free run is known to read as zero: the ranges' lock. In a page: whether it is away, its free memory being
    /// purged; the lock of the page's shard and class. In a large block: whether the kernel zeroed it, or in the hardened build,
    /// whether it has guards.
    pub(crate) zero: Cell<bool>,
    /// A page's slice: bit *i* is set if the *i*th [`PIECE_BYTES`] were purged and none of their blocks was handed out since.
    /// The lock of the page's shard and class. Else 0.
    pub(crate) purged: Cell<u16>,
    /// In a page of sampled blocks, the code of their class; in a large block, whether it was sampled. Else 0.
    pub(crate) sampled: Cell<u8>,
    /// The heap of a [`Kind::HeapPage`], a [`Kind::HeapMixed`] or the first slice of a [`Kind::HeapLarge`]. Constant for
    /// its life, so that `free` reads it without a lock. In a page of few blocks, its bitmap (`blocks/page.rs`);
    /// in the hardened build, the records of a page and the size of a large block.
    pub(crate) belongs: Belongs,
}

/// The first-class heap that a slice belongs to.
#[repr(C)]
pub(crate) struct Belongs {
    /// Its owner, of a type that [`crate::blocks::owner`] knows.
    pub(crate) owner: Cell<*const ()>,
    /// The heap's number.
    pub(crate) number: Cell<usize>,
}

impl Slice {
    /// The slice that holds `address`.
    ///
    /// # Safety
    ///
    /// - `address` lies within the first 1 GiB of an arena that stays reserved.
    #[inline]
    pub(crate) unsafe fn at(address: usize) -> &'static Slice {
        let arena = address & !(ARENA_BYTES - 1);
        // SAFETY: The caller's condition.
        unsafe { Slice::in_slot(arena + ((address - arena) >> SLICE_SHIFT) * size_of::<Slice>()) }
    }

    /// The slice in a slot.
    ///
    /// # Safety
    ///
    /// - It is a slot in the head of an arena that stays reserved.
    #[inline(always)]
    unsafe fn in_slot(slot: usize) -> &'static Slice {
        // SAFETY: The head of an arena is committed while the arena is reserved, and has a slot for each of its slices; zero
        // bytes are a valid slice.
        unsafe { &*ptr::with_exposed_provenance(slot) }
    }

    /// The address of the arena that holds this slice.
    pub(crate) fn arena_address(&self) -> usize {
        ptr::from_ref(self).addr() & !(ARENA_BYTES - 1)
    }

    /// The slice's number in its arena.
    pub(crate) fn index(&self) -> usize {
        (ptr::from_ref(self).addr() - self.arena_address()) / size_of::<Slice>()
    }

    /// The address of the slice's memory.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.arena_address() + self.index() * SLICE_BYTES
    }

    /// The slice's memory.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        let start = ptr::with_exposed_provenance_mut(self.address());
        // SAFETY: No arena starts at address 0.
        unsafe { NonNull::new_unchecked(start) }
    }

    /// The slice `distance` slots further on.
    ///
    /// # Safety
    ///
    /// - It lies in the same arena.
    pub(crate) unsafe fn ahead(&self, distance: usize) -> &'static Slice {
        // SAFETY: The caller's condition: its slot lies as far ahead in the arena's head.
        unsafe { Slice::in_slot(ptr::from_ref(self).addr() + distance * size_of::<Slice>()) }
    }

    /// The slice `distance` slots before.
    ///
    /// # Safety
    ///
    /// - It lies in the same arena.
    pub(crate) unsafe fn behind(&self, distance: usize) -> &'static Slice {
        // SAFETY: The caller's condition, as above.
        unsafe { Slice::in_slot(ptr::from_ref(self).addr() - distance * size_of::<Slice>()) }
    }

    /// The first slice of the page that this slice belongs to.
    #[inline]
    pub(crate) fn page(&self) -> &'static Slice {
        // SAFETY: Pages do not cross arenas, and `back` leads to the first slice of the page.
        unsafe { self.behind(self.back.get() as usize) }
    }

    /// Gives this slice to the heap with this number and owner.
    pub(crate) fn set_belongs(&self, owner: *const (), number: usize) {
        self.belongs.owner.set(owner);
        self.belongs.number.set(number);
    }

    /// The bitmap of the page that starts at this slice: a set bit is a free block. The lock of the page's shard and class
    /// guards its words.
    #[inline]
    pub(crate) fn bitmap(&self, words: usize) -> &'static [Cell<u64>] {
        let start =
            self.arena_address() + BITMAPS_AT + self.index() * BITMAP_WORDS * size_of::<u64>();
        // SAFETY: The head holds the bitmaps of all slices one after another; a page's bitmap is as long as those of its
        // slices together.
        unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(start), words) }
    }
}

const _: () = assert!(size_of::<Slice>() == 64);
