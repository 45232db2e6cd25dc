//! Where no library is ever unloaded: musl's `dlclose` does nothing.

/// Nothing is to be done.
#[inline(always)]
pub(crate) fn pin() {}
