//! Arenas: ranges of addresses reserved from the kernel, cut into slices of 64 KiB.
//!
//! Relies on the kernel door and the class map. An arena's head holds what [`crate::slice`] lays out;
//! the rest is reserved without access and committed from the front in growing steps, so that
//! little programs stay little even where the kernel backs everything with huge pages.
//!
//! What this room never does: decide which slices are handed out; that is [`crate::ranges`].

mod pieces;

use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

use crate::class::FOREIGN;
use crate::kernel::{self, Advice, Protection};
use crate::map;
use crate::options;
use crate::slice::{ARENA_BYTES, ARENA_SLICES, BITMAP_WORDS, BITMAPS_AT, Kind, SLICE_BYTES, Slice};
use crate::sync::{AtomicUsize, Ordering, Table};

/// Slices of the head of an arena that holds one block only and has no bitmaps.
const DEDICATED_HEAD_SLICES: usize = BITMAPS_AT / SLICE_BYTES;
/// The shortest arena worth reserving when the kernel refuses longer ones.
const SHORTEST_ARENA_BYTES: usize = 4 << 20;
/// The first and smallest step of committing.
const COMMIT_STEP_MIN: usize = 256 << 10;
/// The shortest huge page that there is, the unit of bigger steps.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// A huge page is worth its memory from a heap of so many on.
const HUGE_PAGES_MIN: usize = 8;
/// The most arenas at once: 16 TiB.
const ARENAS_MAX: usize = 16 << 10;

/// An arena, at the start of its own addresses, in the slots of the head's own slices.
#[repr(C)]
pub(crate) struct Arena {
    /// Slices that it may have, the head's included.
    slices: Cell<usize>,
    /// Slices of the head.
    head: Cell<usize>,
    /// The first slice never handed out. The ranges' lock, as for `committed`.
    front: Cell<usize>,
    /// The first slice not committed.
    committed: Cell<usize>,
    /// The place in the table of arenas.
    place: Cell<usize>,
    /// The first slice not reserved. The ranges' lock.
    reserved: Cell<usize>,
    /// Slices of the head that are not reserved, before the bitmaps.
    hole: Cell<usize>,
}

const _: () =
    assert!(size_of::<Arena>() <= size_of::<Slice>(), "the others' slots are not touched");
const _: () = assert!(offset_of!(Arena, slices) == 0);

/// All arenas, with gaps: an arena's address, with the slices of its first GiB in the low bits, so
/// that whoever looks for an address need not touch arenas that are being released. Written under
/// the ranges' lock, read by anyone.
static ARENAS: Table<ARENAS_MAX> =
    Table::of([const { AtomicUsize::new(0) }; ARENAS_MAX], AtomicUsize::new(0));
/// Where to try to reserve next. The ranges' lock.
static NEXT_ADDRESS: AtomicUsize = AtomicUsize::new(0);
/// The length of ordinary arenas; shorter where address space is limited. The ranges' lock.
static ORDINARY_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The arenas there are. The caller holds the ranges' lock, so that none is released meanwhile.
pub(crate) fn all() -> impl Iterator<Item = &'static Arena> {
    // SAFETY: An arena in the table is reserved, and its head committed.
    ARENAS
        .entries()
        .map(|entry| unsafe { &*ptr::with_exposed_provenance(entry & !(ARENA_BYTES - 1)) })
}

/// Whether the arena of a table entry holds `address` in its first GiB.
fn holds(entry: usize, address: usize) -> bool {
    let (start, slices) = (entry & !(ARENA_BYTES - 1), entry & (ARENA_BYTES - 1));
    address.wrapping_sub(start) < slices * SLICE_BYTES
}

/// Whether there is an arena whose bytes of the class map are made writable together with those at
/// `address`.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.refused")]
fn shares_unit(address: usize) -> bool {
    ARENAS.entries().any(|other| map::is_one_unit(other, address))
}

/// Whose the memory at `address` is: its code.
#[inline]
pub(crate) fn code_of(address: usize) -> u8 {
    match (map::double_code(address) >> 1) as u8 {
        FOREIGN if !map::is_established() => code_at(address),
        code => code,
    }
}

/// The code of the memory at `address`, asked of the arenas themselves: the slow way, for when
/// there is no class map.
pub(crate) fn code_at(address: usize) -> u8 {
    if !ARENAS.entries().any(|entry| holds(entry, address)) {
        return FOREIGN;
    }
    // SAFETY: An arena holds the address within its first GiB.
    let slice = unsafe { Slice::at(address) };
    match slice.kind.get() {
        Kind::Page => slice.page().code.get(),
        // A parked block's is known to be free there.
        Kind::Large | Kind::Parked => crate::class::LARGE,
        Kind::HeapPage | Kind::HeapLarge | Kind::HeapMixed => crate::class::HEAP,
        Kind::Opaque | Kind::Free | Kind::Metadata => FOREIGN,
    }
}

