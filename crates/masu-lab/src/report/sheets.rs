//! The tables of a comparison: they carry every figure that the plots draw.

use super::across::{self, Across, Group};
use super::document::Detail;
use super::measure;
use super::overview::Overview;
use super::plot::{LATENCIES, largest, latency_median, mean, median_run};
use crate::Measure;
use crate::page::{Cell, Column, Mark, Sheet, SheetRow, Text, Tone};
use crate::results::Row;
use crate::statistics::{Estimate, Side};
use crate::tables::{Source, Table};
use masu_run::once::once;
use masu_run::quantity;
use masu_run::{Evidence, Run, Variant};

/// The width of the primary measure's column, and of the four others, on a terminal.
const WIDTHS: [usize; 5] = [22, 10, 10, 11, 11];

/// The medians and ratios of the most important measures.
pub(super) fn main_table(table: &Table, detail: Detail) -> Sheet {
    let shown = measure::shown(&table.summary);
    let rows = table.summary.rows.iter();
    let rows = rows.map(|row| SheetRow {
        label: row.variant.clone(),
        cells: cells(row, &shown, detail),
        ..SheetRow::default()
    });
    figures("variant", &shown, detail, rows.collect())
}

/// The same table for several machines, with each variant's figures below each other.
pub(super) fn across(group: &Group<'_>, variants: &[Across<'_>], detail: Detail) -> Sheet {
    let shown = measure::shown(&group.first().summary);
    let rows = variants.iter().flat_map(|variant| {
        let shown = &shown;
        variant.rows.iter().map(move |(index, row)| SheetRow {
            group: variant.variant.to_owned(),
            label: across::name(*index),
            cells: cells(row, shown, detail),
            ..SheetRow::default()
        })
    });
    figures("variant, where", &shown, detail, rows.collect())
}

fn figures(first: &str, shown: &[Measure], detail: Detail, rows: Vec<SheetRow>) -> Sheet {
    let caption = match detail {
        Detail::Brief => "",
        Detail::Full => "Medians; below them × the reference, with the interval",
    };
    let behind = shown.iter().zip(WIDTHS);
    let behind = behind.map(|(of, width)| column(measure::heading(*of), width));
    Sheet {
        caption: caption.to_owned(),
        columns: std::iter::once(column(first, 0)).chain(behind).collect(),
        rows,
        is_prose: false,
    }
}

fn column(heading: &str, width: usize) -> Column {
    Column { heading: heading.to_owned(), width }
}

/// The cells of a row; a brief table has only the interval of the first measure.
fn cells(row: &Row, shown: &[Measure], detail: Detail) -> Vec<Cell> {
    let mut cells: Vec<Cell> = shown.iter().map(|of| cell(row, *of)).collect();
    if detail == Detail::Brief {
        cells.iter_mut().skip(1).for_each(|cell| cell.interval.clear());
    }
    for (cell, of) in cells.iter_mut().zip(shown).skip(1) {
        if row.estimate(*of).is_some_and(is_of_ticks) {
            *cell = Cell { text: std::mem::take(&mut cell.text), ..Cell::default() };
        }
    }
    let is_empty = row.estimates.iter().all(|estimate| estimate.median.is_none());
    if let Some(first) = cells.first_mut().filter(|_| is_empty) {
        first.text = "no run that counts".into();
    }
    cells
}

/// The kernel divides CPU time into user and system time by its ticks, 4 or 10 ms apart: below so many seconds the
/// ratio of either is a ratio of a few ticks.
const TICKS_S: f64 = 0.02;

/// Whether a ratio of user or system time is one of ticks, and shows no difference.
fn is_of_ticks(estimate: &Estimate) -> bool {
    let Estimate { measure, median: Some(median), ratio: Some(ratio), .. } = estimate else {
        return false;
    };
    matches!(measure, Measure::User | Measure::Sys)
        && measure.side(ratio) == Side::Open
        && median.max(median / ratio.estimate) < TICKS_S
}

/// A median, and below it the ratio with its tone.
fn cell(row: &Row, column: Measure) -> Cell {
    let Some(estimate) = row.estimate(column) else { return Cell::default() };
    let text = estimate.median.map(|median| measure::value(column, median)).unwrap_or_default();
    Cell { text: text.into(), ..ratio(estimate) }
}

