//! Runs the cases, as many at once as there are CPUs.
//!
//! Nothing is timed here, so runs may share the machine; each is a process of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow};

use super::cases::Case;
use super::mallocs::Found;
use super::verdict::{Tally, Verdict};

/// Variables that would change a malloc.
const UNSET: [&str; 4] = ["LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX"];

/// What came of one case with one size under one malloc.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) case: Case,
    pub(super) size: usize,
    /// The malloc's name.
    pub(super) malloc: &'static str,
    pub(super) tally: Tally,
}

/// Everything that was run.
pub(super) struct Results {
    pub(super) cases: Vec<Case>,
    pub(super) mallocs: Vec<Found>,
    pub(super) runs: usize,
    pub(super) outcomes: Vec<Outcome>,
}

impl Results {
    /// Runs each of `cases` under each of `mallocs`, `runs` times with each of its sizes.
    ///
    /// # Errors
    ///
    /// When a run shows nothing: it did not start, or not get as far as the misuse.
    pub(super) fn gather(
        program: &Path,
        cases: &[Case],
        mallocs: &[Found],
        runs: usize,
    ) -> Result<Results> {
        let jobs: Vec<(&Case, usize, &Found)> = cases
            .iter()
            .flat_map(|case| case.sizes().into_iter().map(move |size| (case, size)))
            .flat_map(|(case, size)| mallocs.iter().map(move |malloc| (case, size, malloc)))
            .collect();
        let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || -> Result<()> {
            // ORDERING: Relaxed, a number for each is all that is wanted; the lock publishes the results.
            while let Some((case, size, malloc)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut tally = Tally::default();
                for _ in 0..runs {
                    let verdict = once(program, case, *size, malloc)?;
                    verdict.into_iter().for_each(|verdict| tally.add(verdict));
                    if verdict == Some(Verdict::Hangs) {
                        // Once is enough, at seconds each.
                        break;
                    }
                }
                let outcome = Outcome {
                    case: (*case).clone(),
                    size: *size,
                    malloc: malloc.malloc.name,
                    tally,
                };
                outcomes.lock().map_err(|_| anyhow!("a run's thread panicked"))?.push(outcome);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, usize::from);
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().map_err(|_| anyhow!("a run's thread panicked"))?
            })
        })?;
        let outcomes = outcomes.into_inner().map_err(|_| anyhow!("a run's thread panicked"))?;
        Ok(Results { cases: cases.to_vec(), mallocs: mallocs.to_vec(), runs, outcomes })
    }

    /// What came of `case` with `size` under the malloc of this name.
    pub(super) fn tally(&self, case: &Case, size: usize, malloc: &str) -> Option<&Tally> {
        let found = self
            .outcomes
            .iter()
            .find(|one| one.case.name == case.name && one.size == size && one.malloc == malloc);
        found.map(|one| &one.tally)
    }
}

/// One run.
fn once(program: &Path, case: &Case, size: usize, malloc: &Found) -> Result<Option<Verdict>> {
    let mut command = Command::new(program);
    command.arg(&case.name).arg(size.to_string());
    for name in UNSET {
        command.env_remove(name);
    }
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"MASU_") {
            command.env_remove(name);
        }
    }
    command.envs(malloc.environment.iter().cloned());
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    let marks = String::from_utf8_lossy(&output.stdout);
    Verdict::of(&marks, output.status).map_err(|wrong| {
        anyhow!("{} {size} under {} shows nothing: {wrong}", case.name, malloc.malloc.title)
    })
}