impl Slice {
    /// The arena that holds this slice.
    pub(crate) fn arena(&self) -> &'static Arena {
        // SAFETY: A slice's slot lies in the head of its arena, which starts with the arena.
        unsafe { &*ptr::with_exposed_provenance(self.arena_address()) }
    }

    /// The slice `distance` slots further on, or `None` at the end of the arena.
    ///
    /// # Safety
    ///
    /// - It lies in the same arena, or at its end.
    pub(crate) unsafe fn ahead_or_end(&self, distance: usize) -> Option<&'static Slice> {
        let inside = self.index() + distance < self.arena().slices.get();
        // SAFETY: The caller's condition.
        inside.then(|| unsafe { self.ahead(distance) })
    }
}

impl Arena {
    /// Reserves an arena in which `slices` slices fit in one piece; `None` where there is no
    /// address space left.
    pub(crate) fn reserve(slices: usize) -> Option<&'static Arena> {
        if slices > ARENA_SLICES - head_slices(ARENA_SLICES) {
            return Arena::reserve_dedicated(slices);
        }
        // Where addresses are limited, arenas are short; a long block gets one that holds it.
        let shortest = (slices + head_slices(ARENA_SLICES)) * SLICE_BYTES;
        let ordinary = prepare();
        match Arena::reserve_in_pieces(slices) {
            Ok(arena) => return Some(arena),
            Err(kernel::Errno::NOMEM | kernel::Errno::AGAIN) => return None,
            Err(_) => {}
        }
        let wanted = options::arena_size().map(|bytes| bytes.next_multiple_of(HUGE_PAGE_BYTES));
        let mut length = wanted.unwrap_or(ordinary).min(ordinary).max(shortest);
        loop {
            let total = length / SLICE_BYTES;
            if total < head_slices(total) + slices {
                return None;
            }
            if let Some(start) = reserve_aligned(length) {
                return Arena::found(start, total, head_slices(total), total, 0);
            }
            if length <= SHORTEST_ARENA_BYTES {
                return None;
            }
            length /= 2;
        }
    }

    fn reserve_dedicated(slices: usize) -> Option<&'static Arena> {
        prepare();
        let total = slices.checked_add(DEDICATED_HEAD_SLICES)?;
        let length = total.checked_mul(SLICE_BYTES).filter(|&n| n <= isize::MAX as usize)?;
        let start = reserve_aligned(length)?;
        Arena::found(start, total, DEDICATED_HEAD_SLICES, total, 0)
    }

    /// Makes a reserved range an arena: commits the head and enters it into the table. It is reserved up to
    /// slice `reserved` but for `hole` slices of the head.
    fn found(
        start: NonNull<u8>,
        slices: usize,
        head: usize,
        reserved: usize,
        hole: usize,
    ) -> Option<&'static Arena> {
        let length = slices * SLICE_BYTES;
        let mut committed = true;
        pieces::for_each_part(start, hole, head, |part, bytes| {
            // SAFETY: The range was reserved for this arena.
            committed &= unsafe { kernel::commit(part, bytes) }.is_ok();
            // SAFETY: As above. Without the advice the head may cost 2 MiB where the kernel uses huge
            // pages for everything.
            let _ = unsafe { kernel::advise(part, bytes, Advice::NoHugePage) };
        });
        let opened =
            committed && map::open(start.as_ptr().addr(), length.min(ARENA_BYTES), shares_unit);
        if opened {
            // SAFETY: The head is committed, aligned, and zero bytes are a valid arena.
            let arena: &'static Arena = unsafe { start.cast().as_ref() };
            arena.slices.set(slices);
            arena.head.set(head);
            arena.front.set(head);
            arena.committed.set(head);
            arena.reserved.set(reserved);
            arena.hole.set(hole);
            if arena.enter() {
                return Some(arena);
            }
        }
        pieces::for_each_part(start, hole, reserved, |part, bytes| {
            // SAFETY: Nobody else knows of the range.
            unsafe { kernel::unmap(part, bytes) };
        });
        None
    }

    fn enter(&'static self) -> bool {
        let entry = self.address() | self.slices.get().min(ARENA_SLICES);
        let place = ARENAS.enter(entry);
        self.place.set(place.unwrap_or_default());
        place.is_some()
    }

    /// Gives the whole arena back to the kernel.
    ///
    /// # Safety
    ///
    /// - Nobody uses its memory or holds a reference to its slices any more.
    pub(crate) unsafe fn release(&'static self) {
        ARENAS.leave(self.place.get());
        let start = NonNull::from(self).cast();
        // The next reservation looks below this address, so it finds the hole.
        let end = self.address() + (self.slices.get() * SLICE_BYTES).next_multiple_of(ARENA_BYTES);
        // ORDERING: Relaxed: the ranges' lock is held.
        NEXT_ADDRESS.store(end, Ordering::Relaxed);
        let (hole, reserved) = (self.hole.get(), self.reserved.get());
        pieces::for_each_part(start, hole, reserved, |part, bytes| {
            // SAFETY: The caller's condition; the range was reserved for this arena.
            unsafe { kernel::unmap(part, bytes) };
        });
    }

    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Whether this arena holds one block that is longer than ordinary arenas.
    pub(crate) fn is_dedicated(&self) -> bool {
        self.head.get() == DEDICATED_HEAD_SLICES
    }

    /// Bytes of addresses reserved.
    pub(crate) fn reserved_bytes(&self) -> usize {
        (self.reserved.get() - self.hole.get()) * SLICE_BYTES
    }

    /// Bytes readable and writable, the head included.
    pub(crate) fn committed_bytes(&self) -> usize {
        (self.committed.get() - self.hole.get()) * SLICE_BYTES
    }

    /// Whether the run of `count` slices from `first` on is all that was ever handed out.
    pub(crate) fn is_whole(&self, first: &Slice, count: usize) -> bool {
        first.index() == self.head.get() && count == self.front.get() - self.head.get()
    }

    /// Slices never handed out that are committed already.
    pub(crate) fn committed_front_slices(&self) -> usize {
        self.committed.get() - self.front.get()
    }

    /// Whether `slice` is the first one never handed out.
    pub(crate) fn is_front(&self, slice: &Slice) -> bool {
        slice.index() == self.front.get()
    }

    /// Slices never handed out.
    pub(crate) fn front_slices(&self) -> usize {
        self.slices.get() - self.front.get()
    }

    /// Hands out `slices` slices that were never used, which therefore read as zero. `None` where
    /// they do not fit or the kernel commits no more. `live_bytes` is what the program holds, for
    /// the choice of huge pages.
    pub(crate) fn take_front(
        &'static self,
        slices: usize,
        live_bytes: usize,
    ) -> Option<&'static Slice> {
        let front = self.front.get();
        if slices > self.front_slices() || !self.commit(front + slices, live_bytes) {
            return None;
        }
        self.front.set(front + slices);
        // SAFETY: The first slice of what is handed out lies within the first GiB even in a
        // dedicated arena.
        Some(unsafe { Slice::at(self.address() + front * SLICE_BYTES) })
    }

    /// Commits up to slice `end`, and some way ahead.
    fn commit(&self, end: usize, live_bytes: usize) -> bool {
        let committed = self.committed.get();
        if end <= committed {
            return true;
        }
        if !self.reserve_up_to(end) {
            return false;
        }
        let data_bytes = (committed - self.head.get()) * SLICE_BYTES;
        let step = (data_bytes / 4).max(COMMIT_STEP_MIN);
        let whole = step >= HUGE_PAGE_BYTES
            || options::huge_pages_from().is_some_and(|from| live_bytes >= from);
        let unit = if whole { HUGE_PAGE_BYTES } else { COMMIT_STEP_MIN };
        let wanted = (committed * SLICE_BYTES + step).max(end * SLICE_BYTES);
        let ahead = (wanted.next_multiple_of(unit) / SLICE_BYTES).min(self.reserved.get());
        self.commit_exactly(ahead, live_bytes) || self.commit_exactly(end, live_bytes)
    }

    fn commit_exactly(&self, end: usize, live_bytes: usize) -> bool {
        let from = self.committed.get() * SLICE_BYTES;
        let length = end * SLICE_BYTES - from;
        let start = ptr::with_exposed_provenance_mut(self.address() + from);
        // SAFETY: No arena starts at address 0.
        let start = unsafe { NonNull::new_unchecked(start) };
        // SAFETY: The range belongs to this arena and was never used.
        if unsafe { kernel::commit(start, length) }.is_err() {
            return false;
        }
        self.committed.set(end);
        if let Some(advice) = huge_page_advice(live_bytes) {
            // SAFETY: As above. Where the advice is refused everything works.
            let _ = unsafe { kernel::advise(start, length, advice) };
        }
        true
    }
}

