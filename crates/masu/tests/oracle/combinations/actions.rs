//! The actions of a walker besides requests: see [`Action`].
//!
//! It relies on `features` for the state of the process, on `forked` for child processes.

use std::sync::atomic::AtomicBool;
use std::thread;

use crate::checked::Checked;
use crate::finding::Finding;
use crate::live::{Budget, join};
use crate::malloc::Masu;
use crate::random::Random;

use super::draw::Action;
use super::heaps::AnyHeap;
use super::walker::{Context, Held, OwnHeap, Owner, Walker};
use super::{features, forked};

/// The most nested threads of a walker.
const DEPTH_MAX: usize = 4;
/// The most heaps of a walker.
const HEAPS_MAX: usize = 6;
/// The most requests of [`Action::Deepen`]; the most blocks of each request; and the largest size.
const REQUESTS_MAX: usize = 8;
const BLOCKS_MAX: usize = 256;
const DEEP_SIZE_MAX: usize = 8 << 10;

impl Walker {
    pub(super) fn act(&mut self, context: &Context<'_>, action: Action) -> Result<(), Finding> {
        match action {
            Action::ProfileStart => features::start_profile(&mut self.random),
            Action::ProfileStop => masu::profile::stop(),
            Action::ProfileWrite => features::write_profile(),
            Action::Option => {
                let limit = (!context.is_forked).then_some(context.limit);
                features::change_option(&mut self.random, limit, context.draw.aborts_on_oom)?;
            }
            Action::Guards => features::change_guards(&mut self.random),
            Action::Statistics => {
                features::read_statistics(&mut self.random);
                self.check_statistics(context)?;
            }
            Action::Trim => context.checked.trim(),
            Action::Thread => self.walk_in_thread(context)?,
            Action::Fork => self.fork(context)?,
            Action::HeapMake if self.heaps.len() < HEAPS_MAX => {
                self.heap_numbers += 1;
                self.tally.heaps += 1;
                let number = self.heap_numbers;
                let heap = AnyHeap::draw(&mut self.random);
                self.heaps.extend(heap.map(|heap| OwnHeap { number, heap }));
            }
            Action::HeapMake | Action::HeapEnd => self.end_heap(context)?,
            Action::HeapClear => self.clear_heap(context)?,
            Action::TooMuch if !context.draw.aborts_on_oom => {
                let index = self.random.below(self.held.len().max(1));
                let block = self.held.get(index).map(|held| &held.block);
                let least = if self.random.below(2) == 0 { 1 << 47 } else { usize::MAX / 2 + 1 };
                let size = least + 1 + self.random.below(least - 1);
                self.tally.refused += 1;
                context.checked.request_too_much(block, size)?;
            }
            Action::TooMuch => {}
            Action::Widen => features::widen(1),
            Action::Refusals if !context.draw.aborts_on_oom && !context.is_forked => {
                context.limit.change_refusals(&mut self.random);
            }
            Action::Refusals => {}
            Action::Deepen => self.deepen(context)?,
        }
        Ok(())
    }

    /// Makes stacks of several classes miss and overflow, while the options that bound them change, and the stacks of other
    /// walkers grow.
    fn deepen(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        for _ in 0..1 + self.random.below(REQUESTS_MAX) {
            let request = context.sizes.request(&context.draw.mix, &mut self.random);
            if request.size > DEEP_SIZE_MAX {
                continue;
            }
            let before = self.held.len();
            let count = self.random.doubling(8, BLOCKS_MAX);
            let change = self.random.below(2 * count);
            for number in 0..count {
                if number == change {
                    features::change_depth(&mut self.random);
                }
                self.allocate_one(context, request)?;
            }
            let left = [0, before, before + self.random.below(count)][self.random.below(3)];
            while self.held.len() > left.max(before.saturating_sub(count)) {
                if self.held.len() == before + change {
                    features::change_depth(&mut self.random);
                }
                if let Some(held) = self.held.pop() {
                    self.free(context, held)?;
                }
            }
        }
        Ok(())
    }

    /// Compares the allocator's statistics with the live blocks, if this is the only walker.
    fn check_statistics(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        if context.draw.walkers > 1 {
            return Ok(());
        }
        context.checked.audit()?;
        if context.is_forked {
            return Ok(());
        }
        self.empty_inbox();
        features::check_statistics(self.bytes_by_masu())?;
        context.limit.check()?;
        for own in &self.heaps {
            let of_heap = |held: &&Held| held.owner == Owner::Own(own.number);
            let expected = self.held.iter().filter(of_heap).count();
            let counted = own.heap.live_blocks();
            if counted != expected {
                return Err(Finding::Statistics {
                    what: "live blocks of a heap",
                    counted,
                    expected,
                });
            }
        }
        Ok(())
    }

    /// Runs this walker on a new thread for a while.
    fn walk_in_thread(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        let operations = self.random.doubling(1, 2_000);
        if self.depth == DEPTH_MAX {
            return Ok(());
        }
        self.tally.threads += 1;
        self.depth += 1;
        let work = || self.walk(context, operations);
        let result = if context.is_forked {
            forked::on_thread(work)
        } else {
            thread::scope(|scope| join(scope.spawn(work)))
        };
        self.depth -= 1;
        result
    }

    /// Forks; the child continues alone, frees this walker's blocks, and ends.
    fn fork(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        let seed = self.random.bits();
        if context.is_forked || self.tally.forks >= context.draw.forks {
            return Ok(());
        }
        self.tally.forks += 1;
        forked::run(|| {
            let checked = Checked::new(&Masu);
            self.held.iter().try_for_each(|held| checked.inherit(&held.block))?;
            let live_bytes = self.held.iter().map(|held| held.block.size()).sum();
            let context = Context {
                draw: context.draw,
                checked,
                sizes: context.sizes,
                heaps: context.heaps,
                budget: Budget::new(live_bytes, context.draw.live_bytes),
                limit: context.limit,
                stop: AtomicBool::new(false),
                is_forked: true,
            };
            self.random = Random::new(seed);
            let operations = self.random.doubling(16, 4_000);
            self.walk(&context, operations)?;
            self.close(&context)
        })
    }

    /// Drops one of the walker's heaps, with its live blocks.
    fn end_heap(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        if self.heaps.is_empty() {
            return Ok(());
        }
        let place = self.random.below(self.heaps.len());
        let OwnHeap { number, heap } = self.heaps.swap_remove(place);
        self.abandon(context, |of| of == Owner::Own(number))?;
        drop(heap);
        Ok(())
    }

    /// Clears one of the walker's heaps.
    fn clear_heap(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        if self.heaps.is_empty() {
            return Ok(());
        }
        let place = self.random.below(self.heaps.len());
        let number = self.heaps[place].number;
        self.abandon(context, |of| of == Owner::Own(number))?;
        // SAFETY: All its blocks were the walker's, and are not used any more.
        unsafe { self.heaps[place].heap.clear() };
        Ok(())
    }
}
