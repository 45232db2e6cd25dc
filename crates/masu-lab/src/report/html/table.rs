//! The tables: they carry every figure that the plots draw.

use super::view::{capital, shown};
use super::{Cell, Sheet, SheetRow};
use crate::quantity;
use crate::report::measure::{self, Side};
use crate::report::overview::Overview;
use crate::report::plot::{LATENCIES, largest, latency_median, mean, median_run};
use crate::results::Row;
use crate::statistics::Ratio;
use crate::tables::{Source, Table};
use crate::{Measure, Run};

/// Medians and ratios of the measures that the terminal shows too, intervals included.
pub(super) fn main_table(table: &Table) -> Sheet {
    let columns = measure::shown(&table.summary);
    let row = |row: &Row| {
        let cells = columns.iter().map(|column| cell(row, *column));
        SheetRow::new(shown(&row.variant), cells.collect())
    };
    let mut headings = vec!["variant".to_owned()];
    headings.extend(columns.iter().map(|column| measure::heading(*column).to_owned()));
    Sheet {
        caption: "Medians; below them × the reference, with the interval".to_owned(),
        headings,
        rows: table.summary.rows.iter().map(row).collect(),
    }
}

/// A median, and below it the ratio in the colour of what it shows.
pub(super) fn cell(row: &Row, column: Measure) -> Cell {
    let Some(estimate) = row.estimate(column) else {
        return Cell { text: "–".to_owned(), ..Cell::default() };
    };
    let median = estimate.median.map(|median| measure::value(column, median));
    let text = median.unwrap_or_else(|| "–".to_owned());
    let Some(ratio) = &estimate.ratio else {
        return Cell { text, ..Cell::default() };
    };
    let interval = ratio.interval.map_or_else(String::new, |(low, high)| {
        format!("{}–{}", quantity::ratio(low), quantity::ratio(high))
    });
    Cell { text, below: times(ratio.estimate), interval, class: class(column, ratio) }
}

fn times(ratio: f64) -> String {
    format!("×{}", quantity::ratio(ratio))
}

fn class(column: Measure, ratio: &Ratio) -> &'static str {
    match measure::side(column, ratio) {
        Side::Better => "better",
        Side::Worse => "worse",
        Side::Open => "open",
    }
}

/// Every measure, and what the plots of servers and of memory draw.
pub(super) fn details(table: &Table, valid: &[&Run]) -> Vec<Sheet> {
    let mut sheets = vec![all_measures(table)];
    sheets.extend(latencies(table, valid));
    sheets.extend(memory(table, valid));
    sheets
}

fn all_measures(table: &Table) -> Sheet {
    let mut rows = Vec::new();
    for of in Measure::ALL {
        for row in &table.summary.rows {
            let Some(estimate) = row.estimate(of).filter(|it| it.median.is_some()) else {
                continue;
            };
            let figure = |value: Option<f64>| {
                value.map_or_else(|| "–".to_owned(), |value| measure::value(of, value))
            };
            let label = format!("{}, {}", measure::name(of), shown(&row.variant));
            let mut cells = plain(vec![
                figure(estimate.median),
                figure(estimate.spread),
                figure(estimate.range.map(|(least, _)| least)),
                figure(estimate.range.map(|(_, most)| most)),
            ]);
            if table.summary.rows.len() > 1 {
                cells.push(Cell { text: String::new(), ..cell(row, of) });
                cells.extend(plain(vec![
                    estimate.ratio.map_or_else(String::new, |ratio| ratio.pairs.to_string()),
                ]));
            }
            rows.push(SheetRow::new(label, cells));
        }
    }
    let headings = ["measure, variant", "median", "± quartiles", "least", "most", "ratio", "pairs"];
    let there = if table.summary.rows.len() > 1 { &headings[..] } else { &headings[..5] };
    Sheet {
        caption: "All measures; ± is half the distance between the quartiles".to_owned(),
        headings: there.iter().map(|&heading| heading.to_owned()).collect(),
        rows,
    }
}

