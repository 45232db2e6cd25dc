//! The gain that a trial showed, in words: the smallest change that gets nearly all of it, and the result of each
//! candidate.
//!
//! Relies on a proof with its verdicts (`rounds.rs`). The smallest of the changes that gain nearly as
//! much as the best comes first.

use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::judge::LESS_SURE;
use super::super::thresholds::{CAUSE_SHARE, LITTLE_SHARE};
use super::{CANDIDATES, GLIBC, NEARLY_ALL};
use crate::Measure;
use crate::prove::{Proof, Proved, Shown};
use masu_run::Variant;
use masu_run::once::once;
use masu_run::quantity::percent;

/// Names of the settings that findings name, by a part of the variant's label.
const SETTINGS: [(&str, &str); 4] = [
    ("trim_threshold=", "keeping free memory"),
    ("purge_delay=", "keeping free memory"),
    ("arenas=", "an arena for each thread"),
    ("huge_pages=0", "no huge pages"),
];

/// A gain that was shown and is worth naming.
pub(super) struct Gain {
    pub(super) title: String,
    pub(super) share: f64,
    /// The least gain, as far as the runs can say.
    pub(super) least: f64,
    pub(super) remedies: Vec<Remedy>,
    pub(super) is_of_huge_pages: bool,
}

impl Gain {
    pub(super) fn confidence(&self) -> Confidence {
        if self.least >= CAUSE_SHARE { Confidence::High } else { Confidence::Medium }
    }

    /// The finding of a gain that nothing in `kept` explains. The time of the malloc itself is a part of what another
    /// one gains, and no second cause: it is taken out of `kept`.
    pub(super) fn finding(self, mut evidence: Vec<String>, kept: &mut Vec<Finding>) -> Finding {
        let confidence = self.confidence();
        let mut remedies = self.remedies;
        let is_part = |one: &Finding| {
            let is_named = |own| remedies.iter().any(|gained| is_same_change(own, gained));
            one.id == Id::ManyAllocations && one.remedies.iter().any(is_named)
        };
        if let Some(mut part) = kept.iter().position(is_part).map(|at| kept.remove(at)) {
            if let Some(first) = part.title.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            evidence.push(part.title);
            part.evidence.retain(|said| !said.starts_with("tried: "));
            evidence.append(&mut part.evidence);
            remedies.extend(part.remedies.into_iter().filter(|own| own.variant.is_none()));
        }
        // Runs showed the gain on this machine.
        evidence.retain(|said| !said.starts_with(LESS_SURE));
        let finding = Finding::new(Id::GainShown, confidence, self.title).sharing(self.share);
        Finding { evidence, ..finding }.remedied(remedies)
    }
}

/// The gain of the smallest change that gets nearly all of the largest one.
pub(super) fn gain(proof: &Proof) -> Option<Gain> {
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
    // A gain is named if at least one is large enough for a cause at the best end of its interval.
    let largest = shown.iter().map(|(_, gain, _)| *gain).fold(0.0, f64::max);
    if shown.iter().all(|(_, _, (low, _))| 1.0 - low < CAUSE_SHARE) {
        return None;
    }
    shown.retain(|(_, gain, _)| *gain >= NEARLY_ALL * largest);
    // A setting of the current malloc is a smaller change than another malloc, and another malloc a smaller one than
    // both.
    shown.sort_by_key(|(remedy, _, _)| {
        let label = &remedy.medians.label;
        (!label.starts_with(GLIBC), label.contains(':'))
    });
    let (first, gain, (low, high)) = *shown.first()?;
    let name = name_of(&first.medians.label);
    let mut title = name.to_owned();
    title[..1].make_ascii_uppercase();
    let time = if proof.primary == Measure::Cpu { "CPU time" } else { "time" };
    let takes =
        if name.ends_with("huge pages") && !name.starts_with("another") { "take" } else { "takes" };
    let least = (1.0 - high).max(0.0);
    let title = format!(
        "{title} {takes} {} of its {time} off ({} to {})",
        percent(gain),
        percent(least),
        percent(1.0 - low)
    );
    let remedies = shown.iter().map(|(remedy, _, _)| remedy_of(remedy)).collect();
    let is_of_huge_pages = first.medians.label.to_ascii_lowercase().contains("huge_pages");
    Some(Gain { title, share: gain, least, remedies, is_of_huge_pages })
}

pub(super) fn remedy_of(remedy: &Proved) -> Remedy {
    let label = &remedy.medians.label;
    let cost = peak(remedy)
        .unwrap_or_else(|| "no more memory than before, as far as that can be seen".to_owned());
    if label.starts_with(GLIBC) {
        Remedy::setting(name_of(label), label.clone(), &cost)
    } else {
        Remedy::allocator(name_of(label), label, &cost)
    }
}

/// The memory that a remedy's runs held, in words.
pub(super) fn peak(remedy: &Proved) -> Option<String> {
    let ratio = remedy.peak_rss.as_ref()?;
    Some(format!("memory ×{:.2} at the peak", ratio.estimate))
}

/// Whether two remedies are the same variant, or the same malloc with other settings. Settings of glibc's malloc differ.
pub(super) fn is_same_change(one: &Remedy, other: &Remedy) -> bool {
    let malloc = |remedy: &Remedy| -> Option<String> {
        let variant = remedy.variant.as_deref()?;
        let name = variant.split(':').next().filter(|name| *name != GLIBC);
        Some(name.unwrap_or(variant).to_owned())
    };
    malloc(one).is_some_and(|name| malloc(other) == Some(name))
}

pub(super) fn name_of(label: &str) -> &'static str {
    let known = CANDIDATES.iter().find(|(spec, _)| *spec == label).map(|(_, name)| *name);
    let of_setting =
        || SETTINGS.iter().find(|(part, _)| label.contains(part)).map(|(_, name)| *name);
    known.or_else(of_setting).unwrap_or("the other malloc")
}

/// The names of candidates, each once: several settings may have one name.
pub(super) fn names_of(variants: &[&Variant]) -> String {
    once(variants.iter().map(|one| name_of(&one.label))).join(", ")
}

/// The result of one candidate's runs, in a line.
pub(super) fn in_a_line(remedy: &Proved, primary: Measure) -> String {
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
        Shown::NoRatio => format!("{name}: there is no ratio"),
        Shown::TooFewRuns { .. } => format!("{name}: {ratio}, too few runs to be sure"),
        Shown::NoDifference { .. } => format!("{name}: {ratio}, no difference shown"),
        Shown::Gain | Shown::Worse => format!("{name}: {ratio}"),
    }
}
