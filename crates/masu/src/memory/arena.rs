//! Arenas: ranges of addresses reserved from the kernel, cut into slices of 64 KiB.
//!
//! Relies on the kernel door and the class map. An arena's head has the layout of [`crate::memory::slice`]; the rest is
//! reserved without access and committed from the front in growing steps, so that small programs stay small even where the
//! kernel backs everything with huge pages.
//!
//! It does not decide which slices are handed out; that is [`crate::memory::ranges`].

#[cfg(debug_assertions)]
pub(crate) mod audit;
mod dedicated;
mod pieces;

use core::mem::offset_of;
use core::ptr::{self, NonNull};

pub(crate) use pieces::SHRINKS_BY_PIECES;

use crate::memory::class::FOREIGN;
use crate::memory::map;
use crate::memory::slice::{
    ARENA_BYTES, ARENA_SLICES, BITMAP_WORDS, BITMAPS_AT, Kind, SLICE_BYTES, Slice,
};
use crate::platform::kernel::{self, Advice, Protection};
use crate::platform::sync::{AtomicUsize, Cell, Count, Guard, Lock, Ordering, Table};
use crate::settings;

/// Inaccessible slices behind an arena's head, and as many at its end, in the hardened build.
const GUARD_SLICES: usize = cfg!(feature = "secure") as usize;
/// The shortest arena to reserve when the kernel refuses longer ones.
const SHORTEST_ARENA_BYTES: usize = 4 << 20;
/// The first and smallest commit step.
const COMMIT_STEP_MIN: usize = 256 << 10;
/// The shortest huge page of any system, the unit of larger steps.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The live bytes, in huge pages, from which huge pages are worth it for small blocks and large ones that grew.
const HUGE_PAGES_MIN: usize = 2;
/// The same for another large block, which a program may leave mostly untouched.
const HUGE_PAGES_MIN_LARGE: usize = 8;
/// The same, with the block itself, for those that it fills.
const HUGE_PAGES_MIN_FILLED: usize = 4;
/// The live bytes, in huge pages, that are expected of each shard where they are many.
const HUGE_PAGES_MIN_SHARD: usize = 3;
/// The length, in huge pages, from which a block is expected to fill them. A shorter one may be a buffer with room to grow.
const FILLED_LENGTH_MIN: usize = 3;
/// The most arenas at once: 16 TiB.
const ARENAS_MAX: usize = 16 << 10;

/// An arena, at the start of its addresses, in the slots of the head's slices.
#[repr(C)]
pub(crate) struct Arena {
    /// Its slices, the head's included, without a guard at the end.
    slices: Cell<usize>,
    /// Slices of the head, and of a guard behind it.
    head: Cell<usize>,
    /// The first slice never handed out. The ranges' lock.
    front: Cell<usize>,
    /// The first slice not committed. Changed under the lock of growth and the ranges' lock, read under either.
    committed: Cell<usize>,
    /// The place in the table of arenas.
    place: Cell<u32>,
    /// The place of the stripe that its runs belong to.
    pub(crate) stripe: Cell<u32>,
    /// The first slice not reserved. Changed under the lock of growth.
    reserved: Count,
    /// Slices of the head that are not reserved, before the bitmaps.
    hole: Cell<usize>,
    /// The next of the arenas to be unmapped. The ranges' lock.
    pub(crate) next_leaving: Cell<Option<&'static Arena>>,
}

const _: () =
    assert!(size_of::<Arena>() <= size_of::<Slice>(), "the others' slots are not touched");
const _: () = assert!(offset_of!(Arena, slices) == 0);

/// Held while arenas are reserved or grow, which takes system calls; taken before the ranges' lock. Alone on a cache line.
#[repr(align(64))]
pub(crate) struct Growth(pub(crate) Lock<(), false>);
pub(crate) static GROWTH: Growth = Growth(Lock::new(()));

