//! The room that a trial's runs leave for gains that they did not show, and for smaller programs.
//!
//! Relies on the intervals of ratios. A wide interval is no answer: what stays possible is said, and not denied.

use super::super::finding::{Confidence, Finding, Id};
use super::super::thresholds::{GAIN_DENIED, LITTLE_SHARE};
use super::SAYS_NOTHING;
use super::gain::{name_of, remedy_of};
use crate::Measure;
use crate::prove::{Proof, Proved, Shown};
use masu_run::quantity::percent;

/// A candidate may gain if its estimate is this share of half its interval away from no gain; a nearer one is noise.
const LIKELY_SHARE: f64 = 0.5;

/// The most candidates that are named because they may gain.
const LIKELY_MAX: usize = 2;

/// Whether a remedy without a shown gain most likely gains: a large gain may hide in its runs, and its estimate is far
/// enough from no gain (see [`LIKELY_SHARE`]).
pub(super) fn leans(remedy: &Proved, primary: Measure) -> bool {
    let Some(ratio) = remedy.ratio(primary) else { return false };
    let Some((low, _)) = ratio.interval.filter(|(low, _)| 1.0 - low >= GAIN_DENIED) else {
        return false;
    };
    let (gain, reach) = (-ratio.estimate.ln(), (ratio.estimate / low).ln());
    1.0 - ratio.estimate >= LITTLE_SHARE && gain >= LIKELY_SHARE * reach
}

/// The estimated ratio of a remedy's runs; 1 without one.
pub(super) fn estimate(remedy: &Proved, primary: Measure) -> f64 {
    remedy.ratio(primary).map_or(1.0, |ratio| ratio.estimate)
}

/// The largest gain of a remedy that its runs may have failed to show.
pub(super) fn could_hide(remedy: &Proved, primary: Measure) -> f64 {
    match remedy.ratio(primary).and_then(|ratio| ratio.interval) {
        Some((low, _)) => (1.0 - low).max(0.0),
        None => 1.0,
    }
}

/// The largest gain that the runs of any remedy may have failed to show.
pub(super) fn hidden(proof: &Proof) -> f64 {
    proof.remedies.iter().map(|one| could_hide(one, proof.primary)).fold(0.0, f64::max)
}

fn has_run(one: &Proved) -> bool {
    !matches!(one.shown, Shown::LeftOut { .. })
}

/// The finding if the runs of `tried` leave room for a large gain: they show neither that there is one nor that there is
/// none. `whether` says what is open where none of them is likely to gain.
pub(super) fn open(
    evidence: Vec<String>,
    tried: Vec<&Proved>,
    primary: Measure,
    whether: &str,
) -> Finding {
    let estimate = |one: &Proved| estimate(one, primary);
    let mut likely = tried;
    likely.retain(|one| leans(one, primary));
    likely.sort_by(|one, other| estimate(one).total_cmp(&estimate(other)));
    let mut title = match likely.first() {
        Some(first) => {
            let gain = percent(1.0 - estimate(first));
            format!(
                "{} may take {gain} off, which its runs could not show",
                name_of(&first.medians.label)
            )
        }
        None => format!("whether {whether} could not be shown: its runs differ too much"),
    };
    title[..1].make_ascii_uppercase();
    let finding = Finding::new(Id::MemoryOpen, Confidence::Low, title);
    Finding { evidence, ..finding }.remedied(likely.into_iter().take(LIKELY_MAX).map(remedy_of))
}

/// Leaves open that the `untried` candidates gain: memory is not called fine because of those in `proof`.
pub(super) fn leave_open(findings: &mut [Finding], proof: &Proof, untried: &str) {
    let tried: Vec<&str> = proof.remedies.iter().map(|one| name_of(&one.medians.label)).collect();
    let hidden = hidden(proof);
    for one in findings.iter_mut().filter(|one| one.id == Id::MemoryIsFine) {
        let title = if hidden < SAYS_NOTHING {
            let (most, tried) = (percent(hidden), tried.join(", "));
            format!("At most {most} is gained by {tried}; not tried: {untried}")
        } else {
            format!("Whether another malloc or a setting gains is not known; not tried: {untried}")
        };
        let evidence = std::mem::take(&mut one.evidence);
        *one = Finding { evidence, ..Finding::new(Id::MemoryOpen, Confidence::Low, title) };
    }
}

/// Takes memory for fine, with low confidence, where hardly any memory or time is the malloc's, and runs differ too much
/// or some candidates are `untried`: counts then say more.
pub(super) fn close_by_counts(findings: &mut [Finding], proof: &Proof, untried: &str) {
    let has_run = proof.remedies.iter().any(has_run);
    for one in findings.iter_mut() {
        let is_open = one.id == Id::MemoryOpen && one.remedies.is_empty() && has_run;
        if !is_open && (one.id != Id::MemoryIsFine || untried.is_empty()) {
            continue;
        }
        let mut title = "Hardly any of its memory is its malloc's".to_owned();
        if is_open {
            title.push_str("; its runs differ too much to show more");
        }
        if !untried.is_empty() {
            title.push_str(&format!("; not tried: {untried}"));
        }
        let evidence = std::mem::take(&mut one.evidence);
        *one = Finding { evidence, ..Finding::new(Id::MemoryIsFine, Confidence::Low, title) };
    }
}

