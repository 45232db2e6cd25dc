//! Tests of every finding on made-up facts, just beyond its limits and just within them.

use super::super::facts::{Clock, Facts, Others};
use super::super::finding::{Confidence, Finding, Id, Kind, RemedyKind};
use super::{LESS_SURE, as_sure_as_memory, judge, may_leak, waits_of_threads};

pub(crate) mod reading;

use reading::{base, below, change};

fn first(facts: &Facts) -> Finding {
    judge(facts).into_iter().next().expect("something is always found of ten seconds")
}

/// Whether a text contains these words, where ^ and $ stand for the start and the end of a line.
fn says(lines: &[&str], words: &str) -> bool {
    lines.iter().any(|line| format!("^{line}$").contains(words))
}

/// Whether a finding has this identity, and the confidence and the share that may stand behind it.
fn is_so(finding: &Finding, words: &str) -> bool {
    let mut words = words.split(' ');
    words.next() == Some(finding.id.name())
        && words.all(|word| match word.parse::<f64>() {
            Ok(share) => finding.share.is_some_and(|found| (found - share).abs() < 0.001),
            Err(_) => finding.confidence.name() == word,
        })
}

/// Whether what a line of `cases.txt` expects is so; `subject` is the finding that a line before it named.
fn holds(facts: &Facts, subject: &mut Option<Finding>, line: &str) -> bool {
    let findings = judge(facts);
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let names = |kinds: &[Kind]| -> Vec<&str> {
        let all = findings.iter().filter(|one| kinds.contains(&one.id.kind()));
        all.map(|one| one.id.name()).collect()
    };
    let rest_words: Vec<&str> = rest.split_whitespace().collect();
    let remedies = subject.as_ref().map(|one| &*one.remedies).unwrap_or_default();
    let variants = |kind| -> Vec<&str> {
        let of_kind = remedies.iter().filter(|remedy| remedy.kind == kind);
        of_kind.filter_map(|remedy| remedy.variant.as_deref()).collect()
    };
    let evidence = || -> Vec<&str> {
        subject.iter().flat_map(|one| &one.evidence).map(String::as_str).collect()
    };
    let sentence = |text: Option<String>| match text {
        Some(text) => says(&[&text], rest),
        None => rest == "none",
    };
    match word {
        "ids" => findings.iter().map(|one| one.id.name()).eq(rest_words),
        "causes" => names(&[Kind::Cause]) == rest_words,
        "first" => {
            *subject = findings.into_iter().next();
            subject.as_ref().is_some_and(|one| is_so(one, rest))
        }
        "has" => {
            *subject = findings.into_iter().find(|one| is_so(one, rest));
            subject.is_some()
        }
        "lacks" => findings.iter().all(|one| one.id.name() != rest),
        "settings" => variants(RemedyKind::Setting) == rest_words,
        "mallocs" => variants(RemedyKind::Allocator) == rest_words,
        "needs-code" => remedies.iter().all(|one| one.kind == RemedyKind::NeedsCode),
        "rungs" => remedies.iter().map(|one| one.rung.to_string()).eq(rest_words),
        "title" => subject.as_ref().is_some_and(|one| says(&[&one.title], rest)),
        "evidence" => says(&evidence(), rest),
        "evidence-lacks" => !says(&evidence(), rest),
        "remedy" => remedies.iter().any(|one| {
            says(&[&one.what, one.paste.as_deref().unwrap_or_default(), &one.cost], rest)
        }),
        "ended-well" => facts.has_ended_well() == (rest == "yes"),
        "leak" => sentence(may_leak(facts)),
        "unseen" => sentence(waits_of_threads(facts, &findings)),
        _ => panic!("this is neither a fact nor expected: {line}"),
    }
}

