//! The real programs: `workloads/programs.toml`, and the requests of each to its malloc.
//!
//! It relies on the lab, and on the build of masu's library that counts requests. A program that hardly asks for
//! memory would be a poor judge of mallocs, so its number of requests is shown beside its figures.

use std::path::Path;

use anyhow::{Context, Result, bail};
use masu_lab::execute::{Conditions, execute};
use masu_lab::results::Rounds;
use masu_lab::{CountPage, Ending, Parameter, Plan, Stop, Suite, Totals};

const FILE: &str = "workloads/programs.toml";

pub(super) const GROUP: &str = "programs";

pub(super) fn suite(root: &Path, made: &Path, wanted: &[String], rounds: usize) -> Result<Suite> {
    let mut suite = Suite::read(&root.join(FILE))?;
    // Before values that the wanted ones do not use are dropped.
    suite.set(&Parameter::new("made", vec![made.display().to_string()])?)?;
    if !wanted.is_empty() {
        suite.keep_only(wanted)?;
    }
    suite.rounds = Rounds::Fixed(rounds);
    Ok(suite)
}

pub(super) fn count(plan: &Plan, library: &Path, page: &Path) -> Result<Vec<Totals>> {
    let counted = plan.cases.iter().map(|case| {
        // The file that a run left when it was cut off would be in the way.
        let _ = std::fs::remove_file(page);
        let page = CountPage::create(page)?;
        let variant = page.variant(library);
        let row = case.rows.first().with_context(|| format!("{} has no rows", case.name))?;
        let run = execute(&row.workload, &variant, &Conditions::default(), &Stop::never())?;
        let totals = page.totals()?;
        if run.ending != Ending::Exited(0) || totals.programs == 0 {
            bail!("{} cannot be counted: it {}: {}", case.name, run.ending, run.stderr.tail);
        }
        Ok(totals)
    });
    counted.collect()
}