/// Waits for the lock of growth. Not inlined, because it takes long enough.
#[inline(never)]
pub(crate) fn hold_growth() -> Guard<'static, (), false> {
    GROWTH.0.lock()
}

/// All arenas, with gaps: an arena's address, with its slices in the low bits (as many as fit: 64 TiB), so that a search for
/// an address does not touch arenas that are being released. Entered under the lock of growth, removed under the ranges'
/// lock, read by anyone.
static ARENAS: Table<ARENAS_MAX> =
    Table::of([const { AtomicUsize::new(0) }; ARENAS_MAX], AtomicUsize::new(0));
/// The address to try next. The lock of growth, or the ranges' lock for a hint.
static NEXT_ADDRESS: AtomicUsize = AtomicUsize::new(0);
/// The length of ordinary arenas; shorter where address space is limited. The lock of growth.
static ORDINARY_BYTES: AtomicUsize = AtomicUsize::new(0);

/// All arenas. The caller holds the lock of growth: an arena that left the table is unmapped only after that lock was free
/// once.
pub(crate) fn all() -> impl Iterator<Item = &'static Arena> {
    // SAFETY: An arena in the table is reserved, and its head committed.
    ARENAS
        .entries()
        .map(|entry| unsafe { &*ptr::with_exposed_provenance(entry & !(ARENA_BYTES - 1)) })
}

/// Whether the arena of a table entry holds `address`.
fn holds(entry: usize, address: usize) -> bool {
    let (start, slices) = (entry & !(ARENA_BYTES - 1), entry & (ARENA_BYTES - 1));
    address.wrapping_sub(start) < slices * SLICE_BYTES
}

/// Whether an arena shares the writable part of the class map with `address`.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.refused.arena_shares_unit")]
fn shares_unit(address: usize) -> bool {
    ARENAS.entries().any(|other| map::is_one_unit(other, address))
}

/// The code of the memory at `address`.
#[inline]
pub(crate) fn code_of(address: usize) -> u8 {
    match (map::double_code(address) >> 1) as u8 {
        FOREIGN if !map::is_established() => code_at(address),
        code => code,
    }
}

/// The place of an address.
pub(crate) enum Place {
    /// In no arena.
    Outside,
    /// In the arena of one long block, behind its first GiB.
    Beyond,
    /// In this slice of an arena.
    In(&'static Slice),
}

/// The place of `address`, from the table of arenas.
#[inline(never)]
pub(crate) fn place_of(address: usize) -> Place {
    let Some(entry) = ARENAS.entries().find(|entry| holds(*entry, address)) else {
        return Place::Outside;
    };
    if address - (entry & !(ARENA_BYTES - 1)) >= ARENA_BYTES {
        return Place::Beyond;
    }
    // SAFETY: The arena holds the address within its first GiB.
    let slice = unsafe { Slice::at(address) };
    if slice.arena().has_reserved(slice) { Place::In(slice) } else { Place::Outside }
}

/// The code of the memory at `address` when there is no class map, from the table of arenas.
pub(crate) fn code_at(address: usize) -> u8 {
    match place_of(address) {
        Place::In(slice) => code_in(slice),
        Place::Outside | Place::Beyond => FOREIGN,
    }
}

/// The code of the memory of a slice, from the slice.
pub(crate) fn code_in(slice: &'static Slice) -> u8 {
    match slice.kind.get() {
        Kind::Page => slice.page().code.get(),
        // A parked block is known to be free in the slice.
        Kind::Large | Kind::Parked => crate::memory::class::LARGE,
        Kind::HeapPage | Kind::HeapLarge | Kind::HeapMixed => crate::memory::class::HEAP,
        Kind::Opaque | Kind::Free | Kind::Unmerged | Kind::Metadata => FOREIGN,
    }
}

impl Slice {
    /// The arena that holds this slice.
    pub(crate) fn arena(&self) -> &'static Arena {
        // SAFETY: A slice's slot lies in the head of its arena, which starts with the arena.
        unsafe { &*ptr::with_exposed_provenance(self.arena_address()) }
    }

