//! A walker: random requests, and between them every other thing that a program may do with masu.
//!
//! It relies on [`Checked`] for what is promised of blocks. A walker is not a thread, as in `worker.rs`. What it
//! draws depends on its seed and on which requests were refused, on nothing else; so one alone repeats
//! exactly.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ScopedJoinHandle;

use crate::checked::{Block, Checked, Request};
use crate::finding::Finding;
use crate::malloc::Masu;
use crate::random::Random;
use crate::sizes::Sizes;

use super::draw::Draw;
use super::features::Limit;
use super::heaps::AnyHeap;

/// What the walkers share.
pub(crate) struct Ground<'a> {
    pub(crate) draw: &'a Draw,
    pub(crate) checked: Checked<'static, Masu>,
    pub(crate) sizes: &'a Sizes,
    pub(crate) heaps: &'a [AnyHeap],
    pub(crate) live_bytes: AtomicUsize,
    pub(crate) limit: &'a Limit,
    pub(crate) stop: AtomicBool,
    /// Whether this is the ground of a forked process.
    pub(crate) is_forked: bool,
}

/// Whose a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Nobody,
    /// A heap that all share, by its place.
    Shared(usize),
    /// A heap of the walker's, by its number.
    Own(usize),
}

/// A live block.
pub(super) struct Held {
    pub(super) block: Block,
    pub(super) whose: Whose,
}

pub(super) struct OwnHeap {
    pub(super) number: usize,
    pub(super) heap: AnyHeap,
}

/// How often what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) operations: usize,
    pub(crate) allocated: usize,
    pub(crate) freed: usize,
    pub(crate) resized: usize,
    pub(crate) handed_on: usize,
    pub(crate) deeds: usize,
    pub(crate) threads: usize,
    pub(crate) forks: usize,
    pub(crate) heaps: usize,
}

/// One walker with its blocks and heaps.
pub(crate) struct Walker {
    pub(super) random: Random,
    pub(super) held: Vec<Held>,
    pub(super) heaps: Vec<OwnHeap>,
    pub(super) heap_numbers: usize,
    /// Blocks to hold for now.
    target: usize,
    /// What most requests are for now.
    only: Option<Request>,
    pub(super) depth: usize,
    inbox: Receiver<Vec<Held>>,
    outboxes: Vec<Sender<Vec<Held>>>,
    pub(crate) tally: Tally,
}

impl Walker {
    /// So many walkers that can hand blocks to each other.
    pub(crate) fn crew(count: usize, random: &mut Random) -> Vec<Walker> {
        let (outboxes, inboxes): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        let walker = |inbox| Walker {
            random: Random::new(random.bits()),
            held: Vec::new(),
            heaps: Vec::new(),
            heap_numbers: 0,
            target: 0,
            only: None,
            depth: 0,
            inbox,
            outboxes: outboxes.clone(),
            tally: Tally::default(),
        };
        inboxes.into_iter().map(walker).collect()
    }

