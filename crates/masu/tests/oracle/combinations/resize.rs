//! Changes of a block's size, in every way there is: by its layout, by its address, by its heap, into another heap.
//!
//! It relies on [`Checked::resize_by`](crate::checked::Checked::resize_by). The hard idea: C's `realloc` may leave a
//! heap's block where it is, in a class that no layout would say; such a block goes by its address from then on.

use crate::checked::{Block, Door, Request};
use crate::finding::Finding;

use super::heaps::AnyHeap;
use super::walker::{Ground, Held, Walker, Whose};

impl Walker {
    /// Changes the size of a block: by its heap, by C's `realloc`, or into a heap of C's.
    pub(super) fn resize(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        let Some(Held { block, whose }) = self.take() else { return Ok(()) };
        let before = block.size();
        let size = match self.random.below(6) {
            0 => ground.sizes.size(&ground.draw.mix, &mut self.random),
            1 => before / 2,
            2 => (2 * before).min(16 << 20),
            3 => before.saturating_sub(self.random.below(64)),
            _ => before + self.random.below(256),
        };
        let size = size.max(block.by_layout().into());
        if !ground.take_bytes(size) {
            return self.free(ground, Held { block, whose });
        }
        self.tally.resized += 1;
        let (id, way) = (self.random.bits(), self.random.below(3));
        let request = block.request();
        let plain = Request { door: Door::Malloc, size, align: 16 };
        let other = if way == 0 && !block.by_layout() { self.draw_heap(ground) } else { whose };
        let limit_before = ground.limit.now();
        let (resized, whose) = match (self.heap(ground, whose), self.heap(ground, other)) {
            // Whatever it is of, it is the heap's afterwards.
            (_, Some(AnyHeap::C(heap))) if !block.by_layout() => {
                let resize = |start, _| {
                    // SAFETY: The block is live and goes by its address; the heap lives.
                    unsafe { masu::c::heap::realloc(*heap, start, size) }
                };
                (ground.checked.resize_by(block, id, plain, resize)?, other)
            }
            (None, _) => {
                let resized = match block.by_layout() {
                    true => {
                        let request = Request { size, ..request };
                        let resize = |start, layout| {
                            // SAFETY: The block is live and of this layout, and the size is not 0.
                            unsafe { resize_by_layout(start, layout, size) }
                        };
                        ground.checked.resize_by(block, id, request, resize)?
                    }
                    false => {
                        // SAFETY: The block is live.
                        let resize = |start, _| unsafe { masu::c::realloc(start, size) };
                        ground.checked.resize_by(block, id, plain, resize)?
                    }
                };
                (resized, whose)
            }
            (Some(heap), _) if block.by_layout() && way > 0 => {
                let request = Request { size, ..request };
                // SAFETY: The block is live and of this heap and layout.
                let resize = |start, layout| unsafe { heap.resize(start, layout, size) };
                (ground.checked.resize_by(block, id, request, resize)?, whose)
            }
            // It stays in its heap, but from here on it goes by its address.
            (Some(_), _) => {
                // SAFETY: The block is live.
                let resize = |start, _| unsafe { masu::c::realloc(start, size) };
                (ground.checked.resize_by(block, id, plain, resize)?, whose)
            }
        };
        self.keep_resized(ground, resized, whose, (before, size), limit_before)
    }

    /// Keeps a block that was resized, or as it was, where that may be refused.
    fn keep_resized(
        &mut self,
        ground: &Ground<'_>,
        resized: Result<Block, Block>,
        whose: Whose,
        (before, size): (usize, usize),
        limit_before: usize,
    ) -> Result<(), Finding> {
        match resized {
            Ok(block) => {
                ground.give_bytes(before);
                self.held.push(Held { block, whose });
                Ok(())
            }
            Err(block) if ground.excuses(limit_before) => {
                ground.give_bytes(size);
                // Where it was to be moved to another heap, it is freed plainly: right for any.
                ground.give_bytes(before);
                let by_layout = block.by_layout();
                match by_layout && whose == Whose::Nobody {
                    true => ground.checked.free(block),
                    // SAFETY: The block is live and not used any more.
                    false => ground.checked.free_by(block, |p, _| unsafe { masu::c::free(p) }),
                }
            }
            Err(block) => Err(Finding::Refused { size, align: block.request().align }),
        }
    }
}

/// As `GlobalAlloc::realloc` of masu.
///
/// # Safety
///
/// - As there.
unsafe fn resize_by_layout(start: *mut u8, layout: std::alloc::Layout, size: usize) -> *mut u8 {
    // SAFETY: The caller's condition.
    unsafe { std::alloc::GlobalAlloc::realloc(&masu::Masu::new(), start, layout, size) }
}
