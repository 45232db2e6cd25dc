//! Proof that a preload took effect: mapped into the program, and seen to serve an allocation.
//!
//! Loaders ignore preloads silently, programs bring a malloc along, wrappers clear the environment. So each variant's
//! warm-up run is traced (`trace.rs`) and judged here: of the programs that a command runs at least one must have been
//! served; every other is accounted for by name. Where tracing is not permitted, glibc's loader logs instead
//! (`loader.rs`), which proves less, and the evidence says so.

use serde::{Deserialize, Serialize};

use crate::execute::{Conditions, execute};
use crate::once::gathered;
use crate::trace::{Seen, run_traced};
use crate::{Ending, Error, Run, Stop, Variant, Workload};

mod crash;
mod deepbind;
mod loader;

pub use crash::accuse_pair;
pub use deepbind::culprit as bound_deep;

/// The result of the traced warm-up run of a variant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Programs whose allocations the variant served, by name: `sed`, or `sed (3 times)`.
    pub served: Vec<String>,
    /// Programs that had the library mapped but never asked any malloc for memory, by name.
    pub idle: Vec<String>,
    /// Programs the variant did not serve, by name and reason: `ls: it is linked statically`.
    pub not_served: Vec<String>,
    /// Facts that the reader should know about the proof.
    pub notes: Vec<String>,
}

/// Runs `workload` once under `variant`, traced, and proves that the variant took effect. A
/// variant without a library needs no proof and is run without tracing.
///
/// A run that [`Stop`] or a limit cut short is returned without a proof: see [`Run::ending`]. [`Error::NotInEffect`]
/// where the library did not serve the program.
pub fn verify(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<(Run, Evidence), Error> {
    let Some(library) = &variant.library else {
        let run = execute(workload, variant, conditions, stop)?;
        crash::accuse_variant(workload, variant, &run, stop)?;
        return Ok((run, Evidence::default()));
    };
    // The check comes before the loader silently ignores the library.
    std::fs::File::open(library).map_err(|error| Error::Library {
        path: library.clone(),
        reason: format!("{error}; check the path"),
    })?;
    let (run, evidence) = match run_traced(workload, variant, conditions, stop) {
        Ok((run, seen)) => (run, judge(&seen)),
        Err(Error::NotTraced { .. }) => {
            loader::run_logged(workload, variant, library, conditions, stop)?
        }
        Err(error) => return Err(error),
    };
    crash::accuse_variant(workload, variant, &run, stop)?;
    let cut_short = !matches!(run.ending, Ending::Exited(_) | Ending::Signalled(_));
    if cut_short || !evidence.served.is_empty() || evidence.not_served.is_empty() {
        return Ok((run, evidence));
    }
    let mut reason = evidence.not_served.join("; ");
    if let Some(words) = loaders_words(&run) {
        reason = format!("{reason}; the loader says: {words}");
    }
    if crash::crashed(&run) {
        let reason = format!("the program {}: {reason}", run.ending);
        return Err(Error::CannotRun { variant: variant.label.clone(), reason });
    }
    Err(Error::NotInEffect { variant: variant.label.clone(), reason })
}

/// The first line in which a loader complains. glibc's loader complains of a preload it ignores, of a symbol or of a
/// version that is missing, musl's of a file or symbol that it cannot load or relocate.
fn loaders_words(run: &Run) -> Option<&str> {
    let telling =
        ["ld.so", "symbol", "not found (required by", "Error loading", "Error relocating"];
    run.stderr.tail.lines().find(|line| telling.iter().any(|words| line.contains(words)))
}

fn judge(seen: &[Seen]) -> Evidence {
    let mut evidence = Evidence::default();
    let is_started = |one: &&Seen| one.entered || !one.cut_short;
    for one in seen.iter().filter(is_started) {
        let name = one.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(reason) = why_not_served(one) {
            evidence.not_served.push(format!("{name}: {reason}"));
        } else if one.served {
            evidence.served.push(name);
        } else {
            evidence.idle.push(name);
        }
    }
    evidence.counted(seen.iter().all(|one| is_started(&one)))
}

/// The note on a program in which no malloc was called.
pub const NEVER_ASKED: &str = "the program never asked for memory, so another malloc gains nothing";

impl Evidence {
    /// Says how often each entry is there, and the note if no malloc was called; `is_whole` where no program is left out,
    /// which may have called one.
    fn counted(mut self, is_whole: bool) -> Evidence {
        for list in [&mut self.served, &mut self.idle, &mut self.not_served] {
            let counts = gathered(list.drain(..).map(|entry| (entry, ())));
            list.extend(counts.into_iter().map(|(entry, times)| match times.len() {
                1 => entry,
                times => format!("{entry} ({times} times)"),
            }));
        }
        if is_whole && self.served.is_empty() && self.not_served.is_empty() {
            self.notes.push(NEVER_ASKED.to_owned());
        }
        self
    }
}

/// A program with a malloc of its own counts as not served even if a library it uses was: the
/// bulk of its blocks comes from elsewhere.
fn why_not_served(seen: &Seen) -> Option<String> {
    if let Some(obstacle) = &seen.obstacle {
        Some(obstacle.clone())
    } else if seen.served {
        None
    } else if !seen.entered {
        Some("it ended before its first instruction; the loader could not start it".to_owned())
    } else if !seen.mapped {
        Some("the library was not loaded into it; the loader could not use it".to_owned())
    } else {
        let instead = seen.elsewhere.as_ref()?;
        let instead = instead.display();
        Some(format!("the library was loaded, but the malloc of {instead} was called instead"))
    }
}

#[cfg(test)]
mod tests;