    /// So many operations.
    pub(crate) fn walk(&mut self, ground: &Ground<'_>, operations: usize) -> Result<(), Finding> {
        for _ in 0..operations {
            if let Err(finding) = self.turn(ground) {
                // ORDERING: Relaxed, for the others only end early.
                ground.stop.store(true, Ordering::Relaxed);
                return Err(finding);
            }
            // ORDERING: Relaxed, as above.
            if self.tally.operations.is_multiple_of(64) && ground.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    fn turn(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        self.tally.operations += 1;
        if self.tally.operations % ground.draw.wave == 1 {
            self.begin_wave(ground);
        }
        if self.random.below(ground.draw.deed_every) == 0 {
            self.tally.deeds += 1;
            let deed = ground.draw.deed(&mut self.random);
            return self.do_deed(ground, deed);
        }
        match self.random.below(1_000) {
            0..=9 => self.inspect(ground),
            10..=99 => self.resize(ground),
            100..=109 => self.receive(ground),
            110..=119 => self.hand_on(ground),
            _ => self.allocate_or_free(ground),
        }
    }

    fn begin_wave(&mut self, ground: &Ground<'_>) {
        let most = ground.draw.blocks;
        self.target = [0, most / 8, most / 2, most][self.random.below(4)];
        self.only = match self.random.below(2) {
            0 => Some(ground.sizes.request(&ground.draw.mix, &mut self.random)),
            _ => None,
        };
    }

    fn allocate_or_free(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        let allocate_percent = if self.held.len() < self.target { 85 } else { 15 };
        if self.random.below(100) < allocate_percent {
            return self.allocate(ground);
        }
        match self.take() {
            Some(held) => self.free(ground, held),
            None => Ok(()),
        }
    }

    fn allocate(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        let request = match self.only {
            Some(request) if self.random.below(5) > 0 => request,
            _ => ground.sizes.request(&ground.draw.mix, &mut self.random),
        };
        if !ground.take_bytes(request.size) {
            return Ok(());
        }
        let (whose, id) = (self.draw_heap(ground), self.random.bits());
        let before = ground.limit.now();
        let made = match self.heap(ground, whose) {
            None => ground.checked.allocate(id, request),
            Some(heap) => {
                let request = heap.can_be_asked(request);
                ground.checked.allocate_by(id, request, || heap.allocate(request))
            }
        };
        match made {
            Ok(block) => {
                self.tally.allocated += 1;
                self.held.push(Held { block, whose });
            }
            Err(Finding::Refused { .. }) if ground.excuses(before) => {
                ground.give_bytes(request.size);
            }
            Err(finding) => return Err(finding),
        }
        Ok(())
    }

    /// A heap for the next request, or none.
    pub(super) fn draw_heap(&mut self, ground: &Ground<'_>) -> Whose {
        let all = self.heaps.len() + ground.heaps.len();
        if all == 0 || self.random.below(3) > 0 {
            return Whose::Nobody;
        }
        let place = self.random.below(all);
        match place.checked_sub(self.heaps.len()) {
            Some(shared) => Whose::Shared(shared),
            None => Whose::Own(self.heaps[place].number),
        }
    }

    pub(super) fn heap<'a>(&'a self, ground: &'a Ground<'_>, whose: Whose) -> Option<&'a AnyHeap> {
        match whose {
            Whose::Nobody => None,
            Whose::Shared(place) => Some(&ground.heaps[place]),
            Whose::Own(number) => {
                self.heaps.iter().find(|own| own.number == number).map(|own| &own.heap)
            }
        }
    }

    pub(super) fn free(&mut self, ground: &Ground<'_>, held: Held) -> Result<(), Finding> {
        self.tally.freed += 1;
        let Held { block, whose } = held;
        ground.give_bytes(block.size());
        let plainly = self.random.below(2) == 0;
        match self.heap(ground, whose) {
            None => ground.checked.free(block),
            Some(heap) if !plainly && block.by_layout() => {
                // SAFETY: The block is live and of this heap and layout; it is not used any more.
                ground.checked.free_by(block, |start, layout| unsafe { heap.free(start, layout) })
            }
            // SAFETY: The block is live and not used any more.
            Some(_) => ground.checked.free_by(block, |start, _| unsafe { masu::c::free(start) }),
        }
    }

    fn inspect(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        let index = self.random.below(self.held.len().max(1));
        let Some(held) = self.held.get(index) else { return Ok(()) };
        ground.checked.inspect(&held.block)?;
        let start = held.block.start();
        let own = self.heap(ground, held.whose).is_none_or(|heap| heap.contains(start));
        // Nor is it of any other.
        let shared = ground.heaps.iter().enumerate();
        let other = shared.filter(|(place, _)| held.whose != Whose::Shared(*place));
        let other = other.map(|(_, heap)| heap).any(|heap| heap.contains(start));
        match own && !other {
            true => Ok(()),
            false => Err(Finding::OtherHeap { start: start.addr() }),
        }
    }

    /// Takes over what others handed on, and frees half of it at once.
    fn receive(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        if ground.is_forked {
            return Ok(());
        }
        let Ok(batch) = self.inbox.try_recv() else { return Ok(()) };
        for held in batch {
            match self.random.below(2) {
                0 => self.free(ground, held)?,
                _ => self.held.push(held),
            }
        }
        Ok(())
    }