    /// The slice `distance` slots further on; `None` at the end of the arena.
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
    /// Reserves an arena in which `slices` slices fit in one piece, `grows` if their block will grow; `None` without
    /// addresses.
    pub(crate) fn reserve(slices: usize, grows: bool) -> Option<&'static Arena> {
        if slices > ARENA_SLICES - head_slices(ARENA_SLICES) - 2 * GUARD_SLICES {
            return Arena::reserve_dedicated(slices, grows);
        }
        // With limited addresses, arenas are short; a long block gets one that holds it.
        let shortest = (slices + head_slices(ARENA_SLICES) + 2 * GUARD_SLICES) * SLICE_BYTES;
        let ordinary = prepare();
        match Arena::reserve_in_pieces(slices) {
            Ok(arena) => return Some(arena),
            Err(kernel::Errno::NOMEM | kernel::Errno::AGAIN) => return None,
            Err(_) => {}
        }
        let wanted = settings::arena_size().map(|bytes| bytes.next_multiple_of(HUGE_PAGE_BYTES));
        let mut length = wanted.unwrap_or(ordinary).min(ordinary).max(shortest);
        loop {
            let total = length / SLICE_BYTES;
            if total < head_slices(total) + slices + 2 * GUARD_SLICES {
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

    /// Makes a reserved range an arena: commits the head and enters it into the table. Slices up to `reserved` are reserved,
    /// except for `hole` slices of the head.
    #[inline(never)]
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
            // SAFETY: As above. Without the advice the head may cost 2 MiB where the kernel uses huge pages for
            // everything.
            let _ = unsafe { kernel::advise(part, bytes, Advice::NoHugePage) };
        });
        let opened =
            committed && map::open(start.as_ptr().addr(), length.min(ARENA_BYTES), shares_unit);
        if opened {
            // SAFETY: The head is committed, aligned, and zero bytes are a valid arena.
            let arena: &'static Arena = unsafe { start.cast().as_ref() };
            arena.slices.set(slices - GUARD_SLICES);
            arena.head.set(head + GUARD_SLICES);
            arena.front.set(head + GUARD_SLICES);
            arena.committed.set(head + GUARD_SLICES);
            arena.reserved.set(reserved);
            arena.hole.set(hole);
            if arena.enter() {
                return Some(arena);
            }
        }
        // SAFETY: The range was reserved for this arena, and no other code knows of it.
        unsafe { unmap_new(start, hole, reserved) };
        None
    }

    #[inline(never)]
    fn enter(&self) -> bool {
        let entry = self.address() | self.slices.get().min(ARENA_BYTES - 1);
        let place = ARENAS.enter(entry);
        self.place.set(place.unwrap_or_default() as u32);
        place.is_some()
    }

    /// Removes the arena from the table, to be unmapped. Under the ranges' lock, or before any other code knows of it.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.arena_leave")]
    pub(crate) fn leave(&self) {
        ARENAS.leave(self.place.get() as usize);
        // The next reservation starts below this address, so it finds the hole.
        let end = self.address() + (self.slices.get() * SLICE_BYTES).next_multiple_of(ARENA_BYTES);
        // ORDERING: Relaxed: a hint.
        NEXT_ADDRESS.store(end, Ordering::Relaxed);
    }

    /// Unmaps the whole arena.
    ///
    /// # Safety
    ///
    /// - Nothing uses its memory or holds a reference to its slices any more, and it left the table.
    pub(crate) unsafe fn unmap(&'static self) {
        let (start, hole, end) = (NonNull::from(self).cast(), self.hole.get(), self.reserved.get());
        pieces::for_each_part(start, hole, end, |part, bytes| {
            // SAFETY: The caller's condition; the range was reserved for this arena.
            unsafe { kernel::unmap(part, bytes) };
        });
    }

    /// The same where nothing was ever handed out: then it is fast, and may be done under a lock.
    ///
    /// # Safety
    ///
    /// - As [`Arena::unmap`].
    pub(crate) unsafe fn unmap_new(&'static self) {
        // SAFETY: The caller's condition; the range was reserved for this arena.
        unsafe { unmap_new(NonNull::from(self).cast(), self.hole.get(), self.reserved.get()) };
    }

    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Bytes of addresses reserved.
    pub(crate) fn reserved_bytes(&self) -> usize {
        (self.reserved.get() - self.hole.get()) * SLICE_BYTES
    }

    /// Bytes readable and writable, the head included.
    pub(crate) fn committed_bytes(&self) -> usize {
        (self.committed.get() - self.hole.get()) * SLICE_BYTES
    }

    /// The first slice that is not committed.
    pub(crate) fn committed_end(&self) -> usize {
        self.committed.get()
    }

    /// Cancels huge pages up to slice `end`, which is committed: memory touched from now on is mapped in OS pages.
    pub(crate) fn call_huge_pages_off(&self, end: usize) {
        self.advise(self.head.get(), end, Advice::NoHugePage);
    }

    /// Requests huge pages for a block that begins with one, at slice `first`, and ends at slice `end`: those that it fills,
    /// and the last if it fills half of that.
    pub(crate) fn request_filled(&self, first: usize, end: usize) {
        // A power of two.
        let unit = huge_page_bytes() / SLICE_BYTES;
        let filled = (end + unit / 2) & !(unit - 1);
        if settings::huge_pages() {
            self.advise(first, filled.min(self.reserved.get()), Advice::HugePage);
        }
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.arena_advise")]
    pub(crate) fn advise(&self, from: usize, to: usize, advice: Advice) {
        let bytes = to.saturating_sub(from) * SLICE_BYTES;
        // SAFETY: The range belongs to this arena. The advice changes no contents, and may be refused.
        let _ = unsafe { kernel::advise(self.start_of(from), bytes, advice) };
    }

    /// The memory of the slice with this number, or the end of the last one.
    fn start_of(&self, index: usize) -> NonNull<u8> {
        let start = ptr::with_exposed_provenance_mut(self.address() + index * SLICE_BYTES);
        // SAFETY: No arena starts at address 0.
        unsafe { NonNull::new_unchecked(start) }
    }

    /// Whether the run of `count` slices from `first` is everything that was ever handed out.
    pub(crate) fn is_whole(&self, first: &Slice, count: usize) -> bool {
        first.index() == self.head.get() && count == self.front.get() - self.head.get()
    }

    /// Committed slices never handed out.
    pub(crate) fn committed_front_slices(&self) -> usize {
        self.committed.get() - self.front.get()
    }

    /// Whether nothing behind a run of `slices` slices was ever handed out.
    pub(crate) fn ends_at_front(&self, first: &Slice, slices: usize) -> bool {
        first.index() + slices == self.front.get()
    }

    /// Whether `slice` was ever handed out: it is in neither the head nor the front.
    pub(crate) fn has_handed_out(&self, slice: &Slice) -> bool {
        (self.head.get()..self.front.get()).contains(&slice.index())
    }

    /// Whether the addresses of `slice` are reserved, so that nobody else's memory lies there.
    fn has_reserved(&self, slice: &Slice) -> bool {
        let index = slice.index();
        index < self.reserved.get() && !pieces::is_in_hole(index, self.hole.get())
    }

    /// Slices never handed out.
    pub(crate) fn front_slices(&self) -> usize {
        self.slices.get() - self.front.get()
    }

    /// Hands out `slices` slices that were never used, and so read as zero. `None` if too few are committed.
    pub(crate) fn take_front(&'static self, slices: usize) -> Option<&'static Slice> {
        if slices > self.committed_front_slices() {
            return None;
        }
        let front = self.front.get();
        self.front.set(front + slices);
        // SAFETY: The first slice handed out lies within the first GiB even in a dedicated arena.
        Some(unsafe { Slice::at(self.address() + front * SLICE_BYTES) })
    }

    /// The end of `slices` slices at the front; `None` if they do not fit.
    pub(crate) fn front_end(&self, slices: usize) -> Option<usize> {
        (slices <= self.front_slices()).then(|| self.front.get() + slices)
    }

    /// Commits up to slice `end`, and some way further if `ahead`; returns the new end, to be noted. `None` if the kernel
    /// commits no more. `huge` requests huge pages. The caller holds the lock of growth.
    pub(crate) fn commit(&self, end: usize, huge: bool, ahead: bool) -> Option<usize> {
        let committed = self.committed.get();
        if end <= committed {
            return Some(committed);
        }
        if !self.reserve_up_to(end) {
            return None;
        }
        let data_bytes = (committed - self.head.get()) * SLICE_BYTES;
        // There is another stripe only where threads waited for each other, as they do here.
        let step_min = if self.stripe.get() == 0 { COMMIT_STEP_MIN } else { HUGE_PAGE_BYTES };
        let step = (data_bytes / 4).max(step_min);
        let unit = if huge || step >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { COMMIT_STEP_MIN };
        let step = if ahead { step } else { 0 };
        let wanted = (committed * SLICE_BYTES + step).max(end * SLICE_BYTES);
        let most = self.reserved.get().min(self.slices.get());
        let further = (wanted.next_multiple_of(unit) / SLICE_BYTES).min(most);
        [further, end].into_iter().find(|end| self.commit_exactly(*end, huge))
    }

    /// The first slice never handed out, and the slices from there up to the next huge page.
    pub(crate) fn front_and_huge_page(&self) -> (usize, usize) {
        let front = self.front.get();
        (front, front.wrapping_neg() & (huge_page_bytes() / SLICE_BYTES - 1))
    }

    /// Notes the end of the committed part. The caller holds the lock of growth and the ranges' lock, or no other code knows
    /// of the arena yet.
    pub(crate) fn note_committed(&self, end: usize) {
        self.committed.set(end);
    }

    fn commit_exactly(&self, end: usize, huge: bool) -> bool {
        let from = self.committed.get();
        // SAFETY: The range belongs to this arena and was never used.
        if unsafe { kernel::commit(self.start_of(from), (end - from) * SLICE_BYTES) }.is_err() {
            return false;
        }
        // Before its first touch: advice on touched memory does nothing.
        if !settings::huge_pages() {
            self.advise(from, end, Advice::NoHugePage);
        } else if huge {
            self.advise(from, end, Advice::HugePage);
        }
        true
    }
}

/// Unmaps the reserved parts of an arena of which nothing was handed out. If refused, they stay.
///
/// # Safety
///
/// - They were reserved for it, and nothing refers to them any more.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.refused.arena_unmap_new")]
unsafe fn unmap_new(start: NonNull<u8>, hole: usize, end: usize) {
    pieces::for_each_part(start, hole, end, |part, bytes| {
        // SAFETY: The caller's condition.
        let _ = unsafe { kernel::unmap_unused(part, bytes) };
    });
}

/// Whether memory that joins `live_bytes` of live memory is worth huge pages; `filled` if it is written soon. Each of
/// `shards` has up to one huge page of which little is used: it counts as live.
pub(crate) fn is_worth_huge_pages(live_bytes: usize, filled: bool, shards: usize) -> bool {
    if let Some(from) = settings::huge_pages_from() {
        return live_bytes >= from;
    }
    // A huge page is worth it only as a small part of the program's memory.
    let count = if filled { HUGE_PAGES_MIN } else { HUGE_PAGES_MIN_LARGE };
    let count = count + shards * HUGE_PAGES_MIN_SHARD;
    // Compared with a constant first, so that a small program does not find out the size of huge pages.
    live_bytes >= count * HUGE_PAGE_BYTES && live_bytes >= count * huge_page_bytes()
}

/// Whether a large block of `bytes` that joins `live_bytes` of live memory is worth the huge pages that it fills; `zeroed`
/// for a zeroed one, with the bytes that it may have and will be filled, as others were.
pub(crate) fn fills_huge_pages(bytes: usize, live_bytes: usize, zeroed: Option<usize>) -> bool {
    let huge_page = huge_page_bytes();
    // A zeroed block has no room to grow, but little of it may be used: it may double what is resident, and no more.
    let is_long = if let Some(filled_bytes) = zeroed {
        bytes >= huge_page && bytes <= live_bytes.max(filled_bytes)
    } else {
        bytes >= FILLED_LENGTH_MIN * huge_page
    };
    is_long
        && live_bytes + bytes >= HUGE_PAGES_MIN_FILLED * huge_page
        && settings::huge_pages_from().is_none()
}

/// Whether addresses are limited, so that arenas are reserved in pieces.
pub(crate) fn are_limited() -> bool {
    pieces::limit().is_some()
}

/// Bytes of a huge page: an OS page full of page table entries maps it. 2 MiB with OS pages of 4 KiB, 32 MiB with 16 KiB,
/// 512 MiB with 64 KiB.
pub(crate) fn huge_page_bytes() -> usize {
    let os_page = kernel::page_size();
    os_page / size_of::<u64>() * os_page
}

/// Slices of the head of an ordinary arena of `slices` slices.
const fn head_slices(slices: usize) -> usize {
    (BITMAPS_AT + slices * BITMAP_WORDS * size_of::<u64>()).div_ceil(SLICE_BYTES)
}

/// Decides once on the class map and the length of ordinary arenas; returns the latter.
fn prepare() -> usize {
    // ORDERING: Relaxed in this function: the lock of growth is held, and other threads write only a hint.
    let known = ORDINARY_BYTES.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let limit = kernel::address_space_limit();
    // A map of 2 GiB and arenas of 1 GiB must not use up a limit on addresses.
    let near = if limit > 64 * ARENA_BYTES { map::establish() } else { None };
    if near.is_none() {
        // The map may be refused because all mappings are locked (`mlockall`) under a limit on locked memory.
        let is_few = limit <= 64 * ARENA_BYTES;
        pieces::limit_to(if is_few { limit } else { limit.min(kernel::locked_memory_limit()) });
    }
    let near = near.or_else(|| kernel::free_address(SLICE_BYTES)).unwrap_or(1 << 46);
    NEXT_ADDRESS.store(near & !(ARENA_BYTES - 1), Ordering::Relaxed);
    let shorter = (limit / 32).next_power_of_two();
    let length = shorter.clamp(SHORTEST_ARENA_BYTES, ARENA_BYTES);
    ORDINARY_BYTES.store(length, Ordering::Relaxed);
    length
}

/// The number of addresses to try for an arena before the kernel chooses.
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
    // ORDERING: Relaxed in this function: the lock of growth is held, and other threads write only a hint.
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

/// Reserves more and cuts both ends off, for kernels and emulators that ignore address hints.
fn reserve_and_cut(length: usize) -> Option<NonNull<u8>> {
    let whole = length.checked_add(ARENA_BYTES)?;
    let start = kernel::map(whole, Protection::None).ok()?;
    let before = start.as_ptr().addr().next_multiple_of(ARENA_BYTES) - start.as_ptr().addr();
    // SAFETY: The offset lies within the range just mapped.
    let aligned = unsafe { start.add(before) };
    if before > 0 {
        // SAFETY: The part before the aligned address is not used.
        let _ = unsafe { kernel::unmap_unused(start, before) };
    }
    // SAFETY: Nor is the part behind the arena, which is not empty.
    let _ = unsafe { kernel::unmap_unused(aligned.add(length), ARENA_BYTES - before) };
    aligned.as_ptr().expose_provenance();
    Some(aligned)
}

#[cfg(test)]
mod tests;
