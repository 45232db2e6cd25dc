//! Frees with a size or an alignment: in the hardened build a wrong one ends the program; elsewhere both are ignored,
//! because programs pass wrong ones.
//!
//! It relies on `masu::c`.

use alloc_core::c;

/// Frees a block of `size` bytes, if known, aligned to `align`.
///
/// # Safety
///
/// - `block` is null or a block of this library, and is not used afterwards.
#[inline(always)]
#[cfg_attr(not(feature = "secure"), expect(unused_variables, reason = "see above"))]
pub(crate) unsafe fn free(block: *mut u8, size: Option<usize>, align: usize) {
    #[cfg(feature = "secure")]
    // SAFETY: The caller's condition is the same.
    unsafe {
        c::free_sized(block, size, align);
    }
    #[cfg(not(feature = "secure"))]
    // SAFETY: As above.
    unsafe {
        c::free(block);
    }
}
