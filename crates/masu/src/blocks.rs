//! Blocks up to 64 KiB: a thread's stacks of free blocks, pages, their owners, and how blocks move between threads.
//!
//! Knows a thread's slot, but not its cache. Imports diagnostics, memory, the settings and the platform.

// Ownership of pages, and the rules that every feature must keep.
pub(crate) mod ownership;

// The thread slot: stacks of free blocks.
pub(crate) mod slot;

// Pages, and the shards and heaps that own them.
pub(crate) mod page;

pub(crate) mod shard;

pub(crate) mod owner;

// Free blocks on their way from one thread to another.
pub(crate) mod transfer;
