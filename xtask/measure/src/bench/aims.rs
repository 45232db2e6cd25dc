//! What masu is to reach, what it reached, and whether that is enough: the first table of a record.
//!
//! It relies on `figures.rs`. The aims are constants here and not options: a record is held against the same
//! aims whatever it shows, and one that was missed stays in the table with its figure.

use masu_lab::statistics::Measure;

use super::figures::{Figures, against, hardest};
use super::table::{number, with_interval};

/// Wall time of a group of patterns, relative to the best single peer's in that group.
const GROUP_TIME: f64 = 0.85;

/// An interval that lies wholly above this, relative to the best peer in a pattern, is a pattern lost.
const PATTERN_TIME: f64 = 1.05;

/// Wall time of the real programs, relative to the best single peer's.
const PROGRAM_TIME: f64 = 0.97;

/// Peak RSS relative to the C library's malloc.
const MEMORY: f64 = 1.0;

struct Aim {
    aim: String,
    figure: String,
    /// None where the runs do not tell.
    reached: Option<bool>,
}

pub(super) fn text(patterns: &[Figures], programs: &[Figures]) -> String {
    let mut aims = Vec::new();
    if !patterns.is_empty() {
        aims.extend(groups(patterns).into_iter().map(|group| group_time(patterns, group)));
        aims.push(no_pattern_lost(patterns));
        aims.push(pattern_memory(patterns));
    }
    if !programs.is_empty() {
        let all: Vec<&Figures> = programs.iter().collect();
        let name = format!("{} real programs", programs.len());
        aims.push(time(&name, &all, PROGRAM_TIME));
        aims.push(memory(&name, &all));
    }
    let mut text = "| aim | figure | |\n|---|---|---|\n".to_owned();
    for Aim { aim, figure, reached } in aims {
        let verdict = match reached {
            Some(true) => "reached",
            Some(false) => "**missed**",
            None => "not shown",
        };
        text.push_str(&format!("| {aim} | {figure} | {verdict} |\n"));
    }
    text
}

pub(super) fn groups(patterns: &[Figures]) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for figures in patterns {
        if !groups.contains(&&*figures.pattern.group) {
            groups.push(&figures.pattern.group);
        }
    }
    groups
}

fn group_time(patterns: &[Figures], group: &str) -> Aim {
    let timed = patterns.iter().filter(|one| one.pattern.group == group && one.is_timed());
    time(&format!("group *{group}*"), &timed.collect::<Vec<_>>(), GROUP_TIME)
}

fn time(name: &str, members: &[&Figures], most: f64) -> Aim {
    let aim = format!("{name}: wall time at most {most} of the best single peer's there");
    let Some(hardest) = hardest(members, Measure::Wall) else {
        return Aim { aim, figure: "nothing to compare".to_owned(), reached: None };
    };
    let of = left_out(hardest.patterns, members.len());
    let figure = format!("{} ({}){of}", number(hardest.mean), hardest.peer);
    Aim { aim, figure, reached: Some(hardest.mean <= most) }
}

/// How many members a mean has, where some are missing.
fn left_out(counted: usize, all: usize) -> String {
    if counted == all { String::new() } else { format!(", over {counted} of {all}") }
}

fn no_pattern_lost(patterns: &[Figures]) -> Aim {
    let aim = format!(
        "no pattern's interval lies wholly above {PATTERN_TIME} of the best peer in that pattern"
    );
    let timed = patterns.iter().filter(|one| one.is_timed());
    let standings: Vec<_> = timed
        .filter_map(|one| Some((&one.pattern.name, one.standing()?)))
        .filter(|(_, standing)| standing.ratio.interval.is_some())
        .collect();
    if standings.is_empty() {
        return Aim { aim, figure: "too few rounds for intervals".to_owned(), reached: None };
    }
    let is_lost = |(low, _): (f64, f64)| low > PATTERN_TIME;
    let mut lost: Vec<_> = standings
        .iter()
        .filter(|(_, standing)| standing.ratio.interval.is_some_and(is_lost))
        .collect();
    lost.sort_by(|(_, a), (_, b)| b.ratio.estimate.total_cmp(&a.ratio.estimate));
    let names: Vec<String> = lost
        .iter()
        .map(|(name, standing)| {
            format!("{name} {} {}", with_interval(&standing.ratio), standing.peer)
        })
        .collect();
    let all = standings.len();
    let figure = match names.as_slice() {
        [] => format!("none of {all}"),
        names => format!("{} of {all}: {}", names.len(), names.join("; ")),
    };
    Aim { aim, figure, reached: Some(lost.is_empty()) }
}

fn pattern_memory(patterns: &[Figures]) -> Aim {
    let all: Vec<&Figures> = patterns.iter().collect();
    let mut aim = memory("all patterns", &all);
    let each = groups(patterns).into_iter().filter_map(|group| {
        let members: Vec<_> = patterns.iter().filter(|one| one.pattern.group == group).collect();
        Some(format!("{group} {}", number(reference_memory(&members)?)))
    });
    let each: Vec<String> = each.collect();
    if each.len() > 1 {
        aim.figure.push_str(&format!(" ({})", each.join(", ")));
    }
    aim
}

fn memory(name: &str, members: &[&Figures]) -> Aim {
    let reference = members.first().and_then(|one| one.labels.first());
    let reference = reference.map_or("the first malloc", String::as_str);
    let aim = format!("{name}: peak RSS at most {MEMORY:.1} of {reference}'s");
    let mean = reference_memory(members);
    let figure = mean.map_or("nothing to compare".to_owned(), number);
    Aim { aim, figure, reached: mean.map(|mean| mean <= MEMORY) }
}

/// masu's clipped mean of peak RSS relative to the first malloc's.
fn reference_memory(members: &[&Figures]) -> Option<f64> {
    let reference = members.first()?.labels.first()?;
    let all = against(members, Measure::PeakRss);
    all.into_iter().find(|one| one.peer == reference).map(|one| one.mean)
}