fn latencies(table: &Table, valid: &[&Run]) -> Option<Sheet> {
    valid.iter().find(|run| run.burst.is_some())?;
    let mut headings = vec!["variant".to_owned()];
    headings.extend(LATENCIES.map(|(name, _)| name.to_owned()));
    headings.extend(["requests", "errors", "allocations/request"].map(str::to_owned));
    let row = |(index, variant): (usize, &crate::Variant)| {
        let bursts = || valid.iter().filter(|run| run.variant == index).filter_map(|run| run.burst);
        let mut texts: Vec<String> = LATENCIES
            .iter()
            .map(|(_, share)| latency_median(index, *share, valid))
            .map(|median| median.map_or_else(|| "–".to_owned(), quantity::seconds))
            .collect();
        let requests: u64 = bursts().filter_map(|burst| burst.requests).sum();
        let errors: u64 = bursts().map(|burst| burst.errors).sum();
        let allocations = bursts().find_map(|burst| burst.allocations_a_request);
        texts.push(requests.to_string());
        texts.push(errors.to_string());
        texts.push(allocations.map_or_else(|| "–".to_owned(), |calls| format!("{calls:.1}")));
        SheetRow::new(shown(&variant.label), plain(texts))
    };
    Some(Sheet {
        caption: "Latencies (medians over the bursts), requests and errors of all bursts"
            .to_owned(),
        headings,
        rows: table.case.variants.iter().enumerate().map(row).collect(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "bytes stay far below 2^53")]
fn memory(table: &Table, valid: &[&Run]) -> Option<Sheet> {
    let primary = table.summary.primary;
    let row = |(index, variant): (usize, &crate::Variant)| {
        let run = median_run(index, primary, valid)?;
        let texts = vec![
            run.round.map_or_else(String::new, |round| round.saturating_add(1).to_string()),
            quantity::bytes(largest(run) as f64),
            quantity::bytes(mean(run)),
            quantity::bytes(run.peak_rss_bytes as f64),
        ];
        Some(SheetRow::new(shown(&variant.label), plain(texts)))
    };
    let rows: Vec<SheetRow> = table.case.variants.iter().enumerate().filter_map(row).collect();
    let headings = ["variant", "round", "largest sample", "mean over time", "peak"];
    (!rows.is_empty()).then(|| Sheet {
        caption: "Resident memory of the run that is drawn".to_owned(),
        headings: headings.map(str::to_owned).into(),
        rows,
    })
}

/// What several cases come to, a line a variant.
pub(super) fn overview(overview: &Overview) -> Sheet {
    let times = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), times);
    let rows = overview.lines.iter().map(|line| {
        let (count, ratios) = (line.count, line.ratios);
        let texts = vec![
            times(ratios.map(|it| it.mean)),
            times(ratios.map(|it| it.smallest)),
            times(ratios.map(|it| it.largest)),
            count.better.to_string(),
            count.worse.to_string(),
            count.open.to_string(),
            count.too_few.to_string(),
            times(line.peak_rss),
        ];
        SheetRow::new(shown(&line.variant), plain(texts))
    });
    let headings = [
        "variant",
        "mean",
        "least",
        "most",
        "better in",
        "worse in",
        "no difference in",
        "too few runs in",
        "peak RSS",
    ];
    Sheet {
        caption: format!(
            "{} of {} cases × the reference: geometric means, for information",
            capital(measure::name(overview.primary)),
            overview.cases
        ),
        headings: headings.map(str::to_owned).into(),
        rows: rows.collect(),
    }
}

/// Every case a line, every variant a column: the ratio of the primary measure.
pub(super) fn matrix(id: &str, source: &Source) -> Option<Sheet> {
    if source.tables.len() < 2 {
        return None;
    }
    let mut labels: Vec<&str> = Vec::new();
    for row in source.tables.iter().flat_map(|table| table.summary.rows.iter().skip(1)) {
        if !labels.contains(&row.variant.as_str()) {
            labels.push(&row.variant);
        }
    }
    let line = |(at, table): (usize, &Table)| {
        let cell = |label: &&str| {
            let mut others = table.summary.rows.iter().skip(1);
            let row = others.find(|row| row.variant == *label);
            let cell = row.map(|row| cell(row, table.summary.primary)).unwrap_or_default();
            Cell { text: String::new(), ..cell }
        };
        SheetRow {
            label: shown(&table.case.name),
            link: format!("{id}c{at}"),
            cells: labels.iter().map(cell).collect(),
        }
    };
    let mut headings = vec!["case".to_owned()];
    headings.extend(labels.iter().map(|label| shown(label)));
    Some(Sheet {
        caption: "Each case: × the reference, with the interval".to_owned(),
        headings,
        rows: source.tables.iter().enumerate().map(line).collect(),
    })
}

fn plain(texts: Vec<String>) -> Vec<Cell> {
    texts.into_iter().map(|text| Cell { text, ..Cell::default() }).collect()
}
