//! Random operations of many threads on many heaps and on plain `malloc`, contents checked.
//!
//! Each worker has blocks of its own, each of one of the shared heaps or of none, filled with a byte
//! that follows from its address and turn: a block handed out twice, moved to another heap or cut short
//! loses its contents. Now and then a worker makes a heap of its own, fills it and ends it with
//! everything in it. `MASU_SEED=N` repeats what each worker draws, `MASU_SOAK=1` goes on for long.

use std::alloc::Layout;
use std::env;
use std::ptr::NonNull;
use std::thread;

use masu::{Heap, c};

use crate::{bytes, filled, is_filled, run_all};

const WORKERS: usize = 4;
const HEAPS: usize = 12;
const BLOCKS: usize = 300;

/// SplitMix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * end as u128) >> 64) as usize
    }

    /// A size in which every doubling up to 512 KiB is about as likely, small ones more so.
    fn size(&mut self) -> usize {
        let doublings = if self.below(50) == 0 { 20 } else { 12 };
        let end = 1 << self.below(doublings);
        self.below(end)
    }
}

/// A live block.
struct Held {
    block: NonNull<u8>,
    layout: Layout,
    /// The heap's place; `HEAPS` for plain `malloc`.
    heap: usize,
    fill: u8,
}

impl Held {
    fn check(&self, heaps: &[Heap]) {
        assert!(is_filled(self.block, self.layout.size(), self.fill), "{:?}", self.layout);
        for (place, heap) in heaps.iter().enumerate() {
            assert_eq!(heap.contains(self.block.as_ptr()), place == self.heap);
        }
    }
}

fn allocate(heaps: &[Heap], random: &mut Random) -> Held {
    let (heap, fill, size) = (random.below(HEAPS + 1), random.below(256) as u8, random.size());
    let align = if random.below(10) == 0 { 1 << random.below(16) } else { 16 };
    let layout = Layout::from_size_align(size, align).expect("small");
    let block = match heaps.get(heap) {
        Some(heap) if random.below(4) == 0 => {
            let block = heap.alloc_zeroed(layout).expect("there is memory");
            assert!(is_filled(block, size, 0));
            block
        }
        Some(heap) => heap.alloc(layout).expect("there is memory"),
        None => NonNull::new(c::aligned_alloc(align, size)).expect("there is memory"),
    };
    assert!(block.addr().get().is_multiple_of(align));
    // SAFETY: The block is that long and nobody else's.
    unsafe { block.write_bytes(fill, size) };
    Held { block, layout, heap, fill }
}

fn free(heaps: &[Heap], random: &mut Random, held: Held) {
    held.check(heaps);
    match heaps.get(held.heap) {
        // SAFETY: The block is this heap's, of this layout, and not used any more.
        Some(heap) if random.below(2) == 0 => unsafe { heap.dealloc(held.block, held.layout) },
        // SAFETY: As above.
        _ => unsafe { c::free(held.block.as_ptr()) },
    }
}

fn resize(heaps: &[Heap], random: &mut Random, held: Held) -> Held {
    held.check(heaps);
    let (size, old_size) = (random.size().max(1), held.layout.size());
    let align = held.layout.align();
    let Some(heap) = heaps.get(held.heap).filter(|_| random.below(2) == 0 || align > 16) else {
        // Freed by address from here on: a block that plain `realloc` left where it is may be of another
        // class than its new layout says. An alignment over a page's makes it stay out of the table.
        if align > 16 {
            return held;
        }
        // SAFETY: The block is live, and its old pointer is not used any more.
        let block = unsafe { c::realloc(held.block.as_ptr(), size) };
        let block = NonNull::new(block).expect("there is memory");
        assert!(is_filled(block, size.min(old_size), held.fill));
        // SAFETY: The block is that long.
        unsafe { block.write_bytes(held.fill, size) };
        let held = Held { block, layout: bytes(size), ..held };
        held.check(heaps);
        // SAFETY: The block is live and not used any more.
        unsafe { c::free(held.block.as_ptr()) };
        return allocate(heaps, random);
    };
    // SAFETY: The block is this heap's, of this layout, and its old pointer is not used any more.
    let block = unsafe { heap.realloc(held.block, held.layout, size) }.expect("there is memory");
    assert!(is_filled(block, size.min(old_size), held.fill));
    // SAFETY: The block is that long.
    unsafe { block.write_bytes(held.fill, size) };
    Held { block, layout: Layout::from_size_align(size, align).expect("small"), ..held }
}

/// Makes a heap, fills it, and ends it with everything in it.
fn live_and_die(random: &mut Random) {
    let heap = Heap::new();
    let count = random.below(200);
    let blocks: Vec<_> =
        (0..count).map(|_| random.size()).map(|n| (filled(&heap, n, 1), n)).collect();
    assert!(blocks.iter().all(|(block, size)| is_filled(*block, *size, 1)));
    assert_eq!(heap.statistics().live_blocks, count);
}

fn work(heaps: &[Heap], random: &mut Random, turns: usize) {
    let mut blocks = Vec::new();
    for _ in 0..turns {
        let place = random.below(BLOCKS);
        match random.below(1_000) {
            0 => live_and_die(random),
            1 => drop(c::trim(0)),
            2..=200 if place < blocks.len() => {
                let held = blocks.swap_remove(place);
                blocks.push(resize(heaps, random, held));
            }
            _ if place < blocks.len() => {
                let held = blocks.swap_remove(place);
                free(heaps, random, held);
            }
            _ => blocks.push(allocate(heaps, random)),
        }
    }
    blocks.into_iter().for_each(|held| free(heaps, random, held));
}

#[test]
fn random_operations_of_many_threads_on_many_heaps_find_every_promise_kept() {
    let seed = env::var("MASU_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
    let soak = env::var_os("MASU_SOAK").is_some();
    let turns = if soak { 5_000_000 } else { 60_000 };
    let heaps: Vec<_> = (0..HEAPS).map(|_| Heap::new()).collect();
    for shift in 0..2 {
        thread::scope(|scope| {
            let heaps = &heaps;
            let worker = |worker| {
                let mut random = Random(seed * 1_000 + shift * 10 + worker);
                move || work(heaps, &mut random, turns)
            };
            run_all(scope, (0..WORKERS as u64).map(worker));
        });
        for heap in &heaps {
            assert_eq!(heap.statistics().live_blocks, 0, "seed {seed}");
            assert_eq!(heap.statistics().live_bytes, 0, "seed {seed}");
        }
    }
}
