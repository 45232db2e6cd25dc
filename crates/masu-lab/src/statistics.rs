//! The verdicts on differences: paired ratios to the reference with simultaneous intervals.
//!
//! The method is fixed before any result is seen. In each round a variant's run is paired with the reference's run of
//! the round, and the logarithm of their ratio taken: drift cancels and the noise is symmetric. The lab reports the
//! Hodges–Lehmann center with its exact signed-rank interval (`signed_rank.rs`). With m variants besides the reference
//! each interval errs at most with an mth part of the table's error (Bonferroni), so *all* verdicts of a table are
//! right with at least 99 %.
//!
//! Looks share that error where the number of rounds is not fixed (`sequential.rs`). One measure, named beforehand,
//! carries the verdict; ratios of the others inform the reader and are not tests.

use serde::{Deserialize, Serialize};

use masu_run::named;
use masu_run::{Run, quantity};

mod few_pairs;
mod sequential;
mod signed_rank;

pub(crate) use few_pairs::ratio_of_few;
pub use sequential::{DEFAULT_PRECISION, Level, Look, Looks};
pub(crate) use signed_rank::normal_tail;

/// The confidence of all verdicts of a table together.
pub(crate) const CONFIDENCE: f64 = 0.99;

/// The fewest valid pairs for a verdict, however few the variants.
pub(crate) const PAIRS_MIN: usize = 8;

named! {
    /// A measure of a run. The primary one, wall-clock time unless another was named beforehand,
    /// carries the verdict; the others inform.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Measure as "measure" {
        /// Wall-clock seconds.
        #[default]
        Wall = "wall",
        /// CPU seconds in the program's code.
        User = "user",
        /// CPU seconds in the kernel.
        Sys = "sys",
        /// Peak resident bytes of the process tree.
        PeakRss = "peak_rss",
        /// Page faults without disk.
        MinorFaults = "minor_faults",
        /// Page faults with disk.
        MajorFaults = "major_faults",
        /// Context switches, voluntary and not.
        Switches = "switches",
        /// CPU seconds, in the program's code and in the kernel.
        Cpu = "cpu",
        /// Answers a second of a server.
        Throughput = "throughput",
        /// Seconds to the answer of half the requests.
        LatencyP50 = "latency_p50",
        /// Seconds to the answer of 99 per cent of the requests.
        LatencyP99 = "latency_p99",
        /// Seconds to the answer of 99.9 per cent of the requests.
        LatencyP999 = "latency_p999",
        /// CPU seconds of the server a request.
        CpuPerRequest = "cpu_per_request",
    }
}

impl Measure {
    /// This measure of `run`, in seconds, bytes, a count or a count a second; none where the run does not have it.
    pub fn of(self, run: &Run) -> Option<f64> {
        let burst = run.burst.as_ref();
        let latency = burst.and_then(|burst| burst.latency_s);
        match self {
            Measure::Wall => Some(run.wall_s),
            Measure::User => Some(run.user_s),
            Measure::Sys => Some(run.sys_s),
            Measure::PeakRss => Some(run.peak_rss_bytes as f64),
            Measure::MinorFaults => Some(run.minor_faults as f64),
            Measure::MajorFaults => Some(run.major_faults as f64),
            Measure::Switches => Some((run.voluntary_switches + run.involuntary_switches) as f64),
            Measure::Cpu => Some(run.user_s + run.sys_s),
            Measure::Throughput => burst?.throughput,
            Measure::LatencyP50 => latency.map(|latency| latency.p50),
            Measure::LatencyP99 => latency.map(|latency| latency.p99),
            Measure::LatencyP999 => latency.map(|latency| latency.p999),
            Measure::CpuPerRequest => {
                let requests = burst?.requests.filter(|requests| *requests > 0)?;
                Some((run.user_s + run.sys_s) / requests as f64)
            }
        }
    }

    pub(crate) fn is_of_servers(self) -> bool {
        matches!(
            self,
            Measure::Throughput
                | Measure::LatencyP50
                | Measure::LatencyP99
                | Measure::LatencyP999
                | Measure::CpuPerRequest
        )
    }

    pub(crate) fn is_better_larger(self) -> bool {
        self == Measure::Throughput
    }

