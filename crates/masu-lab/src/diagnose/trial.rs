//! A trial: a program beside another malloc and two settings, where a diagnosis found no cause in its memory.
//!
//! Counts and samples of one run cannot show that memory is no problem: how blocks lie, and how long the malloc's own
//! code takes, cost time that nothing counts. So "memory is not its problem" is said only where short alternating
//! runs looked for a gain and found none. Relies on [`prove`](mod@crate::prove) for the runs. The hard idea is what a
//! trial may cost: its length is announced, it ends within [`LONGEST`], and a program that is too long for it is
//! not tried but named as not tried.

use std::time::Duration;

use super::finding::{Confidence, Finding, Id, Remedy};
use super::thresholds::{CAUSE_SHARE, CPU_MIN_S, GAIN_DENIED, LITTLE_SHARE, PARALLEL_SHARE};
use super::{Diagnosis, Kind};
use crate::prove::{self, Forecast, Proof, Proved, Shown};
use crate::report::percent;
use crate::statistics::{Level, pairs_needed};
use crate::{Catalogue, Libc, Measure, Plan, Variant, Workload};

/// A trial takes no longer than this, warm-ups included.
pub const LONGEST: Duration = Duration::from_secs(40);

/// More rounds than this narrow the intervals by too little.
const ROUNDS_MAX: usize = 16;

/// What is tried, in this order: of a longer program only the first. Each with what it is called.
const CANDIDATES: [(&str, &str); 3] = [
    ("masu", "another malloc"),
    ("glibc:huge_pages=1", "huge pages"),
    ("glibc:top_pad=64M,trim_threshold=64M", "keeping free memory"),
];

/// The program whose malloc is glibc's has glibc's settings too.
const GLIBC: &str = "glibc";

/// What is to be run.
#[derive(Debug)]
pub struct Trial {
    /// The runs.
    pub plan: Plan,
    /// How many there are, and how long they take.
    pub forecast: Forecast,
    /// What is tried, in words: `another malloc, huge pages`.
    pub what: String,
}

/// Whether a trial is worth making after a diagnosis, and what it is.
///
/// `None` where a cause in the program's memory was found, so that nothing is denied.
///
/// # Errors
///
/// Why the program cannot be tried, as one sentence for [`Diagnosis::not_seen`].
pub fn after(
    diagnosis: &Diagnosis,
    workload: &Workload,
    reference: &Variant,
    catalogue: &Catalogue,
) -> Result<Option<Trial>, String> {
    let is_open = |finding: &Finding| matches!(finding.id, Id::MemoryIsFine | Id::FirstTouch);
    let has_cause = diagnosis.findings.iter().any(|one| one.id.kind() == Kind::Cause);
    if has_cause && !diagnosis.findings.iter().any(is_open) {
        return Ok(None);
    }
    // A program that failed is to be mended first, and one that is over at once has nothing to gain.
    let facts = &diagnosis.facts;
    if facts.ending.as_deref() != Some("returned 0") || facts.clock.own_cpu_s() < CPU_MIN_S {
        return Ok(None);
    }
    if let Some(refusal) = &workload.program.refusal {
        return Err(format!("whether another malloc gains: none can be preloaded, {refusal}"));
    }
    let has_settings = workload.program.libc == Libc::Glibc && diagnosis.facts.malloc.name == GLIBC;
    let variants: Vec<(Variant, &str)> = CANDIDATES
        .iter()
        .filter(|(spec, _)| has_settings || !spec.starts_with(GLIBC))
        .filter(|(spec, _)| reference.label != *spec)
        .filter_map(|(spec, name)| {
            let variant = catalogue.resolve(&spec.parse().ok()?, &workload.program).ok()?;
            Some((variant, *name))
        })
        .collect();
    let run_s = facts.clock.own_wall_s(facts.cpus);
    let Some((count, rounds)) = affordable(variants.len(), run_s) else {
        return Err(format!(
            "whether another malloc or a setting gains: the program is too long to be run beside \
             them unasked; try {}",
            line(&diagnosis.command)
        ));
    };
    let tried = &variants[..count];
    let remedies: Vec<Variant> = tried.iter().map(|(variant, _)| variant.clone()).collect();
    let names: Vec<&str> = tried.iter().map(|(_, name)| *name).collect();
    let mut plan = prove::plan(workload, reference, &remedies, rounds);
    let threads = &facts.threads;
    if threads.together_s <= PARALLEL_SHARE * threads.looked_s {
        // Where threads never work side by side, CPU time is the same gain and does not see who else is busy here.
        plan.cases.iter_mut().for_each(|case| case.primary = Measure::Cpu);
    }
    Ok(Some(Trial {
        plan,
        forecast: prove::forecast(count, rounds, run_s),
        what: names.join(", "),
    }))
}

