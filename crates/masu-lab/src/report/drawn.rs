//! The plots of a comparison, each as a part of its page.

use super::across::{self, Across};
use super::measure;
use super::plot::{self, Interval, Screen};
use crate::Measure;
use crate::page::{Block, Figure};
use crate::results::Row;
use crate::tables::Table;
use masu_run::Run;

/// The plot for both kinds of screens; none if there is nothing to draw.
pub(super) fn figure(
    id: &str,
    caption: String,
    draw: impl Fn(&str, Screen) -> Option<String>,
) -> Option<Block> {
    let svg = draw(id, Screen::Wide)?;
    let narrow = draw(&format!("{id}n"), Screen::Narrow).unwrap_or_default();
    Some(Block::Figure(Figure { name: id.to_owned(), caption, svg, narrow }))
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
    figure(id, caption, |id, screen| Some(plot::intervals(id, of, &intervals, screen)))
}

/// The ratios of one measure on several machines; none if there are no ratios.
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
    let draw = |id: &str, screen| Some(plot::intervals(id, primary, &intervals, screen));
    figure(id, caption, draw).filter(|_| !intervals.is_empty())
}

/// All plots except the ratios of the primary measure.
pub(super) fn others(id: &str, table: &Table, valid: &[&Run]) -> Vec<Block> {
    let labels = table.case.labels();
    let primary = table.summary.primary;
    let others = measure::shown(&table.summary).into_iter().skip(1).enumerate();
    let mut figures: Vec<Block> = others
        .filter_map(|(at, other)| ratios(&format!("{id}r{}", at + 1), table, other))
        .collect();
    let distributed = [primary, Measure::PeakRss];
    let distinct = if primary == Measure::PeakRss { &distributed[..1] } else { &distributed[..] };
    for (at, of) in distinct.iter().enumerate() {
        let id = format!("{id}d{at}");
        let name = capital(measure::name(*of));
        let caption = format!("{name}: every run that counts a dot, median and quartiles");
        figures.extend(figure(&id, caption, |id, screen| {
            plot::distribution(id, *of, &labels, valid, screen)
        }));
    }
    let memory = format!("{id}m");
    let caption = "Resident memory over time from 0 up, in each variant’s median run".to_owned();
    figures.extend(figure(&memory, caption, |id, screen| {
        plot::memory(id, primary, &labels, valid, screen)
    }));
    let latency = format!("{id}l");
    let caption = "Latencies, medians over the bursts".to_owned();
    figures
        .extend(figure(&latency, caption, |id, screen| plot::latency(id, &labels, valid, screen)));
    figures
}

/// `text` with a capital at its start, as a caption begins.
pub(super) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}
