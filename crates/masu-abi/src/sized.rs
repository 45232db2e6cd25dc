//! Frees that say how long or how aligned the block is, in the hardened build: they are believed, and a
//! wrong one ends the program.
//!
//! It relies on `masu::c`. `sized/off.rs` stands in its place in the other builds.

use alloc_core::c;

/// Frees a block of `size` bytes, if that is known, aligned to `align`.
///
/// # Safety
///
/// - `block` is null or a block of this library, and is not used afterwards.
pub(crate) unsafe fn free(block: *mut u8, size: Option<usize>, align: usize) {
    // SAFETY: The caller's condition is the same.
    unsafe { c::free_sized(block, size, align) }
}
