//! Figures of a row, one a round: measured by the lab, or written by the programs themselves.
//!
//! Relies on the runs' order: a program that notes a line for each run has noted the warm-up's first, so the last
//! lines are those of the timed runs. Two series are compared round by round, whichever row they come from.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::Measure;
use crate::statistics::{self, Level, Ratio};
use crate::tables::Table;
use masu_run::parameter;
use masu_run::{Ending, Run};

/// One figure of one row, in each round whose run counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series(BTreeMap<usize, f64>);

pub(super) fn row(table: &Table, variant: &str, values: &[(&str, &str)]) -> Option<usize> {
    let values: Vec<(String, String)> =
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let label = format!("{variant}{}", parameter::label(&values));
    table.case.variants.iter().position(|variant| variant.label == label)
}

/// The runs of the row at `index` in which the program did its work.
fn succeeded(table: &Table, index: Option<usize>) -> impl Iterator<Item = &Run> {
    let own = table.runs.iter().filter(move |run| Some(run.variant) == index);
    own.filter(|run| run.ending == Ending::Exited(0))
}

impl Series {
    /// The values of `measure` in the row at `index`; empty where there is no such row.
    pub(super) fn of(table: &Table, index: Option<usize>, measure: Measure) -> Series {
        Series::by(table, index, |run| measure.of(run))
    }

    /// The values of `figure` in the runs of the row at `index`; empty where there is no such row.
    pub(super) fn by(
        table: &Table,
        index: Option<usize>,
        figure: impl Fn(&Run) -> Option<f64>,
    ) -> Series {
        let own = succeeded(table, index).filter(|run| !run.replaced);
        Series(own.filter_map(|run| Some((run.round?, figure(run)?))).collect())
    }

    /// The values that the runs of the row at `index` appended to the file at `path`: the number `key` of each JSON
    /// line that belongs to the row. Empty where the file is missing or has fewer lines than there were runs.
    pub(super) fn noted(
        table: &Table,
        index: Option<usize>,
        path: &Path,
        is_own: impl Fn(&Value) -> bool,
        key: &str,
    ) -> Series {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<Option<f64>> =
            lines.filter(is_own).map(|line| line.get(key)?.as_f64()).collect();
        // A run that failed has noted nothing.
        let own: Vec<&Run> = succeeded(table, index).collect();
        let Some(first) = lines.len().checked_sub(own.len()) else { return Series::default() };
        let noted = own.iter().zip(&lines[first..]).filter(|(run, _)| !run.replaced);
        Series(noted.filter_map(|(run, value)| Some((run.round?, (*value)?))).collect())
    }

    /// The figures of both series in each round that both have.
    fn beside(&self, other: &Series) -> impl Iterator<Item = (usize, f64, f64)> {
        self.0.iter().filter_map(|(round, own)| Some((*round, *own, *other.0.get(round)?)))
    }

    /// The figures of each round, made from this series and another.
    pub(super) fn with(&self, other: &Series, make: impl Fn(f64, f64) -> f64) -> Series {
        let both = self.beside(other);
        let both = both.map(|(round, own, other)| (round, make(own, other)));
        Series(both.collect())
    }

    /// The same series with no figure below `least`: a time that a clock cannot distinguish from nothing counts as the
    /// least it can.
    pub(crate) fn at_least(&self, least: f64) -> Series {
        Series(self.0.iter().map(|(round, figure)| (*round, figure.max(least))).collect())
    }

    pub(super) fn median(&self) -> Option<f64> {
        statistics::median(&self.0.values().copied().collect::<Vec<f64>>())
    }

    pub(super) fn range(&self) -> Option<(f64, f64)> {
        let values = || self.0.values().copied();
        Some((values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This series over `reference`, round by round, with an interval at the level of a table's one verdict.
    pub(super) fn over(&self, reference: &Series) -> Option<Ratio> {
        let pairs: Vec<(f64, f64)> =
            self.beside(reference).map(|(_, own, reference)| (reference, own)).collect();
        if pairs.is_empty() {
            return None;
        }
        statistics::ratio(&pairs, 1, Level::TABLE)
    }
}

impl FromIterator<(usize, f64)> for Series {
    fn from_iter<I: IntoIterator<Item = (usize, f64)>>(figures: I) -> Series {
        Series(figures.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    fn series(figures: &[f64]) -> Series {
        figures.iter().copied().enumerate().collect()
    }

    #[test]
    fn series_are_compared_round_by_round() {
        let slow = series(&[2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
        let quick = series(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 100.0]);
        let ratio = slow.over(&quick).unwrap();
        assert!((ratio.estimate - 2.0).abs() < 1e-9, "{ratio:?}");
        assert_eq!(ratio.pairs, 8);
        assert!(ratio.interval.is_some());
        assert_eq!(slow.over(&Series::default()), None);
        assert_eq!(slow.with(&quick, |a, b| a - b).median(), Some(4.5));
        let none = series(&[0.0; 8]);
        assert_eq!(none.over(&slow), None, "nothing has no ratio");
        let ratio = none.at_least(1.0).over(&slow.at_least(10.0)).unwrap();
        assert!((0.06..0.1).contains(&ratio.estimate), "{ratio:?}");
    }

    #[test]
    fn the_last_of_the_noted_lines_are_the_timed_runs() {
        let mut table = fixtures::of_commands().sources.remove(0).tables.remove(0);
        table.runs = (0..4).map(|round| fixtures::run(0, round, 1.0)).collect();
        table.runs[1].replaced = true;
        table.runs[3].ending = Ending::Exited(101);
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let text = "{\"ms\":900}\n{\"ms\":1}\n{\"ms\":7,\"other\":0}\n{\"ms\":2}\n{\"ms\":3.5}\n";
        std::fs::write(&file, text).unwrap();
        let any = |line: &Value| line.get("other").is_none();
        let noted = Series::noted(&table, Some(0), &file, any, "ms");
        let none = Series::noted(&table, Some(0), &file, any, "s");
        assert_eq!(noted.range(), Some((1.0, 3.5)));
        assert_eq!(noted.len(), 2);
        assert!(none.is_empty());
        assert!(Series::noted(&table, Some(0), "/no/such/file".as_ref(), any, "ms").is_empty());
    }
}