fn ratio(estimate: &Estimate) -> Cell {
    let Some(ratio) = &estimate.ratio else { return Cell::default() };
    let interval = ratio.interval.map_or_else(String::new, |(low, high)| {
        format!("{}–{}", quantity::ratio(low), quantity::ratio(high))
    });
    let tone = match estimate.measure.side(ratio) {
        Side::Better => Tone::Better,
        Side::Worse => Tone::Worse,
        Side::Open => Tone::Dim,
    };
    Cell { below: times(ratio.estimate), interval, tone, ..Cell::default() }
}

fn times(ratio: f64) -> String {
    format!("×{}", quantity::ratio(ratio))
}

/// Every measure, and the figures in the plots of servers and of memory.
pub(super) fn details(table: &Table, valid: &[&Run]) -> Vec<Sheet> {
    let mut sheets = vec![all_measures(table)];
    sheets.extend(latencies(table, valid));
    sheets.extend(memory(table, valid));
    sheets
}

fn all_measures(table: &Table) -> Sheet {
    let rows = &table.summary.rows;
    let row = |of: Measure, row: &Row| {
        let estimate = row.estimate(of).filter(|it| it.median.is_some())?;
        let figure = |value: Option<f64>| {
            Cell::from(value.map_or_else(String::new, |value| measure::value(of, value)))
        };
        let mut cells = vec![
            figure(estimate.median),
            figure(estimate.spread),
            figure(estimate.range.map(|(least, _)| least)),
            figure(estimate.range.map(|(_, most)| most)),
        ];
        if rows.len() > 1 {
            let pairs = estimate.ratio.map(|ratio| ratio.pairs.to_string());
            cells.extend([ratio(estimate), Cell::from(pairs.unwrap_or_default())]);
        }
        let (group, label) = (measure::name(of).to_owned(), row.variant.clone());
        Some(SheetRow { group, label, cells, ..SheetRow::default() })
    };
    let headings = ["measure, variant", "median", "± quartiles", "least", "most", "ratio", "pairs"];
    let there = if rows.len() > 1 { &headings[..] } else { &headings[..5] };
    let of_measure = |of| rows.iter().filter_map(move |one| row(of, one));
    Sheet {
        rows: Measure::ALL.into_iter().flat_map(of_measure).collect(),
        ..Sheet::new(
            "All measures; ± is half the distance between the quartiles",
            there.iter().copied(),
            Vec::new(),
        )
    }
}

fn latencies(table: &Table, valid: &[&Run]) -> Option<Sheet> {
    valid.iter().find(|run| run.burst.is_some())?;
    let mut headings = vec!["variant"];
    headings.extend(LATENCIES.map(|(name, _)| name));
    headings.extend(["requests", "errors", "allocations/request"]);
    let row = |(index, variant): (usize, &Variant)| {
        let bursts = || valid.iter().filter(|run| run.variant == index).filter_map(|run| run.burst);
        let mut texts = vec![variant.label.clone()];
        let latencies = LATENCIES.iter().map(|(_, share)| latency_median(index, *share, valid));
        texts.extend(latencies.map(|median| median.map(quantity::seconds).unwrap_or_default()));
        let requests: u64 = bursts().filter_map(|burst| burst.requests).sum();
        let errors: u64 = bursts().map(|burst| burst.errors).sum();
        let allocations = bursts().find_map(|burst| burst.allocations_a_request);
        texts.extend([requests.to_string(), errors.to_string()]);
        texts.push(allocations.map(|calls| format!("{calls:.1}")).unwrap_or_default());
        texts
    };
    Some(Sheet::new(
        "Latencies (medians over the bursts), requests and errors of all bursts",
        headings,
        table.case.variants.iter().enumerate().map(row).collect(),
    ))
}

fn memory(table: &Table, valid: &[&Run]) -> Option<Sheet> {
    let primary = table.summary.primary;
    let row = |(index, variant): (usize, &Variant)| {
        let run = median_run(index, primary, valid)?;
        Some(vec![
            variant.label.clone(),
            run.round.map_or_else(String::new, |round| round.saturating_add(1).to_string()),
            quantity::bytes(largest(run) as f64),
            quantity::bytes(mean(run)),
            quantity::bytes(run.peak_rss_bytes as f64),
        ])
    };
    let rows: Vec<Vec<String>> = table.case.variants.iter().enumerate().filter_map(row).collect();
    let headings = ["variant", "round", "largest sample", "mean over time", "peak"];
    (!rows.is_empty())
        .then(|| Sheet::new("Resident memory of the run that is drawn", headings, rows))
}

