//! Statistics compared with an oracle that counts live blocks by size, and with the kernel.
//!
//! The test's own memory is the system's. Blocks that grew to 64 KiB look like blocks of the class of that size, so
//! these two are compared together; every other class is compared alone. Tests take turns, because they read one
//! process's sums.

#[path = "oracle/random.rs"]
mod random;
#[path = "properties/turn.rs"]
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Barrier, Mutex, PoisonError, mpsc};
use std::{fs, panic, ptr, thread};

use masu::c;
use masu::statistics::{self, ClassStatistics, Statistics, ThreadStatistics};
use random::Random;
use turn::{Turn, alone};

const THREADS: usize = 4;
/// The usable size from which a block may be a large one.
const MAYBE_LARGE: usize = 64 << 10;

/// A block by its address, so that it can go to another thread.
#[derive(Clone, Copy)]
struct Block(usize);

impl Block {
    fn of(block: *mut u8) -> Block {
        assert!(!block.is_null(), "there is memory");
        let address = block.expose_provenance();
        ARENAS.lock().unwrap_or_else(PoisonError::into_inner).insert(address / ARENA_BYTES);
        Block(address)
    }

    fn pointer(self) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.0)
    }

    fn usable(self) -> usize {
        // SAFETY: The block is live.
        unsafe { c::usable_size(self.pointer()) }
    }

    fn free(self) {
        // SAFETY: The block is live, and no thread keeps a copy of this value.
        unsafe { c::free(self.pointer()) };
    }

    fn resized(self, size: usize) -> Block {
        // SAFETY: As above.
        Block::of(unsafe { c::realloc(self.pointer(), size) })
    }
}

/// Arenas that ever held a block: multiples of 1 GiB.
static ARENAS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
const ARENA_BYTES: usize = 1 << 30;

/// A size, usually small.
fn size(random: &mut Random) -> usize {
    let most = [64, 64, 300, 300, 1024, 1024, 5_000, 40_000, 100_000, 400_000][random.below(10)];
    1 + random.below(most)
}

/// This test's turn, without huge pages: they make untouched memory resident, and the advice of one test would stay for
/// the next.
fn alone_in_small_pages() -> Turn {
    let turn = alone();
    masu::options::set("huge_pages", Some(0)).expect("an option");
    turn
}

/// One thread's work: it allocates, resizes, frees, and sends blocks to its neighbor.
fn work(
    live: &mut Vec<Block>,
    random: &mut Random,
    neighbor: &mpsc::Sender<Block>,
    own: &mpsc::Receiver<Block>,
) {
    for _ in 0..3_000 {
        let size = size(random);
        match random.below(10) {
            0..=3 => live.push(Block::of(c::malloc(size))),
            4 => live.push(Block::of(c::calloc(1, size))),
            5 => live.push(Block::of(c::aligned_alloc(16 << random.below(9), size))),
            6 if !live.is_empty() => {
                let place = random.below(live.len());
                live[place] = live[place].resized(size);
            }
            7 if !live.is_empty() => {
                let block = live.swap_remove(random.below(live.len()));
                neighbor.send(block).expect("the neighbor listens to the end");
            }
            _ if !live.is_empty() => live.swap_remove(random.below(live.len())).free(),
            _ => {}
        }
        // Half of the received blocks are freed here, remotely.
        if let Ok(block) = own.try_recv() {
            if random.below(2) == 0 { block.free() } else { live.push(block) }
        }
    }
}

/// Live blocks by usable size, as the threads hold them.
type Oracle = BTreeMap<usize, usize>;

/// Compares the statistics with the live blocks, while no thread allocates.
fn compare(oracle: &Oracle, round: usize) {
    let now = statistics::now();
    let classes: Vec<ClassStatistics> = statistics::classes().collect();
    assert_eq!(classes.len(), statistics::CLASSES);
    // In the hardened build the usable size is the requested size, not the class's size.
    let is_hardened = cfg!(feature = "secure");
    for class in classes.iter().filter(|class| class.size < MAYBE_LARGE && !is_hardened) {
        let live = oracle.get(&class.size).copied().unwrap_or_default();
        assert_eq!(class.live_blocks, live, "round {round}, class {class:?}");
    }
    let blocks: usize = classes.iter().map(|class| class.live_blocks).sum();
    assert_eq!(blocks + now.large_blocks, oracle.values().sum(), "round {round}: {now:?}");
    let in_classes: usize = classes.iter().map(ClassStatistics::live_bytes).sum();
    let bytes: usize = oracle.iter().map(|(size, count)| size * count).sum();
    assert_eq!(in_classes + now.large_bytes, bytes, "round {round}: {now:?}");
    assert_eq!(now.live_bytes, bytes, "round {round}: {now:?}");
    let big: usize = oracle.range(MAYBE_LARGE..).map(|(_, count)| count).sum();
    let last_class = classes.last().expect("the class of 64 KiB");
    assert!(
        now.large_blocks + last_class.live_blocks == big || is_hardened,
        "round {round}: {now:?}"
    );
    for class in &classes {
        let ClassStatistics { size, page_bytes, tail_bytes, pages, .. } = *class;
        let blocks = class.live_blocks
            + class.thread_cached_blocks
            + class.transfer_blocks
            + class.free_blocks;
        assert_eq!(blocks * size + tail_bytes, pages * page_bytes, "round {round}: {class:?}");
        let out = class.taken_blocks - class.returned_blocks;
        assert_eq!(out, blocks - class.free_blocks, "round {round}: {class:?}");
        assert!(class.transfer_out_blocks <= class.transfer_in_blocks, "{class:?}");
    }
    compare_sums(&now, &classes);
}

