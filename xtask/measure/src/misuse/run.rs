//! Runs the cases, as many at once as there are CPUs.
//!
//! Nothing is timed here, so runs may share the machine; each is a process of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};

use super::cases::Case;
use super::verdict::{Tally, Verdict};
use crate::mallocs::Malloc;
use crate::parallel;
use xtask::commands;

#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) case: Case,
    pub(super) size: usize,
    pub(super) malloc: String,
    pub(super) tally: Tally,
}

pub(super) struct Results {
    pub(super) cases: Vec<Case>,
    pub(super) mallocs: Vec<Malloc>,
    pub(super) runs: usize,
    pub(super) outcomes: Vec<Outcome>,
}

impl Results {
    /// Runs each of `cases` under each of `mallocs`, `runs` times with each of its sizes.
    pub(super) fn gather(
        program: &Path,
        cases: &[Case],
        mallocs: &[Malloc],
        runs: usize,
    ) -> Result<Results> {
        let jobs: Vec<(&Case, usize, &Malloc)> = cases
            .iter()
            .flat_map(|case| case.sizes().into_iter().map(move |size| (case, size)))
            .flat_map(|(case, size)| mallocs.iter().map(move |malloc| (case, size, malloc)))
            .collect();
        let outcomes = parallel::run_each(&jobs, |(case, size, malloc)| {
            let mut tally = Tally::default();
            for _ in 0..runs {
                let verdict = once(program, case, *size, malloc)?;
                verdict.into_iter().for_each(|verdict| tally.add(verdict));
                if verdict == Some(Verdict::Hangs) {
                    // A second hang shows nothing more and takes seconds.
                    break;
                }
            }
            let (case, malloc) = ((*case).clone(), malloc.name.clone());
            Ok(Outcome { case, size: *size, malloc, tally })
        })?;
        Ok(Results { cases: cases.to_vec(), mallocs: mallocs.to_vec(), runs, outcomes })
    }

    /// The outcomes of a case with a size; an empty tally where it was not run.
    pub(super) fn tally(&self, case: &Case, size: usize, malloc: &str) -> Tally {
        let mut of_case = self.outcomes.iter().filter(|one| one.case.name == case.name);
        let found = of_case.find(|one| one.size == size && one.malloc == malloc);
        found.map_or(Tally::default(), |one| one.tally)
    }
}

fn once(program: &Path, case: &Case, size: usize, malloc: &Malloc) -> Result<Option<Verdict>> {
    let mut command = Command::new(program);
    command.arg(&case.name).arg(size.to_string());
    commands::unset_malloc_variables(&mut command);
    command.envs(malloc.environment.iter().cloned());
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    let marks = String::from_utf8_lossy(&output.stdout);
    Verdict::of(&marks, output.status).map_err(|wrong| {
        anyhow!("{} {size} under {} shows nothing: {wrong}", case.name, malloc.title)
    })
}