/// How many of `candidates` can be tried within [`LONGEST`], and in how many rounds.
#[expect(clippy::cast_precision_loss, reason = "runs are few")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "capped at 16")]
fn affordable(candidates: usize, run_s: f64) -> Option<(usize, usize)> {
    (1..=candidates).rev().find_map(|count| {
        let runs = LONGEST.as_secs_f64() / run_s.max(1e-3);
        let rounds = (runs / (count + 1) as f64 - 1.0).clamp(0.0, ROUNDS_MAX as f64) as usize;
        (rounds >= pairs_needed(count, Level::TABLE)).then_some((count, rounds))
    })
}

/// The line that compares by hand.
fn line(command: &[String]) -> String {
    let program = command.first().map_or("PROGRAM", String::as_str);
    format!("`masu compare -- {program} …`")
}

/// Draws from what the runs showed: a gain is a cause, and memory is fine only where none could hide.
pub fn conclude(diagnosis: &mut Diagnosis, proof: Proof) {
    let findings = std::mem::take(&mut diagnosis.findings);
    diagnosis.findings = with_trial(findings, &proof);
    diagnosis.findings.sort_by_key(Finding::order);
    diagnosis.trial = Some(proof);
}

fn with_trial(findings: Vec<Finding>, proof: &Proof) -> Vec<Finding> {
    let tried: Vec<String> =
        proof.remedies.iter().map(|one| in_a_line(one, proof.primary)).collect();
    let gain = gain(proof);
    let mut kept = Vec::new();
    let mut evidence = tried;
    for mut finding in findings {
        match (finding.id, &gain) {
            // The gain says it better, and was shown.
            (Id::MemoryIsFine, Some(_)) => {}
            (Id::FirstTouch, Some(gain)) if gain.is_of_huge_pages => {
                evidence.append(&mut finding.evidence);
            }
            (Id::FirstTouch, _) => {
                finding.confidence = Confidence::Low;
                finding.remedies.retain(|remedy| remedy.variant.is_none());
                kept.push(finding.seeing("huge pages were tried and gained nothing worth it here"));
            }
            (Id::MemoryIsFine, None) => kept.push(fine(finding, proof, &evidence)),
            _ => kept.push(finding),
        }
    }
    if let Some(gain) = gain {
        let mut finding =
            Finding::new(Id::GainShown, Confidence::High, gain.title).sharing(gain.share);
        finding.evidence = evidence;
        kept.push(finding.remedied(gain.remedies));
    }
    kept
}

/// What a trial that showed no gain makes of "memory is not its problem".
fn fine(mut finding: Finding, proof: &Proof, tried: &[String]) -> Finding {
    let hidden =
        proof.remedies.iter().map(|one| could_hide(one, proof.primary)).fold(0.0, f64::max);
    finding.evidence.extend_from_slice(tried);
    finding.confidence = match hidden {
        _ if proof.remedies.is_empty() => Confidence::Low,
        hidden if hidden < GAIN_DENIED => Confidence::High,
        hidden if hidden < 2.0 * GAIN_DENIED => Confidence::Medium,
        _ => Confidence::Low,
    };
    if finding.confidence != Confidence::High {
        finding.title =
            "Memory is hardly its problem, as far as short runs beside others can say".to_owned();
        finding.evidence.push(format!(
            "a gain of up to {} could have stayed unseen in so few runs; `masu compare` makes more",
            percent(hidden.min(1.0))
        ));
    }
    finding
}