/// Compares sums over classes and over threads with the whole.
fn compare_sums(now: &Statistics, classes: &[ClassStatistics]) {
    let threads: Vec<ThreadStatistics> = statistics::threads().collect();
    let over_classes = |of: fn(&ClassStatistics) -> usize| classes.iter().map(of).sum::<usize>();
    let over_threads = |of: fn(&ThreadStatistics) -> usize| threads.iter().map(of).sum::<usize>();
    assert_eq!(over_classes(ClassStatistics::cached_bytes), now.cached_bytes);
    assert_eq!(over_classes(|class| class.thread_cached_blocks), over_threads(|t| t.cached_blocks));
    assert_eq!(over_threads(|thread| thread.cached_bytes), now.thread_cached_bytes);
    assert_eq!(over_threads(|thread| thread.refilled_blocks), now.refilled_blocks);
    assert_eq!(over_threads(|thread| thread.lane_blocks), now.lane_blocks);
    assert_eq!(over_threads(|thread| thread.shard_blocks), now.shard_blocks);
    assert_eq!(threads.len(), now.threads + now.idle_caches);
    // Live runs are pages, large blocks, parked blocks, and the allocator's own.
    let in_pages = over_classes(|class| class.pages * class.page_bytes);
    let runs = in_pages + now.large_bytes + over_threads(|thread| thread.parked_bytes);
    // In the hardened build, runs are also guards and the quarantine.
    let all_runs = now.live_bytes + now.free_bytes - now.kept_bytes;
    assert!(runs == all_runs || cfg!(feature = "secure"), "{runs}, {all_runs}: {now:?}");
}

#[test]
fn every_class_agrees_with_an_oracle() {
    let _turn = alone_in_small_pages();
    let start = statistics::now();
    assert_eq!(start.live_bytes, 0, "only this test allocates here");
    let oracle = Mutex::new(Oracle::new());
    let barrier = Barrier::new(THREADS + 1);
    let mut failed = None;
    let rounds = if std::env::var_os("MASU_SOAK").is_some() { 40 } else { 5 };
    thread::scope(|scope| {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
        let threads = receivers.into_iter().enumerate().map(|(number, own)| {
            let neighbor = senders[(number + 1) % THREADS].clone();
            let (oracle, barrier) = (&oracle, &barrier);
            scope.spawn(move || {
                let (mut live, mut random) = (Vec::new(), Random::new(number as u64 + 1));
                for _ in 0..rounds {
                    work(&mut live, &mut random, &neighbor, &own);
                    barrier.wait();
                    live.extend(own.try_iter());
                    let mut oracle = oracle.lock().unwrap_or_else(PoisonError::into_inner);
                    live.iter().for_each(|block| *oracle.entry(block.usable()).or_default() += 1);
                    drop(oracle);
                    barrier.wait();
                    barrier.wait();
                }
                live.into_iter().for_each(Block::free);
            })
        });
        let threads: Vec<_> = threads.collect();
        for round in 0..rounds {
            barrier.wait();
            barrier.wait();
            let mut counted = oracle.lock().unwrap_or_else(PoisonError::into_inner);
            // The others wait at the barrier, so a failure is kept until they are done.
            let compared = panic::catch_unwind(|| compare(&counted, round));
            failed = failed.take().or(compared.err());
            counted.clear();
            drop(counted);
            barrier.wait();
        }
        // A join waits for the flush of the thread's cache; the end of the scope does not.
        threads.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
    });
    if let Some(failed) = failed {
        panic::resume_unwind(failed);
    }
    compare(&Oracle::new(), rounds);
    let now = statistics::now();
    // On one CPU there is one shard, and no block is another shard's.
    let between = now.shard_blocks + now.lane_blocks - start.shard_blocks - start.lane_blocks;
    let has_others = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    assert!(between > 0 || !has_others, "{now:?}");
    let has_caches = !cfg!(feature = "secure");
    assert!(now.large_made > 0, "{now:?}");
    assert_eq!((now.flushed_blocks > 0, now.slow_calls > 0), (has_caches, has_caches), "{now:?}");
}

