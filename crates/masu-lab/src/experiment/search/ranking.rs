//! Masu's place among the others: compared with the best of them, whichever that is on this machine.

use super::{Measured, REFERENCE};
use crate::Measure;
use crate::experiment::series::row;
use crate::experiment::{Block, Expect, Held, Series, claim};
use crate::tables::Table;

const OURS: &str = "masu";

/// Masu in `measure` beside the best of the others by its median, in words; `what` names the measured program and
/// quantity. None where masu or all others are missing.
fn standing(table: &Table, what: &str, measure: Measure) -> Option<String> {
    let series = |label: &str| Series::of(table, row(table, label, &[]), measure);
    let ours = series(OURS);
    ours.median()?;
    let others = table.case.variants.iter().map(|variant| variant.label.as_str());
    let others = others.filter(|label| *label != OURS);
    let known = others.filter_map(|label| Some((label, series(label).median()?)));
    let by_median = |one: &(&str, f64), other: &(&str, f64)| one.1.total_cmp(&other.1);
    let (best, most, better) = if measure.is_better_larger() {
        (known.max_by(by_median)?.0, "most", Expect::Above(1.0))
    } else {
        (known.min_by(by_median)?.0, "least", Expect::Below(1.0))
    };
    let ratio = ours.over(&series(best));
    let interval = ratio.as_ref().and_then(|ratio| ratio.interval);
    let meaning = match interval.map(|interval| better.judge(interval)) {
        Some(Held::Yes) => "masu is better",
        Some(Held::No) => "**masu is worse**",
        Some(Held::Undecided) => "no difference shown",
        None => "too few runs to tell",
    };
    let ratio = claim::written(ratio.as_ref());
    let note = if best == REFERENCE { ", the system's own" } else { "" };
    Some(format!(
        "{what}: {ratio} that of {best}{note}, which has the {most} of the others: {meaning}"
    ))
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
            points.extend(standing(table, &format!("{server}, {what}"), measure));
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
    fn masu_is_held_against_the_best_of_each_measure() {
        let said = |masu, measure| {
            let all = [("glibc", 1.0), ("jemalloc", 0.8), ("tcmalloc", 0.9), ("masu", masu)];
            standing(&servers(&all), "Solr", measure).unwrap()
        };
        let better = said(0.7, Measure::Throughput);
        assert!(better.contains("of jemalloc, which has the most"), "{better}");
        assert!(better.ends_with("masu is better"), "{better}");
        let latency = said(0.7, Measure::LatencyP50);
        assert!(latency.contains("of jemalloc, which has the least"), "{latency}");
        assert!(said(1.1, Measure::Throughput).ends_with("**masu is worse**"));
        let alone = |label| standing(&servers(&[(label, 1.0)]), "Solr", Measure::Throughput);
        assert_eq!(["glibc", "masu"].map(alone), [None, None]);
    }
}
