//! What is known of single blocks, for the few that are sampled or guarded, and changes noted for readers outside.
//!
//! The layers above call in here; nothing here calls a block, a cache or a thread. Imports memory, the settings and the platform.

// Call stacks.
pub(crate) mod unwind;

// Guarded blocks, the heap profile, and whether the statistics page is out of date.
pub(crate) mod guards;
pub(crate) mod news;
pub(crate) mod sampling;
