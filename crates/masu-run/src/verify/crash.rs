//! Crashes at the warm-up: the fault of the variant, of the program, or of the two together.
//!
//! A variant under which even `sh -c :` crashes is broken by itself. A program that ends in the same way under the
//! reference does so by itself, and that may be measured.

use std::time::Duration;

use crate::execute::{Conditions, execute};
use crate::{Ending, Error, Input, Limits, Run, Stop, Variant, Workload, kernel};

/// A program that does nothing but start; `true` would not even ask for memory.
const HARMLESS: [&str; 3] = ["sh", "-c", ":"];

/// The time in which it must end.
const HARMLESS_TIME: Duration = Duration::from_secs(10);

/// True if `run` ended as crashing programs do: by a signal, in a shell that reports one, or in a loader that missed a
/// symbol.
pub(super) fn crashed(run: &Run) -> bool {
    match run.ending {
        Ending::Signalled(signal) => kernel::is_crash(signal),
        Ending::Exited(code) => kernel::is_crash(code - SHELL_OFFSET) || misses_a_symbol(run),
        _ => false,
    }
}

/// The number that shells add to the signal that ended a program.
const SHELL_OFFSET: i32 = 128;

fn misses_a_symbol(run: &Run) -> bool {
    run.ending == Ending::Exited(127) && run.stderr.tail.contains("symbol")
}

/// Checks whether the variant crashes any program, where `run` crashed under it.
pub(super) fn accuse_variant(
    workload: &Workload,
    variant: &Variant,
    run: &Run,
    stop: &Stop,
) -> Result<(), Error> {
    if !crashed(run) {
        return Ok(());
    }
    let Some(alone) = harmless_run(workload, variant, stop)? else { return Ok(()) };
    if alone.ending == Ending::Exited(0) || alone.ending == Ending::Stopped {
        return Ok(());
    }
    Err(Error::CannotRun {
        variant: variant.label.clone(),
        reason: format!(
            "it crashes at start-up, without the program's fault: `{}`, which does nothing, {} under \
             it too{}; check that it was built for this machine, or leave it out",
            HARMLESS.join(" "),
            described(&alone.ending),
            said(&alone),
        ),
    })
}

/// Checks whether the program ended at its warm-up under `variant` as it does not under the reference, whose warm-up
/// ended in `reference`, in a way that leaves nothing to compare. Where it crashed, `bound_deep` may name a library
/// that was opened with `RTLD_DEEPBIND`. [`Error::CannotRun`] where the malloc is to blame.
pub fn accuse_pair(
    variant: &Variant,
    run: &Run,
    reference: (&str, &Ending),
    bound_deep: impl FnOnce() -> Option<String>,
) -> Result<(), Error> {
    let is_cut_short = matches!(run.ending, Ending::TimedOut | Ending::OutOfMemory { .. });
    let (label, usual) = reference;
    if run.ending == *usual || !(is_cut_short || crashed(run)) {
        return Ok(());
    }
    let deep = if crashed(run) { bound_deep() } else { None };
    let advice = match run.ending {
        _ if deep.is_some() => {
            "so that library finds the C library's free before the preloaded one, and gives it blocks of another \
             malloc; of preloaded mallocs only masu runs such programs, for it takes the flag out"
        }
        Ending::TimedOut => {
            "it hangs, or the limit is too tight for a warm-up, which is traced and slower: allow \
             more time, or leave it out"
        }
        Ending::OutOfMemory { .. } => "allow more memory, or leave it out",
        _ => {
            "a bug of the program or of the allocator that the other brings to light: run it alone \
             under this variant (`masu run`) to see why, or leave it out"
        }
    };
    Err(Error::CannotRun {
        variant: variant.label.clone(),
        reason: format!(
            "the program {}{}; under `{label}` it {}; {}{advice}",
            described(&run.ending),
            said(run),
            described(usual),
            deep.map(|library| format!("it opens {library} with RTLD_DEEPBIND, "))
                .unwrap_or_default(),
        ),
    })
}

/// The ending of a run; a shell's way to report a signal is explained.
fn described(ending: &Ending) -> String {
    let signal = match ending {
        Ending::Exited(code) => {
            Some(code - SHELL_OFFSET).filter(|&signal| kernel::is_crash(signal))
        }
        _ => None,
    };
    match signal {
        None => ending.to_string(),
        Some(signal) => {
            let inner = Ending::Signalled(signal);
            format!("{ending}, which is how a shell reports that a program {inner},")
        }
    }
}

/// Runs the harmless program under `variant`; none if there is none with the same C library.
fn harmless_run(workload: &Workload, variant: &Variant, stop: &Stop) -> Result<Option<Run>, Error> {
    let is_fit =
        |one: &Workload| one.program.libc == workload.program.libc && one.program.refusal.is_none();
    let harmless = Workload::new(HARMLESS, Input::Empty).ok().filter(is_fit);
    let Some(harmless) = harmless else { return Ok(None) };
    let limits = Limits { time: Some(HARMLESS_TIME), memory_bytes: None };
    execute(&harmless, variant, &Conditions::from(limits), stop).map(Some)
}

/// The first lines of a run's standard error, as a part of a sentence; empty for no lines.
pub(super) fn said(run: &Run) -> String {
    let said = run.stderr.said();
    if said.is_empty() { said } else { format!(" and said: {said}") }
}
