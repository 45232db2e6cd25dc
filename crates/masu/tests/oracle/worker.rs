//! The workers: random operations on their own blocks and on received ones.
//!
//! They rely on [`Checked`] for the checks. A worker is not a thread: a thread runs it for a shift and ends, and the
//! next thread continues with all its blocks. A worker's random numbers depend on the seed alone, so one worker repeats
//! exactly; several workers differ only in their interleaving.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::checked::{Block, Checked};
use crate::finding::Finding;
use crate::live::{Budget, join};
use crate::malloc::Malloc;
use crate::plan::{Phase, Plan};
use crate::random::Random;
use crate::sizes::Sizes;

tally! { allocated resized freed received inspected refused trimmed threads }

/// Runs the plan; returns the counts, or the first finding with its phase.
pub(crate) fn run(
    malloc: &dyn Malloc,
    plan: &Plan,
    seed: u64,
) -> Result<Tally, (Finding, &'static str)> {
    let context = Context {
        checked: Checked::new(malloc),
        sizes: Sizes::of(malloc).map_err(|finding| (finding, "the start"))?,
        budget: Budget::new(0, plan.live_bytes),
        stop: AtomicBool::new(false),
    };
    let mut workers = Worker::crew(plan.workers, seed);
    let turns = plan.operations / (plan.phases.len() * plan.workers);
    for phase in plan.phases {
        workers = context
            .run_all(workers, |worker| worker.run_phase(&context, phase, turns))
            .map_err(|finding| (finding, phase.name))?;
        context.checked.trim();
        for worker in &workers {
            let inspect = |block| context.checked.inspect(block);
            worker.blocks.iter().try_for_each(inspect).map_err(|f| (f, "trim"))?;
        }
    }
    let workers = context.run_all(workers, |w| w.close(&context)).map_err(|f| (f, "the end"))?;
    assert!(context.checked.is_empty(), "the oracle lost a block");
    Ok(workers.iter().map(|worker| worker.tally).fold(Tally::default(), Tally::plus))
}

/// The state shared by the workers.
struct Context<'a> {
    checked: Checked<'a>,
    sizes: Sizes,
    budget: Budget,
    stop: AtomicBool,
}

impl Context<'_> {
    /// Runs `work` for all workers at once; returns the workers, or the first finding.
    fn run_all(
        &self,
        workers: Vec<Worker>,
        work: impl Fn(Worker) -> Result<Worker, Finding> + Sync,
    ) -> Result<Vec<Worker>, Finding> {
        let work = |worker| {
            let result = work(worker);
            if result.is_err() {
                // ORDERING: Relaxed: the others only end early.
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
}

/// One worker, its blocks, and its channels to the others.
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

    /// Runs a phase, with a new thread for each shift.
    fn run_phase(
        mut self,
        context: &Context<'_>,
        phase: &Phase,
        turns: usize,
    ) -> Result<Worker, Finding> {
        let mut left = turns;
        while left > 0 {
            let shift = phase.shift.min(left);
            left -= shift;
            self.tally.threads += 1;
            self = thread::scope(|scope| {
                let work = || (0..shift).try_for_each(|_| self.turn(context, phase)).map(|()| self);
                join(scope.spawn(work))
            })?;
            // ORDERING: Relaxed, as at the store.
            if context.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(self)
    }

    fn turn(&mut self, context: &Context<'_>, phase: &Phase) -> Result<(), Finding> {
        match self.random.below(100_000) {
            0 => {
                self.tally.trimmed += 1;
                context.checked.trim();
                Ok(())
            }
            1..=100 => self.request_too_much(context),
            101..=2_000 => self.inspect(context),
            2_001..=14_000 => self.resize(context, phase),
            14_001..=17_000 => self.receive(context),
            _ if self.random.below(phase.hand_on) == 0 => self.hand_on(),
            _ => self.allocate_or_free(context, phase),
        }
    }

    fn request_too_much(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        self.tally.refused += 1;
        let over = (isize::MAX as usize) + 1 + self.random.below(isize::MAX as usize);
        let size = if self.random.below(2) == 0 { (1 << 47) + 1 } else { over };
        let index = self.random.below(self.blocks.len().max(1));
        context.checked.request_too_much(self.blocks.get(index), size)
    }

    fn inspect(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        self.tally.inspected += 1;
        let index = self.random.below(self.blocks.len().max(1));
        self.blocks.get(index).map_or(Ok(()), |block| context.checked.inspect(block))
    }

    /// Resizes a random block: to any size, a little up or down, or by half.
    fn resize(&mut self, context: &Context<'_>, phase: &Phase) -> Result<(), Finding> {
        let Some(block) = self.take_block() else { return Ok(()) };
        let before = block.size();
        let size = match self.random.below(8) {
            0 | 1 => context.sizes.size(&phase.mix, &mut self.random),
            2 => before / 2,
            3 => before + before / 2,
            4 => before.saturating_sub(self.random.below(64)),
            5 => (2 * before).min(64 << 20),
            _ => before + self.random.below(256),
        };
        let size = size.max(block.by_layout().into());
        if !context.budget.take(size) {
            return self.free(context, block);
        }
        self.tally.resized += 1;
        let block = context.checked.resize(block, self.random.bits(), size)?;
        context.budget.give_back(before);
        self.blocks.push(block);
        Ok(())
    }

    /// Receives a batch, and frees half of it.
    fn receive(&mut self, context: &Context<'_>) -> Result<(), Finding> {
        let Ok(batch) = self.inbox.try_recv() else { return Ok(()) };
        self.tally.received += batch.len();
        for block in batch {
            match self.random.below(2) {
                0 => self.free(context, block)?,
                _ => self.blocks.push(block),
            }
        }
        Ok(())
    }

    /// Sends 1 to 64 blocks to a worker, perhaps this one.
    fn hand_on(&mut self) -> Result<(), Finding> {
        let count = 1 + self.random.below(64);
        let batch: Vec<_> = (0..count).map_while(|_| self.take_block()).collect();
        let to = self.random.below(self.outboxes.len());
        self.outboxes[to].send(batch).expect("every worker holds its inbox to the end");
        Ok(())
    }

    fn allocate_or_free(&mut self, context: &Context<'_>, phase: &Phase) -> Result<(), Finding> {
        let allocate_percent = if self.blocks.len() < phase.blocks { 65 } else { 35 };
        if self.random.below(100) < allocate_percent {
            let request = context.sizes.request(&phase.mix, &mut self.random);
            if context.budget.take(request.size) {
                self.tally.allocated += 1;
                let block = context.checked.allocate(self.random.bits(), request)?;
                self.blocks.push(block);
                return Ok(());
            }
        }
        self.take_block().map_or(Ok(()), |block| self.free(context, block))
    }

    fn free(&mut self, context: &Context<'_>, block: Block) -> Result<(), Finding> {
        self.tally.freed += 1;
        context.budget.give_back(block.size());
        context.checked.free(block)
    }

    /// Takes a block to free, resize or send.
    fn take_block(&mut self) -> Option<Block> {
        self.random.take(&mut self.blocks)
    }

    /// Frees all blocks, also those in the inbox.
    fn close(mut self, context: &Context<'_>) -> Result<Worker, Finding> {
        let waiting: Vec<_> = self.inbox.try_iter().flatten().collect();
        let blocks = std::mem::take(&mut self.blocks);
        blocks.into_iter().chain(waiting).try_for_each(|block| self.free(context, block))?;
        Ok(self)
    }
}