/// What to advise for memory that joins a heap of `live_bytes`, before its first touch: advice on
/// touched memory does nothing.
fn huge_page_advice(live_bytes: usize) -> Option<Advice> {
    if !options::huge_pages() {
        return Some(Advice::NoHugePage);
    }
    // A huge page is worth its memory where it is a small part of what the program holds.
    let is_worth_it = match options::huge_pages_from() {
        Some(from) => live_bytes >= from,
        // A little program does not ask how long they are here.
        None => {
            live_bytes >= HUGE_PAGES_MIN * HUGE_PAGE_BYTES
                && live_bytes >= HUGE_PAGES_MIN * huge_page_bytes()
        }
    };
    is_worth_it.then_some(Advice::HugePage)
}

/// Bytes of a huge page here: it stands for an OS page full of addresses of OS pages. 2 MiB where those are of 4
/// KiB, 32 MiB of 16 KiB, 512 MiB of 64 KiB.
fn huge_page_bytes() -> usize {
    let os_page = kernel::page_size();
    os_page / size_of::<u64>() * os_page
}

/// Slices that the head of an ordinary arena of `slices` slices takes.
const fn head_slices(slices: usize) -> usize {
    (BITMAPS_AT + slices * BITMAP_WORDS * size_of::<u64>()).div_ceil(SLICE_BYTES)
}

