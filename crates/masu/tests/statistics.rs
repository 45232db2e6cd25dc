//! Statistics compared with the kernel; the oracle compares them with its live blocks
//! (`oracle/combinations/features.rs`).
//!
//! The test's own memory is the system's. Tests take turns, because they read one process's sums.

#[path = "oracle/random.rs"]
mod random;
#[path = "properties/turn.rs"]
mod turn;

use std::collections::BTreeSet;
use std::sync::{Barrier, Mutex, PoisonError};
use std::{fs, ptr, thread};

use masu::c;
use masu::statistics;
use random::Random;
use turn::{Turn, alone};

/// A block by its address.
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
