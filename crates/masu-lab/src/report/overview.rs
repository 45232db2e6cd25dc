//! The result of several cases together, a line for each variant.
//!
//! A mean over cases hides the loss in a single one, so the extremes and the number of cases each way stand beside it.
//! The mean has no interval: the cases are a choice and no sample.

use serde::Serialize;

use crate::results::Row;
use crate::tables::Source;
use crate::{Measure, Verdict};
use masu_run::once::once;

/// The cases with the same primary measure, drawn together.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Overview {
    pub(super) primary: Measure,
    pub(super) cases: usize,
    /// One line a variant, in the order of their first appearance.
    pub(super) lines: Vec<Line>,
}

/// The results of one variant in all cases.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Line {
    pub(super) variant: String,
    /// The geometric mean of the variant's ratios, and their extremes.
    pub(super) ratios: Option<Spread>,
    /// The geometric mean of the variant's ratios of peak resident memory.
    pub(super) peak_rss: Option<f64>,
    pub(super) count: Count,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub(super) better: usize,
    pub(super) worse: usize,
    pub(super) open: usize,
    pub(super) too_few: usize,
}

/// Ratios of different cases or machines: no sample, and therefore without an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) smallest: f64,
    pub(super) largest: f64,
    pub(super) of: usize,
}

impl Count {
    pub(super) fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Reference => {}
            Verdict::Faster => self.better += 1,
            Verdict::Slower => self.worse += 1,
            Verdict::NoDifferenceShown { .. } => self.open += 1,
            Verdict::TooFewRuns { .. } | Verdict::RunsFailed { .. } | Verdict::NoRatio => {
                self.too_few += 1;
            }
        }
    }

    pub(super) fn all(self) -> usize {
        self.better + self.worse + self.open + self.too_few
    }
}

impl Spread {
    pub(super) fn of(ratios: &[f64]) -> Option<Spread> {
        let smallest = ratios.iter().copied().min_by(f64::total_cmp)?;
        let largest = ratios.iter().copied().max_by(f64::total_cmp)?;
        let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        let mean = (logarithms / ratios.len() as f64).exp();
        Some(Spread { mean, smallest, largest, of: ratios.len() })
    }
}

/// One overview for each primary measure that two cases or more share.
pub(super) fn overviews(source: &Source) -> Vec<Overview> {
    let primaries = once(source.tables.iter().map(|table| table.summary.primary));
    primaries.into_iter().filter_map(|primary| overview(source, primary)).collect()
}

fn overview(source: &Source, primary: Measure) -> Option<Overview> {
    let summaries: Vec<_> = source
        .tables
        .iter()
        .map(|table| &table.summary)
        .filter(|summary| summary.primary == primary)
        .collect();
    if summaries.len() < 2 {
        return None;
    }
    let others = summaries.iter().flat_map(|summary| summary.rows.iter().skip(1));
    let labels = once(others.map(|row| row.variant.as_str()));
    let line = |label: &&str| {
        let others = summaries.iter().flat_map(|summary| summary.rows.iter().skip(1));
        let rows: Vec<&Row> = others.filter(|row| row.variant == *label).collect();
        let mut count = Count::default();
        rows.iter().for_each(|row| count.add(row.verdict));
        let ratios = |measure| -> Vec<f64> {
            let ratio = |row: &&Row| Some(row.estimate(measure)?.ratio?.estimate);
            rows.iter().filter_map(ratio).collect()
        };
        Line {
            variant: (*label).to_owned(),
            ratios: Spread::of(&ratios(primary)),
            peak_rss: Spread::of(&ratios(Measure::PeakRss)).map(|spread| spread.mean),
            count,
        }
    };
    let lines: Vec<Line> = labels.iter().map(line).collect();
    (!lines.is_empty()).then_some(Overview { primary, cases: summaries.len(), lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn cases_are_counted_and_their_ratios_averaged_as_ratios() {
        let case = |name: &str, others: &[&str]| {
            let labels = [&["glibc"], others].concat();
            let runs = fixtures::rounds(labels.len(), fixtures::run);
            fixtures::table(fixtures::a_case(name, &labels, Measure::Wall), runs)
        };
        let tables = vec![case("a", &["masu", "jemalloc"]), case("b", &["jemalloc", "masu"])];
        let overviews = overviews(&fixtures::source(tables));
        assert_eq!(overviews.len(), 1);
        let masu = &overviews[0].lines[0];
        assert_eq!(masu.variant, "masu");
        assert_eq!(masu.count, Count { better: 2, ..Count::default() });
        let ratios = masu.ratios.unwrap();
        assert_eq!(ratios.of, 2);
        assert!((ratios.mean - 0.95_f64.powf(1.5)).abs() < 0.01, "{ratios:?}");
        assert!(ratios.smallest < 0.92 && ratios.largest > 0.93, "{ratios:?}");
    }

    #[test]
    fn one_case_or_cases_of_the_reference_alone_need_no_overview() {
        assert!(overviews(&fixtures::of_commands().sources[0]).is_empty());
        let case = |name: &str| {
            let case = fixtures::a_case(name, &["glibc"], Measure::Wall);
            fixtures::table(case, fixtures::rounds(1, fixtures::run))
        };
        assert!(overviews(&fixtures::source(vec![case("a"), case("b")])).is_empty());
    }
}
