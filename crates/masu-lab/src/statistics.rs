//! Which differences are real: paired ratios to the reference with simultaneous intervals.

use serde::{Deserialize, Serialize};

use crate::Run;

/// What is measured of a run. [`Measure::Wall`] carries the verdict; the others inform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Measure {
    /// Wall-clock seconds.
    Wall,
    /// CPU seconds in the program's code.
    User,
    /// CPU seconds in the kernel.
    Sys,
    /// Peak resident bytes of the process tree.
    PeakRss,
    /// Page faults without disk.
    MinorFaults,
    /// Page faults with disk.
    MajorFaults,
    /// Context switches, voluntary and not.
    Switches,
}

impl Measure {
    /// Every measure, the primary first.
    pub const ALL: [Measure; 7] = [
        Measure::Wall,
        Measure::User,
        Measure::Sys,
        Measure::PeakRss,
        Measure::MinorFaults,
        Measure::MajorFaults,
        Measure::Switches,
    ];

    /// The one that carries the verdict.
    pub const PRIMARY: Measure = Measure::Wall;

    /// This measure of `run`, in seconds, bytes or a count.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub fn of(self, run: &Run) -> f64 {
        match self {
            Measure::Wall => run.wall_s,
            Measure::User => run.user_s,
            Measure::Sys => run.sys_s,
            Measure::PeakRss => run.peak_rss_bytes as f64,
            Measure::MinorFaults => run.minor_faults as f64,
            Measure::MajorFaults => run.major_faults as f64,
            Measure::Switches => (run.voluntary_switches + run.involuntary_switches) as f64,
        }
    }
}

/// One measure of one variant over all its valid runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The measure.
    pub measure: Measure,
    /// The median, in the measure's unit; none without valid runs.
    pub median: Option<f64>,
    /// Half the distance between the quartiles, in the measure's unit.
    pub spread: Option<f64>,
    /// The smallest and the largest value, in the measure's unit.
    pub range: Option<(f64, f64)>,
    /// The ratio to the reference; none for the reference itself, or where zeros make it
    /// meaningless.
    pub ratio: Option<Ratio>,
}

/// A paired ratio to the reference: 0.9 is ten per cent less than the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The estimate.
    pub estimate: f64,
    /// Both ends of the interval; none with too few pairs for one at the level asked.
    pub interval: Option<(f64, f64)>,
    /// The rounds it rests on.
    pub pairs: usize,
}

/// What the primary measure says about a variant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// This is what the others are compared with.
    Reference,
    /// It takes less time: the whole interval lies below 1.
    Faster,
    /// It takes more time: the whole interval lies above 1.
    Slower,
    /// The interval contains 1.
    NoDifferenceShown {
        /// The smallest relative difference these runs could have shown: 0.02 is two per cent.
        could_have_seen: f64,
    },
    /// Too few valid pairs for a verdict.
    TooFewRuns {
        /// Valid pairs there are.
        pairs: usize,
        /// Valid pairs a verdict needs with this many variants.
        needed: usize,
    },
}
