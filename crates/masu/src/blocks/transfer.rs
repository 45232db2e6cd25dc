//! The transfer cache: free blocks on their way from one thread's cache to another's, as arrays.
//!
//! Relies on shards for what does not fit, and on metadata for the arrays. Where one thread allocates and another frees,
//! blocks would otherwise pass through the pages' bitmaps one by one; here a batch is copied in and copied out. The cache is
//! bounded for each class, and blocks that no thread fetches for a while are flushed, because cached blocks keep pages.

use core::mem;

use crate::blocks::ownership::Shard;
use crate::blocks::shard::{self, Pages, sampled};
use crate::blocks::slot;
use crate::memory::class::{CODES, Class};
use crate::memory::metadata;
use crate::platform::bounds::Bounded;
use crate::platform::sync::{AtomicBool, Lock, Ordering, Visit};
use crate::settings;

/// Bytes of blocks kept of each class, and at most so many blocks.
const BYTES_MAX: usize = 64 << 10;
const BLOCKS_MAX: usize = 2048;
/// After so many visits, blocks that were there all the time are flushed.
const DECAY_EVERY: u32 = 64;
/// Blocks flushed at a time.
const FLUSH_MAX: usize = 256;

/// Free blocks under one code.
struct Batch {
    /// Room for `capacity` blocks; none until the first use.
    blocks: Option<&'static mut [usize]>,
    count: u32,
    /// The fewest blocks since the last decay.
    low_water: u32,
    visits: u32,
    /// Blocks ever put in, and ever fetched by caches.
    given: usize,
    fetched: usize,
    /// Whether to keep nothing, because the class's pages were sparse at the last flush.
    closed: bool,
}

/// The blocks under one code, on a cache line of their own.
#[repr(align(64))]
struct Line {
    batch: Lock<Batch>,
    /// Whether there are any. Written under the lock; a refill reads this first, because most find none, and memory that is
    /// only read costs a small program nothing.
    filled: AtomicBool,
}

const _: () = assert!(size_of::<Line>() == 64, "no longer than its line");

/// By code in the class map, so that blocks of laned classes stay in their lane.
static TRANSFER: [Line; CODES] = [const { Line::new() }; CODES];

/// Blocks of at least this size are kept only if there are several threads: for one thread, empty pages are worth more.
const SHARED_ONLY: usize = 4 << 10;

/// Whether blocks of this class are kept at all.
fn keeps(class: Class) -> bool {
    class.size() < SHARED_ONLY || slot::are_several()
}

fn line(code: u8) -> &'static Line {
    TRANSFER.at(usize::from(code))
}

fn batch(code: u8) -> &'static Lock<Batch> {
    &line(code).batch
}

/// Where fetched blocks go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Cache,
    Pages,
}

/// Takes up to `blocks.len()` blocks into the end of `blocks`; returns how many.
#[inline(always)]
fn fetch(code: u8, blocks: &mut [usize], target: Target) -> usize {
    let line = line(code);
    // ORDERING: Relaxed: a thread that misses a batch given just now takes the longer way.
    if !line.filled.load(Ordering::Relaxed) {
        return 0;
    }
    let mut batch = line.batch.lock();
    let count = batch.count as usize;
    let taken = count.min(blocks.len());
    let (rest, end) = (count - taken, blocks.len() - taken);
    if let Some(kept) = &batch.blocks {
        blocks.at_mut(end..).copy_from(kept.at(rest..rest + taken));
    }
    batch.count = rest as u32;
    batch.low_water = batch.low_water.min(rest as u32);
    if target == Target::Cache {
        batch.fetched += taken;
    }
    line.note(&batch);
    taken
}

/// Takes up to `blocks.len()` free blocks into the *end* of `blocks`, from other threads or from pages. Returns how many; 0
/// only without memory.
pub(crate) fn refill(class: Class, shard: Shard, blocks: &mut [usize]) -> usize {
    if !keeps(class) {
        return shard.refill(class, blocks);
    }
    match fetch(class.code_in(shard.0), blocks, Target::Cache) {
        0 => shard.refill(class, blocks),
        taken => taken,
    }
}

/// The same for one block of a class of at least [`SHARED_ONLY`] bytes; 0 without memory.
#[inline(always)]
pub(crate) fn refill_one(class: Class, shard: Shard) -> usize {
    if !slot::are_several() && settings::shuffle().is_none() {
        return shard.refill_one(class);
    }
    let mut block = [0];
    refill(class, shard, &mut block);
    block[0]
}

