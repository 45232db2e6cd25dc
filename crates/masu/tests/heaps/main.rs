//! First-class heaps: `masu::Heap`.
//!
//! Masu is called directly, with the test's own memory in the system's malloc. Each test holds one
//! property; random operations on heaps among everything else are in `tests/oracle/combinations.rs`.

mod life;
mod misuse;
mod threads;

use std::alloc::Layout;
use std::ptr::NonNull;
use std::thread;

/// A layout of `size` bytes aligned to 8.
fn bytes(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a small size")
}

/// A block of `heap`, each byte of it `fill`.
fn filled(heap: &masu::Heap, size: usize, fill: u8) -> NonNull<u8> {
    let block = heap.alloc(bytes(size)).expect("there is memory");
    // SAFETY: The block is that long and nobody else's.
    unsafe { block.write_bytes(fill, size) };
    block
}

/// Whether each of the first `size` bytes is `fill`.
fn is_filled(block: NonNull<u8>, size: usize, fill: u8) -> bool {
    // SAFETY: The caller's block is that long and written.
    unsafe { std::slice::from_raw_parts(block.as_ptr(), size) }.iter().all(|byte| *byte == fill)
}

/// Runs threads to their very end, destructors included, which the end of a scope does not wait for.
fn run_all<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    threads: impl IntoIterator<Item = impl FnOnce() + Send + 'scope>,
) {
    let handles: Vec<_> = threads.into_iter().map(|work| scope.spawn(work)).collect();
    handles.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
}

/// What of this process is resident, in bytes.
fn resident() -> usize {
    // Not `smaps_rollup`, which in Linux 6.1 leaves a mapping out where another thread maps at the same time.
    let text = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let lines = text.lines().filter_map(|line| line.strip_prefix("Rss:"));
    let kibibytes = |line: &str| line.trim().strip_suffix(" kB")?.parse::<usize>().ok();
    lines.map(|line| kibibytes(line).expect("a number of kB") << 10).sum()
}
