//! Options chosen at build time: they apply from the first allocation on, and the environment
//! overrides them.

#[path = "../src/platform/alone.rs"]
mod alone;

use std::fs;
use std::sync::Barrier;
use std::thread;

const MIB: usize = 1 << 20;

#[global_allocator]
static GLOBAL: masu::Masu =
    masu::Masu::new().cache_size(64 << 10).retain(64 * MIB).shards(3).huge_pages(false);

/// Retained bytes after the test freed 32 MiB.
fn kept_bytes() -> usize {
    let blocks: Vec<_> = (0..32).map(|_| vec![1_u8; MIB]).collect();
    drop(blocks);
    masu::c::statistics().kept_bytes
}

/// Bytes cached by each of eight threads on average, and the shards they used.
fn cached_bytes_and_shards() -> (usize, usize) {
    let all = Barrier::new(8);
    let work = || {
        for size in (1..=64).map(|step| step * 16) {
            drop((0..1_000).map(|_| vec![1_u8; size]).collect::<Vec<_>>());
        }
        let held: Vec<_> = (0..5_000).map(|_| Box::new([1_u8; 64])).collect();
        all.wait();
        let now = masu::c::statistics();
        all.wait();
        drop(held);
        (now.thread_cached_bytes / 8, now.shards)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        let results = threads.into_iter().map(|thread| thread.join().expect("works"));
        results.max().expect("there are threads")
    })
}

#[test]
fn options_of_the_build_apply() {
    if variables_are_set() {
        return;
    }
    let (cached, shards) = cached_bytes_and_shards();
    // The threads of the test harness have caches too.
    assert!((1..=2 * (64 << 10)).contains(&cached), "{cached} bytes a thread");
    assert_eq!(shards, 3);
    let kept = kept_bytes();
    assert!(kept >= 31 * MIB, "{kept}");
    let smaps = fs::read_to_string("/proc/self/smaps").expect("proc is mounted");
    let flags: Vec<_> = smaps.lines().filter(|line| line.starts_with("VmFlags:")).collect();
    assert!(flags.iter().all(|line| !line.contains(" hg")), "{flags:?}");
}

#[test]
fn the_environment_overrides_the_build() {
    if variables_are_set() {
        assert_eq!(kept_bytes(), 0, "from the environment");
        assert_eq!(cached_bytes_and_shards().1, 3, "from the build");
        return;
    }
    alone::passes(alone::again("the_environment_overrides_the_build").env("MASU_RETAIN", "0"));
}

fn variables_are_set() -> bool {
    std::env::var_os("MASU_RETAIN").is_some()
}

#[test]
fn an_invalid_value_panics_when_the_allocator_is_made() {
    // In a `static` this is a compile error.
    let refused = std::panic::catch_unwind(|| masu::Masu::new().shards(61));
    let message = refused.expect_err("61 shards");
    let message = message.downcast_ref::<&str>().expect("a fixed text");
    assert_eq!(*message, "this option must be a count from 1 to 60");
}
