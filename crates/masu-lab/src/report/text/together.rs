//! Several cases or several machines on the terminal's page.
//!
//! Relies on `overview.rs` and `across.rs` for what may be said of them together.

use anstyle::Style;

use super::{BOLD, figures_of, fitting, headings, measure};
use crate::quantity;
use crate::report::across::{self, Group};
use crate::report::document::Document;
use crate::report::lines::{
    self, LABEL_WIDTH, label_column, labelled, line, paragraph, right, visible,
};
use crate::report::overview::{Overview, overviews};
use crate::report::verdict::DIM;

/// The whole page of a document with several sources.
pub(super) fn page(page: &mut String, document: &Document) {
    let noun = across::noun(document);
    line(page, &format!("{} {noun}", document.sources.len()), BOLD);
    for (index, source) in document.sources.iter().enumerate() {
        let text = format!(
            "{}: {}, {}",
            source.file.as_deref().unwrap_or("a comparison"),
            source.header.began,
            source.place()
        );
        labelled(page, &across::name(index), &text, Style::new());
    }
    for group in across::groups(document) {
        page.push('\n');
        self::group(page, &group, noun);
        shortfalls(page, document, &group);
    }
    for (index, source) in document.sources.iter().enumerate() {
        for overview in overviews(source) {
            page.push('\n');
            line(page, &format!("On {}:", across::name(index)), BOLD);
            self::overview(page, &overview);
        }
    }
    for alone in across::alone(document) {
        labelled(page, "Not merged", &alone, DIM);
    }
    page.push('\n');
    foot(page, document, noun);
}

/// A case: each variant's figures on each machine, then what they say together.
fn group(page: &mut String, group: &Group<'_>, noun: &str) {
    let first = group.first();
    line(page, &visible(&first.case.name), BOLD);
    paragraph(page, &first.command(), DIM);
    let variants = group.variants();
    for columns in fitting(&measure::shown(&first.summary)) {
        headings(page, &columns);
        for variant in &variants {
            line(page, &visible(variant.variant), Style::new());
            for (index, row) in &variant.rows {
                figures_of(page, &columns, &format!("  {}", across::name(*index)), row);
            }
        }
    }
    page.push('\n');
    for variant in &variants {
        labelled(page, variant.variant, &variant.statement(noun), Style::new());
    }
}

/// What of the group ended early, and what each machine warns of.
fn shortfalls(page: &mut String, document: &Document, group: &Group<'_>) {
    for (index, table) in &group.members {
        let header = &document.sources[*index].header;
        if let Some((word, text)) = table.shortfall(header) {
            labelled(page, &format!("{word}, {}", across::name(*index)), &text, BOLD);
        }
        for warning in &table.summary.warnings {
            labelled(page, &format!("Warning, {}", across::name(*index)), warning, Style::new());
        }
        for note in &table.summary.notes {
            labelled(page, &format!("Note, {}", across::name(*index)), note, DIM);
        }
    }
}

/// The cases of one comparison, a line a variant.
pub(super) fn overview(page: &mut String, overview: &Overview) {
    let title =
        format!("{} cases, {} × the reference", overview.cases, measure::name(overview.primary));
    paragraph(page, &title, BOLD);
    let cells = |cells: [&str; 8]| -> String {
        const WIDTHS: [usize; 8] = [9, 8, 8, 7, 7, 8, 8, 9];
        let mut used = LABEL_WIDTH;
        let mut text = String::new();
        for (cell, width) in cells.iter().zip(WIDTHS) {
            if used + width > lines::width() {
                text.push_str(&format!("\n{:LABEL_WIDTH$}", ""));
                used = LABEL_WIDTH;
            }
            used += width;
            text.push_str(&right(cell, width));
        }
        text
    };
    let heading = ["mean", "least", "most", "better", "worse", "no diff", "too few", "peak RSS"];
    line(page, &format!("{}{}", label_column(""), cells(heading)), BOLD);
    let times = |ratio: Option<f64>| {
        ratio.map_or_else(|| "–".to_owned(), |ratio| format!("×{}", quantity::ratio(ratio)))
    };
    for one in &overview.lines {
        page.push_str(&label_column(&one.variant));
        let count = one.count;
        let text = [
            times(one.ratios.map(|it| it.mean)),
            times(one.ratios.map(|it| it.smallest)),
            times(one.ratios.map(|it| it.largest)),
            count.better.to_string(),
            count.worse.to_string(),
            count.open.to_string(),
            count.too_few.to_string(),
            times(one.peak_rss),
        ];
        line(page, &cells(text.each_ref().map(String::as_str)), Style::new());
    }
    paragraph(page, "Geometric means, for information: cases are a choice and no sample.", DIM);
}

fn foot(page: &mut String, document: &Document, noun: &str) {
    let text = format!(
        "Medians; × the reference of the same {}, in pairs of neighbouring runs. Each table's \
         intervals hold at 99 % for its own {0}; runs of different {noun} are never pooled, and \
         range and mean of their ratios are for information.",
        noun.trim_end_matches('s')
    );
    paragraph(page, &text, DIM);
    if noun == "comparisons" {
        let text = "Some tell the same facts of their machine: they may be one machine twice.";
        paragraph(page, text, DIM);
    }
    let files: Vec<&str> =
        document.sources.iter().filter_map(|source| source.file.as_deref()).collect();
    if let Some(first) = files.first() {
        paragraph(page, &format!("One of them in full: masu report {}", visible(first)), DIM);
    }
}
