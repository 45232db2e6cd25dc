//! Every pattern under every program that was built, as one comparison of the lab's.
//!
//! A table is a pattern on one C library with one way of linking, a row of it the program of one allocator. The plan
//! is made here and not from a suite file, because the rows differ in their programs and in their settings.

use anyhow::{Context, Result};
use masu_lab::plan::Prepared;
use masu_lab::results::Rounds;
use masu_lab::statistics::Measure;
use masu_lab::{Input, Limits, Plan, Row, Variant, Workload};

use super::build::{Libc, Linking, Program};
use crate::bench::figures::Figures;
use crate::bench::pattern::{self, Pattern};
use crate::bench::{self, series};

/// The part of a pattern's default operations that a run does.
const PART: u64 = 5;

/// The same for `--quick`.
const QUICK_PART: u64 = 16;

/// The slowest allocator takes less for the longest pattern: a longer run hangs.
const PATIENCE_S: u64 = 120;

#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub(super) struct Extent {
    /// Shorter runs, fewer rounds, no intervals (about 6 minutes)
    #[arg(long)]
    pub(super) quick: bool,
    /// Rounds, each with one run of every program
    #[arg(long, value_name = "N", value_parser = xtask::options::times)]
    pub(super) rounds: Option<usize>,
    /// Only this pattern; repeats
    #[arg(long = "pattern", value_name = "NAME")]
    pub(super) patterns: Vec<String>,
}

pub(super) struct Table {
    pub(super) libc: Libc,
    pub(super) linking: Linking,
    /// The variants are allocators, the reference first.
    pub(super) figures: Figures,
}

pub(super) struct Measured {
    pub(super) tables: Vec<Table>,
    pub(super) rounds: usize,
    pub(super) seed: u64,
}

pub(super) fn measure(programs: &[Program], extent: &Extent) -> Result<Measured> {
    let first = programs.first().context("there is no program to measure")?;
    let patterns = pattern::choose(pattern::list(&first.path)?, &extent.patterns)?;
    let (mut cases, mut heads) = (Vec::new(), Vec::new());
    for libc in Libc::ALL {
        for pattern in &patterns {
            for linking in Linking::ALL {
                let of_case = |one: &&Program| one.libc == libc && one.linking == linking;
                let members: Vec<&Program> = programs.iter().filter(of_case).collect();
                if members.len() > 1 {
                    cases.push(case(pattern, libc, linking, &members, extent)?);
                    heads.push((pattern.clone(), libc, linking));
                }
            }
        }
    }
    let most_rows = cases.iter().map(|case| case.rows.len()).max().unwrap_or(2);
    let rounds = extent.rounds.unwrap_or_else(|| bench::usual_rounds(extent.quick, most_rows));
    let plan = Plan { suite: Some("rust".to_owned()), rounds: Rounds::Fixed(rounds), cases };
    let made = series::compared(&plan, "rust")?;
    let table = |(table, (pattern, libc, linking)): (masu_lab::tables::Table, _)| {
        let figures = Figures::of(pattern, &table.case.labels(), table);
        Table { libc, linking, figures }
    };
    let tables = made.tables.into_iter().zip(heads).map(table).collect();
    Ok(Measured { tables, rounds, seed: made.header.seed })
}

/// The plan of one table: `members` are the programs of one C library and one way of linking.
fn case(
    pattern: &Pattern,
    libc: Libc,
    linking: Linking,
    members: &[&Program],
    extent: &Extent,
) -> Result<Prepared> {
    let part = if extent.quick { QUICK_PART } else { PART };
    let ops = (pattern.ops.unwrap_or(1) / part).max(1).to_string();
    let command: Vec<std::ffi::OsString> = [&pattern.name, "--ops", &ops].map(Into::into).to_vec();
    let row = |program: &&Program| -> Result<Row> {
        let words = [program.path.clone().into_os_string()].into_iter().chain(command.clone());
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let tunables = program.allocator.tunables.iter().map(owned).collect();
        let label = program.allocator.name.to_owned();
        let allocator = "system".to_owned();
        let variant = Variant { label, allocator, tunables, ..Variant::default() };
        let optional = !program.allocator.is_needed();
        Ok(Row { variant, workload: Workload::new(words, Input::Empty)?, optional })
    };
    Ok(Prepared {
        name: format!("{}, {}, {}", pattern.name, libc.name(), linking.name()),
        command: [&["rust-patterns".into()][..], &command].concat(),
        rows: members.iter().map(row).collect::<Result<_>>()?,
        primary: Measure::Wall,
        limits: Limits {
            time: Some(std::time::Duration::from_secs(PATIENCE_S)),
            ..Limits::default()
        },
        ..Prepared::default()
    })
}