    /// The side of 1 on which the interval of `ratio` lies, whether or not this measure carries the verdict.
    pub(crate) fn side(self, ratio: &Ratio) -> Side {
        let (less, more) = match self.is_better_larger() {
            false => (Side::Better, Side::Worse),
            true => (Side::Worse, Side::Better),
        };
        match ratio.interval {
            Some((_, high)) if high < 1.0 => less,
            Some((low, _)) if low > 1.0 => more,
            _ => Side::Open,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Better,
    Worse,
    /// The interval contains 1, or there is none.
    Open,
}

/// One measure of one variant over all its valid runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub measure: Measure,
    /// The median, in the measure's unit; none without valid runs.
    pub median: Option<f64>,
    /// Half the distance between the quartiles, in the measure's unit.
    pub spread: Option<f64>,
    /// The smallest and the largest value, in the measure's unit.
    pub range: Option<(f64, f64)>,
    /// The ratio to the reference; none for the reference itself, or where zeros make it meaningless.
    pub ratio: Option<Ratio>,
}

/// A paired ratio to the reference: 0.9 is ten per cent less than the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub estimate: f64,
    /// Both ends of the interval; none with too few pairs for one at the requested level.
    pub interval: Option<(f64, f64)>,
    /// The number of rounds behind the ratio.
    pub pairs: usize,
}

impl Ratio {
    /// Whether there is an interval, and its ends lie within `precision` of the estimate, relative to it.
    pub(crate) fn is_within(&self, precision: f64) -> bool {
        let (least, most) = (self.estimate * (1.0 - precision), self.estimate * (1.0 + precision));
        self.interval.is_some_and(|(low, high)| low >= least && high <= most)
    }

    /// `×0.893 (0.880–0.906)`: a figure alone looks surer than it is.
    pub(crate) fn written(&self) -> String {
        let times = format!("×{}", quantity::ratio(self.estimate));
        match self.interval {
            Some((low, high)) => {
                format!("{times} ({}–{})", quantity::ratio(low), quantity::ratio(high))
            }
            None => times,
        }
    }
}

/// The verdict of the primary measure on a variant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The variant is the reference for all others.
    Reference,
    /// The variant is better: the whole interval lies on the better side of 1.
    Faster,
    /// The variant is worse: the whole interval lies on the worse side of 1.
    Slower,
    /// The interval contains 1.
    NoDifferenceShown {
        /// The smallest relative difference that nine of ten such series would have shown, in
        /// either direction: 0.02 is two per cent.
        could_have_seen: f64,
    },
    TooFewRuns {
        pairs: usize,
        needed: usize,
    },
    /// Enough pairs, but no ratio: too many values of the primary measure are zero, or not known. More runs give none.
    /// Files of earlier releases have `too_few_runs` with no pairs instead.
    NoRatio,
    /// In too many rounds a run of the pair did not end as it should. The remaining pairs may be a selection by
    /// speed (where slow runs hang, only the fast ones remain), so there is no verdict.
    RunsFailed {
        /// Rounds in which the variant's run or the reference's does not count.
        failed: usize,
        /// Rounds in which both were run.
        of: usize,
    },
}

/// Pairs that a verdict at `level` needs in a table that compares `others` variants with the reference:
/// eight, or as many as the level requires (at [`Level::TABLE`] 10 for 4 others, 12 for 9).
pub fn pairs_needed(others: usize, level: Level) -> usize {
    // With n pairs the widest interval errs with probability 2 / 2^n.
    let error = |pairs: usize| 2.0 / 2_f64.powi(i32::try_from(pairs).unwrap_or(64));
    (PAIRS_MIN..64).find(|pairs| error(*pairs) <= level.of_each(others)).unwrap_or(64)
}

/// A difference of logarithms beyond the range of numbers: one value of a pair is zero and the other is not.
const BEYOND: f64 = 1e6;

/// The steps of a difference of logarithms in one.
const STEPS: f64 = (1_u64 << 40) as f64;