pub(super) fn overview(overview: &Overview) -> Sheet {
    const COLUMNS: [(&str, usize); 8] = [
        ("mean", 9),
        ("least", 8),
        ("most", 8),
        ("better", 7),
        ("worse", 7),
        ("no diff", 8),
        ("too few", 8),
        ("peak RSS", 9),
    ];
    let times = |ratio: Option<f64>| ratio.map(times).unwrap_or_default();
    let rows = overview.lines.iter().map(|line| {
        let (count, ratios) = (line.count, line.ratios);
        vec![
            line.variant.clone(),
            times(ratios.map(|it| it.mean)),
            times(ratios.map(|it| it.smallest)),
            times(ratios.map(|it| it.largest)),
            count.better.to_string(),
            count.worse.to_string(),
            count.open.to_string(),
            count.too_few.to_string(),
            times(line.peak_rss),
        ]
    });
    let name = measure::name(overview.primary);
    let caption = format!("{} cases, {name} × the reference", overview.cases);
    let columns = COLUMNS.map(|(heading, width)| column(heading, width));
    Sheet {
        columns: std::iter::once(column("variant", 0)).chain(columns).collect(),
        ..Sheet::new(caption, [""; 0], rows.collect())
    }
}

/// The ratios of the primary measure: a line for each case, a column for each variant.
pub(super) fn matrix(id: &str, source: &Source) -> Option<Sheet> {
    if source.tables.len() < 2 {
        return None;
    }
    let others = source.tables.iter().flat_map(|table| table.summary.rows.iter().skip(1));
    let labels = once(others.map(|row| row.variant.as_str()));
    let line = |(at, table): (usize, &Table)| {
        let cell = |label: &&str| {
            let mut others = table.summary.rows.iter().skip(1);
            let row = others.find(|row| row.variant == *label);
            row.and_then(|row| row.estimate(table.summary.primary)).map(ratio).unwrap_or_default()
        };
        SheetRow {
            label: table.case.name.clone(),
            link: format!("{id}c{at}"),
            cells: labels.iter().map(cell).collect(),
            ..SheetRow::default()
        }
    };
    let headings = std::iter::once("case").chain(labels.iter().copied());
    Some(Sheet {
        rows: source.tables.iter().enumerate().map(line).collect(),
        ..Sheet::new("Each case: × the reference, with the interval", headings, Vec::new())
    })
}

pub(super) fn variants(table: &Table) -> Sheet {
    let rows = table.case.variants.iter().enumerate();
    let rows = rows.map(|(index, variant)| SheetRow {
        label: variant.label.clone(),
        cells: described(variant, table.evidence.get(index)),
        ..SheetRow::default()
    });
    let headings = ["variant", "malloc", "library and environment", "seen in the warm-up"];
    Sheet { rows: rows.collect(), is_prose: true, ..Sheet::new("", headings, Vec::new()) }
}

fn described(variant: &Variant, evidence: Option<&Evidence>) -> Vec<Cell> {
    let version = variant.version.as_deref().unwrap_or("of unknown version");
    let mut library =
        Text::from(variant.library.as_ref().map_or_else(
            || "the C library’s own".to_owned(),
            |library| library.display().to_string(),
        ));
    for (name, value) in variant.changes(|_| None) {
        library.add(Mark::Break, "");
        library.add(Mark::Code, &format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
    }
    let mut seen = Text::default();
    for (what, list) in evidence.into_iter().flat_map(|evidence| {
        [
            ("served", &evidence.served),
            ("never asked for memory", &evidence.idle),
            ("not served", &evidence.not_served),
            ("note", &evidence.notes),
        ]
    }) {
        if !list.is_empty() {
            seen.add(Mark::Plain, &format!("{what}: {}", list.join(", ")));
            seen.add(Mark::Break, "");
        }
    }
    let malloc = Text::from(format!("{} {version}", variant.allocator));
    [malloc, library, seen].map(|text| Cell { text, ..Cell::default() }).into()
}
