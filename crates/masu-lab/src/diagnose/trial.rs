//! A trial: runs of a program with the mallocs and settings that a diagnosis names, and with a few that help many
//! programs.
//!
//! Counts and samples of one run cannot show that memory is no problem: the placement of blocks and the malloc's own
//! code cost time that nothing counts. They cannot show that a remedy helps either. So "memory is not its problem" is
//! said only if short alternating runs looked for a gain and found none, and a remedy that gained nothing is taken
//! back. Relies on [`prove`](mod@crate::prove) for the runs, and on `rounds.rs` for when there are enough. The
//! difficulty is the time of a trial: its length is announced and kept, the likeliest gain comes first, and candidates
//! for which there is no time are named as not tried.

use std::time::{Duration, Instant};

use super::facts::Facts;
use super::finding::{Confidence, Finding, Id, Remedy, RemedyKind};
use super::judge::{as_sure_as_memory, is_of_memory};
use super::repeats::other_work;
use super::thresholds::{
    CPU_MIN_S, EXPLAINS, GAIN_DENIED, HUGE_PAGE, KERNEL_SHARE, LITTLE_SHARE, PARALLEL_SHARE,
};
use super::{Diagnosis, Kind};
use crate::compare::{Event, Until};
use crate::plan::Prepared;
use crate::prove::{self, Proof, Proved, Shown};
use crate::{CompareOptions, Measure, Plan};
use masu_run::once::once;
use masu_run::prices::Service;
use masu_run::quantity::percent;
use masu_run::workload::quoted;
use masu_run::{Catalogue, Ending, Error, Libc, Limits, Row, Stop, Variant, Workload, machine};

mod gain;
mod locality;
mod pace;
mod room;
mod rounds;

use gain::{Gain, gain, in_a_line, is_same_change, name_of, names_of};
use pace::Pace;
use room::{close_by_counts, could_hide, estimate, hidden, leans, leave_open, open};

/// The most rounds: more of them narrow the intervals by too little.
const ROUNDS_MAX: usize = 40;

/// Runs side by side need at most one part in this many of the available memory, all together.
const AVAILABLE_SHARE: u64 = 4;

/// The most bytes that runs side by side touch, all together: if they touch more, the host of a virtual machine serves
/// the programs of a round differently.
const BESIDE_MOST: u64 = 1 << 30;

/// The same limit for at most [`FEW`] candidates. Beside others, runs of that size take half as long again, and three
/// rounds decide nothing.
const BESIDE_MOST_OF_FEW: u64 = 256 << 20;
const FEW: usize = 3;

/// The candidates that follow those of the diagnosis, in this order, each with its name; for a longer program only the
/// first is tried.
const CANDIDATES: [(&str, &str); 5] = [
    // This candidate gained most in nearly all programs that gained anything, among those that the diagnosis was tuned
    // on: it is tried if there is time for one alone.
    (HUGE_MASU, "another malloc with huge pages"),
    ("masu", "another malloc"),
    (HUGE_PAGES, "huge pages"),
    (PADDING, "keeping free memory"),
    // This candidate is tried if it is installed. A collector (Guile) gained by it alone, so without it memory is never
    // called fine for certain.
    ("jemalloc", "jemalloc"),
];
const HUGE_MASU: &str = "masu:huge_pages_from=0";
const HUGE_PAGES: &str = "glibc:huge_pages=1";
const PADDING: &str = "glibc:top_pad=64M,trim_threshold=64M";

/// Runs that may have hidden a gain of this share say nothing about any.
const SAYS_NOTHING: f64 = 0.5;

/// The share of the largest gain that a smaller change must get.
const NEARLY_ALL: f64 = 0.9;

/// The sentence about runs that took turns.
const BESIDE: &str = "the runs of each round shared one CPU, so that all met the same conditions";

/// The name of the malloc that has glibc's settings, and the start of their labels.
const GLIBC: &str = "glibc";

/// The runs of a trial, with their limits.
#[derive(Debug)]
pub struct Trial {
    pub plan: Plan,
    /// The longest time of all runs together; after it no round begins. The trial ends earlier if all is decided.
    pub longest: Duration,
    /// The candidates that are tried first, in words: `another malloc, huge pages`.
    pub what: String,
    /// Candidates for which there is no time unless the first ones are decided early.
    rest: Vec<Row>,
    /// Candidates of `rest` that could not be run, and why.
    failed: Vec<(Row, Error)>,
    /// The least time that one more candidate takes.
    one_more: Duration,
}

