//! One HTML file with plots: no network, no script, legible in light, in dark and on paper.
//!
//! Relies on askama, which escapes what the template is given, and on `plot` for the drawings, which
//! escape for themselves. The structs here are what the template shows, every figure already in
//! words; `view.rs` and `together.rs` make them. The file is well-formed XML too, so that tests can
//! say that nothing is left open.

use askama::Template;

use super::document::Document;
use super::lines;

mod experiment;
mod repeat;
mod table;
mod together;
mod view;

pub(super) use experiment::experiment;

/// The whole file.
#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    /// What several comparisons say together.
    together: Option<Together>,
    sources: Vec<SourceView>,
    notes: Vec<String>,
    masu_version: String,
}

/// One comparison.
struct SourceView {
    /// What its elements' ids begin with.
    id: String,
    heading: String,
    /// When and where, on a line.
    line: String,
    cases: Vec<CaseView>,
    overviews: Vec<Sheet>,
    /// The ratios of all cases at a glance.
    matrix: Option<Sheet>,
    /// Facts about the comparison and its machine: name and value.
    facts: Vec<(String, String)>,
    /// The command that makes it again, where one can be given.
    again: Option<String>,
    confidence: String,
    has_throughput: bool,
    has_latencies: bool,
    has_memory: bool,
}

/// One case.
struct CaseView {
    id: String,
    /// None where the comparison has only this one.
    heading: Option<String>,
    command: String,
    verdicts: Vec<Statement>,
    shortfall: Option<Statement>,
    warnings: Vec<String>,
    notes: Vec<String>,
    /// The main table.
    sheet: Sheet,
    /// The plot of the primary measure.
    primary: Option<Figure>,
    /// Everything else that is drawn.
    figures: Vec<Figure>,
    /// Tables with the figures that are drawn.
    details: Vec<Sheet>,
    /// What was asked for besides: name and value.
    settings: Vec<(String, String)>,
    variants: Vec<VariantView>,
}

/// A label with what is said of it.
struct Statement {
    label: String,
    words: String,
    /// `better`, `worse` or `open`.
    class: &'static str,
}

/// A variant as it was run.
struct VariantView {
    label: String,
    malloc: String,
    library: String,
    /// What it sets in the environment: `NAME=value`.
    environment: Vec<String>,
    /// What its warm-up showed.
    evidence: Vec<String>,
}

/// A plot with its caption.
struct Figure {
    caption: String,
    svg: String,
}

/// A table.
struct Sheet {
    caption: String,
    headings: Vec<String>,
    rows: Vec<SheetRow>,
}

/// A line of a table: the first cell is its heading.
struct SheetRow {
    label: String,
    /// The id of the case that the line is about; empty for none.
    link: String,
    cells: Vec<Cell>,
}

impl SheetRow {
    fn new(label: String, cells: Vec<Cell>) -> SheetRow {
        SheetRow { label, link: String::new(), cells }
    }

    /// The label in the parts that it may be broken between, so that a number stays whole.
    fn parts(&self) -> Vec<&str> {
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let (mut parts, mut rest) = (Vec::new(), self.label.as_str());
        for (at, _) in self.label.match_indices(lines::ends_part) {
            let end = at + 1;
            let (before, after) = (&self.label[..at], &self.label[end..]);
            let is_inside = digit(before.chars().next_back()) && digit(after.chars().next());
            if !is_inside {
                let (part, left) = rest.split_at(rest.len() - after.len());
                parts.push(part);
                rest = left;
            }
        }
        parts.push(rest);
        parts
    }
}

/// A cell of a table.
#[derive(Default)]
struct Cell {
    text: String,
    /// A second line, the ratio, and a third, its interval.
    below: String,
    interval: String,
    /// The colour of the second line: `better`, `worse`, `open`, or empty.
    class: &'static str,
}

/// Several comparisons together.
struct Together {
    heading: String,
    /// Each source: name, file, when and where.
    sources: Vec<(String, String, String)>,
    groups: Vec<GroupView>,
    alone: Vec<String>,
    noun: String,
    is_one_machine_perhaps: bool,
}

/// A case that several comparisons share.
struct GroupView {
    /// None where the comparisons share only this one.
    heading: Option<String>,
    command: String,
    statements: Vec<Statement>,
    figure: Option<Figure>,
    sheet: Sheet,
}

/// The file for `document`.
pub(super) fn page(document: &Document) -> String {
    let together = document.is_merged().then(|| together::view(document));
    let sources: Vec<SourceView> = document
        .sources
        .iter()
        .enumerate()
        .map(|(index, source)| view::source(index, source, document.is_merged()))
        .collect();
    let title = together.as_ref().map(|it| it.heading.clone());
    let title = title.or_else(|| sources.first().map(|source| source.heading.clone()));
    let page = Page {
        title: title.unwrap_or_default(),
        together,
        sources,
        notes: document.notes.iter().map(|note| view::shown(note)).collect(),
        masu_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    page.render().expect("a template that only writes strings into a string has no way to fail")
}

#[cfg(test)]
mod tests;
