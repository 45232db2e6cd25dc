//! A walker: random requests, and between them every other use that a program makes of masu.
//!
//! It relies on [`Checked`] for the checks of blocks. A walker is not a thread: a thread runs it for a while, and another
//! thread continues with all its blocks. Its random numbers depend only on its seed and on refused requests, so one walker
//! repeats exactly; several differ only in their interleaving.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::checked::{Block, Checked, Request};
use crate::finding::Finding;
use crate::live::{Budget, lock};
use crate::random::Random;
use crate::sizes::Sizes;

use super::draw::Draw;
use super::features::Limit;
use super::heaps::AnyHeap;

/// The state shared by the walkers.
pub(crate) struct Context<'a> {
    pub(crate) draw: &'a Draw,
    pub(crate) checked: Checked<'static>,
    pub(crate) sizes: &'a Sizes,
    pub(crate) heaps: &'a [AnyHeap],
    pub(crate) budget: Budget,
    pub(crate) limit: &'a Limit,
    pub(crate) stop: AtomicBool,
    /// Whether this is a forked process.
    pub(crate) is_forked: bool,
}

/// The allocator that a block came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Global,
    /// A shared heap, by its place.
    Shared(usize),
    /// One of the walker's heaps, by its number.
    Own(usize),
}

/// A live block.
pub(super) struct Held {
    pub(super) block: Block,
    pub(super) owner: Owner,
}

pub(super) struct OwnHeap {
    pub(super) number: usize,
    pub(super) heap: AnyHeap,
}

/// Counts of operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) operations: usize,
    pub(crate) allocated: usize,
    pub(crate) freed: usize,
    pub(crate) resized: usize,
    pub(crate) handed_on: usize,
    pub(crate) refused: usize,
    pub(super) actions: usize,
    pub(crate) threads: usize,
    pub(super) forks: usize,
    pub(super) heaps: usize,
}

impl Tally {
    /// The counts of all these walkers.
    pub(crate) fn of(walkers: &[Walker]) -> Tally {
        let sum = |of: fn(&Tally) -> usize| walkers.iter().map(|walker| of(&walker.tally)).sum();
        Tally {
            operations: sum(|tally| tally.operations),
            allocated: sum(|tally| tally.allocated),
            freed: sum(|tally| tally.freed),
            resized: sum(|tally| tally.resized),
            handed_on: sum(|tally| tally.handed_on),
            refused: sum(|tally| tally.refused),
            actions: sum(|tally| tally.actions),
            threads: sum(|tally| tally.threads),
            forks: sum(|tally| tally.forks),
            heaps: sum(|tally| tally.heaps),
        }
    }
}

/// One walker with its blocks and heaps.
pub(crate) struct Walker {
    pub(crate) random: Random,
    pub(super) held: Vec<Held>,
    pub(super) heaps: Vec<OwnHeap>,
    pub(super) heap_numbers: usize,
    /// The current number of blocks to hold.
    target: usize,
    /// The current request, which most requests repeat.
    only: Option<Request>,
    pub(super) depth: usize,
    /// The inbox of each walker, and the place of this one.
    boxes: Arc<[Mutex<Vec<Vec<Held>>>]>,
    place: usize,
    pub(crate) tally: Tally,
}

impl Walker {
    /// Walkers that can send blocks to each other.
    pub(crate) fn crew(count: usize, random: &mut Random) -> Vec<Walker> {
        let boxes: Arc<[_]> = (0..count).map(|_| Mutex::default()).collect();
        let walker = |place| Walker {
            random: Random::new(random.bits()),
            held: Vec::new(),
            heaps: Vec::new(),
            heap_numbers: 0,
            target: 0,
            only: None,
            depth: 0,
            boxes: Arc::clone(&boxes),
            place,
            tally: Tally::default(),
        };
        (0..count).map(walker).collect()
    }

