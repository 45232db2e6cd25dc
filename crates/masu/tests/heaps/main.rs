//! First-class heaps: `masu::Heap`.
//!
//! The tests call masu directly and keep their own memory in the system's malloc. Each test checks one property; random
//! operations on heaps among others are in `tests/oracle/combinations.rs`.

#[macro_use]
mod wrong;

#[path = "../../src/platform/alone.rs"]
mod alone;
mod life;
mod misuse;
#[path = "../properties/resident.rs"]
mod resident;

use std::alloc::Layout;
use std::ptr::NonNull;

/// A layout of `size` bytes aligned to 8.
fn bytes(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a small size")
}

/// A block of `heap`, each byte of it `fill`.
fn filled(heap: &masu::Heap, size: usize, fill: u8) -> NonNull<u8> {
    let block = heap.alloc(bytes(size)).expect("there is memory");
    // SAFETY: The block is that long and has no other user.
    unsafe { block.write_bytes(fill, size) };
    block
}

/// Whether each of the first `size` bytes is `fill`.
fn is_filled(block: NonNull<u8>, size: usize, fill: u8) -> bool {
    // SAFETY: The caller's block is that long and written.
    unsafe { std::slice::from_raw_parts(block.as_ptr(), size) }.iter().all(|byte| *byte == fill)
}
