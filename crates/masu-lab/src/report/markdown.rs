//! The page as GitHub's Markdown, to be pasted into an issue.
//!
//! The hard idea is escaping: labels, commands and warnings come from outside, and a `|`, a `<` or an
//! `@name` in them must neither break a table, nor become HTML, nor call anyone. Punctuation that
//! means something is escaped with a backslash; commands stand in code spans, whose fence is longer
//! than any row of backticks inside.

use super::across::{self, Group};
use super::document::Document;
use super::lines::visible;
use super::measure::{self, Side};
use super::overview::{Overview, overviews};
use super::{settings, verdict};
use crate::Measure;
use crate::quantity;
use crate::results::{LeftOut, Row, Summary};
use crate::tables::{Source, Table};

mod experiment;

pub(super) use experiment::experiment;

/// The page for `document`.
pub(super) fn page(document: &Document) -> String {
    let mut page = String::new();
    if document.is_merged() {
        together(&mut page, document);
    } else if let Some(source) = document.sources.first() {
        whole(&mut page, source);
    }
    for note in &document.notes {
        paragraph(&mut page, &format!("Note: {}", escaped(note)));
    }
    page
}

fn whole(page: &mut String, source: &Source) {
    let title = match (&source.header.suite, &source.tables[..]) {
        (None, [only]) => code(&only.command()),
        (Some(suite), _) => format!("Suite {}", escaped(suite)),
        (None, tables) => format!("{} cases", tables.len()),
    };
    heading(page, 2, &title);
    paragraph(page, &escaped(&format!("{}, {}", source.header.began, source.place())));
    for table in &source.tables {
        if source.tables.len() > 1 {
            heading(page, 3, &escaped(&table.case.name));
            paragraph(page, &code(&table.command()));
        }
        if let Some(settings) = table.settings() {
            paragraph(page, &escaped(&settings));
        }
        case(page, source, table);
    }
    for overview in overviews(source) {
        self::overview(page, &overview);
    }
    foot(page, source);
}

/// One case: table, verdicts, who is missing, warnings.
fn case(page: &mut String, source: &Source, table: &Table) {
    let summary = &table.summary;
    let columns = measure::shown(summary);
    head(page, "variant", &columns);
    for row in &summary.rows {
        figures(page, &escaped(&row.variant), row, &columns);
    }
    page.push('\n');
    for row in &summary.rows {
        let (words, _) = verdict::words(row, summary.primary);
        item(page, &row.variant, &words);
    }
    if let Some(decision) = table.decision(&source.header) {
        item(page, "Decided", &verdict::decided(&decision).0);
    }
    for (label, text) in settings::lines(&table.case.variants) {
        item(page, label, &text);
    }
    for LeftOut { label, reason } in &table.case.left_out {
        item(page, label, &format!("left out: {reason}"));
    }
    if let Some((word, text)) = table.shortfall(&source.header) {
        item(page, word, &text);
    }
    page.push('\n');
    for warning in &summary.warnings {
        paragraph(page, &format!("> **Warning**: {}", escaped(warning)));
    }
    for note in &summary.notes {
        paragraph(page, &format!("> **Note**: {}", escaped(note)));
    }
}

fn head(page: &mut String, first: &str, columns: &[Measure]) {
    let names: Vec<&str> = columns.iter().map(|column| measure::heading(*column)).collect();
    page.push_str(&format!("| {first} | {} |\n", names.join(" | ")));
    page.push_str(&format!("| :-- |{}\n", " --: |".repeat(columns.len())));
}

/// A line of the table. What is bold differs from the reference: its interval leaves out 1.
fn figures(page: &mut String, label: &str, row: &Row, columns: &[Measure]) {
    let cell = |column: &Measure| {
        let Some(estimate) = row.estimate(*column) else { return "–".to_owned() };
        let median = estimate.median.map(|median| measure::value(*column, median));
        let mut text = median.unwrap_or_else(|| "–".to_owned());
        if let Some(ratio) = &estimate.ratio {
            let times = format!("×{}", quantity::ratio(ratio.estimate));
            let times = match measure::side(*column, ratio) {
                Side::Open => times,
                Side::Better | Side::Worse => format!("**{times}**"),
            };
            text.push_str(&format!("<br>{times}"));
            if let Some((low, high)) = ratio.interval.filter(|_| *column == columns[0]) {
                let [low, high] = [low, high].map(quantity::ratio);
                text.push_str(&format!(" ({low}–{high})"));
            }
        }
        text
    };
    let cells: Vec<String> = columns.iter().map(cell).collect();
    page.push_str(&format!("| {label} | {} |\n", cells.join(" | ")));
}

