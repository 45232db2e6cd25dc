//! The figures as Markdown tables: time, memory, CPU and faults, and the means of groups.
//!
//! It relies on `figures.rs`. The reader decides the layout: a reader looks for one pattern and one malloc, so
//! patterns are rows and mallocs columns, and every table has the reference in units, the others as ratios to it.
//! Nothing is left out where masu loses.

use std::iter::once;

use masu_lab::Totals;
pub(crate) use masu_lab::report::digits as number;
use masu_lab::results::{Row, Summary};
use masu_lab::statistics::{Measure, Ratio};
use xtask::table::{Cells, Table};

use super::figures::{Figures, OURS, Standing, geometric_mean, hardest, is_peer};
use super::programs;

const FAILS: &str = "fails";

const NOTHING: &str = "–";

pub(super) fn line(summary: &Summary) -> String {
    let cell = |row: &Row| {
        let wall = row.estimate(Measure::Wall)?;
        let median = wall.median.map(|seconds| format!("{} ms", number(seconds * 1e3)));
        let cell = wall.ratio.as_ref().map(with_interval).or(median)?;
        Some(format!("{} {cell}", row.variant))
    };
    summary.rows.iter().filter_map(cell).collect::<Vec<_>>().join(", ")
}

/// The peers that masu is held against in the last column of a table, and the head of that.
#[derive(Clone, Copy)]
pub(crate) struct Against {
    pub(crate) head: &'static str,
    pub(crate) is_peer: fn(&str) -> bool,
}

pub(super) const ALL_PEERS: Against = Against { head: "masu / best peer", is_peer };

/// Medians of `measure`: the reference's in milliseconds or MB, the others' relative to it.
pub(crate) fn ratios(patterns: &[&Figures], measure: Measure, against: Against) -> String {
    let (unit, scale) = if measure == Measure::Wall { ("ms", 1e3) } else { ("MB", 1e-6) };
    let heads =
        |label: &str, index| if index == 0 { format!("{label}, {unit}") } else { label.into() };
    let mut table = head(subject(patterns), patterns, heads, against.head);
    let Some(first) = patterns.first() else { return table.to_string() };
    for figures in patterns {
        let best = figures.least_ratio(measure);
        let cells = first.labels.iter().map(|label| {
            let index = figures.position(label);
            let cell = match index {
                Some(0) => figures.median(0, measure).map(|value| number(value * scale)),
                Some(index) => figures.ratio(0, index, measure).map(|it| with_interval(&it)),
                None => None,
            };
            let cell = cell.unwrap_or_else(|| FAILS.to_owned());
            if index.is_some() && best == index { format!("**{cell}**") } else { cell }
        });
        let standing = figures.standing(measure, against.is_peer);
        let last = standing.map_or(FAILS.to_owned(), |standing| {
            format!("{} {}", with_interval(&standing.ratio), standing.peer)
        });
        row(&mut table, &figures.pattern.name, cells, &last);
    }
    table.to_string()
}

/// The share that masu has saved of the time that a malloc can save, next to the best peer of each pattern: wall
/// times in milliseconds (the floor's, masu's and the peer's), and (T − floor) / (T of the best peer − floor).
pub(super) fn floors(patterns: &[&Figures]) -> String {
    let heads = [
        "pattern",
        "floor, ms",
        "**masu**, ms",
        "best peer, ms",
        "masu / best peer over the floor",
    ];
    let mut table = Table::new(heads, Cells::Figures);
    for figures in patterns.iter().filter(|one| one.is_timed()) {
        let wall = |index: Option<usize>| figures.median(index?, Measure::Wall);
        let times =
            [figures.floor_s(), wall(figures.ours()), wall(figures.best(Measure::Wall, is_peer))];
        let cells = times.map(|time| time.map_or(NOTHING.to_owned(), |s| number(s * 1e3)));
        let last = figures.over_floor().map_or(NOTHING.to_owned(), number);
        row(&mut table, &figures.pattern.name, cells.into_iter(), &last);
    }
    table.to_string()
}

/// Peak RSS in MB, and masu's relative to the reference's; `smallest` is the last row.
pub(super) fn memory(patterns: &[&Figures], smallest: Option<&Figures>) -> String {
    let mut table =
        head(subject(patterns), patterns, |label, _| label.to_owned(), "masu / first column");
    for figures in patterns.iter().copied().chain(smallest) {
        let name = match figures.pattern.group.as_str() {
            "" => format!("the program `{}`", figures.pattern.name),
            _ => figures.pattern.name.clone(),
        };
        let cells = (0..figures.labels.len()).map(|index| {
            let bytes = figures.median(index, Measure::PeakRss);
            bytes.map_or(FAILS.to_owned(), |bytes| number(bytes / 1e6))
        });
        let ratio = figures.ours().and_then(|ours| figures.ratio(0, ours, Measure::PeakRss));
        let last = ratio.map_or(FAILS.to_owned(), |ratio| number(ratio.estimate));
        row(&mut table, &name, cells, &last);
    }
    table.to_string()
}

/// User and system time together in milliseconds, and page faults in thousands.
pub(super) fn work(patterns: &[&Figures]) -> String {
    let mut table = head(subject(patterns), patterns, |label, _| label.to_owned(), "");
    for figures in patterns {
        let cells = (0..figures.labels.len()).map(|index| {
            let cpu_s = figures.median(index, Measure::Cpu);
            let faults = figures.median(index, Measure::MinorFaults);
            match (cpu_s, faults) {
                (Some(cpu_s), Some(faults)) => {
                    format!("{} / {}", number(cpu_s * 1e3), number(faults / 1e3))
                }
                _ => FAILS.to_owned(),
            }
        });
        row(&mut table, &figures.pattern.name, cells, "");
    }
    table.to_string()
}

