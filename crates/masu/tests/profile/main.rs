//! The heap profile of a Rust program whose allocator is masu: its figures are right, its file is valid.
//!
//! It relies on `message.rs` to read the file. A process takes one profile at a time, so each test holds a lock. The
//! hard idea: other threads of the test harness allocate too, so tests compare changes, and sums far greater than those
//! of the harness. `tests/oracle/combinations.rs` checks blocks while profiles start and stop.

#[path = "../../src/platform/alone.rs"]
mod alone;
mod message;
mod unnoticed;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CString;
use std::fs;
use std::hint::black_box;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use masu::profile::{self, Refusal};
use message::{Message, Values};

#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

/// The right to take profiles; dropping it stops the current one.
struct Taken(#[expect(dead_code, reason = "held until dropped")] MutexGuard<'static, ()>);

impl Taken {
    fn turn() -> Taken {
        static ONE: Mutex<()> = Mutex::new(());
        Taken(ONE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start(interval_bytes: usize) -> Taken {
        let turn = Taken::turn();
        profile::start(Some(interval_bytes)).expect("none is taken");
        turn
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        profile::stop();
    }
}

fn new_path() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("profile-{}-{number}.pb", std::process::id());
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn written() -> Message {
    let path = new_path();
    let name = CString::new(path.to_str().expect("a plain path")).expect("no zero in it");
    profile::write(&name).expect("written");
    let bytes = fs::read(&path).expect("the file is there");
    fs::remove_file(&path).expect("the folder is writable");
    Message::read(&bytes)
}

fn now() -> Values {
    written().sum()
}

fn is_close(estimate: i64, truth: i64, share: f64) -> bool {
    (estimate - truth).abs() as f64 <= truth as f64 * share
}

#[test]
fn blocks_freed_at_once_are_counted_as_often_as_they_were_allocated() {
    let _taken = Taken::start(64 << 10);
    for _ in 0..1_000_000 {
        drop(black_box(Box::new([0_u8; 1024])));
    }
    let sum = now();
    // 15,625 samples: the standard deviation is 0.8 %, and the test allows five of them.
    assert!(is_close(sum.allocated_bytes, 1_024_000_000, 0.04), "{sum:?}");
    assert!(is_close(sum.allocated_blocks, 1_000_000, 0.04), "{sum:?}");
    assert!(sum.live_bytes < 4 << 20, "{sum:?}");
}

/// A request is sampled by its requested bytes, however much longer its block is.
#[test]
fn requests_of_every_size_are_estimated_by_their_bytes() {
    const BYTES: usize = 16 << 20;
    let _taken = Taken::start(2 << 10);
    for size in [17, 33, 100, 577, 1_000, 1_030] {
        let before = now();
        let mut kept = Vec::new();
        for count in 0..BYTES / size {
            let block = black_box(Vec::<u8>::with_capacity(size));
            // Half of the blocks are freed in batches, half one at a time.
            if count % 1_000 < 500 {
                kept.push(block);
            } else {
                kept.clear();
            }
        }
        drop(kept);
        let allocated = now().allocated_bytes - before.allocated_bytes;
        // 8,192 samples: the standard deviation is 1.1 %, and the test allows five of them; the list itself grows a
        // little.
        assert!(is_close(allocated, BYTES as i64, 0.06), "{size}: {allocated}");
    }
}

#[test]
fn live_blocks_are_estimated_until_another_thread_frees_them() {
    let _taken = Taken::start(4 << 10);
    let blocks: Vec<Box<[u8]>> = (0..20_000).map(|_| vec![1; 1000].into_boxed_slice()).collect();
    let sum = now();
    // 4,883 samples: the standard deviation is 1.6 %, and the test allows five of them; other live blocks are few.
    assert!(is_close(sum.live_bytes, 20_000_000, 0.08 + 0.05), "{sum:?}");
    thread::spawn(move || drop(blocks)).join().expect("frees");
    let sum = now();
    assert!(sum.live_bytes < 2 << 20, "{sum:?}");
    assert!(sum.allocated_bytes > 18_000_000, "{sum:?}");
}

/// Frees by layout do not read the block, so the last freed blocks are only in the thread's stacks, which the profile
/// reads.
#[test]
fn blocks_cached_by_a_running_thread_are_not_live() {
    let _taken = Taken::start(1);
    let before = now();
    // As many blocks of each class as a thread may free without a slow path: 8 KiB, or 127 blocks.
    let steps = |count: usize, step: usize| (17 - count..=16).map(move |n| n * step);
    let sizes = steps(16, 16).chain(steps(8, 32)).chain(steps(8, 64));
    let count_of = |size: usize| (8192 / size).min(127);
    let blocks: Vec<Vec<u8>> = sizes
        .flat_map(|size| (0..count_of(size)).map(move |_| black_box(Vec::with_capacity(size))))
        .collect();
    let live = now().live_bytes - before.live_bytes;
    assert!(live > 200_000, "{live}");
    let (freed, is_freed) = mpsc::channel();
    let (ends, may_end) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        // Makes the thread's cache.
        drop(black_box(Box::new(1)));
        drop(blocks);
        freed.send(()).expect("the test waits");
        may_end.recv().expect("the test sends");
    });
    is_freed.recv().expect("it frees");
    let live = now().live_bytes - before.live_bytes;
    // The harness and the thread itself have some live blocks.
    assert!(live < 120_000, "{live}");
    ends.send(()).expect("it waits");
    thread.join().expect("it ends");
}

#[test]
fn figures_are_exact_when_every_byte_is_sampled() {
    let _taken = Taken::start(1);
    let before = now();
    let small: Vec<Box<[u64; 25]>> = (0..1_000).map(|n| Box::new([n; 25])).collect();
    let large = vec![0_u8; 3 << 20];
    let mut grown: Vec<u8> = Vec::with_capacity(100 << 10);
    let start = grown.as_ptr();
    grown.reserve_exact(10 << 20);
    let after = now();
    let bytes = 1_000 * 200 + 1_000 * 8 + (3 << 20) + (10 << 20);
    let live = after.live_bytes - before.live_bytes;
    // The harness may print in between; a block that grew in place counts in whole slices.
    assert!((live - bytes).abs() < 100_000, "{live}, {bytes}, moved: {}", start != grown.as_ptr());
    assert!(small.iter().enumerate().all(|(n, block)| block[24] == n as u64));
    drop((small, large, grown));
    let freed = now().live_bytes - before.live_bytes;
    assert!(freed.abs() < 100_000, "{freed}");
}

/// A block that was in an earlier profile is not known to this one, until it grows.
#[test]
fn a_block_of_an_earlier_profile_is_in_the_next_one_once_it_grows() {
    const BYTES: usize = 8 << 20;
    let _taken = Taken::start(1);
    let mut block: Vec<u8> = Vec::with_capacity(BYTES);
    // It grows in place, into the memory of another one that is freed.
    let behind: Vec<u8> = Vec::with_capacity(3 * BYTES);
    profile::stop();
    profile::start(Some(1)).expect("none is taken");
    let before = now();
    drop(black_box(behind));
    block.reserve_exact(2 * BYTES);
    let live = now().live_bytes - before.live_bytes;
    assert!(is_close(live, 2 * BYTES as i64, 0.02), "{live}");
}

/// C's `realloc` leaves a block where it is that has room.
#[test]
fn a_small_block_that_grows_in_place_counts_with_its_new_size() {
    let _taken = Taken::start(1);
    let before = now();
    let blocks: Vec<_> = (0..5_000).map(|_| masu::c::malloc(1025)).collect();
    let sizes = blocks.iter().map(|block| {
        // SAFETY: The block is live, and stays where it is.
        unsafe {
            let size = masu::c::usable_size(*block);
            assert_eq!(masu::c::realloc(*block, size), *block);
            size as i64
        }
    });
    let bytes: i64 = sizes.sum();
    let live = now().live_bytes - before.live_bytes;
    assert!(is_close(live, bytes, 0.03), "{live}, {bytes}");
    // SAFETY: Nothing uses the blocks any more.
    blocks.into_iter().for_each(|block| unsafe { masu::c::free(block) });
}

/// Rust's `realloc` leaves a block where it is that stays in its class.
#[test]
fn a_block_that_stays_in_its_class_counts_with_its_new_size() {
    const COUNT: usize = 5_000;
    let _taken = Taken::start(1);
    for (small, large) in [(65, 80), (1025, 1152)] {
        for (old, new) in [(small, large), (large, small)] {
            let of = |size| Layout::from_size_align(size, 1).expect("valid");
            let before = now();
            // SAFETY: The layout is not empty; the block is resized as it was allocated.
            let blocks = (0..COUNT).map(|_| unsafe {
                let block = black_box(GLOBAL.alloc(of(old)));
                let resized = GLOBAL.realloc(block, of(old), new);
                assert!(resized == block || cfg!(feature = "secure"), "it moved");
                resized
            });
            let blocks: Vec<_> = blocks.collect();
            let live = now().live_bytes - before.live_bytes;
            let bytes = COUNT * (new + size_of::<usize>());
            assert!(is_close(live, bytes as i64, 0.05), "{old}, {new}: {live}, {bytes}");
            // SAFETY: Nothing uses the blocks any more.
            blocks.into_iter().for_each(|block| unsafe { GLOBAL.dealloc(block, of(new)) });
        }
    }
}

/// A heap ends without freeing its blocks one by one, so its blocks must not be in a profile.
#[test]
fn growing_blocks_of_heaps_are_in_no_profile() {
    let _taken = Taken::start(1);
    let before = now();
    let heap = masu::Heap::new();
    let of = |mebibytes: usize| Layout::from_size_align(mebibytes << 20, 16).expect("valid");
    let mut block = heap.alloc(of(1)).expect("memory");
    for mebibytes in 2..40 {
        // SAFETY: The block is the heap's, of this layout, and its old address is forgotten.
        let grown = unsafe { heap.realloc(block, of(mebibytes - 1), mebibytes << 20) };
        block = grown.expect("memory");
    }
    drop(heap);
    let live = now().live_bytes - before.live_bytes;
    assert!(live < 1 << 20, "{live}");
}

/// The number of thread caches at the start of a program.
fn caches_with(variable: Option<(&str, &std::path::Path)>) -> usize {
    let mut program = alone::again("prints_the_number_of_caches");
    program.args(["--test-threads", "1"]).env_remove("MASU_PROFILE").envs(variable);
    let said = alone::passes(&mut program);
    let mut words = said.split_ascii_whitespace().skip_while(|word| *word != "caches:");
    words.nth(1).and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{said}"))
}

#[test]
#[ignore = "run by the test below"]
fn prints_the_number_of_caches() {
    println!("caches: {}", masu::statistics::threads().count());
}

#[test]
fn a_profile_from_the_environment_makes_no_second_cache() {
    let folder = new_path();
    fs::create_dir(&folder).expect("a new folder");
    let caches = caches_with(Some(("MASU_PROFILE", &folder.join("heap"))));
    let files = fs::read_dir(&folder).expect("the folder").count();
    fs::remove_dir_all(&folder).expect("the folder is writable");
    assert_eq!((caches, files), (caches_with(None), 1));
}

#[test]
fn the_file_is_private_and_replaces_none() {
    let _taken = Taken::start(1 << 20);
    let path = new_path();
    let name = CString::new(path.to_str().expect("a plain path")).expect("no zero in it");
    assert_eq!(profile::write(&name), Ok(()));
    let mode = fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    const EXIST: i32 = 17;
    assert_eq!(profile::write(&name), Err(Refusal::File(EXIST)));
    fs::remove_file(&path).expect("the folder is writable");
    std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
    assert_eq!(profile::write(&name), Err(Refusal::File(EXIST)));
    fs::remove_file(&path).expect("the folder is writable");
    let nowhere = CString::new("/nonexistent/profile").expect("no zero in it");
    assert_eq!(profile::write(&nowhere), Err(Refusal::File(2)));
}

#[test]
fn a_second_profile_and_a_zero_interval_are_refused() {
    let taken = Taken::start(1 << 20);
    assert_eq!(profile::start(Some(1 << 20)), Err(Refusal::Running));
    let memory = profile::own_bytes();
    assert!(memory < 1 << 20, "{memory}");
    profile::stop();
    assert_eq!(profile::start(Some(0)), Err(Refusal::Interval));
    // A stopped profile can still be written.
    assert_eq!(written().period, 1 << 20);
    drop(taken);
}

#[test]
fn a_function_that_allocates_is_in_its_blocks_stacks() {
    #[inline(never)]
    fn allocates() -> Vec<Box<[u8; 4096]>> {
        // A call in a loop is no tail call, so this function has a frame in any build.
        let mut blocks = Vec::with_capacity(2_000);
        for _ in 0..2_000 {
            blocks.push(black_box(Box::new([1; 4096])));
        }
        blocks
    }
    let _taken = Taken::start(64 << 10);
    let blocks = allocates();
    let message = written();
    // Its calls lie soon after its start.
    let start = allocates as *const () as u64;
    let within = message.sum_where(|address| (start..start + 2_000).contains(&address));
    let bytes = blocks.len() as i64 * 4096;
    // 125 samples: the standard deviation is 9 %, and the test allows five of them.
    assert!(is_close(within.live_bytes, bytes, 0.45), "{within:?}, {bytes}");
    assert!(message.has_mapping_of(start), "no mapping of this program");
    // SAFETY: The layout is not empty.
    let foreign = unsafe { System.alloc(Layout::new::<u64>()) };
    // SAFETY: The block was allocated with this layout just now.
    unsafe { System.dealloc(foreign, Layout::new::<u64>()) };
}
