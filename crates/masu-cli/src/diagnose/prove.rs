//! `masu diagnose --prove`: the settings and mallocs that a diagnosis names, run against the program as it is.
//!
//! Relies on the lab's proofs, whose runs are those of `masu compare`. A remedy that needs a change of code is never
//! proved.

use anyhow::Result;
use masu_lab::prove::{self, Proof};
use masu_lab::report::notice;
use masu_lab::{Catalogue, CompareOptions, Diagnosis, Limits, Stop, Variant, Workload};

use crate::notices;
use crate::progress::Progress;

/// Runs every setting and every malloc among the remedies against `reference`; none where there is none.
pub(super) fn perform(
    diagnosis: &Diagnosis,
    workload: &Workload,
    reference: &Variant,
    catalogue: &Catalogue,
    limits: &Limits,
    stop: &Stop,
) -> Result<Option<Proof>> {
    let remedies = named(diagnosis, workload, reference, catalogue)?;
    if remedies.is_empty() {
        notices::say(notice("Nothing to prove: no remedy is a setting or a malloc."));
        return Ok(None);
    }
    let rounds = prove::DEFAULT_ROUNDS;
    let run_s = diagnosis.facts.clock.own_wall_s(diagnosis.facts.cpus);
    let forecast = prove::forecast(remedies.len(), rounds, run_s);
    notices::say(notice(&format!("Proving {} of the remedies: {forecast}.", remedies.len())));
    let mut plan = prove::plan(workload, reference, &remedies, rounds);
    plan.cases.iter_mut().for_each(|case| case.limits = limits.clone());
    let progress = Progress::on_stderr("--timeout 60s is its limit.");
    let options = CompareOptions::default();
    let proof = prove::prove(&plan, &options, stop, &mut |event| progress.observe(&event));
    progress.finish();
    Ok(Some(proof?))
}

/// The variants that the remedies name, each once.
fn named(
    diagnosis: &Diagnosis,
    workload: &Workload,
    reference: &Variant,
    catalogue: &Catalogue,
) -> Result<Vec<Variant>> {
    let mut variants: Vec<Variant> = Vec::new();
    for remedy in diagnosis.findings.iter().flat_map(|finding| &finding.remedies) {
        let Some(text) = &remedy.variant else { continue };
        let is_known = |known: &Variant| known.label == *text;
        if !is_known(reference) && !variants.iter().any(is_known) {
            variants.push(catalogue.resolve(&text.parse()?, &workload.program)?);
        }
    }
    Ok(variants)
}
