//! The workers: random operations on blocks of their own, and on blocks handed to them.
//!
//! They rely on [`Checked`] to notice what is wrong. A worker is not a thread: a thread runs it for
//! a shift and ends, the next one takes it over with all its blocks. What a worker draws depends on
//! the seed alone, so one worker repeats exactly; with several, only when they meet differs.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ScopedJoinHandle};

use crate::checked::{Block, Checked};
use crate::finding::Finding;
use crate::malloc::Malloc;
use crate::plan::{Phase, Plan};
use crate::random::Random;
use crate::sizes::Sizes;

/// How often each operation was made, over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) allocated: usize,
    pub(crate) resized: usize,
    pub(crate) freed: usize,
    pub(crate) received: usize,
    pub(crate) inspected: usize,
    pub(crate) refused: usize,
    pub(crate) trimmed: usize,
    pub(crate) threads: usize,
}

/// Runs the plan; how often what was done, or the first broken promise and the phase it broke in.
pub(crate) fn run<M: Malloc>(
    malloc: &M,
    plan: &Plan,
    seed: u64,
) -> Result<Tally, (Finding, &'static str)> {
    let floor = Floor {
        checked: Checked::new(malloc),
        sizes: Sizes::of(malloc).map_err(|finding| (finding, "the start"))?,
        live_bytes: AtomicUsize::new(0),
        live_bytes_max: plan.live_bytes,
        stop: AtomicBool::new(false),
    };
    let mut workers = Worker::crew(plan.workers, seed);
    let turns = plan.operations / (plan.phases.len() * plan.workers);
    for phase in plan.phases {
        workers = floor
            .everyone(workers, |worker| worker.live_through(&floor, phase, turns))
            .map_err(|finding| (finding, phase.name))?;
        floor.checked.trim();
        for worker in &workers {
            let inspect = |block| floor.checked.inspect(block);
            worker.blocks.iter().try_for_each(inspect).map_err(|f| (f, "trim"))?;
        }
    }
    let workers = floor.everyone(workers, |w| w.close(&floor)).map_err(|f| (f, "the end"))?;
    assert!(floor.checked.nothing_is_live(), "the oracle lost a block");
    Ok(workers.iter().map(|worker| worker.tally).fold(Tally::default(), Tally::plus))
}

/// What the workers share.
struct Floor<'a, M> {
    checked: Checked<'a, M>,
    sizes: Sizes,
    live_bytes: AtomicUsize,
    live_bytes_max: usize,
    stop: AtomicBool,
}

