//! The times of a variant one after another: drift, outliers, two speeds.
//!
//! The verdicts hold with any of them, but each has a cause that widens the intervals or that the reader will want to
//! know. On healthy series each warning comes in fewer than one table of a hundred. Ranks and gaps are judged, which no
//! single wild run can imitate.

use crate::statistics::{self, Measure, Sorted};
use masu_run::execute::Run;

/// The fewest runs about which anything is said.
const RUNS_MIN: usize = 10;

/// The certainty of a trend: deviations of Kendall's statistic, which chance reaches once in ten thousand series.
const TREND_DEVIATIONS: f64 = 3.9;

/// The change from the first to the last run, relative to the median, that is worth a warning.
const TREND_MIN: f64 = 0.02;

/// The distance of an outlier from the median, in robust deviations.
const OUTLIER_DEVIATIONS: f64 = 8.0;

/// The least distance of an outlier, relative to the median.
const OUTLIER_MIN: f64 = 0.05;

/// The share of a variant's runs that outliers must exceed for a warning.
const OUTLIERS_SHARE: f64 = 0.1;

/// The share of a variant's runs that the smaller of two clusters must have.
const CLUSTER_SHARE: f64 = 0.2;

/// The gap between two clusters, relative to the median, that is worth a warning.
const GAP_MIN: f64 = 0.02;

/// The primary measure of one variant's valid runs, in the order in which they were made.
pub(super) struct Series<'a> {
    label: &'a str,
    primary: Measure,
    runs: Vec<(&'a Run, f64)>,
    median: f64,
}

impl<'a> Series<'a> {
    /// The series of `primary` in `runs`; none if there are too few runs to say anything.
    pub(super) fn of(label: &'a str, primary: Measure, runs: &[&'a Run]) -> Option<Series<'a>> {
        let runs: Vec<(&Run, f64)> =
            runs.iter().filter_map(|run| Some((*run, primary.of(run)?))).collect();
        let values: Vec<f64> = runs.iter().map(|(_, value)| *value).collect();
        let median = statistics::median(&values).filter(|median| *median > 0.0)?;
        (runs.len() >= RUNS_MIN).then_some(Series { label, primary, runs, median })
    }

    fn relative(&self) -> Vec<f64> {
        self.runs.iter().map(|(_, value)| value / self.median).collect()
    }
}

/// The warnings about the series of a table with `variants` variants.
pub(super) fn warnings(series: &[Series], variants: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(drift(series, variants));
    for one in series {
        // Two speeds explain what would otherwise look like outliers.
        warnings.extend(two_speeds(one).or_else(|| outliers(one)));
    }
    warnings
}

/// Variants whose values rise or fall from round to round.
fn drift(series: &[Series], variants: usize) -> Option<String> {
    let drifting: Vec<(&str, f64)> =
        series.iter().filter_map(|one| Some((one.label, trend(&one.relative())?))).collect();
    let (_, first) = drifting.first()?;
    let named: Vec<String> = drifting
        .iter()
        .map(|(label, change)| format!("of `{label}` by {:+.0} %", change * 100.0))
        .collect();
    let together = drifting.iter().all(|(_, change)| change.signum() == first.signum());
    let advice = if together && drifting.len() * 2 > variants {
        "what hits all alike cancels in the pairs of a round; let the machine warm up or cool \
         down, and look at what else begins or ends on it"
    } else {
        "the others stay as they were, so look for what its runs leave behind (files that \
         grow, caches that fill) and start each run from the same state"
    };
    let named = named.join(", ");
    Some(format!("drift: the values {named} changed from the first round to the last; {advice}"))
}

/// The relative change from the first of `values` to the last, if Kendall's rank test is sure that there is one. The
/// change is that of Theil's and Sen's line, the median of the slopes between all pairs. Above a thousand values, every
/// second, fourth … is taken.
///
/// Source: Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, 3rd edition,
/// sections 8.1 and 9.3.
fn trend(values: &[f64]) -> Option<f64> {
    let step = values.len().div_ceil(1000).max(1);
    let values: Vec<f64> = values.iter().step_by(step).copied().collect();
    let n = values.len() as f64;
    let pairs =
        || (1..values.len()).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    let sign = |(earlier, later): (usize, usize)| {
        f64::from(values[later] > values[earlier]) - f64::from(values[later] < values[earlier])
    };
    let balance: f64 = pairs().map(sign).sum();
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    if balance.abs() <= TREND_DEVIATIONS * deviation {
        return None;
    }
    let slope = |(earlier, later): (usize, usize)| {
        (values[later] - values[earlier]) / (later - earlier) as f64
    };
    let slopes: Vec<f64> = pairs().map(slope).collect();
    let change = statistics::median(&slopes)? * (n - 1.0);
    (change.abs() >= TREND_MIN).then_some(change)
}

