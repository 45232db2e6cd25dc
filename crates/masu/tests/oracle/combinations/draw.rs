//! What a seed draws before the first request: how many threads, which sizes, which features and how often.
//!
//! It relies on nothing but the seed. The hard idea: a seed that does a little of everything finds little.
//! Each one leaves some features out and dwells on others, so that over many seeds every few features meet
//! alone, long and often.

use crate::random::Random;
use crate::sizes::{BUFFERS, MEDIUM, Mix, USUAL};

/// What may be done besides allocating and freeing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    ProfileStart,
    ProfileStop,
    ProfileWrite,
    Option,
    Guards,
    Statistics,
    Trim,
    Thread,
    Fork,
    HeapMake,
    HeapEnd,
    HeapClear,
    TooMuch,
}

/// Every deed.
const DEEDS: [Deed; 13] = [
    Deed::ProfileStart,
    Deed::ProfileStop,
    Deed::ProfileWrite,
    Deed::Option,
    Deed::Guards,
    Deed::Statistics,
    Deed::Trim,
    Deed::Thread,
    Deed::Fork,
    Deed::HeapMake,
    Deed::HeapEnd,
    Deed::HeapClear,
    Deed::TooMuch,
];

/// All that holds for a whole run.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    /// How many threads walk at once.
    pub(crate) walkers: usize,
    /// How often they all end and begin again.
    pub(crate) rounds: usize,
    /// Operations of all of them together.
    pub(crate) operations: usize,
    /// The option `shards`, set before the first request.
    pub(crate) shards: Option<usize>,
    pub(crate) mix: Mix,
    /// Blocks that one of them holds at most, or nearly.
    pub(crate) blocks: usize,
    /// Bytes live at once, at most.
    pub(crate) live_bytes: usize,
    /// After how many operations a walker decides how many blocks to hold, and of which kind.
    pub(crate) wave: usize,
    /// Every how many operations something else is done.
    pub(crate) deed_every: usize,
    /// How likely each deed is then.
    weights: [u32; DEEDS.len()],
    /// Whether a request without memory may end the program: then nothing is asked for that cannot be had.
    pub(crate) dies_of_want: bool,
    /// Heaps that all walkers use.
    pub(crate) shared_heaps: usize,
    /// Forks of one walker, at most.
    pub(crate) forks: usize,
}

impl Draw {
    /// What `random` draws for a run of so many operations.
    pub(crate) fn new(random: &mut Random, operations: usize) -> Draw {
        let walkers = [1, 1, 2, 2, 3, 4, 6, 8][random.below(8)];
        let weights = DEEDS.map(|_| [0, 1, 1, 2, 8][random.below(5)]);
        let some = weights.iter().any(|weight| *weight > 0);
        Draw {
            walkers,
            rounds: 1 + random.below(4),
            operations,
            shards: [None, Some(1), Some(1), Some(2), Some(3), Some(16)][random.below(6)],
            mix: [USUAL, USUAL, MEDIUM, BUFFERS][random.below(4)],
            blocks: random.doubling(32, 16 << 10) / walkers,
            live_bytes: random.doubling(4 << 20, 64 << 20),
            wave: random.doubling(256, 32 << 10),
            deed_every: if some { random.doubling(32, 8 << 10) } else { usize::MAX },
            weights,
            dies_of_want: random.below(8) == 0,
            shared_heaps: [0, 0, 1, 4][random.below(4)],
            forks: random.below(16),
        }
    }

    /// The next deed.
    pub(crate) fn deed(&self, random: &mut Random) -> Deed {
        DEEDS[random.weighted(&self.weights)]
    }
}
