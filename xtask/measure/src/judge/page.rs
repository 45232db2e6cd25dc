//! The tables of the page: the diagnosis of each program, the truth, and how often the two agree.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use xtask::records;
use xtask::table::{Cells, Table};

use super::Half;
use super::verdict::{Judged, Verdict, figure};
use crate::machine_facts::MachineFacts;

/// The part of the page that is made: all but its words by hand.
pub(super) fn text(judged: &[Judged], all: usize, commit: &str) -> String {
    let MachineFacts { cpu, cpus, system, .. } = MachineFacts::here();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} of {all} programs, run on {} at {commit}: {cpu}, {cpus} CPUs that others used too (the load stands beside each), \
         {system}.",
        judged.len(),
        records::today(),
    );
    let labels = judged.iter().flat_map(|one| &one.effects).map(|effect| &effect.label);
    let labels: BTreeSet<String> = labels.map(|label| format!("`{label}`")).collect();
    let labels: Vec<String> = labels.into_iter().collect();
    let _ = writeln!(
        text,
        "\nRun under {}; the reference is the malloc that the program has.",
        labels.join(", ")
    );
    text.push_str(&tables(judged));
    text
}

/// A table for each half, with a count of the errors.
pub(super) fn tables(judged: &[Judged]) -> String {
    let mut text = String::new();
    for half in Half::ALL {
        let rows: Vec<&Judged> = judged.iter().filter(|one| one.half == half).collect();
        if rows.is_empty() {
            continue;
        }
        let title = match half {
            Half::Tuning => "The half that it was mended on",
            Half::Judging => "The half that judges it",
        };
        let _ = writeln!(text, "\n## {title}\n\n{}\n", counted(&rows));
        let heads = ["program", "CPU time", "diagnosed in", "load", "found", "best of all", ""];
        let mut table = Table::new(heads, Cells::Words);
        rows.iter().for_each(|row| _ = table.row(cells(row)));
        let _ = write!(text, "{table}");
    }
    text
}

fn counted(rows: &[&Judged]) -> String {
    let of = |wanted: &dyn Fn(&&&Judged) -> bool| rows.iter().filter(wanted).count();
    let denied = |confidence: &str| {
        of(&|one| matches!(&one.verdict, Verdict::Denied(so) if so == confidence))
    };
    let false_ones = |confidence: &str| -> usize {
        let all = rows.iter().flat_map(|one| &one.false_ones);
        all.filter(|one| one.confidence == confidence).count()
    };
    let named: usize = rows.iter().map(|one| one.said.named().len()).sum();
    let wrong: usize = rows.iter().map(|one| one.wrong.len()).sum();
    let mut slowdowns: Vec<f64> =
        rows.iter().filter_map(|one| Some(one.said.seconds / one.own_s?)).collect();
    slowdowns.sort_by(f64::total_cmp);
    format!(
        "{} of {} right, {} left open, {} not decided. Gains of 8 % and more missed: {}; denied: {} high, {} medium, {} low. False findings: {} high, {} medium, \
         {} low. Remedies that gain nothing: {wrong} of {named}. A diagnosis took {:.0} times as long as the program \
         (median), at most {:.0} s.",
        of(&|one| one.is_right()),
        rows.len(),
        of(&|one| one.verdict == Verdict::LeftOpen),
        of(&|one| one.verdict == Verdict::Open),
        of(&|one| one.verdict == Verdict::Missed),
        denied("high"),
        denied("medium"),
        denied("low"),
        false_ones("high"),
        false_ones("medium"),
        false_ones("low"),
        slowdowns.get(slowdowns.len() / 2).copied().unwrap_or_default(),
        rows.iter().map(|one| one.said.seconds).fold(0.0, f64::max),
    )
}

fn cells(row: &Judged) -> [String; 7] {
    let best = row.best().map_or("–".to_owned(), |effect| {
        format!("{} {}", effect.label, effect.time.as_ref().map_or(String::new(), figure))
    });
    let own = row.own_s.map_or("–".to_owned(), |own_s| format!("{own_s:.2} s"));
    let load = row.said.load.split(' ').next().unwrap_or_default().to_owned();
    let took = format!("{:.0} s", row.said.seconds);
    [row.name.clone(), own, took, load, row.said.line(), best, row.words()]
}