/// The largest gain that a remedy may have and that its runs did not show.
fn could_hide(remedy: &Proved, primary: Measure) -> f64 {
    match remedy.ratio(primary).and_then(|ratio| ratio.interval) {
        Some((low, _)) => (1.0 - low).max(0.0),
        None => 1.0,
    }
}

/// A gain that was shown and is worth naming.
struct Gain {
    title: String,
    share: f64,
    remedies: Vec<Remedy>,
    is_of_huge_pages: bool,
}

/// The gain that the smallest change gives which gets nearly all of the largest one.
fn gain(proof: &Proof) -> Option<Gain> {
    /// The share of the largest gain that a smaller change must get.
    const NEARLY_ALL: f64 = 0.9;
    let mut shown: Vec<(&Proved, f64, (f64, f64))> = proof
        .remedies
        .iter()
        .filter(|remedy| remedy.shown == Shown::Gain)
        .filter_map(|remedy| {
            let ratio = remedy.ratio(proof.primary)?;
            Some((remedy, 1.0 - ratio.estimate, ratio.interval?))
        })
        .filter(|(_, gain, _)| *gain >= LITTLE_SHARE)
        .collect();
    let largest = shown.iter().map(|(_, gain, _)| *gain).fold(0.0, f64::max);
    if largest < CAUSE_SHARE {
        return None;
    }
    shown.retain(|(_, gain, _)| *gain >= NEARLY_ALL * largest);
    // A setting of the malloc that is there is a smaller change than another malloc.
    shown.sort_by_key(|(remedy, _, _)| !remedy.medians.label.starts_with(GLIBC));
    let (first, gain, (low, high)) = *shown.first()?;
    let name = name_of(&first.medians.label);
    let mut title = name.to_owned();
    title[..1].make_ascii_uppercase();
    let time = if proof.primary == Measure::Cpu { "CPU time" } else { "time" };
    let title = format!(
        "{title} takes {} of its {time} off ({} to {})",
        percent(gain),
        percent((1.0 - high).max(0.0)),
        percent(1.0 - low)
    );
    let remedies = shown.iter().map(|(remedy, _, _)| remedy_of(remedy)).collect();
    let is_of_huge_pages = first.medians.label.contains("huge_pages");
    Some(Gain { title, share: gain, remedies, is_of_huge_pages })
}

fn remedy_of(remedy: &Proved) -> Remedy {
    let label = &remedy.medians.label;
    let cost = match remedy.peak_rss {
        Some(ratio) => format!("memory ×{:.2} at the peak", ratio.estimate),
        None => "no more memory than before, as far as that can be seen".to_owned(),
    };
    if label.starts_with(GLIBC) {
        Remedy::setting(name_of(label), label.clone(), &cost)
    } else {
        Remedy::allocator(name_of(label), label, &cost)
    }
}

/// What a candidate is called.
fn name_of(label: &str) -> &str {
    CANDIDATES.iter().find(|(spec, _)| *spec == label).map_or(label, |(_, name)| *name)
}

/// What one candidate's runs showed, in a line.
fn in_a_line(remedy: &Proved, primary: Measure) -> String {
    let Proved { medians, shown, .. } = remedy;
    let of = if primary == Measure::Cpu { "of the CPU time" } else { "of the time" };
    let name = format!("{} ({})", name_of(&medians.label), medians.label);
    let ratio = match remedy.ratio(primary) {
        Some(ratio) => match ratio.interval {
            Some((low, high)) => format!("×{:.3} {of} ({low:.3}–{high:.3})", ratio.estimate),
            None => format!("×{:.3} {of}", ratio.estimate),
        },
        None => String::new(),
    };
    match shown {
        Shown::LeftOut { reason } => format!("{name}: left out, {reason}"),
        Shown::RunsFailed { failed, of } => format!("{name}: {failed} of {of} rounds failed"),
        Shown::TooFewRuns { .. } => format!("{name}: {ratio}, too few runs to be sure"),
        Shown::NoDifference { .. } => format!("{name}: {ratio}, no difference shown"),
        Shown::Gain | Shown::Worse => format!("{name}: {ratio}"),
    }
}

#[cfg(test)]
#[path = "trial/tests.rs"]
mod tests;
