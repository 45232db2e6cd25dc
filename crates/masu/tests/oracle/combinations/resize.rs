//! Resizing in every way: by layout, by address, by heap, into another heap.
//!
//! It relies on [`Checked::resize_by`](crate::checked::Checked::resize_by). The hard idea: C's `realloc` may keep a
//! heap's block in place, in a class that differs from its layout's; such a block is freed by address from then on.

use crate::checked::{Block, Function, Request};
use crate::finding::Finding;

use super::heaps::AnyHeap;
use super::walker::{Context, Held, Owner, Walker};

impl Walker {
    /// Resizes a block by its heap, by C's `realloc`, or into a C heap.
    pub(super) fn resize(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        let Some(Held { block, owner }) = self.take() else { return Ok(()) };
        let before = block.size();
        let size = match self.random.below(6) {
            0 => context.sizes.size(&context.draw.mix, &mut self.random),
            1 => before / 2,
            2 => (2 * before).min(16 << 20),
            3 => before.saturating_sub(self.random.below(64)),
            _ => before + self.random.below(256),
        };
        let size = size.max(block.by_layout().into());
        if !context.budget.take(size) {
            return self.free(context, Held { block, owner });
        }
        self.tally.resized += 1;
        let (id, way) = (self.random.bits(), self.random.below(3));
        let request = block.request();
        let plain = Request { function: Function::Malloc, size, align: 16 };
        let other = if way == 0 && !block.by_layout() { self.draw_heap(context) } else { owner };
        let limit_before = context.limit.now();
        let (resized, owner) = match (self.heap(context, owner), self.heap(context, other)) {
            // Afterwards the block belongs to this heap.
            (_, Some(AnyHeap::C(heap))) if !block.by_layout() => {
                let resize = |start, _| {
                    // SAFETY: The block is live and has no layout; the heap is live.
                    unsafe { masu::c::heap::realloc(*heap, start, size) }
                };
                (context.checked.resize_by(block, id, plain, resize)?, other)
            }
            (None, _) => (context.checked.resize(block, id, size)?, owner),
            (Some(heap), _) if block.by_layout() && way > 0 => {
                let request = Request { size, ..request };
                // SAFETY: The block is live and of this heap and layout.
                let resize = |start, layout| unsafe { heap.resize(start, layout, size) };
                (context.checked.resize_by(block, id, request, resize)?, owner)
            }
            // The block stays in its heap, and is freed by address from here on.
            (Some(_), _) => {
                // SAFETY: The block is live.
                let resize = |start, _| unsafe { masu::c::realloc(start, size) };
                (context.checked.resize_by(block, id, plain, resize)?, owner)
            }
        };
        self.keep_resized(context, resized, owner, (before, size), limit_before)
    }

    /// Keeps a resized block; frees the old one if a refusal was allowed.
    fn keep_resized(
        &mut self,
        context: &Context<'_>,
        resized: Result<Block, Block>,
        owner: Owner,
        (before, size): (usize, usize),
        limit_before: [usize; 2],
    ) -> Result<(), Finding> {
        match resized {
            Ok(block) => {
                context.budget.give_back(before);
                self.held.push(Held { block, owner });
                Ok(())
            }
            Err(block) if context.limit.may_refuse(limit_before) => {
                context.budget.give_back(size);
                // The block may belong to a heap, so it is freed by address.
                context.budget.give_back(before);
                let by_layout = block.by_layout();
                match by_layout && owner == Owner::Global {
                    true => context.checked.free(block),
                    // SAFETY: The block is live and not used any more.
                    false => context.checked.free_by(block, |p, _| unsafe { masu::c::free(p) }),
                }
            }
            Err(block) => Err(Finding::Refused { size, align: block.request().align }),
        }
    }
}
