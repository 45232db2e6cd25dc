//! Memory from the kernel down to runs of slices, for blocks of any kind and for the allocator itself.
//!
//! Knows size classes, but no block, thread or cache. Imports the platform and the settings.

// Size classes and their codes.
pub(crate) mod class;

// 64 KiB slices, lists of them, and the map from an address to the code of its memory.
pub(crate) mod slice;

pub(crate) mod list;
pub(crate) mod map;
#[cfg(feature = "secure")]
pub(crate) mod random;

// Ranges of addresses reserved from the kernel, and the runs of slices in them.
pub(crate) mod arena;

pub(crate) mod ranges;

// The allocator's own memory.
pub(crate) mod metadata;
