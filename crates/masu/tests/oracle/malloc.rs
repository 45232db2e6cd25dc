//! The allocator under test as a trait, so that the same oracle checks masu, the system's malloc
//! (the control) and masu with a planted bug.
//!
//! It relies on `masu::c`, on `masu::Masu` as a `GlobalAlloc`, and on the C library's malloc.

use std::alloc::{GlobalAlloc, Layout};

/// An allocator: the C functions, and Rust's, whose blocks come back with their layout.
///
/// Every function has the meaning and the conditions of its namesake in `masu::c` or `GlobalAlloc`.
pub(crate) trait Malloc: Sync {
    fn malloc(&self, size: usize) -> *mut u8;
    fn calloc(&self, count: usize, size: usize) -> *mut u8;
    fn aligned_alloc(&self, align: usize, size: usize) -> *mut u8;
    unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8;
    unsafe fn free(&self, block: *mut u8);
    unsafe fn usable_size(&self, block: *mut u8) -> usize;
    fn trim(&self, pad: usize);
    unsafe fn alloc(&self, layout: Layout) -> *mut u8;
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8;
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout);
    unsafe fn resize(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8;
}

/// Writes the eleven functions of [`Malloc`] as calls of `$c`'s functions and `$rust`'s methods.
macro_rules! malloc_by {
    ($name:ident, $c:path, $rust:expr) => {
        // Every call below passes on its caller's conditions.
        #[expect(clippy::undocumented_unsafe_blocks, reason = "said once, above")]
        impl Malloc for $name {
            fn malloc(&self, size: usize) -> *mut u8 {
                use $c as c;
                c::malloc(size)
            }
            fn calloc(&self, count: usize, size: usize) -> *mut u8 {
                use $c as c;
                c::calloc(count, size)
            }
            fn aligned_alloc(&self, align: usize, size: usize) -> *mut u8 {
                use $c as c;
                c::aligned_alloc(align, size)
            }
            unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8 {
                use $c as c;
                unsafe { c::realloc(block, size) }
            }
            unsafe fn free(&self, block: *mut u8) {
                use $c as c;
                unsafe { c::free(block) }
            }
            unsafe fn usable_size(&self, block: *mut u8) -> usize {
                use $c as c;
                unsafe { c::usable_size(block) }
            }
            fn trim(&self, pad: usize) {
                use $c as c;
                c::trim(pad);
            }
            unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
                unsafe { $rust.alloc(layout) }
            }
            unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
                unsafe { $rust.alloc_zeroed(layout) }
            }
            unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
                unsafe { $rust.dealloc(block, layout) }
            }
            unsafe fn resize(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
                unsafe { $rust.realloc(block, layout, size) }
            }
        }
    };
}

/// Masu itself.
pub(crate) struct Masu;

malloc_by!(Masu, masu::c, masu::Masu::new());

/// The C library's malloc: the control, which must pass the same checks.
pub(crate) struct System;

malloc_by!(System, crate::malloc::system, std::alloc::System);

/// The C library's malloc under the signatures of `masu::c`.
mod system {
    unsafe extern "C" {
        pub(super) safe fn malloc(size: usize) -> *mut u8;
        pub(super) safe fn calloc(count: usize, size: usize) -> *mut u8;
        pub(super) fn free(block: *mut u8);
        fn malloc_usable_size(block: *mut u8) -> usize;
        fn memalign(align: usize, size: usize) -> *mut u8;
        #[link_name = "realloc"]
        fn realloc_or_free(block: *mut u8, size: usize) -> *mut u8;
    }

    pub(super) unsafe fn realloc(block: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: The caller passes a live block. A size of 0 is undefined in C, so it is not passed.
        unsafe { realloc_or_free(block, size.max(1)) }
    }

    pub(super) unsafe fn usable_size(block: *mut u8) -> usize {
        // SAFETY: The caller passes a live block.
        unsafe { malloc_usable_size(block) }
    }

    pub(super) fn aligned_alloc(align: usize, size: usize) -> *mut u8 {
        // SAFETY: `memalign` has no condition.
        unsafe { memalign(align.max(16), size) }
    }

    pub(super) fn trim(_pad: usize) {}
}
