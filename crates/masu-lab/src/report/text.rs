//! The page for the terminal: what was compared, a table of medians and ratios a case, a verdict for
//! each variant in plain words, and what to know before trusting them.
//!
//! Relies on the lab's summaries for every figure. Nothing here is wider than the page unless the
//! user's own words are; a table that would be goes on below itself. Styles are for a terminal; a caller that writes elsewhere strips them.

use anstyle::Style;

use super::document::Document;
use super::lines::{
    self, LABEL_WIDTH, label_column, labelled, line, paragraph, right, visible, wrapped,
};
use super::overview::overviews;
use super::verdict::{self, DIM};
use super::{measure, settings};
use crate::quantity;
use crate::results::{LeftOut, Rounds, Row, Summary};
use crate::statistics::Estimate;
use crate::tables::{Source, Table};
use crate::{Measure, Variant};

mod together;

const BOLD: Style = Style::new().bold();

/// The width of the primary measure's column, and of the four others.
const PRIMARY_WIDTH: usize = 22;
const OTHER_WIDTHS: [usize; 4] = [10, 10, 11, 11];

/// What is about to be compared, with versions and what the settings come to. `is_most` says that the rounds may become
/// fewer once the warm-ups are timed ([`Options::within`](crate::CompareOptions)).
#[must_use]
pub fn plan(variants: &[Variant], rounds: &Rounds, is_most: bool) -> String {
    let names: Vec<String> = variants.iter().map(named).collect();
    let each = match rounds {
        Rounds::Fixed(1) => "a run".to_owned(),
        Rounds::Fixed(runs) if is_most => format!("up to {runs} runs"),
        Rounds::Fixed(runs) => format!("{runs} runs"),
        Rounds::Budget { .. } => "runs until it is clear".to_owned(),
    };
    let text = format!("Comparing {}: a warm-up of each, then {each}.", names.join(", "));
    let mut plan = format!("{}\n", wrapped(&text));
    for (label, text) in settings::lines(variants) {
        labelled(&mut plan, label, &text, DIM);
    }
    plan.truncate(plan.trim_end().len());
    plan
}

/// A sentence that is said beside a page, in lines of its width.
#[must_use]
pub fn notice(text: &str) -> String {
    wrapped(text)
}

/// The variant with its allocator's version, where the label leaves room for one.
fn named(variant: &Variant) -> String {
    match &variant.version {
        Some(version) if variant.label == variant.allocator => {
            format!("{} {version}", variant.label)
        }
        Some(version) if variant.label == "system" => {
            format!("system ({} {version})", variant.allocator)
        }
        _ => variant.label.clone(),
    }
}

/// The page for `document`, ready to print.
#[must_use]
pub fn page(document: &Document) -> String {
    let mut page = String::new();
    if document.is_merged() {
        together::page(&mut page, document);
    } else if let Some(source) = document.sources.first() {
        whole(&mut page, source);
    }
    for note in &document.notes {
        labelled(&mut page, "Note", note, Style::new());
    }
    page
}

/// One comparison: its head, its cases, how to read them.
fn whole(page: &mut String, source: &Source) {
    head(page, source);
    for table in &source.tables {
        page.push('\n');
        if source.tables.len() > 1 {
            line(page, &visible(&table.case.name), BOLD);
            paragraph(page, &table.command(), DIM);
        }
        if let Some(settings) = table.settings() {
            paragraph(page, &settings, DIM);
        }
        case(page, source, table);
    }
    for overview in overviews(source) {
        page.push('\n');
        together::overview(page, &overview);
    }
    page.push('\n');
    foot(page, source);
}

fn head(page: &mut String, source: &Source) {
    match (&source.header.suite, &source.tables[..]) {
        (None, [only]) => paragraph(page, &only.command(), BOLD),
        (Some(suite), _) => line(page, &format!("Suite {}", visible(suite)), BOLD),
        (None, tables) => line(page, &format!("{} cases", tables.len()), BOLD),
    }
    paragraph(page, &format!("{}, {}", source.header.began, source.place()), DIM);
}

/// One case: table, verdicts, who is missing, warnings.
fn case(page: &mut String, source: &Source, table: &Table) {
    let summary = &table.summary;
    figures(page, summary);
    page.push('\n');
    for row in &summary.rows {
        let (words, style) = verdict::words(row, summary.primary);
        labelled(page, &row.variant, &words, style);
    }
    if let Some(decision) = table.decision(&source.header) {
        let (words, style, _) = verdict::decided(&decision);
        labelled(page, "Decided", &words, style.bold());
    }
    for (label, text) in settings::lines(&table.case.variants) {
        labelled(page, label, &text, DIM);
    }
    for LeftOut { label, reason } in &table.case.left_out {
        labelled(page, label, &format!("left out: {reason}"), DIM);
    }
    if let Some((word, text)) = table.shortfall(&source.header) {
        labelled(page, word, &text, BOLD);
    }
    if !summary.warnings.is_empty() {
        page.push('\n');
    }
    for warning in &summary.warnings {
        labelled(page, "Warning", warning, Style::new());
    }
    if !summary.notes.is_empty() {
        page.push('\n');
    }
    for note in &summary.notes {
        labelled(page, "Note", note, DIM);
    }
}

