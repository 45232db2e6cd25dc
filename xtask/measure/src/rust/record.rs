//! The dated record: tables of every pattern, and the facts without which the figures mean little.
//!
//! It relies on `measure.rs`. Rows are patterns and columns allocators; every cell is a ratio to the reference, and
//! nothing is left out where masu loses.

use masu_lab::statistics::Measure;

use super::allocators::ALLOCATORS;
use super::build::{Built, Libc, Linking};
use super::measure::{Measured, Table};
use crate::bench::figures::{Figures, OURS};
use crate::bench::table::{Against, ratios};
use crate::machine_facts::MachineFacts;
use xtask::{records, registry};

const READING: &str = include_str!("reading.md");

/// `commit` is the measured commit, `load` the load before the measurement.
pub(super) fn text(commit: &str, load: &str, measured: &Measured, built: &Built) -> String {
    let mut text = format!("# Rust programs under every allocator, {}\n\n", records::today());
    text.push_str(&machine(commit, load, measured, built));
    for libc in Libc::ALL {
        for linking in Linking::ALL {
            let of_it = |table: &&Table| table.libc == libc && table.linking == linking;
            let tables = measured.tables.iter().filter(of_it);
            let tables: Vec<&Figures> = tables.map(|table| &table.figures).collect();
            if tables.is_empty() {
                continue;
            }
            let place = format!("{}, {}", libc.name(), linking.name());
            text.push_str(&format!(
                "\n## Time on {place}\n\n{}",
                ratios(&tables, Measure::Wall, FOREIGN)
            ));
            if linking == Linking::Plain {
                let rss = ratios(&tables, Measure::PeakRss, FOREIGN);
                text.push_str(&format!("\n## Peak RSS on {place}\n\n{rss}"));
            }
        }
    }
    text.push_str(&format!("\n## How to read this\n\n{READING}"));
    text
}

fn machine(commit: &str, load: &str, measured: &Measured, built: &Built) -> String {
    let MachineFacts { cpu, cpus, architecture, system, .. } = MachineFacts::here();
    let crates = ALLOCATORS.iter().filter_map(|allocator| {
        let package = allocator.package.filter(|package| *package != OURS)?;
        Some(format!("{package} {}", registry::version(&built.lock, package).unwrap_or("?")))
    });
    let mut facts = vec![
        format!(
            "made by `{}` at {commit}: {} rounds, seed {}",
            records::command(),
            measured.rounds,
            measured.seed
        ),
        format!("crates: {}", crates.collect::<Vec<_>>().join(", ")),
        format!("machine: {cpu}, {cpus} CPUs, {architecture}; {system}"),
        format!("busy: load {load} before, {} after", records::load()),
    ];
    facts.extend(built.missing.iter().map(|(name, reason)| format!("without {name}: {reason}")));
    facts.iter().map(|fact| format!("- {fact}\n")).collect()
}

/// The allocators that are written in C or C++.
const FOREIGN: Against = Against { head: "masu / best in C", is_peer: is_foreign };

fn is_foreign(label: &str) -> bool {
    ALLOCATORS.iter().any(|allocator| allocator.name == label && allocator.is_foreign)
}
