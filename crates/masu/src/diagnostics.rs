//! Diagnostics of single blocks, for the few that are sampled or guarded, and a flag that statistics changed.
//!
//! The layers above call these; nothing here calls a block, a cache or a thread. Imports memory, the settings and the
//! platform.

// Call stacks.
pub(crate) mod unwind;

// The heap profile, guarded blocks, the flag.
pub(crate) mod sampling;

pub(crate) mod guards;
pub(crate) mod stale;
