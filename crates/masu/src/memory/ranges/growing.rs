//! Growing arenas: where runs come from that no free run can give.
//!
//! Relies on arenas, which commit memory at their front. Pages and large blocks share one, until a program has much of both.
//! Pages are filled from the front, and so have huge pages. Little of a large block may be used; but among pages it would lie
//! in their huge pages, all resident from the first touch on, and no probe would tell (`memory/ranges/probes.rs`). So large
//! blocks have a growing arena of their own then. The hard idea: only fresh memory is apart. Any free run serves both, so
//! nothing is kept twice.

use core::ptr;

use super::{Ranges, Run};
use crate::memory::arena::{self, Arena};
use crate::memory::slice::Kind;

/// Live bytes from which large blocks have an arena of their own, if they and other runs are each one part in so many.
const APART_BYTES_MIN: usize = 64 << 20;
const APART_SHARE: usize = 8;

/// Whether runs of this kind may stay mostly untouched.
pub(super) fn is_large(kind: Kind) -> bool {
    matches!(kind, Kind::Large | Kind::HeapLarge | Kind::Opaque)
}

impl Ranges {
    /// The growing arena for runs of this kind. Another one may be it once the lock of growth was released.
    #[inline(never)]
    pub(super) extern "C" fn growing(&mut self, kind: Kind) -> &mut Option<&'static Arena> {
        let apart = is_large(kind) && self.is_apart();
        if apart { &mut self.large_arena } else { &mut self.arena }
    }

    /// Whether large blocks have a growing arena of their own.
    pub(super) fn is_apart(&self) -> bool {
        // A small program touches nothing else of this.
        let is_big = self.live_bytes() + self.others.live >= APART_BYTES_MIN;
        self.large_arena.is_some() || is_big && self.is_mixed()
    }

    /// Whether the program has much of both.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.growing_is_mixed")]
    extern "C" fn is_mixed(&self) -> bool {
        let other_slices = self.live_slices.saturating_sub(self.large_slices);
        self.large_slices.min(other_slices) >= self.live_slices / APART_SHARE
            // A second arena takes addresses.
            && !arena::are_limited()
    }

    /// A run of committed slices that were never handed out.
    #[inline(never)]
    pub(super) fn take_front(&mut self, slices: usize, kind: Kind) -> Option<Run> {
        let first = (*self.growing(kind))?.take_front(slices)?;
        Some(Run { first, zero: true })
    }

    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.growing_is_growing")]
    pub(super) extern "C" fn is_growing(&self, arena: &Arena) -> bool {
        [self.arena, self.large_arena].into_iter().flatten().any(|growing| ptr::eq(growing, arena))
    }

    /// Makes the arena with more slices left the growing one; the offered one does not grow yet. The committed front of the
    /// other becomes a free run; the rest stays reserved for its last run to grow into.
    #[inline(never)]
    pub(super) extern "C" fn offer_to_grow(&mut self, offered: &'static Arena, kind: Kind) {
        debug_assert!(!self.is_growing(offered), "it is released once");
        let place = self.growing(kind);
        let Some(growing) = place.replace(offered) else { return };
        let retired = if growing.front_slices() > offered.front_slices() {
            *place = Some(growing);
            offered
        } else {
            growing
        };
        let left = retired.committed_front_slices();
        if left > 0
            && let Some(first) = retired.take_front(left)
        {
            self.insert(first, left, 0, true);
        }
    }

    /// Notes that an arena is no growing one any more, if it was.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.growing_forget")]
    pub(super) extern "C" fn forget_growing(&mut self, arena: &Arena) {
        for growing in [&mut self.arena, &mut self.large_arena] {
            growing.take_if(|growing| ptr::eq(*growing, arena));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::held::Held;
    use super::super::{SLICE_BYTES, SharedRanges};
    use super::*;
    use crate::memory::slice::Slice;

    extern crate std;

    const PAGES: usize = APART_BYTES_MIN / SLICE_BYTES;
    const BLOCK: usize = 20;
    const MANY: usize = PAGES / (APART_SHARE - 1) + 1;

    fn run_of(ranges: &mut Held<'_>, slices: usize, kind: Kind) -> &'static Slice {
        ranges.allocate(slices, 1, kind).expect("memory").first
    }

    /// Calls `check` with ranges of so many slices of pages, and their arena.
    fn with_pages(slices: usize, check: impl FnOnce(&mut Held<'_>, &'static Slice)) {
        let shared: &'static SharedRanges =
            std::boxed::Box::leak(std::boxed::Box::new(SharedRanges::new()));
        let mut ranges = shared.lock();
        let pages = run_of(&mut ranges, slices, Kind::Page);
        check(&mut ranges, pages);
    }

    fn are_together(a: &'static Slice, b: &'static Slice) -> bool {
        ptr::eq(a.arena(), b.arena())
    }

    #[test]
    fn large_blocks_lie_apart_from_many_pages() {
        with_pages(PAGES, |ranges, pages| {
            assert!(are_together(run_of(ranges, MANY, Kind::Large), pages), "there were none");
            let blocks = [(); 3].map(|()| run_of(ranges, BLOCK, Kind::Large));
            let page = run_of(ranges, 1, Kind::Page);
            assert!(blocks.iter().all(|block| are_together(block, blocks[0])));
            assert!(!are_together(blocks[0], pages) && are_together(page, pages));
            // SAFETY: The run was handed out, and nobody uses it.
            unsafe { ranges.free_large(blocks[0]) };
            let page = run_of(ranges, BLOCK, Kind::Page);
            assert_eq!(page.address(), blocks[0].address(), "a free run serves both");
        });
    }

    #[test]
    fn large_blocks_share_an_arena_with_few_pages() {
        with_pages(PAGES / APART_SHARE, |ranges, pages| {
            assert!(are_together(run_of(ranges, PAGES, Kind::Large), pages), "not much in all");
            assert!(are_together(run_of(ranges, BLOCK, Kind::Large), pages), "few pages");
        });
    }

    #[test]
    fn an_arena_whose_end_is_returned_grows_for_the_same_kind() {
        with_pages(PAGES, |ranges, _| {
            run_of(ranges, MANY, Kind::Large);
            let [_, block] = [(); 2].map(|()| run_of(ranges, BLOCK, Kind::Large));
            // SAFETY: The run was handed out, and nobody uses it.
            unsafe { ranges.free_large(block) };
            let growing = [ranges.arena, ranges.large_arena].map(|arena| arena.map(ptr::from_ref));
            ranges.give_up();
            let after = [ranges.arena, ranges.large_arena].map(|arena| arena.map(ptr::from_ref));
            assert_eq!(growing, after);
        });
    }

    #[test]
    fn growing_arenas_are_released_when_memory_is_short() {
        for frees_pages in [false, true] {
            with_pages(PAGES, |ranges, pages| {
                let shared = run_of(ranges, MANY, Kind::Large);
                let block = run_of(ranges, BLOCK, Kind::Large);
                assert!(!ranges.give_up(), "both live");
                // SAFETY: Both runs were handed out, and nobody uses them any more.
                let free_pages = |ranges: &mut Held<'_>| unsafe {
                    ranges.free_large(shared);
                    ranges.free(pages, PAGES, 0);
                };
                // SAFETY: As above.
                let free_block = |ranges: &mut Held<'_>| unsafe { ranges.free_large(block) };
                if frees_pages {
                    free_pages(ranges);
                } else {
                    free_block(ranges);
                }
                assert!(ranges.give_up());
                assert_eq!(
                    (ranges.arena.is_none(), ranges.large_arena.is_none()),
                    (frees_pages, !frees_pages)
                );
                if frees_pages {
                    free_block(ranges);
                } else {
                    free_pages(ranges);
                }
                assert!(ranges.give_up());
                assert!(ranges.arena.is_none() && ranges.large_arena.is_none());
            });
        }
    }
}
