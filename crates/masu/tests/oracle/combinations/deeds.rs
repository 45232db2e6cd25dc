//! What a walker does besides requests: see [`Deed`].
//!
//! It relies on `features` for what belongs to no walker, on `forked` for processes.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

use crate::checked::Checked;
use crate::finding::Finding;
use crate::malloc::Masu;
use crate::random::Random;

use super::draw::Deed;
use super::heaps::AnyHeap;
use super::walker::{Ground, Held, OwnHeap, Walker, Whose, join};
use super::{features, forked};

/// Threads that a walker has one inside the other, at most.
const DEPTH_MAX: usize = 4;
/// Heaps that a walker has of its own, at most.
const HEAPS_MAX: usize = 6;

impl Walker {
    pub(super) fn do_deed(&mut self, ground: &Ground<'_>, deed: Deed) -> Result<(), Finding> {
        match deed {
            Deed::ProfileStart => features::start_profile(&mut self.random),
            Deed::ProfileStop => masu::profile::stop(),
            Deed::ProfileWrite => features::write_profile(),
            Deed::Option => {
                let limit = (!ground.is_forked).then_some(ground.limit);
                features::change_option(&mut self.random, limit, ground.draw.dies_of_want)?;
            }
            Deed::Guards => features::change_guards(&mut self.random),
            Deed::Statistics => {
                features::read_statistics(&mut self.random);
                self.check_books(ground)?;
            }
            Deed::Trim => ground.checked.trim(),
            Deed::Thread => self.have_a_thread_walk(ground)?,
            Deed::Fork => self.fork(ground)?,
            Deed::HeapMake if self.heaps.len() < HEAPS_MAX => {
                self.heap_numbers += 1;
                self.tally.heaps += 1;
                let number = self.heap_numbers;
                let heap = AnyHeap::draw(&mut self.random);
                self.heaps.extend(heap.map(|heap| OwnHeap { number, heap }));
            }
            Deed::HeapMake | Deed::HeapEnd => self.end_heap(ground)?,
            Deed::HeapClear => self.clear_heap(ground)?,
            Deed::TooMuch if !ground.draw.dies_of_want => {
                let index = self.random.below(self.held.len().max(1));
                let block = self.held.get(index).map(|held| &held.block);
                ground.checked.ask_too_much(block, (1 << 47) + 1)?;
            }
            Deed::TooMuch => {}
        }
        Ok(())
    }

    /// Where nobody else allocates: the allocator's books against the blocks that live.
    fn check_books(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        if ground.draw.walkers > 1 || ground.is_forked {
            return Ok(());
        }
        self.empty_inbox();
        features::check_books(self.bytes_by_masu())?;
        for own in &self.heaps {
            let of_heap = |held: &&Held| held.whose == Whose::Own(own.number);
            let expected = self.held.iter().filter(of_heap).count();
            let counted = own.heap.live_blocks();
            if counted != expected {
                return Err(Finding::Books { what: "live blocks of a heap", counted, expected });
            }
        }
        Ok(())
    }

    /// A new thread takes this walker over for a while, and ends.
    fn have_a_thread_walk(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        let operations = self.random.doubling(1, 2_000);
        if self.depth == DEPTH_MAX {
            return Ok(());
        }
        self.tally.threads += 1;
        self.depth += 1;
        let result = thread::scope(|scope| join(scope.spawn(|| self.walk(ground, operations))));
        self.depth -= 1;
        result
    }

    /// Forks; the child walks on by itself, frees what this walker holds, and ends.
    fn fork(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        let seed = self.random.bits();
        if ground.is_forked || self.tally.forks >= ground.draw.forks {
            return Ok(());
        }
        self.tally.forks += 1;
        forked::run(|| {
            let checked = Checked::new(&Masu);
            self.held.iter().try_for_each(|held| checked.inherit(&held.block))?;
            let live_bytes = self.held.iter().map(|held| held.block.size()).sum();
            let ground = Ground {
                draw: ground.draw,
                checked,
                sizes: ground.sizes,
                heaps: ground.heaps,
                live_bytes: AtomicUsize::new(live_bytes),
                limit: ground.limit,
                stop: AtomicBool::new(false),
                is_forked: true,
            };
            self.random = Random::new(seed);
            let operations = self.random.doubling(16, 4_000);
            self.walk(&ground, operations)?;
            self.close(&ground)
        })
    }

    /// Ends one of the walker's heaps, some of its blocks freed before and the rest not.
    fn end_heap(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        if self.heaps.is_empty() {
            return Ok(());
        }
        let place = self.random.below(self.heaps.len());
        let OwnHeap { number, heap } = self.heaps.swap_remove(place);
        self.abandon(ground, Whose::Own(number))?;
        drop(heap);
        Ok(())
    }

    /// Empties one of the walker's heaps.
    fn clear_heap(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        if self.heaps.is_empty() {
            return Ok(());
        }
        let place = self.random.below(self.heaps.len());
        self.abandon(ground, Whose::Own(self.heaps[place].number))?;
        // SAFETY: All its blocks were the walker's, and are given up.
        unsafe { self.heaps[place].heap.clear() };
        Ok(())
    }
}
