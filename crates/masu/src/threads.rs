//! Threads: their caches, what all of them hold together, and how they begin and end.
//!
//! Imports blocks and all below them.

// Threads' caches.
pub(crate) mod cache;

// All statistics together.
pub(crate) mod books;

// A thread's life, and `fork`.
pub(crate) mod thread;
