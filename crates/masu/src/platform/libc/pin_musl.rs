//! The place of `pin.rs` on musl, whose `dlclose` does nothing.

#[inline(always)]
pub(crate) fn pin() {}
