//! The functions of `count.rs` in builds that do not count: inlined to no instruction.

use alloc_core::c::Environment;

#[inline(always)]
pub(crate) fn begin(_environment: Option<&Environment>) {}

#[inline(always)]
pub(crate) fn request(_size: usize) {}