/// The ratio of the second to the first of each pair, in a table of `others` such ratios that err at
/// `level` together. Two zeros are equal, and one zero is smaller than anything else: ranks need
/// no more. None where zeros are so many that the estimate or an end
/// of its interval would be zero or without bound, and none without pairs. Dropping zeros would
/// select: of a measure that is zero in most runs only the rare other runs would remain.
pub fn ratio(pairs: &[(f64, f64)], others: usize, level: Level) -> Option<Ratio> {
    if pairs.iter().all(|(reference, value)| *reference == 0.0 && *value == 0.0) {
        return None;
    }
    // The two boundless differences, down and up, are of these sizes.
    let differences = |down: f64, up: f64| -> Vec<f64> {
        let difference = |(reference, value): &(f64, f64)| match (*reference > 0.0, *value > 0.0) {
            // Multiples of 2⁻⁴⁰: an up and a down of one size cancel out, and do not leave a rounding error that would
            // look like a difference.
            (true, true) => ((value.ln() - reference.ln()) * STEPS).round() / STEPS,
            (true, false) => -down * BEYOND,
            (false, true) => up * BEYOND,
            (false, false) => 0.0,
        };
        pairs.iter().map(difference).collect()
    };
    let centered = |down, up| signed_rank::center(&differences(down, up), level.of_each(others));
    let (center, interval) = centered(1.0, 1.0)?;
    let has = |boundless: f64| differences(1.0, 1.0).contains(&boundless);
    // The average of one of each kind may be anything: it lies outside on either side of the interval.
    let ends = match interval {
        Some(_) if has(-BEYOND) && has(BEYOND) => {
            Some((centered(4.0, 1.0)?.1?.0, centered(1.0, 4.0)?.1?.1))
        }
        None if has(-BEYOND) && has(BEYOND) => return None,
        ends => ends,
    };
    let (low, high) = ends.unwrap_or((center, center));
    // The average of two averages of pairs may hold a quarter of a boundless difference, less a little
    // where the other differences have the other sign: still far beyond the range of numbers.
    if [center, low, high].iter().any(|end| end.abs() > BEYOND / 8.0) {
        return None;
    }
    Some(Ratio {
        estimate: center.exp(),
        interval: ends.map(|(low, high)| (low.exp(), high.exp())),
        pairs: pairs.len(),
    })
}

/// The verdict of a ratio of the primary measure, made of `pairs` pairs at `level`, in a table of `others` such ratios.
pub fn verdict(
    measure: Measure,
    ratio: Option<&Ratio>,
    pairs: usize,
    others: usize,
    level: Level,
) -> Verdict {
    let needed = pairs_needed(others, level);
    match ratio {
        _ if pairs < needed => Verdict::TooFewRuns { pairs, needed },
        Some(ratio @ Ratio { interval: Some((low, high)), .. }) => match measure.side(ratio) {
            Side::Better => Verdict::Faster,
            Side::Worse => Verdict::Slower,
            Side::Open => {
                let could_have_seen = visible(*low, *high, others, level);
                Verdict::NoDifferenceShown { could_have_seen }
            }
        },
        _ => Verdict::NoRatio,
    }
}

/// The smallest true difference that nine of ten series with an interval as wide as this one would
/// show, as they show one where the interval leaves 1 out; `others` and `level` are those of the
/// interval.
///
/// The center of a series lies about the truth as normal noise does, and half the interval is about
/// so many standard deviations of it as the level asks: where the truth is half an interval away
/// from 1 every second series shows it. Nine of ten would need 1.28 deviations more if the interval's
/// width were not itself an estimate; with 1.645 nine of ten of simulated series show it. As a
/// difference upwards the figure is the larger one, so that it holds for both directions.
pub(crate) fn visible(low: f64, high: f64, others: usize, level: Level) -> f64 {
    const FURTHER: f64 = 1.645;
    let deviations = signed_rank::normal_quantile(1.0 - level.of_each(others) / 2.0);
    let half = (high / low).ln() / 2.0;
    (half * (1.0 + FURTHER / deviations)).exp_m1()
}

pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which `share` of `values` lie, neighbors interpolated; none without values.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    Sorted::new(values).quantile(share)
}

#[derive(Debug, Clone)]
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    pub(crate) fn new(values: &[f64]) -> Sorted {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Sorted(sorted)
    }

    /// The smallest and the largest; none without any.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        Some((*self.0.first()?, *self.0.last()?))
    }

    /// Half the distance between the quartiles; none without any.
    pub(crate) fn spread(&self) -> Option<f64> {
        Some((self.quantile(0.75)? - self.quantile(0.25)?) / 2.0)
    }

    /// The value below which `share` of them lie, neighbors interpolated; none without any.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let place = self.0.len().checked_sub(1)? as f64 * share;
        let (low, high) = (self.0[place.floor() as usize], self.0[place.ceil() as usize]);
        Some(low + (high - low) * place.fract())
    }
}

#[cfg(test)]
mod tests;