/// Geometric means by group and over all of `measure` relative to the reference, over the patterns that every malloc
/// does, and masu against the single peer with the best standing against it.
pub(super) fn means(patterns: &[&Figures], measure: Measure) -> String {
    let counts = |figures: &&Figures| {
        let all_work = (0..figures.labels.len()).all(|index| figures.works(index));
        all_work && (measure != Measure::Wall || figures.is_timed())
    };
    let counted: Vec<&Figures> = patterns.iter().copied().filter(counts).collect();
    let last = "masu / best single peer, clipped";
    let mut table = head("group", patterns, |label, _| label.to_owned(), last);
    let mut groups: Vec<&str> = counted.iter().map(|one| one.pattern.group.as_str()).collect();
    groups.dedup();
    let all = (groups.len() > 1).then_some("all");
    for group in groups.into_iter().chain(all) {
        let members: Vec<&Figures> = counted
            .iter()
            .copied()
            .filter(|one| group == "all" || one.pattern.group == group)
            .collect();
        let Some(first) = members.first() else { continue };
        let cells = (0..first.labels.len()).map(|index| {
            let ratios = members.iter().filter_map(|one| one.ratio(0, index, measure));
            let ratios: Vec<f64> = ratios.map(|ratio| ratio.estimate).collect();
            geometric_mean(&ratios).map_or(FAILS.to_owned(), number)
        });
        let name = format!("{group} ({})", members.len());
        let hardest = hardest(&members, measure);
        let last = hardest.map(|(peer, mean)| format!("{} {peer}", number(mean)));
        row(&mut table, &name, cells, &last.unwrap_or_default());
    }
    table.to_string()
}

/// The requests of each program for memory: in a run, in a second by the reference's wall time, and the bytes of one
/// request.
pub(super) fn asked(programs: &[&Figures], asked: &[Totals]) -> String {
    let heads = ["program", "requests, millions", "millions a second", "bytes a request"];
    let mut table = Table::new(heads, Cells::Figures);
    for (figures, totals) in programs.iter().zip(asked) {
        let millions = totals.requests as f64 / 1e6;
        let wall_s = figures.median(0, Measure::Wall);
        let a_second = wall_s.map_or(NOTHING.to_owned(), |wall_s| number(millions / wall_s));
        let bytes = number(totals.requested_bytes as f64 / (millions * 1e6));
        row(&mut table, &figures.pattern.name, [number(millions), a_second].into_iter(), &bytes);
    }
    table.to_string()
}

/// The number of patterns in which masu is ahead of the best peer, level with it and behind; every loss by name.
pub(super) fn verdicts(patterns: &[&Figures]) -> String {
    let timed = patterns.iter().filter(|one| one.is_timed());
    let standings: Vec<(&str, Standing)> = timed
        .filter_map(|figures| {
            Some((figures.pattern.name.as_str(), figures.standing(Measure::Wall, is_peer)?))
        })
        .collect();
    if standings.iter().all(|(_, standing)| standing.ratio.interval.is_none()) {
        return "Too few rounds for intervals, so nothing here is a verdict.".to_owned();
    }
    let count = |holds: fn((f64, f64)) -> bool| {
        let intervals = standings.iter().filter_map(|(_, standing)| standing.ratio.interval);
        intervals.filter(|interval| holds(*interval)).count()
    };
    let (ahead, behind) = (count(|(_, high)| high < 1.0), count(|(low, _)| low > 1.0));
    let between = standings.len() - ahead - behind;
    let mut text = format!(
        "Against the best peer *of each* in wall time, masu is ahead in {ahead} and behind in \
         {behind}; in {between} no difference is shown."
    );
    let is_behind = |(_, standing): &&(&str, Standing)| {
        standing.ratio.interval.is_some_and(|(low, _)| low > 1.0)
    };
    let mut losses: Vec<_> = standings.iter().filter(is_behind).collect();
    losses.sort_by(|(_, a), (_, b)| b.ratio.estimate.total_cmp(&a.ratio.estimate));
    let losses: Vec<String> = losses
        .into_iter()
        .map(|(name, standing)| {
            format!("{name} {} ({})", number(standing.ratio.estimate), standing.peer)
        })
        .collect();
    if !losses.is_empty() {
        text.push_str(&format!(" Behind, the worst first: {}.", losses.join(", ")));
    }
    text
}

fn subject(patterns: &[&Figures]) -> &'static str {
    let are_programs = patterns.first().is_some_and(|one| one.pattern.group == programs::GROUP);
    if are_programs { "program" } else { "pattern" }
}

/// A table without rows; `last` names a last column, or none where it is empty.
fn head(
    first: &str,
    patterns: &[&Figures],
    title: impl Fn(&str, usize) -> String,
    last: &str,
) -> Table {
    let labels = patterns.first().into_iter().flat_map(|one| &one.labels);
    let titles = labels.enumerate().map(|(index, label)| {
        let title = title(label, index);
        if label == OURS { format!("**{title}**") } else { title }
    });
    let last = (!last.is_empty()).then(|| last.to_owned());
    Table::new(once(first.to_owned()).chain(titles).chain(last), Cells::Figures)
}

fn row(table: &mut Table, first: &str, cells: impl Iterator<Item = String>, last: &str) {
    let last = (!last.is_empty()).then(|| last.to_owned());
    table.row(once(first.to_owned()).chain(cells).chain(last));
}

/// A ratio with both ends of its interval, where there is one.
pub(crate) fn with_interval(ratio: &Ratio) -> String {
    let estimate = number(ratio.estimate);
    match ratio.interval {
        Some((low, high)) => format!("{estimate} ({}–{})", number(low), number(high)),
        None => estimate,
    }
}
