//! Measurements as parts of a page: a diagnosis in words, the ratios of the mallocs, cells of tables.

use super::series::{Series, row};
use super::{Block, Sheet, claim};
use crate::Measure;
use crate::diagnose::{Diagnosis, Finding, Kind};
use crate::report::{bytes, count, seconds};
use crate::tables::Table;
use masu_run::workload::shortened;

/// The most findings on a page.
const FINDINGS: usize = 4;

pub(super) fn diagnosis(what: &str, diagnosis: &Diagnosis) -> Vec<Block> {
    let command = shortened(&diagnosis.command, usize::MAX);
    let mut blocks = vec![Block::marked(format!("{what}, run once and counted: `{command}`"))];
    if diagnosis.findings.is_empty() {
        blocks.push(Block::marked("Nothing stands out."));
    }
    let mut findings: Vec<&Finding> = diagnosis.findings.iter().collect();
    // The finding that memory is fine adds nothing where a cause was found.
    if findings.iter().any(|finding| finding.id.kind() == Kind::Cause) {
        findings.retain(|finding| finding.id.kind() != Kind::AllClear);
    }
    let few = findings.into_iter().take(FINDINGS);
    blocks.extend(crate::report::findings(few, &diagnosis.command, usize::MAX));
    for block in &mut blocks {
        if let Block::Heading(heading) = block {
            // A finding is a part of the section on the diagnosis.
            heading.level = 3;
        }
    }
    blocks
}

/// The wall time and the memory of every row of `table` that has these values, over those of the first row.
pub(super) fn mallocs(table: &Table, values: &[(&str, &str)], caption: &str) -> Option<Sheet> {
    let reference = table.case.variants.first()?;
    let of = |index: Option<usize>, measure| Series::of(table, index, measure);
    let first = row(table, &reference.allocator_text(), values);
    let mut rows = Vec::new();
    for (index, variant) in table.case.variants.iter().enumerate() {
        let has = |(name, value): &(&str, &str)| {
            variant.parameters.iter().any(|(known, own)| known == name && own == value)
        };
        if !values.iter().all(has) {
            continue;
        }
        let index = Some(index);
        let (wall, rss) = (of(index, Measure::Wall), of(index, Measure::PeakRss));
        let times = |own: &Series, measure| {
            if index == first {
                "1".to_owned()
            } else {
                claim::written(own.over(&of(first, measure)).as_ref())
            }
        };
        rows.push(vec![
            malloc(variant),
            time(&wall),
            times(&wall, Measure::Wall),
            memory(&rss),
            times(&rss, Measure::PeakRss),
        ]);
    }
    let headings = ["malloc", "wall", "× the first", "peak RSS", "× the first"];
    (rows.len() > 1).then(|| Sheet::new(caption, headings, rows))
}

pub(super) fn measure_named(name: &str) -> Option<Measure> {
    Measure::ALL.into_iter().find(|measure| measure.name() == name)
}

/// A malloc with its version: `jemalloc 5.3.0`.
pub(super) fn malloc(variant: &masu_run::Variant) -> String {
    let text = variant.allocator_text();
    match &variant.version {
        Some(version) if !text.contains(':') => format!("{} {version}", variant.allocator),
        _ => text,
    }
}

pub(super) fn time(series: &Series) -> String {
    series.median().map(seconds).unwrap_or_default()
}

pub(super) fn memory(series: &Series) -> String {
    series.median().map(bytes).unwrap_or_default()
}

/// A whole number of a suite, with its commas: `1,000`. A text that is no number stays as it is.
pub(super) fn grouped(number: &str) -> String {
    number.parse().map_or_else(|_| number.to_owned(), count)
}

/// Names with their labels.
pub(super) fn owned<'a>(
    pairs: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
) -> Vec<(String, String)> {
    pairs.into_iter().map(|(name, label)| ((*name).to_owned(), (*label).to_owned())).collect()
}

/// `1 worker`, `2 workers`.
pub(super) fn numbered(number: &str, what: &str) -> String {
    let s = if number == "1" { "" } else { "s" };
    format!("{number} {what}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn the_mallocs_are_held_against_the_first() {
        let document = fixtures::of_commands();
        let table = &document.sources[0].tables[0];
        let sheet = mallocs(table, &[], "job").unwrap();
        assert_eq!(sheet.rows.len(), 3);
        assert_eq!(sheet.rows[0].label, "glibc 1.2");
        let times = |row: usize| sheet.rows[row].cells[1].text.words();
        assert_eq!(times(0), "1");
        assert!(times(1).starts_with("×0.9"), "{}", times(1));
        assert_eq!(mallocs(table, &[("workers", "2")], "job"), None);
    }
}