fn outliers(series: &Series) -> Option<String> {
    let relative = series.relative();
    let distances: Vec<f64> = relative.iter().map(|value| (value - 1.0).abs()).collect();
    // 1.4826 times the median distance estimates the deviation of normal noise.
    let deviation = 1.4826 * statistics::median(&distances)?;
    let limit = OUTLIER_MIN.max(OUTLIER_DEVIATIONS * deviation);
    let far: Vec<usize> = (0..relative.len()).filter(|index| distances[*index] > limit).collect();
    if far.len() < 2 || far.len() as f64 <= OUTLIERS_SHARE * relative.len() as f64 {
        return None;
    }
    let values: Vec<f64> = far.iter().map(|index| relative[*index]).collect();
    let (low, high) = Sorted::new(&values).range()?;
    let disturbed = |run: &Run| run.starved || run.steal_s.unwrap_or(0.0) > 0.05 * run.wall_s;
    let disturbed = far.iter().filter(|index| disturbed(series.runs[**index].0)).count();
    let cause = match disturbed {
        0 => "nothing seen of the machine explains them, so look at what the program does now and \
              then (disk, network, a timer)"
            .to_owned(),
        some => {
            format!("in {some} of them the CPUs were needed elsewhere, so make the machine quieter")
        }
    };
    Some(format!(
        "outliers: {} of {} runs of `{}` lie far outside, at {low:.2} to {high:.2} times its median; \
         {cause}; ranks keep them from deciding anything, more runs make up for them",
        far.len(),
        relative.len(),
        series.label,
    ))
}

/// Values that fall into two clusters with a gap between them.
fn two_speeds(series: &Series) -> Option<String> {
    let mut sorted = series.runs.clone();
    sorted.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let relative: Vec<f64> = sorted.iter().map(|(_, value)| value / series.median).collect();
    let split = widest_gap(&relative)?;
    let (low, high) = sorted.split_at(split);
    let share = |part: &[(&Run, f64)]| part.len() as f64 / sorted.len() as f64 * 100.0;
    let center = |part: &[f64]| statistics::median(part).unwrap_or_default();
    Some(format!(
        "two speeds: `{}` is at {:.2} times its median in {:.0} % of its runs and at {:.2} times in {:.0} %; \
         {}",
        series.label,
        center(&relative[..split]),
        share(low),
        center(&relative[split..]),
        share(high),
        cause_of_two_speeds(series.primary, low, high),
    ))
}

/// The split of sorted `values` into two clusters: the index of the first value above the gap.
fn widest_gap(values: &[f64]) -> Option<usize> {
    let n = values.len() as f64;
    let is_cluster = |part: &[f64]| part.len() >= 3 && part.len() as f64 >= CLUSTER_SHARE * n;
    let splits = (1..values.len())
        .filter(|split| is_cluster(&values[..*split]) && is_cluster(&values[*split..]));
    let gap = |split: usize| values[split] - values[split - 1];
    let split = splits.max_by(|one, other| gap(*one).total_cmp(&gap(*other)))?;
    let squares = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let within = ((squares(&values[..split]) + squares(&values[split..])) / (n - 2.0)).sqrt();
    // With few runs, even one cluster has wide gaps. The limit was found by simulation over six kinds of noise: none of
    // them has a gap this wide in more than one of 500 series.
    let wide = (80.0 / n).max(1.0) * within;
    (gap(split) >= GAP_MIN && gap(split) > wide).then_some(split)
}

/// The difference between the two clusters besides time, and its likely cause.
fn cause_of_two_speeds(primary: Measure, low: &[(&Run, f64)], high: &[(&Run, f64)]) -> String {
    use Measure::{MajorFaults, MinorFaults, PeakRss, Switches};
    if matches!(primary, PeakRss | MinorFaults | MajorFaults | Switches) {
        return "it is no time, so look for what differs between the runs (addresses, threads that meet, huge \
                pages granted now and then) rather than at the machine"
            .to_owned();
    }
    let faults = |part: &[(&Run, f64)]| {
        let faults: Vec<f64> = part.iter().map(|(run, _)| run.minor_faults as f64).collect();
        statistics::median(&faults).unwrap_or_default()
    };
    let (fewer, more) = (faults(low).min(faults(high)), faults(low).max(faults(high)));
    if more > 1.2 * fewer + 100.0 {
        return format!(
            "the page faults differ too ({fewer:.0} and {more:.0}), so huge pages are granted now and \
             then: look at /sys/kernel/mm/transparent_hugepage and at how much memory is free in \
             one piece (/proc/buddyinfo)"
        );
    }
    "the page faults do not differ, so look at where it runs (`taskset`, cores that share a cache, \
     clock rates) rather than at huge pages"
        .to_owned()
}

#[cfg(test)]
mod tests;
