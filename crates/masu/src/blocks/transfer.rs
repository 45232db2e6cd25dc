//! The transfer cache: free blocks of more than 4 KiB on their way from one thread's cache to another's.
//!
//! Relies on shards for what does not fit. A page has few such blocks, so that a block that goes home often empties a page,
//! and the next request makes one: here a block waits for the next thread that needs one of its class. The cache is bounded
//! for each class, and blocks that no thread fetches for a while are flushed, because cached blocks keep pages.
//!
//! Smaller blocks go straight to their pages: those sort them by address, and threads that follow one another's lists read
//! along (`docs/design.md`, section 4).

use core::mem;

use crate::blocks::shard::{self, Pages, sampled};
use crate::blocks::slot;
use crate::memory::class::{Class, LANED_FIRST};
use crate::platform::bounds::Bounded;
use crate::platform::sync::{AtomicBool, Lock, Ordering, Visit};

/// Bytes of blocks kept of each class.
const BYTES_MAX: usize = 64 << 10;
/// The most blocks of a class.
const BLOCKS_MAX: usize = BYTES_MAX / FIRST.size();
/// After so many visits, as many blocks as were there all the time are flushed.
const DECAY_EVERY: u32 = 64;

/// The smallest class that is kept.
pub(crate) const FIRST: Class = Class::of_size((4 << 10) + 1);

/// Free blocks of a class.
struct Tray {
    blocks: [usize; BLOCKS_MAX],
    count: u32,
    /// The fewest blocks since the last decay.
    low_water: u32,
    visits: u32,
    /// Whether to keep nothing, because the class's pages were sparse at the last flush.
    closed: bool,
    /// Blocks ever put in, and ever fetched by caches.
    given: usize,
    fetched: usize,
}

/// The blocks of a class, on cache lines of their own.
#[repr(align(64))]
struct Line {
    tray: Lock<Tray>,
    /// Whether there are any. Written under the lock; a refill reads this first, because most find none, and memory that is
    /// only read costs a small program nothing.
    filled: AtomicBool,
}

static TRANSFER: [Line; LANED_FIRST - FIRST.index()] =
    [const { Line::new() }; LANED_FIRST - FIRST.index()];

/// The line of a class, if it is kept.
fn line(class: Class) -> Option<&'static Line> {
    TRANSFER.get(class.page_index().wrapping_sub(FIRST.index()))
}

/// Where fetched blocks go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Cache,
    Pages,
}

/// A free block from another thread; 0 if there is none. The class is one that is kept.
#[inline(always)]
pub(crate) fn take_one(class: Class) -> usize {
    if slot::are_several() { line(class).map_or(0, |line| line.fetch(Target::Cache)) } else { 0 }
}

/// Gives blocks to other threads, and those that do not fit to the pages. Where the pages turn out to be sparse, the blocks
/// kept here are flushed too. With one thread, empty pages are worth more than blocks here.
pub(crate) fn give(class: Class, blocks: &[usize]) -> Pages {
    if slot::are_several() { give_several(class, blocks) } else { shard::flush(class, blocks) }
}

/// [`give`] where there are several threads.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.several.transfer_give")]
fn give_several(class: Class, blocks: &[usize]) -> Pages {
    // A thread that has not noticed a heap profile may have sampled blocks.
    if sampled::are_sampled(blocks) {
        return shard::flush(class, blocks);
    }
    let Some(line) = line(class) else { return shard::flush(class, blocks) };
    let mut tray = line.tray.lock();
    let kept = tray.take_in(class, blocks);
    let stale = tray.stale();
    line.note(&tray);
    drop(tray);
    if stale > 0 {
        line.flush(class, stale);
    }
    if kept == blocks.len() {
        return Pages::Ordinary;
    }
    let pages = shard::flush(class, blocks.at(..blocks.len() - kept));
    let sparse = pages == Pages::Sparse;
    let was_closed = mem::replace(&mut line.tray.lock().closed, sparse);
    if sparse && !was_closed {
        line.flush(class, u32::MAX);
    }
    pages
}

