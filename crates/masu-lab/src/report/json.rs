//! The summaries as one JSON object; the runs are in the results file, which is JSON too.
//!
//! Ratios are `estimate` with `interval`; an interval that leaves out 1 is a difference.

use serde::Serialize;

use super::across;
use super::document::Document;
use super::overview::{Count, Overview, Spread, overviews};
use crate::summary::Decision;
use crate::tables::{self, Extent};
use crate::{Header, Summary};
use masu_run::Evidence;

#[derive(Serialize)]
struct Page<'a> {
    /// COUPLING: grows when a reader would misread the object.
    report_version: u32,
    comparisons: Vec<Comparison<'a>>,
    /// The results of all comparisons together, if there are several.
    together: Vec<Together<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Comparison<'a> {
    name: String,
    file: Option<&'a str>,
    header: &'a Header,
    tables: Vec<Table<'a>>,
    overviews: Vec<Overview>,
}

#[derive(Serialize)]
struct Table<'a> {
    case: &'a str,
    extent: Extent,
    runs: usize,
    evidence: &'a [Evidence],
    /// The decision by the criterion that was fixed in advance, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    summary: &'a Summary,
}

#[derive(Serialize)]
struct Together<'a> {
    case: &'a str,
    command: &'a [String],
    variant: &'a str,
    verdicts: Count,
    ratios: Option<Spread>,
}

/// The object, indented.
pub(super) fn page(document: &Document) -> String {
    let groups = across::groups(document);
    let together = groups.iter().flat_map(|group| {
        let case = &group.first().case;
        group.variants().into_iter().skip(1).map(move |variant| Together {
            case: &case.name,
            command: &case.command,
            variant: variant.variant,
            verdicts: variant.count,
            ratios: variant.ratios,
        })
    });
    let page = Page {
        report_version: 1,
        comparisons: document.sources.iter().enumerate().map(comparison).collect(),
        together: together.collect(),
        notes: &document.notes,
    };
    let text = serde_json::to_string_pretty(&page).expect("strings and numbers are JSON");
    text + "\n"
}

fn comparison((index, source): (usize, &tables::Source)) -> Comparison<'_> {
    Comparison {
        name: across::name(index),
        file: source.file.as_deref(),
        header: &source.header,
        tables: source.tables.iter().map(|it| table(it, &source.header)).collect(),
        overviews: overviews(source),
    }
}

fn table<'a>(table: &'a tables::Table, header: &Header) -> Table<'a> {
    Table {
        case: &table.case.name,
        extent: table.extent,
        runs: table.runs.len(),
        evidence: &table.evidence,
        decision: table.decision(header),
        summary: &table.summary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn a_verdict_and_its_ratio_are_found_by_name() {
        let page: serde_json::Value =
            serde_json::from_str(&page(&fixtures::of_commands())).unwrap();
        let row = &page["comparisons"][0]["tables"][0]["summary"]["rows"][1];
        assert_eq!(row["variant"], "masu");
        assert_eq!(row["verdict"], "faster");
        let wall = &row["estimates"][0];
        assert_eq!(wall["measure"], "wall");
        assert!(wall["ratio"]["interval"][1].as_f64().unwrap() < 1.0);
    }
}
