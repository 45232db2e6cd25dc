//! Arenas where addresses are limited (`ulimit -v`): reserved piece by piece, as they are used.
//!
//! Relies on an arena's place at a multiple of 1 GiB, where the following addresses are usually free. An arena reserved as a
//! whole would take addresses from the rest of the program; several short ones would have a head each and no room for long
//! blocks. So there is one arena, as long as the limit, or several of 1 GiB. Only the slots and bitmaps of a head that may
//! be needed are reserved, with a hole between them, and each arena shrinks at its end; one grows there.

use core::ptr::NonNull;

use super::{
    Arena, COMMIT_STEP_MIN, GUARD_SLICES, NEXT_ADDRESS, SHORTEST_ARENA_BYTES, head_slices,
};
use super::{TRIES, reserve_at};
use crate::memory::slice::{ARENA_BYTES, ARENA_SLICES, BITMAPS_AT, Kind, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Errno, Protection};
use crate::platform::sync::{AtomicUsize, Ordering};

/// The longest piece.
const PIECE_BYTES_MAX: usize = 64 << 20;
/// A piece is one part in this many of the limit.
const PIECE_SHARE: usize = 128;
/// This many free pieces at the end go back to the kernel.
pub(crate) const SHRINKS_BY_PIECES: usize = 4;
/// Where the bitmaps begin, and a hole before them ends.
const HOLE_END: usize = BITMAPS_AT / SLICE_BYTES;