/// The same for one block.
#[inline(always)]
pub(crate) fn give_one(class: Class, block: usize) -> Pages {
    if slot::are_several() { give_several(class, &[block]) } else { shard::flush_one(class, block) }
}

impl Line {
    const fn new() -> Line {
        let tray = Tray {
            blocks: [0; BLOCKS_MAX],
            count: 0,
            low_water: 0,
            visits: 0,
            closed: false,
            given: 0,
            fetched: 0,
        };
        Line { tray: Lock::new(tray), filled: AtomicBool::new(false) }
    }

    /// Records whether there are blocks. The caller holds the lock around `tray`.
    fn note(&self, tray: &Tray) {
        // ORDERING: Relaxed, as in `fetch`; the lock orders the blocks.
        self.filled.store(tray.count > 0, Ordering::Relaxed);
    }

    /// Takes the block that was put in last; 0 if there is none.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.several.transfer_fetch")]
    fn fetch(&self, target: Target) -> usize {
        // ORDERING: Relaxed: a thread that misses a block given just now takes the longer way.
        if !self.filled.load(Ordering::Relaxed) {
            return 0;
        }
        let mut tray = self.tray.lock();
        let Some(rest) = tray.count.checked_sub(1) else { return 0 };
        let block = *tray.blocks.at(rest as usize);
        tray.count = rest;
        tray.low_water = tray.low_water.min(rest);
        if target == Target::Cache {
            tray.fetched += 1;
        }
        self.note(&tray);
        block
    }

    /// Flushes up to `most` blocks.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.several.transfer_flush")]
    fn flush(&self, class: Class, most: u32) {
        for _ in 0..most {
            let block = self.fetch(Target::Pages);
            if block == 0 {
                break;
            }
            let _ = shard::flush_one(class, block);
        }
    }
}

impl Tray {
    /// Keeps as many of `blocks` as fit, the last ones. Returns how many.
    fn take_in(&mut self, class: Class, blocks: &[usize]) -> usize {
        self.visits += 1;
        if self.closed {
            return 0;
        }
        let most = (BYTES_MAX / class.size()).clamp(2, BLOCKS_MAX);
        let kept = (most - self.count as usize).min(blocks.len());
        for block in blocks.at(blocks.len() - kept..) {
            *self.blocks.at_mut(self.count as usize) = *block;
            self.count += 1;
        }
        self.given += kept;
        kept
    }

    /// After so many visits, how many blocks were there all the time; else 0.
    fn stale(&mut self) -> u32 {
        if self.visits < DECAY_EVERY {
            return 0;
        }
        self.visits = 0;
        let stale = self.low_water;
        self.low_water = self.count - stale;
        stale
    }
}

/// Every class that is kept, with its line.
fn lines() -> impl Iterator<Item = (Class, &'static Line)> {
    Class::all().filter_map(|class| Some((class, line(class)?)))
}

/// Flushes as many blocks as there may be: other threads may put more in at the same time.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.transfer_trim")]
pub(crate) fn trim() {
    lines().for_each(|(class, line)| line.flush(class, BLOCKS_MAX as u32));
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

/// The counts of `class`.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics.transfer_counts")]
pub(crate) fn counts(class: Class) -> Counts {
    line(class).map_or(Counts::default(), |line| {
        let tray = line.tray.lock();
        Counts { kept: tray.count as usize, given: tray.given, fetched: tray.fetched }
    })
}

/// Checks all trays, and shows each block and its size. No other thread uses masu.
#[cfg(debug_assertions)]
pub(crate) fn audit(see: &mut dyn FnMut(usize, usize)) {
    for (class, line) in lines() {
        let tray = line.tray.lock();
        // ORDERING: Relaxed, as in `fetch`.
        assert_eq!(line.filled.load(Ordering::Relaxed), tray.count > 0);
        assert!(tray.low_water <= tray.count, "fewer than the fewest");
        for block in tray.blocks.at(..tray.count as usize) {
            shard::audit::audit_taken(class, *block);
            see(*block, class.size());
        }
    }
}

/// Visits every lock of this module, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    lines().for_each(|(_, line)| visit.see(line.tray.raw()));
}