/// Decides once on the class map and on the length of ordinary arenas; returns the latter.
fn prepare() -> usize {
    // ORDERING: Relaxed in this function: the ranges' lock is held.
    let known = ORDINARY_BYTES.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let limit = kernel::address_space_limit();
    // A map of 2 GiB and arenas of 1 GiB must not eat up what the program was given.
    let near = if limit > 64 * ARENA_BYTES { map::establish() } else { None };
    if near.is_none() {
        // The map may have been refused because all that is mapped is locked (`mlockall`), and may be no more.
        let is_few = limit <= 64 * ARENA_BYTES;
        pieces::limit_to(if is_few { limit } else { limit.min(kernel::locked_memory_limit()) });
    }
    let near = near.unwrap_or_else(kernel::free_address);
    NEXT_ADDRESS.store(near & !(ARENA_BYTES - 1), Ordering::Relaxed);
    let shorter = (limit / 32).next_power_of_two();
    let length = shorter.clamp(SHORTEST_ARENA_BYTES, ARENA_BYTES);
    ORDINARY_BYTES.store(length, Ordering::Relaxed);
    length
}

/// How many places are tried for an arena before the kernel is left to choose.
const TRIES: usize = 64;

/// Reserves `length` bytes at `address`.
fn reserve_at(address: usize, length: usize) -> Result<NonNull<u8>, kernel::Errno> {
    let start = kernel::map_at(address, length, Protection::None)?;
    start.as_ptr().expose_provenance();
    Ok(start)
}

/// Reserves `length` bytes at a multiple of [`ARENA_BYTES`].
fn reserve_aligned(length: usize) -> Option<NonNull<u8>> {
    let step = length.next_multiple_of(ARENA_BYTES);
    // ORDERING: Relaxed in this function: the ranges' lock is held.
    let mut address = NEXT_ADDRESS.load(Ordering::Relaxed);
    for _ in 0..TRIES {
        address = match address.checked_sub(step) {
            Some(lower) if lower > 0 => lower,
            _ => break,
        };
        match reserve_at(address, length) {
            Ok(start) => {
                NEXT_ADDRESS.store(address, Ordering::Relaxed);
                return Some(start);
            }
            Err(kernel::Errno::EXIST) => {}
            Err(kernel::Errno::NOMEM) => return None,
            Err(_) => break,
        }
    }
    reserve_and_cut(length)
}

/// The way for kernels and emulators that take no wishes: reserves more and cuts off both ends.
fn reserve_and_cut(length: usize) -> Option<NonNull<u8>> {
    let whole = length.checked_add(ARENA_BYTES)?;
    let start = kernel::map(whole, Protection::None).ok()?;
    let before = start.as_ptr().addr().next_multiple_of(ARENA_BYTES) - start.as_ptr().addr();
    // SAFETY: The offset lies within the range just mapped.
    let aligned = unsafe { start.add(before) };
    if before > 0 {
        // SAFETY: The part before the aligned address is not used.
        unsafe { kernel::unmap(start, before) };
    }
    if before < ARENA_BYTES {
        // SAFETY: Nor is the part behind the arena.
        unsafe { kernel::unmap(aligned.add(length), ARENA_BYTES - before) };
    }
    aligned.as_ptr().expose_provenance();
    Some(aligned)
}