fn overview(page: &mut String, overview: &Overview) {
    let name = measure::name(overview.primary);
    heading(page, 3, &format!("{} cases, {name} × the reference", overview.cases));
    page.push_str("| variant | mean | least | most | better | worse | no difference | too few |");
    page.push_str(" peak RSS |\n| :-- |");
    page.push_str(&" --: |".repeat(8));
    page.push('\n');
    let times = |ratio: Option<f64>| {
        ratio.map_or_else(|| "–".to_owned(), |ratio| format!("×{}", quantity::ratio(ratio)))
    };
    for line in &overview.lines {
        let (count, ratios) = (line.count, line.ratios);
        page.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            escaped(&line.variant),
            times(ratios.map(|it| it.mean)),
            times(ratios.map(|it| it.smallest)),
            times(ratios.map(|it| it.largest)),
            count.better,
            count.worse,
            count.open,
            count.too_few,
            times(line.peak_rss),
        ));
    }
    page.push('\n');
    paragraph(page, "Geometric means, for information: cases are a choice and no sample.");
}

/// The page of several machines.
fn together(page: &mut String, document: &Document) {
    let noun = across::noun(document);
    heading(page, 2, &format!("{} {noun}", document.sources.len()));
    for (index, source) in document.sources.iter().enumerate() {
        let file = source.file.as_deref().unwrap_or("a comparison");
        let text = format!("{file}: {}, {}", source.header.began, source.place());
        item(page, &across::name(index), &text);
    }
    page.push('\n');
    for group in across::groups(document) {
        self::group(page, document, &group, noun);
    }
    for (index, source) in document.sources.iter().enumerate() {
        for overview in overviews(source) {
            paragraph(page, &format!("On {}:", across::name(index)));
            self::overview(page, &overview);
        }
    }
    for alone in across::alone(document) {
        paragraph(page, &format!("Not merged: {}", escaped(&alone)));
    }
    paragraph(
        page,
        &format!(
            "Medians; × the reference of the same {}; bold where the interval leaves out 1. Each \
             interval holds at 99 % for its own table; runs of different {noun} are never pooled, \
             and range and mean of their ratios are for information.",
            noun.trim_end_matches('s')
        ),
    );
}

fn group(page: &mut String, document: &Document, group: &Group<'_>, noun: &str) {
    let first = group.first();
    heading(page, 3, &escaped(&first.case.name));
    paragraph(page, &code(&first.command()));
    let columns = measure::shown(&first.summary);
    head(page, "variant, where", &columns);
    let variants = group.variants();
    for variant in &variants {
        for (index, row) in &variant.rows {
            let label = format!("{}, {}", escaped(variant.variant), across::name(*index));
            figures(page, &label, row, &columns);
        }
    }
    page.push('\n');
    for variant in &variants {
        item(page, variant.variant, &variant.statement(noun));
    }
    page.push('\n');
    for (index, table) in &group.members {
        let name = across::name(*index);
        if let Some((word, text)) = table.shortfall(&document.sources[*index].header) {
            paragraph(page, &format!("> **{word}, {name}**: {}", escaped(&text)));
        }
        for warning in &table.summary.warnings {
            paragraph(page, &format!("> **Warning, {name}**: {}", escaped(warning)));
        }
    }
}

fn foot(page: &mut String, source: &Source) {
    let confidence = |summary: &Summary| summary.confidence * 100.0;
    let sure = source.tables.first().map_or(0.0, |table| confidence(&table.summary));
    paragraph(
        page,
        &format!(
            "Medians; × the reference, in pairs of neighbouring runs; bold where the interval \
             leaves out 1. “Surely”: {sure:.0} %, for all variants together. Order of runs: \
             `--seed {}`. Made by masu {}.",
            source.header.seed,
            escaped(&source.header.masu_version)
        ),
    );
}

fn heading(page: &mut String, level: usize, text: &str) {
    page.push_str(&format!("{} {text}\n\n", "#".repeat(level)));
}

fn paragraph(page: &mut String, text: &str) {
    page.push_str(&format!("{text}\n\n"));
}

fn item(page: &mut String, label: &str, text: &str) {
    page.push_str(&format!("- **{}**: {}\n", escaped(label), escaped(text)));
}

/// `text` so that Markdown shows it as it is, on one line.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            // An entity is out of reach of every extension, mentions and autolinks included.
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            '@' => shown.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' | '~' | '!' => {
                shown.push('\\');
                shown.push(c);
            }
            _ => shown.push(c),
        }
    }
    shown
}

/// `text` as a code span.
fn code(text: &str) -> String {
    let text = visible(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A backtick at an edge would be taken for the fence; one blank there is not shown.
    let gap = if longest > 0 { " " } else { "" };
    format!("{fence}{gap}{text}{gap}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn the_page_as_it_is_pasted() {
        let page = page(&fixtures::of_commands());
        snapbox::assert_data_eq!(page, snapbox::file!["markdown/tests/page.md"].raw());
    }

    #[test]
    fn a_label_neither_breaks_the_table_nor_becomes_html() {
        let mut document = fixtures::of_commands();
        let table = &mut document.sources[0].tables[0];
        table.summary.rows[1].variant = "a|b<script>\n@all*".to_owned();
        table.summary.warnings = vec!["<img src=x> [a](b)".to_owned()];
        let page = page(&document);
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("@all"));
        assert!(page.contains("\\[a\\](b)"), "{page}");
        let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().all(|line| bars(line) == bars(lines[0])), "{page}");
    }

    #[test]
    fn a_code_span_holds_any_backticks() {
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(code("a``b`"), "``` a``b` ```");
    }
}
