//! Frees with a size or an alignment, in the hardened build: a wrong size or alignment ends the program.
//!
//! It relies on `masu::c`. `sized/off.rs` takes its place in the other builds.

use alloc_core::c;

/// Frees a block of `size` bytes, if known, aligned to `align`.
///
/// # Safety
///
/// - `block` is null or a block of this library, and is not used afterwards.
pub(crate) unsafe fn free(block: *mut u8, size: Option<usize>, align: usize) {
    // SAFETY: The caller's condition is the same.
    unsafe { c::free_sized(block, size, align) }
}
