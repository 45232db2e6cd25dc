//! A comparison as a page for the terminal: a table of medians and ratios, a verdict for each
//! variant in plain words, and what to know before trusting them.
//!
//! Relies on the lab for every figure. Nothing here is wider than 80 columns unless the user's own
//! words are; styles vanish where the output is no terminal.

mod quantity;
mod text;
mod verdict;

use anstyle::Style;
use masu_lab::results::{Row, Summary};
use masu_lab::statistics::Estimate;
use masu_lab::{Comparison, Measure, Variant};

pub(crate) use self::quantity::about;
use self::text::{LABEL_WIDTH, label_column, labelled, line, right};
use self::verdict::{BAD, DIM};

const BOLD: Style = Style::new().bold();

/// The table's other columns: heading, measure, width.
const COLUMNS: [(&str, Measure, usize); 5] = [
    ("wall", Measure::Wall, 22),
    ("user", Measure::User, 10),
    ("sys", Measure::Sys, 10),
    ("peak RSS", Measure::PeakRss, 11),
    ("faults", Measure::MinorFaults, 11),
];

/// A variant that was not compared.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub(crate) label: String,
    pub(crate) reason: String,
}

/// What is about to be compared, with versions.
pub(crate) fn plan(variants: &[Variant], runs: usize) -> String {
    let named = |variant: &Variant| match &variant.version {
        Some(version) if variant.label == variant.allocator => {
            format!("{} {version}", variant.label)
        }
        Some(version) if variant.label == "system" => {
            format!("system ({} {version})", variant.allocator)
        }
        _ => variant.label.clone(),
    };
    let names: Vec<String> = variants.iter().map(named).collect();
    let each = if runs == 1 { "a run".to_owned() } else { format!("{runs} runs") };
    let text = format!("Comparing {}: a warm-up of each, then {each}.", names.join(", "));
    text::wrapped(&text)
}

/// The page for `comparison`, ready to print.
pub(crate) fn page(comparison: &Comparison, left_out: &[LeftOut]) -> String {
    let summary = &comparison.summary;
    let mut page = String::new();
    table(&mut page, summary);
    page.push('\n');
    verdicts(&mut page, summary);
    for LeftOut { label, reason } in left_out {
        labelled(&mut page, label, &format!("left out: {reason}"), DIM);
    }
    if comparison.stopped {
        labelled(&mut page, "Stopped", &progress_made(comparison), BAD);
    }
    if !summary.warnings.is_empty() {
        page.push('\n');
    }
    for warning in &summary.warnings {
        labelled(&mut page, "Warning", warning, Style::new());
    }
    page.push('\n');
    foot(&mut page, comparison);
    page
}

fn table(page: &mut String, summary: &Summary) {
    let mut heading = " ".repeat(LABEL_WIDTH);
    for (name, _, width) in COLUMNS {
        heading.push_str(&right(name, width));
    }
    line(page, &heading, BOLD);
    for row in &summary.rows {
        let cells = |cell: fn(&Estimate) -> String| -> String {
            COLUMNS
                .iter()
                .map(|(_, measure, width)| {
                    right(&of(row, *measure).map(cell).unwrap_or_default(), *width)
                })
                .collect()
        };
        page.push_str(&label_column(&row.variant));
        line(page, &cells(median), Style::new());
        let ratios = cells(ratio);
        if !ratios.trim().is_empty() {
            line(page, &format!("{:LABEL_WIDTH$}{ratios}", ""), DIM);
        }
    }
}

/// The row's estimate of `measure`, if some run has it.
fn of(row: &Row, measure: Measure) -> Option<&Estimate> {
    row.estimates.iter().find(|estimate| estimate.measure == measure)
}

fn median(estimate: &Estimate) -> String {
    let Some(median) = estimate.median else {
        return "–".to_owned();
    };
    match estimate.measure {
        Measure::Wall | Measure::User | Measure::Sys => quantity::seconds(median),
        Measure::PeakRss => quantity::bytes(median),
        _ => quantity::count(median),
    }
}

/// `×0.893`, and for the primary measure the interval before it.
fn ratio(estimate: &Estimate) -> String {
    let Some(ratio) = estimate.ratio else {
        return String::new();
    };
    let text = format!("×{}", quantity::ratio(ratio.estimate));
    match ratio.interval {
        Some((low, high)) if estimate.measure == Measure::Wall => {
            format!("({}–{}) {text}", quantity::ratio(low), quantity::ratio(high))
        }
        _ => text,
    }
}

fn verdicts(page: &mut String, summary: &Summary) {
    for row in &summary.rows {
        let (words, style) = verdict::words(row, summary.primary);
        labelled(page, &row.variant, &words, style);
    }
}

fn progress_made(comparison: &Comparison) -> String {
    let asked = comparison.header.runs * comparison.summary.rows.len();
    format!("{} of {asked} runs were made; they are what is shown", comparison.runs.len())
}

/// How to read the page, and how to have the same order again.
fn foot(page: &mut String, comparison: &Comparison) {
    let sure = comparison.summary.confidence * 100.0;
    line(page, "Medians; × the reference, less is better, in pairs of neighbouring runs.", DIM);
    let text = format!(
        "“Surely”: {sure:.0} %, for all variants together. Order of runs: --seed {}.",
        comparison.header.seed
    );
    line(page, &text, DIM);
}

#[cfg(test)]
mod tests;
