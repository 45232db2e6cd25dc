//! `masu diagnose --prove`: the settings and mallocs that a diagnosis names, run against the program as it is.
//!
//! Relies on the lab's proofs, whose runs are those of `masu compare`. What needs code is never proved.

use anstyle::Style;
use anyhow::Result;
use masu_lab::prove::{self, Medians, Proof, Proved, Shown};
use masu_lab::report::notice;
use masu_lab::statistics::Ratio;
use masu_lab::{Catalogue, CompareOptions, Diagnosis, Stop, Variant, Workload};

use crate::aside;
use crate::progress::Progress;

const BOLD: Style = Style::new().bold();

/// Runs every setting and every malloc among the remedies against `reference`; none where there is none.
pub(super) fn perform(
    diagnosis: &Diagnosis,
    workload: &Workload,
    reference: &Variant,
    catalogue: &Catalogue,
    stop: &Stop,
) -> Result<Option<Proof>> {
    let remedies = named(diagnosis, workload, reference, catalogue)?;
    if remedies.is_empty() {
        aside::say(notice("Nothing to prove: no remedy is a setting or a malloc."));
        return Ok(None);
    }
    let rounds = prove::DEFAULT_ROUNDS;
    let run_s = diagnosis.facts.clock.own_wall_s(diagnosis.facts.cpus);
    let forecast = prove::forecast(remedies.len(), rounds, run_s);
    aside::say(notice(&format!("Proving {} of the remedies: {forecast}.", remedies.len())));
    let plan = prove::plan(workload, reference, &remedies, rounds);
    let progress = Progress::on_stderr();
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

/// What was shown, for the page.
pub(super) fn told(proof: &Proof) -> String {
    let mut page = format!("\n{BOLD}Proof{BOLD:#}\n");
    let Medians { label, wall_s, .. } = &proof.reference;
    let against = wall_s.map_or_else(String::new, |wall_s| format!(", {}", super::seconds(wall_s)));
    page.push_str(&format!("  against {label}{against}; {} runs\n", proof.runs));
    for Proved { medians, shown, wall, cpu, peak_rss } in &proof.remedies {
        page.push_str(&format!("  {BOLD}{}{BOLD:#}\n    {}\n", medians.label, verdict(shown)));
        let figures = [("time", wall), ("CPU", cpu), ("memory", peak_rss)];
        let figures: Vec<String> = figures
            .iter()
            .filter_map(|(name, ratio)| Some(figure(name, ratio.as_ref()?)))
            .collect();
        if !figures.is_empty() {
            page.push_str(&format!("    {}\n", figures.join(", ")));
        }
    }
    for warning in &proof.warnings {
        super::listed(&mut page, "  ! ", warning);
    }
    page
}

fn figure(name: &str, ratio: &Ratio) -> String {
    match ratio.interval {
        Some((low, high)) => format!("{name} ×{:.3} ({low:.3}–{high:.3})", ratio.estimate),
        None => format!("{name} ×{:.3}", ratio.estimate),
    }
}

fn verdict(shown: &Shown) -> String {
    match shown {
        Shown::Gain => "proved: faster".to_owned(),
        Shown::Worse => "no remedy here: slower".to_owned(),
        Shown::NoDifference { could_have_seen } => {
            format!("no difference shown; one of {:.1} % would have been", could_have_seen * 100.0)
        }
        Shown::TooFewRuns { pairs, needed } => {
            format!("not proved: {pairs} pairs of runs, {needed} are needed")
        }
        Shown::RunsFailed { failed, of } => format!("not proved: {failed} of {of} rounds failed"),
        Shown::LeftOut { reason } => format!("left out: {reason}"),
    }
}