/// Gives blocks to other threads, and those that do not fit to the pages. Where the pages turn out to be sparse, the blocks
/// kept here are flushed too. Blocks of a laned class are all of the lane of `shard`.
pub(crate) fn give(class: Class, shard: Shard, blocks: &[usize]) -> Pages {
    // A thread that has not noticed a heap profile may have sampled blocks.
    if !keeps(class) || sampled::are_sampled(blocks) {
        return shard::flush(class, blocks);
    }
    let code = class.code_in(shard.0);
    let mut batch = line(code).batch.lock();
    let kept = batch.take_in(class, blocks);
    let decays = batch.visits >= DECAY_EVERY;
    line(code).note(&batch);
    drop(batch);
    if decays {
        decay(code, class);
    }
    if kept == blocks.len() {
        return Pages::Ordinary;
    }
    let left = blocks.len() - kept;
    let pages = shard::flush(class, &blocks[..left]);
    let sparse = pages == Pages::Sparse;
    let was_closed = mem::replace(&mut line(code).batch.lock().closed, sparse);
    if sparse && !was_closed {
        flush_batch(code, class);
    }
    pages
}

/// The same for one block of a class of at least [`SHARED_ONLY`] bytes.
#[inline(always)]
pub(crate) fn give_one(class: Class, shard: Shard, block: usize) -> Pages {
    if slot::are_several() { give(class, shard, &[block]) } else { shard::flush_one(class, block) }
}

impl Line {
    const fn new() -> Line {
        Line { batch: Lock::new(Batch::new()), filled: AtomicBool::new(false) }
    }

    /// Records whether there are blocks. The caller holds the lock around `batch`.
    fn note(&self, batch: &Batch) {
        // ORDERING: Relaxed, as in `fetch`; the lock orders the blocks.
        self.filled.store(batch.count > 0, Ordering::Relaxed);
    }
}

impl Batch {
    const fn new() -> Batch {
        Batch {
            blocks: None,
            count: 0,
            low_water: 0,
            visits: 0,
            given: 0,
            fetched: 0,
            closed: false,
        }
    }

    /// Keeps as many of `blocks` as fit, the last ones. Returns how many.
    fn take_in(&mut self, class: Class, blocks: &[usize]) -> usize {
        self.visits += 1;
        if self.closed {
            return 0;
        }
        if self.blocks.is_none() {
            let capacity = (BYTES_MAX / class.size()).clamp(2, BLOCKS_MAX);
            self.blocks = metadata::words(capacity).map(|words| words.at_mut(..capacity));
        }
        let Some(kept) = &mut self.blocks else { return 0 };
        let count = self.count as usize;
        let most = settings::transfer_size().map_or(usize::MAX, |bytes| bytes / class.size());
        let taken = most.min(kept.len()).saturating_sub(count).min(blocks.len());
        // The option `transfer_size` may have become less than what is here.
        debug_assert!(count + taken <= kept.len(), "an array's length holds");
        kept.at_mut(count..).copy_from(blocks.at(blocks.len() - taken..));
        self.count += taken as u32;
        self.given += taken;
        taken
    }

    /// Moves what nobody fetched since the last time into `stale`; returns how many.
    fn decay(&mut self, stale: &mut [usize; FLUSH_MAX]) -> usize {
        self.visits = 0;
        let count = (self.low_water as usize).min(FLUSH_MAX);
        if let Some(kept) = &mut self.blocks {
            stale.copy_from(kept.at(..count));
            kept.at_mut(..self.count as usize).move_to_start(count);
        }
        self.count -= count as u32;
        self.low_water = self.count;
        count
    }
}

/// Every code of blocks, with its class.
fn codes() -> impl Iterator<Item = (u8, Class)> {
    (0..CODES as u8).filter_map(|code| Some((code, Class::from_code(code)?)))
}

/// Flushes all blocks.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.transfer_trim")]
pub(crate) fn trim() {
    codes().for_each(|(code, class)| flush_batch(code, class));
}

/// Flushes blocks that no thread fetched for a while. A call of its own, so that others have no array to clear.
#[cold]
#[inline(never)]
fn decay(code: u8, class: Class) {
    let mut stale = [0; FLUSH_MAX];
    let mut batch = batch(code).lock();
    let count = batch.decay(&mut stale);
    line(code).note(&batch);
    drop(batch);
    let _ = shard::flush(class, stale.at(..count));
}

/// Flushes all blocks under a code.
#[cold]
#[inline(never)]
fn flush_batch(code: u8, class: Class) {
    let mut blocks = [0; FLUSH_MAX];
    loop {
        let taken = fetch(code, &mut blocks, Target::Pages);
        if taken == 0 {
            break;
        }
        let _ = shard::flush(class, blocks.at(FLUSH_MAX - taken..));
    }
}

/// The counts of a class.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Blocks kept now.
    pub(crate) kept: usize,
    /// Blocks ever put in, and those that caches fetched.
    pub(crate) given: usize,
    pub(crate) fetched: usize,
}

/// The counts of `class`, of all lanes.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics.transfer_counts")]
pub(crate) fn counts(class: Class) -> Counts {
    let of_class = codes().filter(|(_, other)| other.page_index() == class.page_index());
    of_class.fold(Counts::default(), |sum, (code, _)| {
        let batch = batch(code).lock();
        Counts {
            kept: sum.kept + batch.count as usize,
            given: sum.given.wrapping_add(batch.given),
            fetched: sum.fetched.wrapping_add(batch.fetched),
        }
    })
}

/// Visits every lock of this module, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    codes().for_each(|(code, _)| visit.see(batch(code).raw()));
}
