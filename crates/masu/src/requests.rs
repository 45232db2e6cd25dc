//! Requests: allocate, free, resize and the size of a block, each from its fast path to its slowest.
//!
//! `front` serves them in the ordinary build, `secure` in the hardened one. Imports threads and all below them.

// Memory that is reclaimed before a request fails.
pub(crate) mod reclaim;

// Blocks of whole slices, and the kind of memory that a pointer leads to.
pub(crate) mod large;
pub(crate) mod pointer;

// First-class heaps.
pub(crate) mod heap;

// Blocks of any size.
#[cfg(not(feature = "secure"))]
pub(crate) mod front;
#[cfg(feature = "secure")]
pub(crate) mod secure;
#[cfg(feature = "secure")]
pub(crate) use secure as front;
