//! The trial after a diagnosis: the program beside the mallocs and settings that it names, and beside a few others.
//!
//! Relies on the lab to choose the variants and to judge the results. A trial that cannot be made is listed under the
//! things not seen; it never makes the diagnosis fail.

use std::time::{Duration, Instant};

use masu_lab::compare::Event;
use masu_lab::diagnose::trial;
use masu_lab::report::{about, notice};
use masu_lab::{Catalogue, Diagnosis, Limits, Stop, Variant, Workload};

use crate::notices;
use crate::progress::Progress;

/// Makes the trial that the diagnosis asks for, if it asks for one, and has it conclude.
pub(super) fn perform(
    diagnosis: &mut Diagnosis,
    workload: &Workload,
    reference: &Variant,
    catalogue: &Catalogue,
    limits: &Limits,
    stop: &Stop,
) {
    let mut trial = match trial::after(diagnosis, workload, reference, catalogue) {
        Ok(Some(trial)) => trial,
        Ok(None) => return,
        Err(reason) => return trial::not_tried(diagnosis, reason),
    };
    trial.limit(limits);
    notices::say(notice(&format!(
        "Running it with and without what may help ({}): {} at most; --once leaves that out.",
        trial.what,
        about(trial.longest)
    )));
    let progress = Progress::on_stderr("--timeout 60s is its limit, --once leaves it out.");
    let began = Instant::now();
    let longest = trial.longest;
    let proof = trial.make(stop, &mut |event| match event {
        // The trial was announced already.
        Event::Planned { .. } => {}
        event => progress.observe(&within(event, began.elapsed(), longest)),
    });
    progress.finish();
    match proof {
        Ok(proof) => {
            trial.conclude(diagnosis, proof);
        }
        Err(error) => {
            let reason = format!("whether another malloc or a setting gains: {error}");
            trial::not_tried(diagnosis, reason);
        }
    }
}

/// The progress of a trial, which ends by time: how many runs it will be is not known.
fn within(event: Event<'_>, spent: Duration, longest: Duration) -> Event<'_> {
    let Event::Running { case, variant, done, .. } = event else { return event };
    Event::Running { case, variant, done, of: None, remaining: longest.saturating_sub(spent) }
}