/// Medians, and below each its ratio to the reference.
fn figures(page: &mut String, summary: &Summary) {
    for (index, columns) in fitting(&measure::shown(summary)).iter().enumerate() {
        if index > 0 {
            page.push('\n');
        }
        headings(page, columns);
        for row in &summary.rows {
            figures_of(page, columns, &row.variant, row);
        }
    }
}

/// The columns in tables that fit the page, each column with its place among all.
fn fitting(columns: &[Measure]) -> Vec<Vec<(usize, Measure)>> {
    let mut tables: Vec<Vec<(usize, Measure)>> = vec![Vec::new()];
    let mut used = LABEL_WIDTH;
    for (index, column) in columns.iter().enumerate() {
        if used + width(index) > lines::width() && used > LABEL_WIDTH {
            tables.push(Vec::new());
            used = LABEL_WIDTH;
        }
        used += width(index);
        tables.last_mut().expect("there is always one table").push((index, *column));
    }
    tables
}

fn headings(page: &mut String, columns: &[(usize, Measure)]) {
    let mut heading = " ".repeat(LABEL_WIDTH);
    for (index, column) in columns {
        heading.push_str(&right(measure::heading(*column), width(*index)));
    }
    line(page, &heading, BOLD);
}

/// The two lines of `row`, called `label`.
fn figures_of(page: &mut String, columns: &[(usize, Measure)], label: &str, row: &Row) {
    let cells = |cell: fn(&Estimate, bool) -> (String, Style)| -> String {
        let cell = |(index, column): &(usize, Measure)| {
            let estimate = row.estimate(*column);
            let (text, style) = estimate.map(|it| cell(it, *index == 0)).unwrap_or_default();
            let gap = " ".repeat(width(*index).saturating_sub(text.chars().count()));
            format!("{gap}{style}{text}{style:#}")
        };
        columns.iter().map(cell).collect()
    };
    page.push_str(&label_column(label));
    line(page, &if is_empty(row) { no_runs() } else { cells(median) }, Style::new());
    if row.estimates.iter().any(|estimate| estimate.ratio.is_some()) {
        line(page, &format!("{:LABEL_WIDTH$}{}", "", cells(ratio)), Style::new());
    }
}

fn width(column: usize) -> usize {
    column.checked_sub(1).map_or(PRIMARY_WIDTH, |other| OTHER_WIDTHS[other])
}

fn is_empty(row: &Row) -> bool {
    row.estimates.iter().all(|estimate| estimate.median.is_none())
}

fn no_runs() -> String {
    right("no run that counts", PRIMARY_WIDTH)
}

fn median(estimate: &Estimate, _is_primary: bool) -> (String, Style) {
    let text = estimate.median.map(|median| measure::value(estimate.measure, median));
    (text.unwrap_or_else(|| "–".to_owned()), Style::new())
}

/// `×0.893`, and for the primary measure the interval before it.
fn ratio(estimate: &Estimate, is_primary: bool) -> (String, Style) {
    let Some(ratio) = estimate.ratio else {
        return Default::default();
    };
    let text = format!("×{}", quantity::ratio(ratio.estimate));
    let style = verdict::style(estimate.measure, &ratio);
    match ratio.interval {
        Some((low, high)) if is_primary => {
            (format!("({}–{}) {text}", quantity::ratio(low), quantity::ratio(high)), style)
        }
        _ => (text, style),
    }
}

/// How to read the page, and how to have the same order again.
fn foot(page: &mut String, source: &Source) {
    let Some(table) = source.tables.first() else { return };
    let more = source.tables.iter().any(|it| it.summary.primary.is_better_larger());
    let less = if more { "of answers more is better, of all else less" } else { "less is better" };
    let text = format!("Medians; × the reference, {less}, in pairs of neighbouring runs.");
    paragraph(page, &text, DIM);
    let text = format!(
        "“Surely”: {:.0} %, for all variants together. Order of runs: --seed {}.",
        table.summary.confidence * 100.0,
        source.header.seed
    );
    paragraph(page, &text, DIM);
}

#[cfg(test)]
mod tests;
