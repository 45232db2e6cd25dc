//! Arenas of one block, which is too long for ordinary ones.
//!
//! Relies on its parent. The head has slots for the first GiB alone: of a longer block the first slice has a record, and no
//! other. The hard idea is the room: a block that grew is likely to grow again, and each move copies it. So addresses for
//! as much again are reserved behind it, which cost no memory.

use super::{Arena, GUARD_SLICES, hold_growth, prepare, reserve_aligned};
use crate::memory::slice::{ARENA_SLICES, BITMAPS_AT, SLICE_BYTES, Slice};
use crate::platform::kernel;

/// Slices of the head, which has no bitmaps.
const DEDICATED_HEAD_SLICES: usize = BITMAPS_AT / SLICE_BYTES;

impl Arena {
    /// Reserves an arena for one block of `slices` slices, with room behind it if it `grows`; `None` without addresses.
    pub(super) fn reserve_dedicated(slices: usize, grows: bool) -> Option<&'static Arena> {
        prepare();
        // The hardened build has a guard behind each block. A limit on addresses is not to be used up.
        let has_room = grows && GUARD_SLICES == 0 && kernel::address_space_limit() == usize::MAX;
        // No block is longer than the address space, which leaves bits for twice as much.
        Arena::reserve_exactly_dedicated(slices << usize::from(has_room))
            .or_else(|| Arena::reserve_exactly_dedicated(slices))
    }

    #[inline(never)]
    fn reserve_exactly_dedicated(slices: usize) -> Option<&'static Arena> {
        let total = slices.checked_add(DEDICATED_HEAD_SLICES + 2 * GUARD_SLICES)?;
        let length = total.checked_mul(SLICE_BYTES).filter(|&n| n <= isize::MAX as usize)?;
        let start = reserve_aligned(length)?;
        Arena::found(start, total, DEDICATED_HEAD_SLICES, total, 0)
    }

    /// Reserves `slices` slices in an arena of their own; returns the first. They stay inaccessible and reserved for good.
    /// `None` without addresses, or if `slices` is over one GiB.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.guards.arena_reserve_closed")]
    pub(crate) fn reserve_closed(slices: usize) -> Option<&'static Slice> {
        if slices + DEDICATED_HEAD_SLICES + 2 * GUARD_SLICES > ARENA_SLICES {
            return None;
        }
        let _growth = hold_growth();
        let arena = Arena::reserve_dedicated(slices, false)?;
        let first = arena.front.get();
        arena.front.set(first + slices);
        // SAFETY: It lies within the first GiB.
        Some(unsafe { Slice::at(arena.address() + first * SLICE_BYTES) })
    }

    /// Whether this arena holds one block longer than ordinary arenas.
    pub(crate) fn is_dedicated(&self) -> bool {
        self.head.get() == DEDICATED_HEAD_SLICES + GUARD_SLICES
    }

    /// Hands `more` slices out to the block, which ends at the front; returns whether they are committed. They have no
    /// records.
    pub(crate) fn grow_front(&self, more: usize) -> bool {
        let is_committed = more <= self.committed_front_slices();
        if is_committed {
            self.front.set(self.front.get() + more);
        }
        is_committed
    }

    /// Takes the last `less` slices from the block, which ends at the front, and from the arena, for
    /// [`Arena::unmap_behind`]; returns false where a guard is to stay behind the block. Under the lock of growth and the
    /// ranges' lock.
    pub(crate) fn cut_front(&self, less: usize) -> bool {
        if cfg!(feature = "secure") {
            return false;
        }
        // Another arena may have the addresses next, so that this one's entry must not have them.
        self.leave();
        let end = self.front.get() - less;
        self.front.set(end);
        self.committed.set(end);
        self.slices.set(end);
        // The place that it left is free: only threads that hold the lock of growth enter arenas.
        self.enter()
    }
}