/// The limit on addresses when the first arena was reserved; 0 for none.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Has arenas reserved piece by piece from now on.
pub(super) fn limit_to(bytes: usize) {
    // ORDERING: Relaxed: no other memory depends on the number.
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// The limit on addresses, if there is one.
pub(super) fn limit() -> Option<usize> {
    // ORDERING: Relaxed, as above.
    Some(LIMIT.load(Ordering::Relaxed)).filter(|limit| *limit != 0)
}

fn piece_slices(limit: usize) -> usize {
    (limit / PIECE_SHARE).clamp(COMMIT_STEP_MIN, PIECE_BYTES_MAX) / SLICE_BYTES
}

/// Calls `act` with each reserved part of an arena, up to its slice `end`: before the hole and behind it.
pub(super) fn for_each_part(
    start: NonNull<u8>,
    hole: usize,
    end: usize,
    mut act: impl FnMut(NonNull<u8>, usize),
) {
    let before = if hole == 0 { 0 } else { HOLE_END - hole };
    let behind = if hole == 0 { 0 } else { HOLE_END };
    for (from, to) in [(0, before), (behind, end)] {
        if from < to {
            // SAFETY: The part lies inside the arena.
            act(unsafe { start.add(from * SLICE_BYTES) }, (to - from) * SLICE_BYTES);
        }
    }
}

/// Whether the slice with this index lies in a hole of so many slices.
pub(super) fn is_in_hole(index: usize, hole: usize) -> bool {
    index < HOLE_END && index + hole >= HOLE_END
}

impl Arena {
    /// Reserves an arena for a run of at least `slices` slices, where addresses are limited.
    ///
    /// # Errors
    ///
    /// `ENOMEM` where none are left; another error where arenas are not reserved piece by piece.
    #[inline]
    pub(super) fn reserve_in_pieces(slices: usize) -> Result<&'static Arena, Errno> {
        Arena::reserve_under(limit().ok_or(Errno::EXIST)?, slices)
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.limited.pieces_reserve_under")]
    fn reserve_under(limit: usize, slices: usize) -> Result<&'static Arena, Errno> {
        let longest = limit.clamp(SHORTEST_ARENA_BYTES, ARENA_BYTES) / SLICE_BYTES;
        let whole = slices + head_slices(ARENA_SLICES) + 2 * GUARD_SLICES;
        let total = longest.max(whole).min(ARENA_SLICES);
        let head = head_slices(total);
        let slots_end = (total * size_of::<Slice>()).div_ceil(SLICE_BYTES);
        // ORDERING: Relaxed: the lock of growth is held.
        let mut address = NEXT_ADDRESS.load(Ordering::Relaxed);
        for _ in 0..TRIES {
            address =
                address.checked_sub(ARENA_BYTES).filter(|lower| *lower > 0).ok_or(Errno::EXIST)?;
            match reserve_at(address, slots_end * SLICE_BYTES) {
                Err(Errno::EXIST) => {}
                Err(refusal) => return Err(refusal),
                Ok(start) => {
                    NEXT_ADDRESS.store(address, Ordering::Relaxed);
                    let end = head + GUARD_SLICES + slices;
                    let rest = kernel::map_at(
                        address + BITMAPS_AT,
                        end * SLICE_BYTES - BITMAPS_AT,
                        Protection::None,
                    );
                    if let Err(refusal) = rest {
                        // SAFETY: The slots were reserved just now, and nothing else knows of them.
                        let _ = unsafe { kernel::unmap_unused(start, slots_end * SLICE_BYTES) };
                        return Err(refusal);
                    }
                    return Arena::found(start, total, head, end, HOLE_END - slots_end)
                        .ok_or(Errno::NOMEM);
                }
            }
        }
        Err(Errno::EXIST)
    }

    /// Reserves up to slice `end`, and a piece ahead if possible; whether that worked.
    #[inline]
    pub(super) fn reserve_up_to(&self, end: usize) -> bool {
        end <= self.reserved.get() || self.reserve_more(end)
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.limited.pieces_reserve_more")]
    fn reserve_more(&self, end: usize) -> bool {
        let reserved = self.reserved.get();
        // Without a limit, its end went back because memory was refused.
        let piece = piece_slices(limit().unwrap_or(usize::MAX));
        let ahead = (reserved + piece).min(self.slices.get()).max(end);
        self.reserve_exactly(ahead) || (ahead > end && self.reserve_exactly(end))
    }

    fn reserve_exactly(&self, end: usize) -> bool {
        let from = self.reserved.get();
        let address = self.address() + from * SLICE_BYTES;
        let is_reserved = reserve_at(address, (end - from) * SLICE_BYTES).is_ok();
        if is_reserved {
            self.reserved.set(end);
        }
        is_reserved
    }

    /// Whether a free run of so many pieces at least lies at the end of the used part, and may go back. Under the ranges' lock.
    pub(crate) fn ends_in(&self, run: &Slice, pieces: usize) -> bool {
        let count = run.count.get() as usize;
        run.index() + count == self.front.get()
            && match limit() {
                Some(limit) => count >= pieces * piece_slices(limit),
                // A limit on data counts it. The hardened build has a guard there.
                None => pieces == 0 && !cfg!(feature = "secure"),
            }
    }

    /// The free run at the end of the used part. Under the ranges' lock.
    pub(crate) fn free_end(&self) -> Option<&'static Slice> {
        let before = self.address() + (self.front.get() - 1) * SLICE_BYTES;
        // SAFETY: It lies in the arena: before the front are slices that were handed out, or the head.
        let last = unsafe { Slice::at(before) };
        // SAFETY: The last slice of a free run leads to its first.
        last.kind.is(Kind::Free).then(|| unsafe { last.behind(last.back.get() as usize) })
    }

    /// Makes the slices from `first` on unused again. Under the lock of growth and the ranges' lock; the run is in no list.
    pub(crate) fn shrink_to(&self, first: &Slice) {
        self.front.set(first.index());
        self.committed.set(first.index());
    }

    /// Unmaps the addresses behind the committed part. Under the lock of growth.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.pieces_unmap_behind")]
    pub(crate) fn unmap_behind(&self) {
        let (start, end) = (self.committed.get(), self.reserved.get());
        self.reserved.set(start);
        // SAFETY: It was reserved for this arena, and nothing of it is handed out.
        unsafe { kernel::unmap(self.start_of(start), (end - start) * SLICE_BYTES) };
    }
}