impl<M: Malloc> Floor<'_, M> {
    /// Runs `work` for all workers at once; the workers, or the first finding.
    fn everyone(
        &self,
        workers: Vec<Worker>,
        work: impl Fn(Worker) -> Result<Worker, Finding> + Sync,
    ) -> Result<Vec<Worker>, Finding> {
        let work = |worker| {
            let result = work(worker);
            if result.is_err() {
                // ORDERING: Relaxed, for the others only end early.
                self.stop.store(true, Ordering::Relaxed);
            }
            result
        };
        thread::scope(|scope| {
            let threads = workers.into_iter().map(|worker| scope.spawn(|| work(worker)));
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(join).collect()
        })
    }

    /// Takes bytes from the bound on live bytes; whether they were there.
    fn take_bytes(&self, bytes: usize) -> bool {
        // ORDERING: Relaxed, for the count guards no memory.
        let before = self.live_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= self.live_bytes_max;
        if !fits {
            self.give_bytes(bytes);
        }
        fits
    }

    fn give_bytes(&self, bytes: usize) {
        // ORDERING: Relaxed, as above.
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// One worker, its blocks, and its ways to the others.
struct Worker {
    random: Random,
    blocks: Vec<Block>,
    inbox: Receiver<Vec<Block>>,
    outboxes: Vec<Sender<Vec<Block>>>,
    tally: Tally,
}

impl Worker {
    fn crew(count: usize, seed: u64) -> Vec<Worker> {
        let mut random = Random::new(seed);
        let (outboxes, inboxes): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        let worker = |inbox| Worker {
            random: Random::new(random.bits()),
            blocks: Vec::new(),
            inbox,
            outboxes: outboxes.clone(),
            tally: Tally::default(),
        };
        inboxes.into_iter().map(worker).collect()
    }

    /// Works through a phase, a new thread for each shift.
    fn live_through<M: Malloc>(
        mut self,
        floor: &Floor<'_, M>,
        phase: &Phase,
        turns: usize,
    ) -> Result<Worker, Finding> {
        let mut left = turns;
        while left > 0 {
            let shift = phase.shift.min(left);
            left -= shift;
            self.tally.threads += 1;
            self = thread::scope(|scope| {
                let work = || (0..shift).try_for_each(|_| self.turn(floor, phase)).map(|()| self);
                join(scope.spawn(work))
            })?;
            // ORDERING: Relaxed, as where it is stored.
            if floor.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(self)
    }

    /// One operation.
    fn turn<M: Malloc>(&mut self, floor: &Floor<'_, M>, phase: &Phase) -> Result<(), Finding> {
        match self.random.below(100_000) {
            0 => self.trim(floor),
            1..=100 => self.ask_too_much(floor),
            101..=2_000 => self.inspect(floor),
            2_001..=14_000 => self.resize(floor, phase),
            14_001..=17_000 => self.receive(floor),
            _ if self.random.below(phase.hand_on) == 0 => self.hand_on(),
            _ => self.allocate_or_free(floor, phase),
        }
    }

    fn trim<M: Malloc>(&mut self, floor: &Floor<'_, M>) -> Result<(), Finding> {
        self.tally.trimmed += 1;
        floor.checked.trim();
        Ok(())
    }

    fn ask_too_much<M: Malloc>(&mut self, floor: &Floor<'_, M>) -> Result<(), Finding> {
        self.tally.refused += 1;
        let over = (isize::MAX as usize) + 1 + self.random.below(isize::MAX as usize);
        let size = if self.random.below(2) == 0 { (1 << 47) + 1 } else { over };
        let index = self.random.below(self.blocks.len().max(1));
        floor.checked.ask_too_much(self.blocks.get(index), size)
    }

    fn inspect<M: Malloc>(&mut self, floor: &Floor<'_, M>) -> Result<(), Finding> {
        self.tally.inspected += 1;
        let index = self.random.below(self.blocks.len().max(1));
        self.blocks.get(index).map_or(Ok(()), |block| floor.checked.inspect(block))
    }

    /// Changes the size of a random block: to any size, a little up or down, or by half.
    fn resize<M: Malloc>(&mut self, floor: &Floor<'_, M>, phase: &Phase) -> Result<(), Finding> {
        let Some(block) = self.take_block() else { return Ok(()) };
        let before = block.size();
        let size = match self.random.below(8) {
            0 | 1 => floor.sizes.size(&phase.mix, &mut self.random),
            2 => before / 2,
            3 => before + before / 2,
            4 => before.saturating_sub(self.random.below(64)),
            5 => (2 * before).min(64 << 20),
            _ => before + self.random.below(256),
        };
        let size = size.max(block.by_layout().into());
        if !floor.take_bytes(size) {
            return self.free(floor, block);
        }
        self.tally.resized += 1;
        let block = floor.checked.resize(block, self.random.bits(), size)?;
        floor.give_bytes(before);
        self.blocks.push(block);
        Ok(())
    }

    /// Takes over what others handed on, and frees half of it at once.
    fn receive<M: Malloc>(&mut self, floor: &Floor<'_, M>) -> Result<(), Finding> {
        let Ok(batch) = self.inbox.try_recv() else { return Ok(()) };
        self.tally.received += batch.len();
        for block in batch {
            match self.random.below(2) {
                0 => self.free(floor, block)?,
                _ => self.blocks.push(block),
            }
        }
        Ok(())
    }

    /// Hands 1 to 64 blocks to some worker, perhaps this one.
    fn hand_on(&mut self) -> Result<(), Finding> {
        let count = 1 + self.random.below(64);
        let batch: Vec<_> = (0..count).map_while(|_| self.take_block()).collect();
        let to = self.random.below(self.outboxes.len());
        self.outboxes[to].send(batch).expect("every worker holds its inbox to the end");
        Ok(())
    }

    fn allocate_or_free<M: Malloc>(
        &mut self,
        floor: &Floor<'_, M>,
        phase: &Phase,
    ) -> Result<(), Finding> {
        let allocate_percent = if self.blocks.len() < phase.blocks { 65 } else { 35 };
        if self.random.below(100) < allocate_percent {
            let request = floor.sizes.request(&phase.mix, &mut self.random);
            if floor.take_bytes(request.size) {
                self.tally.allocated += 1;
                let block = floor.checked.allocate(self.random.bits(), request)?;
                self.blocks.push(block);
                return Ok(());
            }
        }
        self.take_block().map_or(Ok(()), |block| self.free(floor, block))
    }

    fn free<M: Malloc>(&mut self, floor: &Floor<'_, M>, block: Block) -> Result<(), Finding> {
        self.tally.freed += 1;
        floor.give_bytes(block.size());
        floor.checked.free(block)
    }

    /// A block to free, resize or hand on: half the time the newest, else any.
    fn take_block(&mut self) -> Option<Block> {
        match self.blocks.len() {
            0 => None,
            _ if self.random.below(2) == 0 => self.blocks.pop(),
            count => Some(self.blocks.swap_remove(self.random.below(count))),
        }
    }

    /// Frees everything, what lies in the inbox too.
    fn close<M: Malloc>(mut self, floor: &Floor<'_, M>) -> Result<Worker, Finding> {
        let waiting: Vec<_> = self.inbox.try_iter().flatten().collect();
        let blocks = std::mem::take(&mut self.blocks);
        blocks.into_iter().chain(waiting).try_for_each(|block| self.free(floor, block))?;
        Ok(self)
    }
}

/// Waits for a thread; a panic there goes on here.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl Tally {
    fn plus(self, other: Tally) -> Tally {
        Tally {
            allocated: self.allocated + other.allocated,
            resized: self.resized + other.resized,
            freed: self.freed + other.freed,
            received: self.received + other.received,
            inspected: self.inspected + other.inspected,
            refused: self.refused + other.refused,
            trimmed: self.trimmed + other.trimmed,
            threads: self.threads + other.threads,
        }
    }
}