#[test]
fn each_case_has_the_findings_that_are_written_below_it() {
    let text = include_str!("tests/cases.txt");
    let is_case = |line: &&str| !line.is_empty() && !line.starts_with([' ', '#', '=']);
    let mut wrong = Vec::new();
    // The first lines say how to read the others.
    for case in text.lines().filter(is_case).skip_while(|line| !line.starts_with("A quiet")) {
        let (mut facts, mut subject, mut expected) = (Facts::default(), None, 0);
        for line in below(case) {
            if change(&mut facts, line) {
                continue;
            }
            expected += 1;
            if !holds(&facts, &mut subject, line) {
                let found: Vec<_> = judge(&facts)
                    .into_iter()
                    .map(|one| (one.id, one.confidence, one.share))
                    .collect();
                wrong.push(format!("{case}\n  {line}\n  {found:?}, {subject:?}"));
            }
            for finding in judge(&facts) {
                let is_right = match finding.id {
                    Id::MemoryOpen => true,
                    id => finding.remedies.is_empty() == (id.kind() == Kind::AllClear),
                };
                assert!(!finding.evidence.is_empty() && is_right, "{finding:?}");
            }
        }
        assert!(expected > 0, "nothing is expected: {case}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_clock_is_free_of_what_counting_took() {
    let clock = Clock {
        wall_s: 10.0,
        user_s: 2.0,
        sys_s: 4.0,
        own_sys_s: 1.0,
        counting_s: 6.0,
        ..Clock::default()
    };
    assert!((clock.own_wall_s(2) - 4.0).abs() < 1e-9);
    assert!((clock.own_cpu_s() - 3.0).abs() < 1e-9);
    // Stops of several threads overlap; the run never took less than its CPU time spread over all CPUs.
    let overlapping = Clock { user_s: 11.0, counting_s: 9.5, ..clock };
    assert!((overlapping.own_wall_s(2) - 6.0).abs() < 1e-9);
    // Waits for a CPU that others had do not count either.
    let waiting = Clock { counting_s: 0.0, queued_s: 5.0, ..clock };
    assert!((waiting.own_wall_s(2) - 5.0).abs() < 1e-9);
}

#[test]
fn on_a_busy_machine_the_same_is_found_first_and_is_less_sure() {
    let busy = |facts: &Facts, share, waited_share| {
        let others = Others { share: Some(share), waited_share, ..Others::default() };
        first(&Facts { others, ..facts.clone() })
    };
    for facts in [base("storm"), base("quiet")] {
        let alone = first(&facts);
        let beside = busy(&facts, 0.9, 0.8);
        assert_eq!(alone.id, beside.id);
        assert!(beside.confidence < Confidence::High, "{beside:?}");
        assert!(alone.confidence >= beside.confidence);
        let claims_less = beside.title.starts_with("As far as so busy a machine shows, it ");
        assert_eq!(claims_less, beside.confidence == Confidence::Low, "{beside:?}");
        // Others that leave the program a CPU are no reason to doubt.
        assert_eq!(busy(&facts, 0.1, 0.3), alone);
    }
    let alone = first(&base("storm"));
    let said = busy(&base("storm"), 0.6, 0.2).evidence.pop().unwrap();
    assert!(!alone.evidence.contains(&said) && said.contains("60 % of the CPUs"), "{said}");
}

#[test]
fn a_trial_makes_computing_as_sure_as_the_others_on_the_machine_allow() {
    let made = |share, waited_share, memory| {
        let others = Others { share: Some(share), waited_share, ..Others::default() };
        let facts = Facts { others, ..base("quiet") };
        let mut findings = judge(&facts);
        let first = findings.iter().find(|one| one.id == Id::CpuBound).unwrap().clone();
        findings.retain(|one| one.id != Id::MemoryIsFine && one.id != Id::MemoryOpen);
        findings.push(Finding::new(Id::MemoryIsFine, memory, "Memory is not its problem"));
        as_sure_as_memory(&facts, &mut findings);
        let now = findings.into_iter().find(|one| one.id == Id::CpuBound).unwrap();
        let reasons = now.evidence.iter().filter(|line| line.starts_with(LESS_SURE)).count();
        (first, now.confidence, reasons, now.title)
    };
    let title = judge(&base("quiet")).remove(0).title;
    let (high, medium) = (Confidence::High, Confidence::Medium);
    let of = |(_, confidence, reasons, title)| (confidence, reasons, title);
    assert_eq!(of(made(0.1, 0.1, high)), (high, 0, title.clone()));
    assert_eq!(of(made(0.6, 0.2, high)), (medium, 1, title.clone()));
    // The machine is no reason where the runs left memory as open as that.
    assert_eq!(of(made(0.6, 0.2, Confidence::Low)).1, 0);
    let starved = made(0.9, 0.8, high);
    assert!(starved.0.title.starts_with("As far as so busy"), "{starved:?}");
    assert_eq!(of(starved), (medium, 1, title));
}
