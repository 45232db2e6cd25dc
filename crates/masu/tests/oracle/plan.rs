//! The phases of the workers' operations, one after the other.
//!
//! The hard idea is that a heap's history breaks allocators: blocks of one size fill pages, are freed in another order,
//! by other threads, also by threads that start after their owners, and the emptied pages serve other sizes.

use crate::sizes::{BUFFERS, MEDIUM, Mix, USUAL};

/// One phase of one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    pub(crate) mix: Mix,
    /// The number of live blocks that a worker approaches.
    pub(crate) blocks: usize,
    /// Operations after which a worker's thread ends and a new one takes over its blocks.
    pub(crate) shift: usize,
    /// Operations between two transfers of blocks to another worker.
    pub(crate) hand_on: usize,
}

/// The whole history.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) workers: usize,
    pub(crate) phases: &'static [Phase],
    /// Operations of all workers in all phases together.
    pub(crate) operations: usize,
    /// Bytes live at once, of all workers together, at most.
    pub(crate) live_bytes: usize,
}

/// The phases of the tests on masu.
pub(crate) const HISTORY: &[Phase] = &[
    Phase { name: "grow", mix: USUAL, blocks: 40_000, shift: 1 << 20, hand_on: 2_000 },
    Phase { name: "churn", mix: USUAL, blocks: 30_000, shift: 100_000, hand_on: 200 },
    Phase { name: "few, hot", mix: USUAL, blocks: 50, shift: 1 << 20, hand_on: 5_000 },
    Phase { name: "other sizes", mix: MEDIUM, blocks: 8_000, shift: 100_000, hand_on: 500 },
    Phase { name: "threads come and go", mix: USUAL, blocks: 1_000, shift: 400, hand_on: 100 },
    Phase { name: "buffers", mix: BUFFERS, blocks: 300, shift: 50_000, hand_on: 500 },
    Phase { name: "grow again", mix: USUAL, blocks: 20_000, shift: 20_000, hand_on: 50 },
    Phase { name: "pipeline", mix: USUAL, blocks: 2_000, shift: 1 << 20, hand_on: 4 },
];
