//! Threads: their caches, the statistics of the whole process, and how threads start and end.
//!
//! Imports blocks and all below them.

// Thread caches.
pub(crate) mod cache;

// The statistics of all layers together.
pub(crate) mod statistics;

// A look at everything, for tests.
#[cfg(debug_assertions)]
pub(crate) mod audit;

// `fork`, which holds every lock.
mod fork;

// A thread's start and end.
pub(crate) mod thread;
