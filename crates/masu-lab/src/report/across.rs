//! One comparison made several times, on several machines or days.
//!
//! Runs of different machines are never pooled: no interval over a few machines could promise anything about the next
//! one. Each machine keeps its own ratio and interval; the machines are counted, with the range and the mean of their
//! estimates.

use super::document::Document;
use super::overview::{Count, Spread};
use crate::Measure;
use crate::results::Row;
use crate::tables::{Source, Table};
use masu_run::Error;
use masu_run::once::{gathered, once};
use masu_run::quantity;

/// Tables that compare the same thing.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// The tables, each with the index of its source.
    pub(super) members: Vec<(usize, &'a Table)>,
}

/// The results of one variant in the members of a group.
#[derive(Debug)]
pub(super) struct Across<'a> {
    pub(super) variant: &'a str,
    /// The variant's row in each member that has it, with the index of the source.
    pub(super) rows: Vec<(usize, &'a Row)>,
    /// The number of the group's members, with this variant or without.
    pub(super) of: usize,
    pub(super) count: Count,
    /// The estimates of the primary measure's ratio.
    pub(super) ratios: Option<Spread>,
}

/// The properties that make two tables the same comparison: name, command, primary measure, the reference's label, and
/// the malloc that `system` stands for on that machine.
fn key(table: &Table) -> (&str, &[String], Measure, Option<(&str, &str)>) {
    let reference = table.case.variants.first().map(|one| (&*one.label, &*one.allocator));
    (&table.case.name, &table.case.command, table.case.primary, reference)
}

/// The groups of two tables or more, in the order of their first appearance.
pub(super) fn groups(document: &Document) -> Vec<Group<'_>> {
    let tables = document.sources.iter().enumerate().flat_map(|(index, source)| {
        source.tables.iter().map(move |table| (key(table), (index, table)))
    });
    let groups = gathered(tables).into_iter().map(|(_, members)| Group { members });
    groups.filter(|group| group.members.len() > 1).collect()
}

/// The tables that only one source has, a line each: `A: ring threads=2`.
pub(super) fn alone(document: &Document) -> Vec<String> {
    let groups = groups(document);
    let is_grouped =
        |table: &Table| groups.iter().any(|group| key(group.members[0].1) == key(table));
    let of_source = |(index, source): (usize, &Source)| -> Vec<String> {
        let alone = source.tables.iter().filter(|table| !is_grouped(table));
        let line =
            |table: &Table| format!("{}: {} ({})", name(index), table.case.name, table.command());
        alone.map(line).collect()
    };
    document.sources.iter().enumerate().flat_map(of_source).collect()
}

impl<'a> Group<'a> {
    /// The table whose name and command stand for the whole group.
    pub(super) fn first(&self) -> &'a Table {
        self.members[0].1
    }

    /// One entry for each variant of any member, the reference first.
    pub(super) fn variants(&self) -> Vec<Across<'a>> {
        let rows = self.members.iter().flat_map(|(_, table)| &table.summary.rows);
        let labels = once(rows.map(|row| row.variant.as_str()));
        labels.into_iter().map(|label| self.variant(label)).collect()
    }

    fn variant(&self, label: &'a str) -> Across<'a> {
        let row = |(index, table): &(usize, &'a Table)| {
            let row = table.summary.rows.iter().find(|row| row.variant == label)?;
            Some((*index, row))
        };
        let rows: Vec<(usize, &Row)> = self.members.iter().filter_map(row).collect();
        let mut count = Count::default();
        rows.iter().for_each(|(_, row)| count.add(row.verdict));
        let primary = self.first().case.primary;
        let ratio = |(_, row): &(usize, &Row)| Some(row.estimate(primary)?.ratio?.estimate);
        let ratios: Vec<f64> = rows.iter().filter_map(ratio).collect();
        Across { variant: label, rows, of: self.members.len(), count, ratios: Spread::of(&ratios) }
    }
}

impl Across<'_> {
    /// The result of all members, in words: `of 3 machines: better on 2, no difference shown on 1; estimates ×0.85 to
    /// ×0.97, geometric mean ×0.91 of 3`.
    pub(super) fn statement(&self, noun: &str) -> String {
        let Count { better, worse, open, too_few } = self.count;
        let all = self.count.all();
        if all == 0 {
            return "the reference".to_owned();
        }
        let parts = [
            (better, "better"),
            (worse, "worse"),
            (open, "no difference shown"),
            (too_few, "no verdict"),
        ];
        let there: Vec<(usize, &str)> =
            parts.into_iter().filter(|(number, _)| *number > 0).collect();
        let mut text = match there[..] {
            [(_, word)] if all == 1 => format!("{word} on one"),
            [(_, word)] if all == self.of => format!("{word} on all {all} {noun}"),
            [(_, word)] => format!("{word} on {all}"),
            _ => {
                let part = |(number, word): &(usize, &str)| format!("{word} on {number}");
                let parts: Vec<String> = there.iter().map(part).collect();
                format!("of {} {noun}: {}", self.of, parts.join(", "))
            }
        };
        if all < self.of {
            text.push_str(&format!(", not compared on {}", self.of - all));
        }
        if better > 0 && worse > 0 {
            text.push_str("; which it is depends on where it runs");
        }
        if let Some(Spread { mean, smallest, largest, of }) = self.ratios.filter(|it| it.of > 1) {
            let [smallest, largest, mean] = [smallest, largest, mean].map(quantity::ratio);
            text.push_str(&format!(
                "; estimates ×{smallest} to ×{largest}, geometric mean ×{mean} of {of}"
            ));
        }
        text
    }
}

/// The name of the source at `index`: A, B, … Z, then a number.
pub(super) fn name(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index) if index < 26 => char::from(b'A' + index).to_string(),
        _ => (index + 1).to_string(),
    }
}

/// The noun for the sources: machines if all tell different facts, else merely comparisons.
pub(super) fn noun(document: &Document) -> &'static str {
    let machines: Vec<_> = document.sources.iter().map(|source| &source.header.machine).collect();
    let differs = |(index, machine)| !machines[..index].contains(machine);
    if machines.iter().enumerate().all(differs) { "machines" } else { "comparisons" }
}

impl Document {
    /// Whether several comparisons are to be shown together.
    pub(super) fn is_merged(&self) -> bool {
        self.sources.len() > 1
    }

    /// Refuses comparisons that have nothing in common.
    pub(super) fn check_common_ground(&self) -> Result<(), Error> {
        if !self.is_merged() || !groups(self).is_empty() {
            return Ok(());
        }
        let what = |source: &Source| {
            let cases: Vec<String> = source.tables.iter().take(3).map(described).collect();
            let more = if source.tables.len() > 3 { ", …" } else { "" };
            format!(
                "{} compares {}{more}",
                source.file.as_deref().unwrap_or("it"),
                cases.join(", ")
            )
        };
        let files: Vec<String> = self.sources.iter().map(what).collect();
        Err(Error::Request(format!(
            "nothing to merge: no case has the same name, command, primary measure and reference \
             in two of the files; give them one at a time ({})",
            files.join("; ")
        )))
    }
}

fn described(table: &Table) -> String {
    let reference = table.case.variants.first().map_or("nothing", |one| one.label.as_str());
    format!("`{}` against {reference}", table.command())
}

#[cfg(test)]
mod tests;