impl Trial {
    /// Sets the limits of each run; a run that shares its CPU with others may take as many times as long.
    pub fn limit(&mut self, limits: &Limits) {
        for case in &mut self.plan.cases {
            let beside = if case.is_side_by_side { case.rows.len() } else { 1 };
            let beside = u32::try_from(beside).unwrap_or(u32::MAX);
            let time = limits.time.map(|time| time.saturating_mul(beside));
            // Without a limit of the user's, a variant that hangs must not outlast the trial.
            case.limits = Limits { time: time.or(Some(self.longest)), ..limits.clone() };
        }
    }

    /// Makes the runs, until all is decided or their time is over. If time is left, further candidates follow, one by
    /// one: candidates that enough rounds left undecided do not take the time of the next one.
    pub fn make(
        &mut self,
        stop: &Stop,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<Proof, Error> {
        let end = Instant::now() + self.longest;
        let mut proof = self.make_until(end, stop, observe)?;
        while let Some(next) = self.rest.first().cloned()
            && !stop.requested()
            && Instant::now() + self.one_more <= end
        {
            let rows = &mut self.plan.cases[0].rows;
            rows.truncate(1);
            rows.push(next);
            let more = self.make_until(end, stop, observe);
            let tried = self.rest.remove(0);
            match more {
                Ok(more) => proof.add(more),
                Err(error) => self.failed.push((tried, error)),
            }
        }
        Ok(proof)
    }

    fn make_until(
        &self,
        end: Instant,
        stop: &Stop,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<Proof, Error> {
        let spare = (!self.rest.is_empty()).then_some((pace::ROUNDS_APART, self.one_more));
        let until = Some(Until { end, rounds: 1, first: rounds::FIRST, spare });
        let options =
            CompareOptions { until, open: Some(rounds::open), ..CompareOptions::default() };
        prove::prove_by(&rounds::RULES, &self.plan, &options, stop, observe)
    }

    /// Draws the conclusions from the runs: a gain is a cause, and memory is fine only if no gain could hide.
    /// Runs that did other work than the diagnosed one count as none.
    pub fn conclude(self, diagnosis: &mut Diagnosis, proof: Proof) {
        if let Some(reason) = other_work(&proof, &diagnosis.facts) {
            let reason = format!("whether another malloc or a setting gains: {reason}");
            return not_tried(diagnosis, reason);
        }
        let findings = std::mem::take(&mut diagnosis.findings);
        diagnosis.findings = with_trial(findings, &proof);
        locality::name(&mut diagnosis.findings, &proof, &diagnosis.facts);
        let untried: Vec<&Variant> = self.rest.iter().map(|row| &row.variant).collect();
        let failed = self.failed.iter().map(|(row, _)| &row.variant);
        let unknown: Vec<&Variant> = untried.iter().copied().chain(failed).collect();
        let (facts, findings) = (&diagnosis.facts, &mut diagnosis.findings);
        if facts.is_beyond_mallocs() && !is_of_memory(facts, findings) {
            close_by_counts(findings, &proof, &names_of(&unknown));
        } else if !unknown.is_empty() {
            leave_open(findings, &proof, &names_of(&unknown));
        }
        as_sure_as_memory(facts, findings);
        if !untried.is_empty() {
            diagnosis.not_seen.push(format!(
                "whether {} would gain: there was no time; try it with: {}",
                names_of(&untried),
                line(diagnosis, &untried)
            ));
        }
        for (row, error) in &self.failed {
            let name = name_of(&row.variant.label);
            diagnosis.not_seen.push(format!("whether {name} would gain: {error}"));
        }
        diagnosis.findings.sort_by_key(Finding::order);
        diagnosis.trial = Some(proof);
    }
}

/// The trial that is worth making after a diagnosis.
///
/// `None` if the cause lies elsewhere, so that nothing about memory is denied or advised. An error is the reason why
/// the program cannot be tried, as one sentence for [`Diagnosis::not_seen`].
pub fn after(
    diagnosis: &Diagnosis,
    workload: &Workload,
    reference: &Variant,
    catalogue: &Catalogue,
) -> Result<Option<Trial>, String> {
    let facts = &diagnosis.facts;
    let named = named(&diagnosis.findings);
    if named.is_empty() && is_closed(&diagnosis.findings, facts) {
        return Ok(None);
    }
    // A failed program must be fixed first, and a program that is over at once has nothing to gain.
    if facts.ending.as_deref() == Some(Ending::TimedOut.to_string().as_str()) {
        return Err(
            "whether another malloc gains: the run was cut short, so none was made beside it"
                .to_owned(),
        );
    }
    if !facts.has_ended_well() || facts.clock.own_cpu_s() < CPU_MIN_S {
        return Ok(None);
    }
    if let Some(refusal) = &workload.program.refusal {
        return Err(format!("whether another malloc gains: none can be preloaded, {refusal}"));
    }
    let has_settings = workload.program.libc == Libc::Glibc && facts.malloc.name == GLIBC;
    let count_named = named.len();
    let mut variants: Vec<Variant> = candidates(named, facts)
        .into_iter()
        .filter(|spec| has_settings || !spec.starts_with(GLIBC))
        .filter(|spec| reference.label != *spec)
        .filter_map(|spec| catalogue.resolve(&spec.parse().ok()?, &workload.program).ok())
        .collect();
    if variants.is_empty() {
        return Err(
            "whether another malloc or a setting gains: there is none here to try".to_owned()
        );
    }
    let pace = Pace::of(facts);
    let available = machine::memory_available().unwrap_or(0);
    let may_take_turns = |count: &usize| may_take_turns(facts, *count, available);
    let Some((count, beside)) = pace.chosen(variants.len(), may_take_turns) else {
        return Err(format!(
            "whether another malloc or a setting gains: one run takes too long to try that unasked; \
             try it with: {}",
            line(diagnosis, &variants.iter().collect::<Vec<_>>())
        ));
    };
    if count < count_named {
        malloc_first(&mut variants, &facts.malloc.name);
    }
    // The time ends a trial: the length of a run beside others is known only after some runs.
    let mut plan = prove::plan(workload, reference, &variants, ROUNDS_MAX);
    let rest = plan.cases[0].rows.split_off(1 + count);
    let threads = &facts.threads;
    if beside {
        plan.cases.iter_mut().for_each(Prepared::side_by_side);
    } else if pace.is_busy || threads.together_s <= PARALLEL_SHARE * threads.looked_s {
        // CPU time hardly depends on others here, and if threads never work side by side, its gain is the same.
        plan.cases.iter_mut().for_each(|case| case.primary = Measure::Cpu);
    }
    Ok(Some(Trial {
        plan,
        longest: Duration::from_secs_f64(pace.budget_s()),
        what: names_of(&variants[..count].iter().collect::<Vec<_>>()),
        rest,
        failed: Vec::new(),
        one_more: Duration::from_secs_f64(pace.needed_s(1, rounds::FIRST, beside)),
    }))
}

/// Puts another malloc before the settings of the present one, for a trial without time for all that findings name: a
/// setting gains against one cause, another malloc mostly against all.
fn malloc_first(variants: &mut [Variant], present: &str) {
    if let Some(at) = variants.iter().position(|one| !one.label.starts_with(present)) {
        variants[..=at].rotate_right(1);
    }
}

/// Notes why a program was not tried, as a sentence for [`Diagnosis::not_seen`]. Memory is called fine with low
/// confidence then, and not at all if others use the machine: the counts and samples of one run beside them are too
/// little, except where hardly anything is left for a malloc.
pub fn not_tried(diagnosis: &mut Diagnosis, reason: String) {
    diagnosis.not_seen.push(reason);
    for one in diagnosis.findings.iter_mut().filter(|one| one.id == Id::MemoryIsFine) {
        one.confidence = Confidence::Low;
        let facts = &diagnosis.facts;
        if !facts.others.is_busy() || facts.has_little_heap() || facts.is_beyond_mallocs() {
            continue;
        }
        let title = "Whether another malloc or a setting gains is not known: other programs use the \
                     machine, and no further run shows it";
        let evidence = std::mem::take(&mut one.evidence);
        *one = Finding { evidence, ..Finding::new(Id::MemoryOpen, Confidence::Low, title) };
    }
    as_sure_as_memory(&diagnosis.facts, &mut diagnosis.findings);
    diagnosis.findings.sort_by_key(Finding::order);
}

/// Whether it is known without a trial that no malloc gains.
fn is_closed(findings: &[Finding], facts: &Facts) -> bool {
    let is_open = |finding: &Finding| {
        matches!(finding.id, Id::MemoryIsFine | Id::MemoryOpen | Id::FirstTouch)
    };
    // Held memory explains no time, and a collector's time does not say what another malloc gains.
    let has_cause = findings.iter().any(|one| {
        one.id.kind() == Kind::Cause && !matches!(one.id, Id::Retention | Id::ManyAllocations)
    });
    // The time of waits, or of starting processes, is no malloc's. Beside system calls, a heap that caches hold takes little.
    let is_elsewhere = |one: &Finding| match one.id {
        Id::IoBound | Id::ForkStorm => true,
        Id::SystemCalls => one.share >= Some(KERNEL_SHARE) && facts.has_little_heap(),
        _ => false,
    };
    // Where page faults take time, counts alone leave memory fine with little confidence, or not fine: runs show more.
    let is_doubted = |one: &Finding| {
        one.id == Id::FirstTouch || one.id == Id::MemoryIsFine && one.confidence == Confidence::Low
    };
    has_cause && !findings.iter().any(is_open)
        || findings.iter().any(is_elsewhere)
        || facts.is_beyond_mallocs() && !findings.iter().any(is_doubted)
}

/// The variants that findings name against lost time, each once.
fn named(findings: &[Finding]) -> Vec<String> {
    let remedies = findings.iter().filter(|one| !is_of_size(one.id)).flat_map(|one| &one.remedies);
    once(remedies.filter_map(|remedy| remedy.variant.clone()))
}

/// The candidates: those that were `named`, then those that help many programs and may help this one.
fn candidates(named: Vec<String>, facts: &Facts) -> Vec<String> {
    let mut all = named;
    for (spec, _) in CANDIDATES {
        if !all.iter().any(|known| known == spec) && may_help(spec, facts) {
            all.push(spec.to_owned());
        }
    }
    all
}

/// Whether a candidate may gain anything, by the counts. Counts cannot rule out another malloc.
fn may_help(spec: &str, facts: &Facts) -> bool {
    // Huge pages would hold what was never touched, and may not fit.
    if matches!(spec, HUGE_PAGES | HUGE_MASU) && facts.is_sparse() {
        return false;
    }
    let Some(calls) = facts.calls.as_ref().filter(|calls| calls.sampled.is_none()) else {
        return true;
    };
    let moves = &calls.moves;
    match spec {
        HUGE_PAGES | HUGE_MASU => {
            moves.asked_by_malloc_bytes().min(facts.memory.peak_rss_bytes) >= HUGE_PAGE
        }
        // This setting saves calls, and faults of memory that was given back.
        PADDING => {
            let times = (moves.break_ups + moves.break_downs + moves.maps + moves.unmaps) as f64;
            let calls_s =
                times * facts.price_s(Service::SystemCall).max(facts.price_s(Service::BreakPair));
            let refaults = facts.memory.refaults.unwrap_or(facts.memory.minor_faults);
            let faults_s = refaults as f64 * facts.price_s(Service::PageFault);
            facts.share(calls_s + faults_s) >= LITTLE_SHARE
        }
        _ => true,
    }
}

/// Whether a finding is about held memory, which runs judged by their time cannot refute.
fn is_of_size(id: Id) -> bool {
    matches!(id, Id::Retention | Id::HugePageWaste | Id::Swap | Id::Growth)
}

/// Whether `candidates` of a program can run side by side, as
/// [`Prepared::side_by_side`](crate::Prepared::side_by_side()) requires, with this much available memory.
fn may_take_turns(facts: &Facts, candidates: usize, available_bytes: u64) -> bool {
    let Some(calls) = &facts.calls else { return false };
    let most = if candidates > FEW { BESIDE_MOST } else { BESIDE_MOST_OF_FEW };
    let needed = facts.memory.peak_rss_bytes.saturating_mul(candidates as u64 + 1);
    calls.outward == Some(0)
        && calls.threads_started == 0
        && needed <= most.min(available_bytes / AVAILABLE_SHARE)
}

/// The command line that compares by hand.
fn line(diagnosis: &Diagnosis, variants: &[&Variant]) -> String {
    /// The most characters: a longer command is not written out.
    const MOST: usize = 80;
    let command = &diagnosis.command;
    let whole = command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    // Bytes that were no UTF-8 are replaced in the words of a diagnosis.
    let is_lost = whole.contains(char::REPLACEMENT_CHARACTER);
    let program = match command.first() {
        None => "PROGRAM".to_owned(),
        Some(_) if whole.chars().count() <= MOST && !is_lost => whole,
        Some(program) => format!("{program} …"),
    };
    let named: Vec<String> = variants.iter().map(|one| format!(" -a {}", one.label)).collect();
    format!("`masu compare -a {}{} -- {program}`", diagnosis.variant, named.concat())
}

fn with_trial(findings: Vec<Finding>, proof: &Proof) -> Vec<Finding> {
    let mut evidence: Vec<String> =
        proof.remedies.iter().map(|one| in_a_line(one, proof.primary)).collect();
    if proof.side_by_side {
        evidence.push(BESIDE.to_owned());
    }
    let gain = gain(proof);
    let (mut kept, mut naming_none) = (Vec::new(), None);
    for mut finding in findings {
        match (finding.id, &gain) {
            // The gain says more, and was shown.
            (Id::MemoryIsFine, Some(_)) => {}
            (Id::MemoryOpen, Some(_)) if finding.remedies.is_empty() => {}
            (Id::MemoryIsFine | Id::MemoryOpen, None) => kept.push(fine(finding, proof, &evidence)),
            // The program's own code takes the time, and a part of that is due to the placement of its memory.
            (Id::CpuBound | Id::MemoryOpen, Some(_)) => evidence.append(&mut finding.evidence),
            (Id::FirstTouch, Some(gain)) if gain.is_of_huge_pages => {
                evidence.append(&mut finding.evidence);
            }
            (Id::Retention | Id::ManyAllocations | Id::FirstTouch, None)
                if names_no_runs(&finding) =>
            {
                naming_none.get_or_insert(kept.len());
                kept.push(finding);
            }
            _ => kept.push(held_against(finding, proof)),
        }
    }
    // Keeping free memory gains by ending a storm, whatever the price of the storm was.
    for storm in kept.iter_mut().filter(|one| is_storm(one.id)) {
        let is_named = |gain: &Gain| {
            let mut keeping = gain.remedies.iter().filter(|one| one.kind == RemedyKind::Setting);
            keeping.any(|one| storm.remedies.iter().any(|own| own.variant == one.variant))
        };
        if let Some(gain) = gain.as_ref().filter(|gain| is_named(gain)) {
            storm.share = Some(storm.share.unwrap_or(0.0).max(gain.share));
            storm.confidence = storm.confidence.max(gain.confidence());
        }
    }
    kept = kept.into_iter().map(|finding| room::held_against_peak(finding, proof)).collect();
    if gain.is_none() {
        let is_of_all = |one: &Finding| matches!(one.id, Id::MemoryIsFine | Id::MemoryOpen);
        let left = room::left_unnamed(&kept, proof);
        if !left.is_empty() {
            let mut lines: Vec<String> =
                left.iter().map(|one| in_a_line(one, proof.primary)).collect();
            lines.push(
                "the runs are too few, or too unlike, to show a gain or to rule one out".to_owned(),
            );
            let names = once(left.iter().map(|one| name_of(&one.medians.label))).join(", ");
            let whether = format!("anything is gained by {names}");
            kept.push(open(lines, left, proof.primary, &whether));
        } else if let Some(at) = naming_none.filter(|_| !kept.iter().any(is_of_all)) {
            // No other finding has what the runs showed.
            kept[at].evidence.append(&mut evidence);
        }
    }
    // A finding that names the remedy with the largest gain also says why, if it explains as much.
    let says_why = |finding: &Finding, gain: &Gain| {
        let explains = finding.share.is_none_or(|share| share >= EXPLAINS * gain.share);
        let is_named = |one: &Remedy| finding.remedies.iter().any(|own| is_same_change(own, one));
        explains && !is_of_size(finding.id) && gain.remedies.iter().any(is_named)
    };
    if let Some(gain) = gain {
        if let Some(cause) = kept.iter_mut().find(|one| says_why(one, &gain)) {
            let is_new = |one: &Remedy| cause.remedies.iter().all(|own| own.variant != one.variant);
            let new: Vec<Remedy> = gain.remedies.into_iter().filter(is_new).collect();
            cause.remedies.extend(new);
        } else {
            let finding = gain.finding(evidence, &mut kept);
            kept.push(finding);
        }
    }
    kept
}

/// Whether a finding is of held memory, or has remedies in code alone.
fn names_no_runs(finding: &Finding) -> bool {
    finding.id == Id::Retention || finding.remedies.iter().all(|one| one.variant.is_none())
}

fn is_storm(id: Id) -> bool {
    matches!(id, Id::HeapCallStorm | Id::FaultStorm)
}

/// Updates a finding whose remedies were tried: remedies with a shown gain stay, and so do those that may gain.
/// Remedies that were shown to gain little go, and so do those that may gain but most likely do not. Without a gain the
/// finding is less sure.
fn held_against(mut finding: Finding, proof: &Proof) -> Finding {
    if is_of_size(finding.id) {
        return finding;
    }
    let (mut is_open, mut is_tried) = (false, false);
    let (mut largest, mut most) = (None::<f64>, 0.0_f64);
    let evidence = &mut finding.evidence;
    finding.remedies.retain_mut(|remedy| {
        let is_it = |one: &&Proved| remedy.variant.as_ref() == Some(&one.medians.label);
        let Some(one) = proof.remedies.iter().find(is_it) else { return true };
        if matches!(one.shown, Shown::LeftOut { .. }) {
            return true;
        }
        evidence.push(format!("tried: {}", in_a_line(one, proof.primary)));
        let hidden = could_hide(one, proof.primary);
        most = most.max(hidden);
        let leans_to_none = 1.0 - estimate(one, proof.primary) < LITTLE_SHARE;
        let may_gain = hidden >= if leans_to_none { 2.0 * GAIN_DENIED } else { GAIN_DENIED };
        is_tried = true;
        if let Some(peak) = gain::peak(one) {
            remedy.cost = peak;
        }
        if one.shown == Shown::Gain {
            largest = Some(largest.unwrap_or(0.0).max(1.0 - estimate(one, proof.primary)));
        }
        is_open |= may_gain && one.shown != Shown::Gain;
        one.shown == Shown::Gain || may_gain
    });
    // A malloc that keeps free memory ends a storm, unless the program itself keeps it up.
    let takes = largest.unwrap_or(most);
    let is_kept_up = is_tried
        && is_storm(finding.id)
        && finding.share.is_some_and(|share| takes < EXPLAINS * share);
    if is_kept_up {
        evidence.push(format!(
            "the remedies tried take off {} {} of its time: see whether the program calls malloc_trim",
            if largest.is_some() { "only" } else { "at most" },
            percent(takes)
        ));
    }
    if largest.is_some() {
        // Other runs showed the finding that the machine made doubtful.
        let shown = finding.confidence.max(Confidence::Medium);
        finding.confidence = if is_kept_up { Confidence::Medium } else { shown };
        return finding;
    }
    if is_open {
        finding.confidence = finding.confidence.min(Confidence::Medium);
        if !is_kept_up {
            evidence.push("the runs were too few, or too unlike, to show a gain".to_owned());
        }
    } else if is_tried {
        finding.confidence = Confidence::Low;
        evidence.push("what was tried gained nothing worth a change".to_owned());
    }
    finding
}

/// The finding "memory is not its problem" after a trial that showed no gain.
fn fine(mut finding: Finding, proof: &Proof, tried: &[String]) -> Finding {
    let hidden = hidden(proof);
    finding.evidence.extend_from_slice(tried);
    if proof.remedies.is_empty() {
        finding.confidence = Confidence::Low;
        return finding;
    }
    // Runs answer the questions that counts left open.
    finding.id = Id::MemoryIsFine;
    finding.remedies.clear();
    if proof.remedies.iter().all(|one| matches!(one.shown, Shown::LeftOut { .. })) {
        let title =
            "Whether another malloc or a setting gains is not known: none of those tried could run";
        let evidence = finding.evidence;
        return Finding { evidence, ..Finding::new(Id::MemoryOpen, Confidence::Low, title) };
    }
    if hidden < GAIN_DENIED {
        finding.confidence = Confidence::High;
        finding.title = format!(
            "Memory is not its problem: runs beside others would have shown a gain of {}",
            percent(GAIN_DENIED)
        );
        return finding;
    }
    finding.evidence.push(if hidden < SAYS_NOTHING {
        format!(
            "a gain of up to {} could have stayed unseen in so few runs; `masu compare` makes more",
            percent(hidden)
        )
    } else {
        "the runs are too few, or too unlike, to show a gain or to rule one out; `masu compare` makes more".to_owned()
    });
    if hidden < 2.0 * GAIN_DENIED && !proof.remedies.iter().any(|one| leans(one, proof.primary)) {
        finding.confidence = Confidence::Medium;
        finding.title =
            "Memory is hardly its problem, as far as short runs beside others can say".to_owned();
        return finding;
    }
    let whether = "another malloc or a setting gains";
    open(finding.evidence, proof.remedies.iter().collect(), proof.primary, whether)
}

#[cfg(test)]
#[path = "trial/tests.rs"]
mod tests;
