//! The parameters of a seed: the number of threads, sizes, features and their frequencies.
//!
//! It relies on nothing but the seed. The hard idea: a seed with a little of everything finds little. Each seed omits
//! some features and favors others, so that over many seeds every few features meet alone, long and often.

use crate::random::Random;
use crate::sizes::{BUFFERS, MEDIUM, Mix, USUAL};

/// Actions besides allocating and freeing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
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
    /// Adds stripes of free runs, as threads that wait for each other do.
    Widen,
    /// Makes stacks of several classes deep, while the options that bound them change.
    Deepen,
    /// Has the kernel refuse calls for memory now and then, or no more.
    Refusals,
}

const ACTIONS: [Action; 16] = [
    Action::ProfileStart,
    Action::ProfileStop,
    Action::ProfileWrite,
    Action::Option,
    Action::Guards,
    Action::Statistics,
    Action::Trim,
    Action::Thread,
    Action::Fork,
    Action::HeapMake,
    Action::HeapEnd,
    Action::HeapClear,
    Action::TooMuch,
    Action::Widen,
    Action::Deepen,
    Action::Refusals,
];

/// Values of the option `shards`. From four shards on there may be as many stripes.
const SHARDS: [Option<usize>; 9] =
    [None, Some(1), Some(1), Some(2), Some(3), Some(5), Some(16), Some(16), Some(60)];

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    /// Walkers that run at once.
    pub(crate) walkers: usize,
    /// The number of times that all walkers stop and start.
    pub(crate) rounds: usize,
    /// Operations of all walkers together.
    pub(crate) operations: usize,
    /// The option `shards`, set before the first request.
    pub(crate) shards: Option<usize>,
    /// The option `shuffle`, set before the first request; [`Action::Option`] changes it.
    pub(crate) shuffle: Option<usize>,
    /// The number of times that stripes are added at the start.
    pub(crate) widened: usize,
    pub(crate) mix: Mix,
    /// The approximate maximum of blocks of one walker.
    pub(crate) blocks: usize,
    /// The most live bytes.
    pub(crate) live_bytes: usize,
    /// Operations after which a walker chooses a new number and kind of blocks to hold.
    pub(crate) wave: usize,
    /// Mean operations between two actions.
    pub(crate) action_interval: usize,
    /// The weight of each action.
    weights: [u32; ACTIONS.len()],
    /// Whether a failed request may end the program; then no impossible request is made.
    pub(crate) aborts_on_oom: bool,
    /// Whether the kernel refuses all calls for memory at first: then there is no class map.
    pub(crate) begins_refused: bool,
    /// Heaps shared by all walkers.
    pub(crate) shared_heaps: usize,
    /// The most forks of one walker.
    pub(crate) forks: usize,
}

impl Draw {
    pub(crate) fn new(random: &mut Random, operations: usize) -> Draw {
        let walkers = [1, 1, 2, 2, 3, 4, 6, 8][random.below(8)];
        let weights = ACTIONS.map(|_| [0, 1, 1, 2, 8][random.below(5)]);
        let some = weights.iter().any(|weight| *weight > 0);
        Draw {
            walkers,
            rounds: 1 + random.below(4),
            operations,
            shards: SHARDS[random.below(SHARDS.len())],
            shuffle: [None, None, Some(1), Some(7)][random.below(4)],
            widened: [0, 0, 1, 2, 6][random.below(5)],
            mix: [USUAL, USUAL, MEDIUM, BUFFERS][random.below(4)],
            blocks: random.doubling(32, 16 << 10) / walkers,
            live_bytes: random.doubling(4 << 20, 64 << 20),
            wave: random.doubling(256, 32 << 10),
            action_interval: if some { random.doubling(32, 8 << 10) } else { usize::MAX },
            weights,
            aborts_on_oom: random.below(8) == 0,
            begins_refused: random.below(8) == 0,
            shared_heaps: [0, 0, 1, 4][random.below(4)],
            forks: random.below(16),
        }
    }

    /// Requests of one mix, among them impossible ones, by threads that end; seldom a trim.
    pub(crate) fn plain(mix: Mix, blocks: usize) -> Draw {
        let weights = ACTIONS.map(|action| match action {
            Action::Thread | Action::TooMuch => 100,
            Action::Trim => 1,
            _ => 0,
        });
        Draw {
            mix,
            blocks,
            wave: 16 << 10,
            action_interval: 500,
            weights,
            aborts_on_oom: false,
            ..Draw::new(&mut Random::new(1), 1)
        }
    }

    pub(crate) fn action(&self, random: &mut Random) -> Action {
        ACTIONS[random.weighted(&self.weights)]
    }
}
