//! The trial after a diagnosis: the program beside the mallocs and settings that it names, and beside a few others.
//!
//! Relies on the lab to say what is tried and what it showed. A trial that cannot be made is named among what was
//! not seen; it never makes the diagnosis fail.

use masu_lab::compare::Event;
use masu_lab::diagnose::trial;
use masu_lab::report::notice;
use masu_lab::{Catalogue, Diagnosis, Stop, Variant, Workload};

use crate::aside;
use crate::progress::Progress;

/// Makes the trial that the diagnosis asks for, if it asks for one, and has it conclude.
pub(super) fn perform(
    diagnosis: &mut Diagnosis,
    workload: &Workload,
    reference: &Variant,
    catalogue: &Catalogue,
    stop: &Stop,
) {
    let trial = match trial::after(diagnosis, workload, reference, catalogue) {
        Ok(Some(trial)) => trial,
        Ok(None) => return,
        Err(reason) => return diagnosis.not_seen.push(reason),
    };
    aside::say(notice(&format!(
        "Running it with and without what may help ({}): {} at most; --once leaves that out.",
        trial.what, trial.forecast
    )));
    let progress = Progress::on_stderr();
    let proof = trial.make(stop, &mut |event| match event {
        // It was announced.
        Event::Planned { .. } => {}
        event => progress.observe(&event),
    });
    progress.finish();
    match proof {
        Ok(proof) => {
            trial.conclude(diagnosis, proof);
        }
        Err(error) => {
            diagnosis.not_seen.push(format!("whether another malloc or a setting gains: {error}"));
        }
    }
}