    pub(crate) fn walk(&mut self, context: &Context<'_>, operations: usize) -> Result<(), Finding> {
        for _ in 0..operations {
            if let Err(finding) = self.turn(context) {
                // ORDERING: Relaxed: the others only end early.
                context.stop.store(true, Ordering::Relaxed);
                return Err(finding);
            }
            // ORDERING: Relaxed, as above.
            if self.tally.operations.is_multiple_of(64) && context.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    fn turn(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        self.tally.operations += 1;
        if self.tally.operations % context.draw.wave == 1 {
            self.begin_wave(context);
        }
        if self.random.below(context.draw.action_interval) == 0 {
            self.tally.actions += 1;
            let action = context.draw.action(&mut self.random);
            return self.act(context, action);
        }
        match self.random.below(1_000) {
            0..=9 => self.inspect(context),
            10..=99 => self.resize(context),
            100..=109 => self.receive(context),
            110..=119 => self.hand_on(context),
            _ => self.allocate_or_free(context),
        }
    }

    fn begin_wave(&mut self, context: &Context<'_>) {
        let most = context.draw.blocks;
        self.target = [0, most / 8, most / 2, most][self.random.below(4)];
        self.only = match self.random.below(2) {
            0 => Some(context.sizes.request(&context.draw.mix, &mut self.random)),
            _ => None,
        };
    }

    fn allocate_or_free(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        let allocate_percent = if self.held.len() < self.target { 85 } else { 15 };
        if self.random.below(100) < allocate_percent {
            return self.allocate(context);
        }
        match self.take() {
            Some(held) => self.free(context, held),
            None => Ok(()),
        }
    }

    fn allocate(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        let request = match self.only {
            Some(request) if self.random.below(5) > 0 => request,
            _ => context.sizes.request(&context.draw.mix, &mut self.random),
        };
        self.allocate_one(context, request)
    }

    /// Makes a request of any of the walker's allocators, unless too much is live.
    pub(super) fn allocate_one(
        &mut self,
        context: &Context<'_>,
        request: Request,
    ) -> Result<(), Finding> {
        if !context.budget.take(request.size) {
            return Ok(());
        }
        let (owner, id) = (self.draw_heap(context), self.random.bits());
        let before = context.limit.now();
        let made = match self.heap(context, owner) {
            None => context.checked.allocate(id, request),
            Some(heap) => {
                let request = heap.adapt(request);
                context.checked.allocate_by(id, request, || heap.allocate(request))
            }
        };
        match made {
            Ok(block) => {
                self.tally.allocated += 1;
                self.held.push(Held { block, owner });
            }
            Err(Finding::Refused { .. }) if context.limit.may_refuse(before) => {
                context.budget.give_back(request.size);
            }
            Err(finding) => return Err(finding),
        }
        Ok(())
    }

    /// Draws the allocator of the next request.
    pub(super) fn draw_heap(&mut self, context: &Context<'_>) -> Owner {
        let all = self.heaps.len() + context.heaps.len();
        if all == 0 || self.random.below(3) > 0 {
            return Owner::Global;
        }
        let place = self.random.below(all);
        match place.checked_sub(self.heaps.len()) {
            Some(shared) => Owner::Shared(shared),
            None => Owner::Own(self.heaps[place].number),
        }
    }

    pub(super) fn heap<'a>(
        &'a self,
        context: &'a Context<'_>,
        owner: Owner,
    ) -> Option<&'a AnyHeap> {
        match owner {
            Owner::Global => None,
            Owner::Shared(place) => Some(&context.heaps[place]),
            Owner::Own(number) => {
                self.heaps.iter().find(|own| own.number == number).map(|own| &own.heap)
            }
        }
    }

