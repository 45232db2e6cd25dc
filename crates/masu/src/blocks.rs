//! Blocks up to 64 KiB: the stacks that a thread has at hand, pages, their owners, and how blocks travel between threads.
//!
//! Knows what a thread has in its slot, but not its cache. Imports diagnostics, memory, the settings and the platform.

// Whose a page is, and what every feature has to keep.
pub(crate) mod whose;

// The thread slot: stacks of free blocks.
pub(crate) mod slot;

// Pages, and the shards and heaps that own them.
pub(crate) mod page;

pub(crate) mod shard;

pub(crate) mod owner;

// Free blocks on their way from one thread to another.
pub(crate) mod transfer;
