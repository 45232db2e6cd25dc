//! Masu's place among the others: compared with the best of them, whichever that is on this machine.

use super::{Measured, REFERENCE};
use crate::Measure;
use crate::experiment::series::row;
use crate::experiment::{Block, Expect, Held, Series, claim};
use crate::statistics::Ratio;
use crate::tables::Table;

const OURS: &str = "masu";

/// One measure of masu compared with the best other malloc's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    /// The best other malloc by its median.
    pub(super) best: String,
    /// Masu's over the best other malloc's.
    pub(super) ratio: Option<Ratio>,
    /// Whether masu's is better: yes, no, or undecided by the runs.
    pub(super) is_no_worse: Held,
}

/// The comparison of masu in `measure`; none where masu or all others are missing.
pub(super) fn of(table: &Table, measure: Measure) -> Option<Standing> {
    let series = |label: &str| Series::of(table, row(table, label, &[]), measure);
    let ours = series(OURS);
    ours.median()?;
    let others = table.case.variants.iter().map(|variant| variant.label.as_str());
    let others = others.filter(|label| *label != OURS);
    let known = others.filter_map(|label| Some((label, series(label).median()?)));
    let (best, _) = known.reduce(|best, one| {
        let is_better = if measure.is_better_larger() { one.1 > best.1 } else { one.1 < best.1 };
        if is_better { one } else { best }
    })?;
    let ratio = ours.over(&series(best));
    let better = if measure.is_better_larger() { Expect::Above(1.0) } else { Expect::Below(1.0) };
    let is_no_worse = match ratio.and_then(|ratio| ratio.interval) {
        Some(interval) => better.judge(interval),
        None => Held::Undecided,
    };
    Some(Standing { best: best.to_owned(), ratio, is_no_worse })
}

/// The comparison in words; `what` names the measured program and quantity.
pub(super) fn sentence(what: &str, measure: Measure, standing: &Standing) -> String {
    let ratio = claim::written(standing.ratio.as_ref());
    let least = if measure.is_better_larger() { "most" } else { "least" };
    let meaning = match (
        standing.is_no_worse,
        standing.ratio.is_some_and(|ratio| ratio.interval.is_some()),
    ) {
        (Held::Yes, _) => "masu is better",
        (Held::No, _) => "**masu is worse**",
        (Held::Undecided, true) => "no difference shown",
        (Held::Undecided, false) => "too few runs to tell",
    };
    let best = &standing.best;
    let note = if best == REFERENCE { ", the system's own" } else { "" };
    format!("{what}: {ratio} that of {best}{note}, which has the {least} of the others: {meaning}")
}

/// The section on masu: its comparison with the best of the others.
pub(super) fn blocks(measured: &Measured) -> Vec<Block> {
    let mut points = Vec::new();
    let tables = [
        (
            &measured.solr,
            "Solr",
            [
                ("queries a second", Measure::Throughput),
                ("memory", Measure::PeakRss),
                ("p99 at the rate", Measure::LatencyP99),
            ],
        ),
        (
            &measured.mariadb,
            "MariaDB",
            [
                ("time of a burst", Measure::Wall),
                ("memory", Measure::PeakRss),
                ("CPU time", Measure::Cpu),
            ],
        ),
    ];
    for (table, server, measures) in tables {
        let Some(table) = table else { continue };
        for (what, measure) in measures {
            let Some(standing) = of(table, measure) else { continue };
            points.push(sentence(&format!("{server}, {what}"), measure, &standing));
        }
    }
    if points.is_empty() {
        return Vec::new();
    }
    let text = "The aim is memory of the least and throughput no worse than the best, whichever that is here. Malloc's part in \
                such a server is small, so hardly a difference is to be had.";
    vec![Block::marked(text), Block::points(points)]
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::servers;
    use super::*;

    #[test]
    fn the_best_is_chosen_by_measure_and_masu_is_held_against_it() {
        let table = servers(&[("glibc", 1.0), ("jemalloc", 0.8), ("tcmalloc", 0.9), ("masu", 0.7)]);
        let throughput = of(&table, Measure::Throughput).unwrap();
        assert_eq!((throughput.best.as_str(), throughput.is_no_worse), ("jemalloc", Held::Yes));
        assert!(sentence("queries", Measure::Throughput, &throughput).contains("masu is better"));
        let latency = of(&table, Measure::LatencyP50).unwrap();
        assert_eq!((latency.best.as_str(), latency.is_no_worse), ("jemalloc", Held::Yes));
    }

    #[test]
    fn a_loss_of_masu_is_reported() {
        let table = servers(&[("glibc", 1.0), ("jemalloc", 0.8), ("masu", 1.1)]);
        let standing = of(&table, Measure::Throughput).unwrap();
        assert_eq!(standing.is_no_worse, Held::No);
        assert!(sentence("queries", Measure::Throughput, &standing).contains("**masu is worse**"));
    }

    #[test]
    fn without_masu_or_without_others_nothing_is_said() {
        assert_eq!(of(&servers(&[("glibc", 1.0)]), Measure::Throughput), None);
        assert_eq!(of(&servers(&[("masu", 1.0)]), Measure::Throughput), None);
    }
}
