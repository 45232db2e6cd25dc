//! The allocator under test as a trait, so that the same oracle checks masu, and masu with a planted bug.
//!
//! It relies on `masu::c`, and on `masu::Masu` as a `GlobalAlloc`.

use std::alloc::{GlobalAlloc, Layout};

use masu::c;

const GLOBAL: masu::Masu = masu::Masu::new();

/// An allocator: the C functions, and Rust's, whose blocks come back with their layout; those of masu, unless it has its
/// own.
///
/// Every function has the meaning and the conditions of its namesake in `masu::c` or `GlobalAlloc`.
// Every call below passes on its caller's conditions.
#[expect(clippy::undocumented_unsafe_blocks, reason = "said once, above")]
pub(crate) trait Malloc: Sync {
    fn malloc(&self, size: usize) -> *mut u8 {
        c::malloc(size)
    }
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        c::calloc(count, size)
    }
    fn aligned_alloc(&self, align: usize, size: usize) -> *mut u8 {
        c::aligned_alloc(align, size)
    }
    unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8 {
        unsafe { c::realloc(block, size) }
    }
    unsafe fn free(&self, block: *mut u8) {
        unsafe { c::free(block) }
    }
    unsafe fn usable_size(&self, block: *mut u8) -> usize {
        unsafe { c::usable_size(block) }
    }
    fn trim(&self, pad: usize) {
        c::trim(pad);
    }
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { GLOBAL.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unsafe { GLOBAL.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { GLOBAL.dealloc(block, layout) }
    }
    unsafe fn resize(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { GLOBAL.realloc(block, layout, size) }
    }
}

/// Masu itself.
pub(crate) struct Masu;

impl Malloc for Masu {}