/// Bytes of the mappings in these arenas: of the writable mappings, and of the resident memory.
fn mapped(arenas: &BTreeSet<usize>) -> (usize, usize) {
    let smaps = fs::read_to_string("/proc/self/smaps").expect("/proc is there");
    let (mut committed, mut resident, mut inside, mut writable) = (0, 0, false, false);
    for line in smaps.lines() {
        let (name, value) = line.split_once(' ').expect("a name and a value");
        if let Some((start, _)) = name.split_once('-') {
            let start = usize::from_str_radix(start, 16).expect("an address");
            inside = arenas.contains(&(start / ARENA_BYTES));
            writable = value.starts_with("rw");
            continue;
        }
        let bytes = value.trim().strip_suffix(" kB").and_then(|value| value.parse::<usize>().ok());
        match (name, bytes) {
            ("Size:", Some(kilobytes)) if inside && writable => committed += kilobytes << 10,
            ("Rss:", Some(kilobytes)) if inside => resident += kilobytes << 10,
            _ => {}
        }
    }
    (committed, resident)
}

/// The most bytes of an arena's head: its slices' records and bitmaps.
const HEAD_BYTES: usize = 9 << 20;

#[test]
fn the_kernel_agrees_on_what_is_committed_and_resident() {
    let _turn = alone_in_small_pages();
    let mut random = Random::new(9);
    let mut blocks: Vec<Block> = Vec::new();
    for share in [1, 2, 8, 64] {
        // Memory grows to 200 MB, then shrinks to a part of it, in random order.
        while statistics::now().live_bytes < 200_000_000 {
            for _ in 0..1_000 {
                let block = Block::of(c::malloc(size(&mut random)));
                // SAFETY: The block is that long and the test's own.
                unsafe { block.pointer().write_bytes(1, block.usable()) };
                blocks.push(block);
            }
        }
        for _ in 0..blocks.len() - blocks.len() / share {
            blocks.swap_remove(random.below(blocks.len())).free();
        }
        let arenas = ARENAS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = statistics::now();
        let (committed, resident) = mapped(&arenas);
        // Guards and the quarantine are inaccessible, and count.
        let is_committed = match cfg!(feature = "secure") {
            true => now.committed_bytes >= committed,
            false => now.committed_bytes == committed,
        };
        assert!(is_committed, "share {share}: {committed}, {now:?}");
        // Every live byte was written, so it is resident. Besides live bytes, only free memory, metadata and the heads
        // of arenas may be resident.
        let most = now.live_bytes + now.free_bytes + now.metadata_bytes;
        assert!(resident >= now.live_bytes, "share {share}: {resident} resident, {now:?}");
        assert!(
            resident <= most + HEAD_BYTES * arenas.len(),
            "share {share}: {resident} resident, {now:?}"
        );
    }
    blocks.into_iter().for_each(Block::free);
    // In the hardened build a large block is purged by its own `free`, which counts none.
    let has_purges = !cfg!(feature = "secure");
    assert!(!has_purges || statistics::now().purged_bytes > 100_000_000, "most of it is purged");
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn an_ended_thread_leaves_an_idle_cache_with_its_counts() {
    let _turn = alone_in_small_pages();
    let before = statistics::now();
    thread::spawn(|| (0..1_000).map(|_| Block::of(c::malloc(48))).for_each(Block::free))
        .join()
        .expect("nothing panicked there");
    let now = statistics::now();
    assert!(now.idle_caches > 0 && now.refills > before.refills, "{now:?}");
    assert!(statistics::threads().any(|thread| thread.state == 0 && thread.refills > 0));
}

#[test]
fn json_has_every_number_and_balanced_brackets() {
    let _turn = alone_in_small_pages();
    let block = Block::of(c::malloc(100));
    let mut text = Vec::new();
    statistics::json(&mut |piece| text.extend_from_slice(piece));
    block.free();
    let text = String::from_utf8(text).expect("JSON is UTF-8");
    let start = r#"{"schema":"masu-statistics","version":1,"total":{"live_bytes":"#;
    assert!(text.starts_with(start), "{text}");
    for name in ["\"size\":112,\"live_blocks\":1,", "\"huge_page_bytes\":", "\"shard_blocks\":"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    for (opening, closing) in [('{', '}'), ('[', ']')] {
        let count = |bracket| text.chars().filter(|c| *c == bracket).count();
        assert_eq!(count(opening), count(closing), "{text}");
    }
    assert!(!text.contains(",,") && !text.contains("[,") && !text.contains(",]"), "{text}");
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_child_counts_no_thread_that_fork_left_behind() {
    let _turn = alone();
    let (begun, is_over) = (Barrier::new(2), Barrier::new(2));
    let status = thread::scope(|scope| {
        scope.spawn(|| {
            Block::of(c::malloc(100)).free();
            begun.wait();
            is_over.wait();
        });
        begun.wait();
        Block::of(c::malloc(100)).free();
        // SAFETY: The child uses masu alone, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let others = statistics::threads().filter(|thread| thread.state == 2).count();
            let is_alone = statistics::now().threads == 1 && others >= 1;
            // SAFETY: It ends the child and nothing else.
            unsafe { libc::_exit(i32::from(!is_alone)) };
        }
        is_over.wait();
        let mut status = -1;
        // SAFETY: The status is this function's.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status
    });
    assert_eq!(status, 0);
}
