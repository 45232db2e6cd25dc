//! The plots of a comparison, each as a part of its page.

use super::across::{self, Across};
use super::measure;
use super::plot::{self, Interval};
use crate::page::{Block, Figure};
use crate::results::Row;
use crate::tables::Table;
use crate::{Measure, Run};

fn figure(id: &str, caption: String, svg: String) -> Block {
    Block::Figure(Figure { name: id.to_owned(), caption, svg })
}

/// The ratios of one measure; none for a variant alone.
pub(super) fn ratios(id: &str, table: &Table, of: Measure) -> Option<Block> {
    let rows = &table.summary.rows;
    let is_there = |row: &&Row| row.estimate(of).is_some_and(|it| it.ratio.is_some());
    rows.iter().find(is_there)?;
    let interval = |(index, row): (usize, &Row)| Interval {
        label: row.variant.clone(),
        ratio: row.estimate(of).and_then(|estimate| estimate.ratio),
        instead: if index == 0 { "the reference" } else { "no ratio" },
    };
    let intervals: Vec<Interval> = rows.iter().enumerate().map(interval).collect();
    let direction = if of.is_better_larger() { "more is better" } else { "less is better" };
    let caption = format!("{}: ratio to the reference, {direction}", capital(measure::name(of)));
    Some(figure(id, caption, plot::intervals(id, of, &intervals)))
}

/// The ratios of one measure on several machines; none where there is none.
pub(super) fn across(
    id: &str,
    primary: Measure,
    variants: &[Across<'_>],
    noun: &str,
) -> Option<Block> {
    let of_variant = |variant: &Across<'_>| -> Vec<Interval> {
        let rows = variant.rows.iter().filter(|_| variant.count.all() > 0);
        rows.map(|(source, row)| Interval {
            label: format!("{} {}", variant.variant, across::name(*source)),
            ratio: row.estimate(primary).and_then(|estimate| estimate.ratio),
            instead: "no ratio",
        })
        .collect()
    };
    let intervals: Vec<Interval> = variants.iter().flat_map(of_variant).collect();
    let name = capital(measure::name(primary));
    let caption =
        format!("{name}: ratio to the reference of the same {}", noun.trim_end_matches('s'));
    (!intervals.is_empty()).then(|| figure(id, caption, plot::intervals(id, primary, &intervals)))
}

/// Everything that is drawn besides the ratios of the primary measure.
pub(super) fn others(id: &str, table: &Table, valid: &[&Run]) -> Vec<Block> {
    let labels = table.case.labels();
    let primary = table.summary.primary;
    let others = measure::shown(&table.summary).into_iter().skip(1).enumerate();
    let mut figures: Vec<Block> = others
        .filter_map(|(at, other)| ratios(&format!("{id}r{}", at + 1), table, other))
        .collect();
    let mut add = |id: &str, caption: String, svg: Option<String>| {
        figures.extend(svg.map(|svg| figure(id, caption, svg)));
    };
    let distributed = [primary, Measure::PeakRss];
    let distinct = if primary == Measure::PeakRss { &distributed[..1] } else { &distributed[..] };
    for (at, of) in distinct.iter().enumerate() {
        let id = format!("{id}d{at}");
        let name = capital(measure::name(*of));
        let caption = format!("{name}: every run that counts a dot, median and quartiles");
        add(&id, caption, plot::distribution(&id, *of, &labels, valid));
    }
    let memory = format!("{id}m");
    let caption = "Resident memory over time from 0 up, in each variant’s median run".to_owned();
    add(&memory, caption, plot::memory(&memory, primary, &labels, valid));
    let latency = format!("{id}l");
    let caption = "Latencies, medians over the bursts".to_owned();
    add(&latency, caption, plot::latency(&latency, &labels, valid));
    figures
}

/// `text` with a capital, as a caption begins.
pub(super) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}