    /// Hands 1 to 64 blocks to some walker, perhaps this one. Those of its own heaps stay.
    fn hand_on(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        let count = 1 + self.random.below(64);
        if ground.is_forked {
            return Ok(());
        }
        let batch: Vec<_> = (0..count).map_while(|_| self.take()).collect();
        let is_own = |held: &mut Held| matches!(held.whose, Whose::Own(_));
        let mut batch = batch;
        self.held.extend(batch.extract_if(.., is_own));
        self.tally.handed_on += batch.len();
        let to = self.random.below(self.outboxes.len());
        self.outboxes[to].send(batch).expect("every walker keeps its inbox to the end");
        Ok(())
    }

    /// A block to free, resize or hand on: half the time the newest, else any.
    pub(super) fn take(&mut self) -> Option<Held> {
        match self.held.len() {
            0 => None,
            _ if self.random.below(2) == 0 => self.held.pop(),
            count => Some(self.held.swap_remove(self.random.below(count))),
        }
    }

    /// Usable bytes of all blocks that this walker holds.
    pub(crate) fn bytes_by_masu(&self) -> usize {
        self.held.iter().map(|held| held.block.size_by_masu()).sum()
    }

    /// Checks every block that this walker holds.
    pub(crate) fn inspect_all(&self, ground: &Ground<'_>) -> Result<(), Finding> {
        self.held.iter().try_for_each(|held| ground.checked.inspect(&held.block))
    }

    /// Takes over all that was handed to this walker.
    pub(crate) fn empty_inbox(&mut self) {
        self.held.extend(self.inbox.try_iter().flatten());
    }

    /// Gives up all blocks of a heap.
    pub(super) fn abandon(&mut self, ground: &Ground<'_>, whose: Whose) -> Result<(), Finding> {
        self.abandon_if(ground, |of| of == whose)
    }

    /// Gives up all blocks of the heaps that all share.
    pub(crate) fn abandon_shared(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        self.abandon_if(ground, |of| matches!(of, Whose::Shared(_)))
    }

    fn abandon_if(
        &mut self,
        ground: &Ground<'_>,
        are_given_up: impl Fn(Whose) -> bool,
    ) -> Result<(), Finding> {
        for held in self.held.extract_if(.., |held| are_given_up(held.whose)) {
            ground.give_bytes(held.block.size());
            ground.checked.abandon(held.block)?;
        }
        Ok(())
    }

    /// Frees everything and ends the heaps.
    pub(crate) fn close(&mut self, ground: &Ground<'_>) -> Result<(), Finding> {
        if !ground.is_forked {
            self.empty_inbox();
        }
        while let Some(held) = self.take() {
            self.free(ground, held)?;
        }
        self.heaps.clear();
        Ok(())
    }

    /// A number that says what was drawn so far.
    pub(crate) fn digest(&mut self) -> u64 {
        self.random.bits()
    }
}

impl Ground<'_> {
    /// Whether a request that began at `before` may be refused.
    pub(super) fn excuses(&self, before: usize) -> bool {
        self.limit.excuses(before)
    }

    /// Takes bytes from the bound on live bytes; whether they were there.
    pub(super) fn take_bytes(&self, bytes: usize) -> bool {
        // ORDERING: Relaxed, for the count guards no memory.
        let before = self.live_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= self.draw.live_bytes;
        if !fits {
            self.give_bytes(bytes);
        }
        fits
    }

    pub(crate) fn give_bytes(&self, bytes: usize) {
        // ORDERING: Relaxed, as above.
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Waits for a thread; a panic there goes on here.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl Tally {
    pub(crate) fn plus(self, other: Tally) -> Tally {
        Tally {
            operations: self.operations + other.operations,
            allocated: self.allocated + other.allocated,
            freed: self.freed + other.freed,
            resized: self.resized + other.resized,
            handed_on: self.handed_on + other.handed_on,
            deeds: self.deeds + other.deeds,
            threads: self.threads + other.threads,
            forks: self.forks + other.forks,
            heaps: self.heaps + other.heaps,
        }
    }
}