    pub(super) fn free(&mut self, context: &Context<'_>, held: Held) -> Result<(), Finding> {
        self.tally.freed += 1;
        let Held { block, owner } = held;
        context.budget.give_back(block.size());
        let plainly = self.random.below(2) == 0;
        match self.heap(context, owner) {
            None => context.checked.free(block),
            Some(heap) if !plainly && block.by_layout() => {
                // SAFETY: The block is live and of this heap and layout; it is not used any more.
                context.checked.free_by(block, |start, layout| unsafe { heap.free(start, layout) })
            }
            // SAFETY: The block is live and not used any more.
            Some(_) => context.checked.free_by(block, |start, _| unsafe { masu::c::free(start) }),
        }
    }

    fn inspect(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        let index = self.random.below(self.held.len().max(1));
        let Some(held) = self.held.get(index) else { return Ok(()) };
        context.checked.inspect(&held.block)?;
        let start = held.block.start();
        let own = self.heap(context, held.owner).is_none_or(|heap| heap.contains(start));
        let shared = context.heaps.iter().enumerate();
        let other = shared.filter(|(place, _)| held.owner != Owner::Shared(*place));
        let other = other.map(|(_, heap)| heap).any(|heap| heap.contains(start));
        match own && !other {
            true => Ok(()),
            false => Err(Finding::WrongHeap { start: start.addr() }),
        }
    }

    /// Receives a batch, and frees half of it.
    fn receive(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        if context.is_forked {
            return Ok(());
        }
        let Some(batch) = lock(&self.boxes[self.place]).pop() else { return Ok(()) };
        for held in batch {
            match self.random.below(2) {
                0 => self.free(context, held)?,
                _ => self.held.push(held),
            }
        }
        Ok(())
    }

    /// Sends 1 to 64 blocks to a walker, perhaps this one, except those of its own heaps.
    fn hand_on(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        let count = 1 + self.random.below(64);
        if context.is_forked {
            return Ok(());
        }
        let mut batch: Vec<_> = (0..count).map_while(|_| self.take()).collect();
        let is_own = |held: &mut Held| matches!(held.owner, Owner::Own(_));
        self.held.extend(batch.extract_if(.., is_own));
        self.tally.handed_on += batch.len();
        let to = self.random.below(self.boxes.len());
        lock(&self.boxes[to]).push(batch);
        Ok(())
    }

    /// Takes a block to free, resize or send.
    pub(super) fn take(&mut self) -> Option<Held> {
        self.random.take(&mut self.held)
    }

    /// Usable bytes of all blocks that this walker holds.
    pub(crate) fn bytes_by_masu(&self) -> usize {
        self.held.iter().map(|held| held.block.size_by_masu()).sum()
    }

    /// The usable size of each block that this walker holds outside heaps.
    pub(crate) fn usable_sizes(&self) -> impl Iterator<Item = usize> {
        let outside = self.held.iter().filter(|held| held.owner == Owner::Global);
        outside.map(|held| held.block.size_by_masu())
    }

    /// Checks every block that this walker holds.
    pub(crate) fn inspect_all(&self, context: &Context<'_>) -> Result<(), Finding> {
        self.held.iter().try_for_each(|held| context.checked.inspect(&held.block))
    }

    /// Receives everything in the inbox.
    pub(crate) fn empty_inbox(&mut self) {
        let all = std::mem::take(&mut *lock(&self.boxes[self.place]));
        self.held.extend(all.into_iter().flatten());
    }

    /// Forgets the blocks of heaps that are about to end.
    pub(crate) fn abandon(
        &mut self,
        context: &Context<'_>,
        ends: impl Fn(Owner) -> bool,
    ) -> Result<(), Finding> {
        for held in self.held.extract_if(.., |held| ends(held.owner)) {
            context.budget.give_back(held.block.size());
            context.checked.abandon(held.block)?;
        }
        Ok(())
    }

    /// Frees all blocks and drops the heaps.
    pub(crate) fn close(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        if !context.is_forked {
            self.empty_inbox();
        }
        while let Some(held) = self.take() {
            self.free(context, held)?;
        }
        self.heaps.clear();
        Ok(())
    }
}
