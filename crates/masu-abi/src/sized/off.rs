//! Frees with a size or an alignment. Both are ignored because programs pass wrong ones.
//!
//! It relies on being inlined. `sized.rs` takes its place where the feature `secure` is on.

use alloc_core::c;

/// Frees a block.
///
/// # Safety
///
/// - `block` is null or a block of this library, and is not used afterwards.
#[inline(always)]
pub(crate) unsafe fn free(block: *mut u8, _size: Option<usize>, _align: usize) {
    // SAFETY: The caller's condition is the same.
    unsafe { c::free(block) }
}