/// The candidates that no finding names and whose runs may have hidden a large gain; none beside an all-clear. A
/// candidate that was left out, because the program does not run with it, has no runs.
pub(super) fn left_unnamed<'a>(findings: &[Finding], proof: &'a Proof) -> Vec<&'a Proved> {
    let is_named = |one: &Proved| {
        let mut remedies = findings.iter().flat_map(|finding| &finding.remedies);
        remedies.any(|remedy| remedy.variant.as_ref() == Some(&one.medians.label))
    };
    let is_left = |one: &&Proved| {
        has_run(one) && could_hide(one, proof.primary) >= 2.0 * GAIN_DENIED && !is_named(one)
    };
    let is_clear = findings.iter().any(|one| one.id.kind() == super::Kind::AllClear);
    proof.remedies.iter().filter(|one| !is_clear && is_left(one)).collect()
}

/// A remedy for held memory gains something if the program's peak is smaller than this by it, as a ratio.
const PEAK_MOST: f64 = 0.95;

/// Takes back remedies for held memory with which a trial's runs had the same peak: what is free between live blocks was
/// needed before, or is again.
pub(super) fn held_against_peak(mut finding: Finding, proof: &Proof) -> Finding {
    if finding.id != Id::Retention {
        return finding;
    }
    let evidence = &mut finding.evidence;
    finding.remedies.retain(|remedy| {
        let tried =
            proof.remedies.iter().find(|one| remedy.variant.as_ref() == Some(&one.medians.label));
        let Some(peak) =
            tried.and_then(|one| one.peak_rss).filter(|peak| peak.estimate > PEAK_MOST)
        else {
            return true;
        };
        let (label, ratio) = (remedy.variant.as_deref().unwrap_or_default(), peak.estimate);
        evidence.push(format!(
            "tried: {label}: ×{ratio:.2} of the peak RSS, so this gains nothing there"
        ));
        finding.confidence = Confidence::Low;
        false
    });
    finding
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proof, remedy};
    use super::*;
    use crate::diagnose::finding::Remedy;
    use crate::statistics::Ratio;

    #[test]
    fn where_hardly_any_memory_is_the_mallocs_runs_that_differ_deny_nothing() {
        let closed = |id, remedies: Vec<Remedy>, shown: Option<Shown>, untried: &str| {
            let finding = Finding::new(id, Confidence::High, "As it was");
            let mut found = vec![finding.seeing("tried: masu").remedied(remedies)];
            let run = shown.map(|shown| Proved { shown, ..remedy("masu", 1.0, 0.7, 1.4) });
            close_by_counts(&mut found, &proof(run.into_iter().collect()), untried);
            assert_eq!(found[0].evidence, ["tried: masu"]);
            let one = found.remove(0);
            (one.id, one.confidence, one.title)
        };
        let ran = Some(Shown::NoDifference { could_have_seen: 0.4 });
        let low = |title: &str| (Id::MemoryIsFine, Confidence::Low, title.to_owned());
        let as_it_was = |id| (id, Confidence::High, "As it was".to_owned());
        let differ =
            "Hardly any of its memory is its malloc's; its runs differ too much to show more";
        assert_eq!(closed(Id::MemoryOpen, Vec::new(), ran.clone(), ""), low(differ));
        let leaning = vec![Remedy::allocator("another", "masu", "another malloc")];
        let may_gain = closed(Id::MemoryOpen, leaning, ran.clone(), "");
        assert_eq!(may_gain, as_it_was(Id::MemoryOpen), "a candidate may gain");
        // Without a run, no runs differ.
        let left_out = Some(Shown::LeftOut { reason: "it hangs".to_owned() });
        for shown in [None, left_out] {
            let open = closed(Id::MemoryOpen, Vec::new(), shown, "");
            assert_eq!(open, as_it_was(Id::MemoryOpen));
        }
        assert_eq!(
            closed(Id::MemoryIsFine, Vec::new(), ran.clone(), ""),
            as_it_was(Id::MemoryIsFine)
        );
        let untried = "Hardly any of its memory is its malloc's; not tried: huge pages";
        assert_eq!(closed(Id::MemoryIsFine, Vec::new(), ran, "huge pages"), low(untried));
    }

    #[test]
    fn held_memory_is_no_gain_where_another_malloc_has_the_same_peak() {
        let held = |peak: f64| {
            let remedies = [
                Remedy::code(1, "free it all", "a change of the program"),
                Remedy::allocator("another", "masu", "another malloc"),
            ];
            let finding = Finding::new(Id::Retention, Confidence::Medium, "Held").sharing(0.58);
            let peak_rss = Some(Ratio { estimate: peak, interval: None, pairs: 5 });
            let masu = Proved { peak_rss, ..remedy("masu", 0.9, 0.8, 1.0) };
            held_against_peak(finding.remedied(remedies), &proof(vec![masu]))
        };
        let (same, less) = (held(1.01), held(0.6));
        assert_eq!((same.confidence, same.remedies.len()), (Confidence::Low, 1), "{same:?}");
        assert!(same.evidence[0].contains("×1.01 of the peak RSS"), "{same:?}");
        assert_eq!((less.confidence, less.remedies.len()), (Confidence::Medium, 2), "{less:?}");
    }
}
