//! The conclusions that a trial draws for a diagnosis, on made-up runs.

use super::pace::{LONGER, run_beside_others_s};
use super::*;
use crate::diagnose::facts::{CallFacts, Clock, Memory, Others};
use crate::diagnose::samples::Sampled;
use crate::prove::Medians;
use crate::statistics::Ratio;
use masu_run::calls::Moves;
use masu_run::prices::Price;
use masu_run::{Input, Places, Prices};

pub(super) fn remedy(label: &str, estimate: f64, low: f64, high: f64) -> Proved {
    let shown = match (low, high) {
        _ if high < 1.0 => Shown::Gain,
        _ if low > 1.0 => Shown::Worse,
        _ => Shown::NoDifference { could_have_seen: 0.04 },
    };
    Proved {
        medians: Medians { label: label.to_owned(), ..Medians::default() },
        shown,
        wall: Some(Ratio { estimate, interval: Some((low, high)), pairs: 12 }),
        cpu: None,
        peak_rss: Some(Ratio { estimate: 1.1, interval: None, pairs: 12 }),
    }
}

pub(super) fn proof(remedies: Vec<Proved>) -> Proof {
    let none = Proof::of(&[], Measure::Wall, None, &[]);
    Proof { rounds: 12, remedies, runs: 48, seconds: 10.0, ..none }
}

fn diagnosis(findings: Vec<Finding>, facts: Facts) -> Diagnosis {
    Diagnosis::of(Vec::new(), facts, findings, Vec::new())
}

pub(super) fn fine_so_far() -> Vec<Finding> {
    vec![Finding::new(Id::MemoryIsFine, Confidence::Medium, "No sign that memory is its problem")]
}

#[test]
fn a_gain_is_named_and_memory_is_no_longer_fine() {
    let proof = proof(vec![
        remedy("masu", 0.81, 0.77, 0.86),
        remedy("glibc:huge_pages=1", 1.0, 0.97, 1.03),
    ]);
    let findings = with_trial(fine_so_far(), &proof);
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].id, findings[0].confidence), (Id::GainShown, Confidence::High));
    assert_eq!(findings[0].title, "Another malloc takes 19 % of its time off (14 % to 23 %)");
    assert_eq!(findings[0].remedies[0].variant.as_deref(), Some("masu"));
    assert!(findings[0].evidence.iter().any(|line| line.contains("huge pages")), "{findings:?}");
}

#[test]
fn a_setting_that_a_finding_named_has_a_name() {
    for (label, name) in [
        ("glibc:mmap_max=0,top_pad=64M,trim_threshold=128M", "keeping free memory"),
        ("jemalloc:purge_delay=10000", "keeping free memory"),
        ("glibc:arenas=8", "an arena for each thread"),
        ("glibc:huge_pages=1", "huge pages"),
        ("tcmalloc", "the other malloc"),
    ] {
        assert_eq!(name_of(label), name);
    }
}

#[test]
fn the_smaller_change_stands_first_if_it_gets_nearly_all() {
    let both = proof(vec![
        remedy("masu", 0.60, 0.58, 0.62),
        remedy("glibc:huge_pages=1", 0.62, 0.60, 0.64),
    ]);
    let finding = with_trial(fine_so_far(), &both).remove(0);
    assert!(finding.title.starts_with("Huge pages"), "{finding:?}");
    assert_eq!(finding.remedies.len(), 2);
    let less = proof(vec![
        remedy("masu", 0.60, 0.58, 0.62),
        remedy("glibc:huge_pages=1", 0.80, 0.78, 0.82),
    ]);
    let finding = with_trial(fine_so_far(), &less).remove(0);
    assert!(finding.title.starts_with("Another malloc"), "{finding:?}");
}

#[test]
fn what_counts_leave_open_runs_answer() {
    let open = || {
        let finding = Finding::new(Id::MemoryOpen, Confidence::Low, "Whether waiting")
            .seeing("217,000 waits");
        vec![finding.remedied([Remedy::allocator("few locks", "masu", "another malloc")])]
    };
    let gain = with_trial(open(), &proof(vec![remedy("masu", 0.5, 0.48, 0.52)]));
    assert_eq!(gain.iter().map(|one| one.id).collect::<Vec<_>>(), [Id::GainShown]);
    assert!(gain[0].evidence.iter().any(|line| line == "217,000 waits"), "{gain:?}");
    let fine = with_trial(open(), &proof(vec![remedy("masu", 1.0, 0.98, 1.02)]));
    assert_eq!((fine[0].id, fine[0].remedies.len()), (Id::MemoryIsFine, 0), "{fine:?}");
    let untried = with_trial(open(), &proof(Vec::new()));
    assert_eq!((untried[0].id, untried[0].remedies.len()), (Id::MemoryOpen, 1), "{untried:?}");
}

#[test]
fn a_small_gain_that_was_shown_is_not_called_fine_while_it_may_be_larger() {
    let small =
        |low, high| with_trial(fine_so_far(), &proof(vec![remedy("masu", 0.955, low, high)]));
    let shown = &small(0.93, 0.98)[0];
    assert_eq!((shown.id, shown.confidence), (Id::GainShown, Confidence::Medium));
    let surely_small = with_trial(fine_so_far(), &proof(vec![remedy("masu", 0.96, 0.953, 0.967)]));
    assert_eq!((surely_small[0].id, surely_small.len()), (Id::MemoryIsFine, 1));
}

#[test]
fn a_malloc_as_it_comes_is_a_smaller_change_than_one_with_a_setting() {
    let both = [remedy(HUGE_MASU, 0.80, 0.78, 0.82), remedy("masu", 0.81, 0.79, 0.83)];
    let finding = with_trial(fine_so_far(), &proof(both.to_vec())).remove(0);
    assert_eq!(finding.remedies[0].variant.as_deref(), Some("masu"));
    assert_eq!(finding.remedies.len(), 2);
}

#[test]
fn fine_is_certain_only_where_no_gain_could_hide() {
    let sure = with_trial(fine_so_far(), &proof(vec![remedy("masu", 1.0, 0.98, 1.02)]));
    assert_eq!((sure[0].id, sure[0].confidence), (Id::MemoryIsFine, Confidence::High));
    assert!(sure[0].title.ends_with("would have shown a gain of 8 %"), "{sure:?}");
    let unsure = with_trial(fine_so_far(), &proof(vec![remedy("masu", 0.97, 0.88, 1.1)]));
    assert_eq!((unsure[0].id, unsure[0].confidence), (Id::MemoryIsFine, Confidence::Medium));
    assert!(unsure[0].evidence.iter().any(|line| line.contains("12 %")), "{unsure:?}");
    // If a candidate leans to a gain, memory is not called fine.
    let leans = with_trial(fine_so_far(), &proof(vec![remedy("jemalloc", 0.96, 0.91, 1.01)]));
    assert_eq!((leans[0].id, leans[0].remedies.len()), (Id::MemoryOpen, 1), "{leans:?}");
    let nothing = with_trial(fine_so_far(), &proof(Vec::new()));
    assert_eq!(nothing[0].confidence, Confidence::Low);
}

#[test]
fn a_run_beside_others_takes_no_longer_than_the_counted_one() {
    let facts = |wall_s, counting_s, queued_s, waited_share| Facts {
        clock: Clock { wall_s, counting_s, queued_s, user_s: 0.4, ..Clock::default() },
        others: Others { waited_share, ..Others::default() },
        cpus: 2,
        ..Facts::default()
    };
    let takes = |facts| run_beside_others_s(&facts);
    assert!((takes(facts(1.0, 0.5, 0.0, 0.0)) - 0.5).abs() < 1e-9);
    assert!((takes(facts(1.0, 0.0, 0.5, 0.5)) - 1.0).abs() < 1e-9);
    // Most of the run's waits are in its clock already.
    assert!((takes(facts(10.9, 3.3, 0.9, 0.68)) - 7.6).abs() < 1e-9);
}

#[test]
fn what_was_not_tried_on_a_busy_machine_is_not_called_fine() {
    let said = |share| {
        let computes = Finding::new(Id::CpuBound, Confidence::High, "It computes").sharing(0.9);
        let others = Others { share: Some(share), ..Others::default() };
        let findings = [vec![computes], fine_so_far()].concat();
        let mut diagnosis = diagnosis(findings, Facts { others, ..Facts::default() });
        not_tried(&mut diagnosis, "too long".to_owned());
        assert_eq!(diagnosis.not_seen, ["too long"]);
        diagnosis.findings.iter().map(|one| (one.id, one.confidence)).collect::<Vec<_>>()
    };
    let low = Confidence::Low;
    assert_eq!(said(0.9), [(Id::MemoryOpen, low), (Id::CpuBound, low)]);
    assert_eq!(said(0.1), [(Id::CpuBound, low), (Id::MemoryIsFine, low)]);
}

#[test]
fn where_something_was_not_tried_memory_is_not_called_fine() {
    let left = |low, high| {
        let proof = proof(vec![remedy("masu", 1.0, low, high)]);
        let mut findings = with_trial(fine_so_far(), &proof);
        leave_open(&mut findings, &proof, "huge pages");
        findings.remove(0)
    };
    for (low, high, gain) in [(0.943, 1.105, "6 %"), (0.847, 1.225, "15 %")] {
        let open = left(low, high);
        let title = format!("At most {gain} is gained by another malloc; not tried: huge pages");
        assert_eq!(
            (open.id, open.confidence, &open.title),
            (Id::MemoryOpen, Confidence::Low, &title)
        );
        // The page has one number for one interval.
        let others = open.evidence.iter().filter(|line| line.starts_with("a gain of up to"));
        others.for_each(|line| assert!(line.contains(gain), "{open:?}"));
    }
    // Without a trial's runs the title gives no number.
    let mut findings = fine_so_far();
    let none = proof(vec![Proved { wall: None, ..remedy("masu", 1.0, 0.98, 1.02) }]);
    leave_open(&mut findings, &none, "huge pages");
    assert!(findings[0].title.starts_with("Whether another malloc"), "{findings:?}");
    assert!(!findings[0].title.contains('%'), "{findings:?}");
}

#[test]
fn runs_that_show_nothing_give_no_number() {
    let proof = proof(vec![Proved { wall: None, ..remedy("masu", 1.0, 0.98, 1.02) }]);
    let open = with_trial(fine_so_far(), &proof).remove(0);
    assert_eq!((open.id, open.confidence), (Id::MemoryOpen, Confidence::Low));
    assert!(open.evidence.iter().all(|line| !line.contains("100 %")), "{open:?}");
}

#[test]
fn where_a_large_gain_could_hide_nothing_is_called_fine() {
    let left = with_trial(fine_so_far(), &proof(vec![remedy("masu", 0.97, 0.8, 1.1)])).remove(0);
    assert_eq!((left.id, left.confidence), (Id::MemoryOpen, Confidence::Low));
    assert!(left.title.starts_with("Whether another malloc"), "{left:?}");
    assert!(left.remedies.is_empty() && left.evidence.iter().any(|line| line.contains("20 %")));
    // A candidate whose gain may as well be noise is not named.
    let noise = proof(vec![remedy("masu", 0.79, 0.36, 1.7)]);
    assert!(with_trial(fine_so_far(), &noise)[0].remedies.is_empty());
    // Likely candidates are named, the likeliest first.
    let some = proof(vec![
        remedy("masu", 0.89, 0.75, 1.1),
        remedy("glibc:huge_pages=1", 0.85, 0.7, 1.05),
        remedy("glibc:top_pad=64M,trim_threshold=64M", 1.0, 0.8, 1.2),
    ]);
    let likely = with_trial(fine_so_far(), &some).remove(0);
    assert!(likely.title.starts_with("Huge pages may take 15 % off"), "{likely:?}");
    let named: Vec<_> = likely.remedies.iter().map(|one| one.variant.as_deref()).collect();
    assert_eq!(named, [Some("glibc:huge_pages=1"), Some("masu")]);
}

#[test]
fn a_candidate_that_no_finding_names_and_that_may_gain_is_left_open() {
    let huge_pages = remedy("glibc:huge_pages=1", 0.84, 0.62, 1.13);
    let touched = || {
        let finding = Finding::new(Id::FirstTouch, Confidence::High, "Touching").sharing(0.16);
        vec![finding.remedied(vec![remedy_of(&huge_pages)])]
    };
    let both = |other| proof(vec![remedy("glibc:huge_pages=1", 0.84, 0.62, 1.13), other]);
    let findings = with_trial(touched(), &both(remedy("masu", 0.76, 0.44, 1.33)));
    let said: Vec<_> = findings.iter().map(|one| (one.id, one.confidence)).collect();
    let expected = [(Id::FirstTouch, Confidence::Medium), (Id::MemoryOpen, Confidence::Low)];
    assert_eq!(said, expected);
    assert!(findings[1].evidence[0].contains("another malloc (masu)"), "{findings:?}");
    // Not one that was shown to gain nothing, nor beside a gain.
    for other in [remedy("masu", 0.98, 0.95, 1.01), remedy("masu", 0.76, 0.71, 0.81)] {
        let findings = with_trial(touched(), &both(other));
        assert!(findings.iter().all(|one| one.id != Id::MemoryOpen), "{findings:?}");
    }
}

#[test]
fn cpu_bound_is_no_surer_than_memory_is_fine() {
    let computes = || Finding::new(Id::CpuBound, Confidence::High, "It computes").seeing("in f");
    let both = || [fine_so_far(), vec![computes()]].concat();
    let confidence = |low, high| {
        let findings = with_trial(both(), &proof(vec![remedy("masu", 1.0, low, high)]));
        findings.iter().find(|one| one.id == Id::CpuBound).unwrap().confidence
    };
    assert_eq!(confidence(0.98, 1.02), Confidence::High);
    assert_eq!(confidence(0.88, 1.02), Confidence::Medium);
    assert_eq!(confidence(0.70, 1.02), Confidence::Low);
    // Beside a gain, the finding that the program computes would deny the gain.
    let gain = with_trial(both(), &proof(vec![remedy("masu", 0.81, 0.77, 0.86)]));
    assert_eq!(gain.iter().map(|one| one.id).collect::<Vec<_>>(), [Id::GainShown]);
    assert_eq!(gain[0].evidence.last().map(String::as_str), Some("in f"));
}

#[test]
fn only_a_program_of_one_thread_that_nobody_else_sees_takes_turns_with_itself() {
    let facts = |outward, threads_started| Facts {
        calls: Some(CallFacts { outward, threads_started, ..CallFacts::default() }),
        memory: Memory { peak_rss_bytes: 10 << 20, ..Memory::default() },
        ..Facts::default()
    };
    let quiet = facts(Some(0), 0);
    assert!(may_take_turns(&quiet, 4, 1 << 30));
    assert!(!may_take_turns(&quiet, 4, 100 << 20), "all of them must fit");
    let large = Facts {
        memory: Memory { peak_rss_bytes: 150 << 20, ..Memory::default() },
        ..facts(Some(0), 0)
    };
    assert!(may_take_turns(&large, 4, 1 << 40) && !may_take_turns(&large, 2, 1 << 40));
    assert!(!may_take_turns(&large, 30, 1 << 40), "so much memory makes equal runs differ");
    for other in [facts(Some(1), 0), facts(None, 0), facts(Some(0), 1), Facts::default()] {
        assert!(!may_take_turns(&other, 4, 1 << 30), "{:?}", other.calls);
    }
}

#[test]
fn a_refuted_remedy_goes_down_and_says_so() {
    let touch = Finding::new(Id::FirstTouch, Confidence::Medium, "Touching").remedied([
        Remedy::code(1, "touch less", "a change of the program"),
        Remedy::setting("huge pages", "glibc:huge_pages=1".to_owned(), "memory"),
    ]);
    let refuted = proof(vec![remedy("glibc:huge_pages=1", 1.0, 0.98, 1.02)]);
    let findings = with_trial(vec![touch], &refuted);
    assert_eq!((findings[0].id, findings[0].confidence), (Id::FirstTouch, Confidence::Low));
    assert_eq!(findings[0].remedies.len(), 1, "{findings:?}");
    assert!(findings[0].evidence.last().is_some_and(|line| line.contains("tried")));
}

#[test]
fn what_a_finding_names_is_tried_first_and_once() {
    let storm = Finding::new(Id::HeapCallStorm, Confidence::High, "A storm").remedied([
        Remedy::setting("keep it", "glibc:top_pad=64M,trim_threshold=1G".to_owned(), "memory"),
        Remedy::allocator("another", "masu", "another malloc"),
    ]);
    let held = Finding::new(Id::Retention, Confidence::High, "Held").remedied([Remedy::allocator(
        "another",
        "tcmalloc",
        "another malloc",
    )]);
    let all = candidates(named(&[storm, held]), &Facts::default());
    assert_eq!(all[..2], ["glibc:top_pad=64M,trim_threshold=1G", "masu"]);
    assert_eq!(all.iter().filter(|one| *one == "masu").count(), 1);
    assert!(
        all.contains(&"glibc:huge_pages=1".to_owned()) && !all.contains(&"tcmalloc".to_owned())
    );
}

#[test]
fn without_time_for_all_that_is_named_another_malloc_comes_first() {
    let of = |labels: &[&str]| -> Vec<Variant> {
        let variant = |label: &&str| Variant { label: (*label).to_owned(), ..Variant::default() };
        labels.iter().map(variant).collect()
    };
    let mut variants = of(&["glibc:top_pad=64M", "glibc:arenas=8", "masu", HUGE_MASU]);
    malloc_first(&mut variants, GLIBC);
    assert_eq!(variants, of(&["masu", "glibc:top_pad=64M", "glibc:arenas=8", HUGE_MASU]));
    let mut settings = of(&["glibc:top_pad=64M"]);
    malloc_first(&mut settings, GLIBC);
    assert_eq!(settings, of(&["glibc:top_pad=64M"]));
    let kept = of(&[PADDING, "masu", "glibc:top_pad=64M,trim_threshold=256M"]);
    let named: Vec<&Variant> = kept.iter().collect();
    assert_eq!(names_of(&named), "keeping free memory, another malloc", "each name once");
}

#[test]
fn memory_that_is_held_stands_beside_a_gain_and_says_where_there_is_none() {
    let held = || vec![Finding::new(Id::Retention, Confidence::Medium, "Held").sharing(0.6)];
    let gain = with_trial(held(), &proof(vec![remedy("masu", 0.75, 0.7, 0.8)]));
    let ids: Vec<Id> = gain.iter().map(|one| one.id).collect();
    assert_eq!(ids, [Id::Retention, Id::GainShown]);
    let none = with_trial(held(), &proof(vec![remedy("masu", 1.0, 0.98, 1.02)]));
    assert_eq!(none.len(), 1, "{none:?}");
    assert!(none[0].evidence.iter().any(|line| line.contains("no difference")), "{none:?}");
}

fn many() -> Vec<Finding> {
    let many = Finding::new(Id::ManyAllocations, Confidence::High, "Asking").sharing(0.2);
    vec![many.remedied([
        Remedy::code(1, "allocate less", "a change of the program"),
        Remedy::allocator("a shorter way", "masu", "another malloc"),
    ])]
}

#[test]
fn a_cause_whose_remedy_gains_stands_for_the_gain() {
    let findings = with_trial(many(), &proof(vec![remedy("masu", 0.81, 0.77, 0.86)]));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].id, findings[0].confidence), (Id::ManyAllocations, Confidence::High));
    assert!(findings[0].evidence.iter().any(|line| line.contains("×0.810")), "{findings:?}");
}

#[test]
fn a_cause_whose_remedy_gains_nothing_is_hardly_one() {
    let findings = with_trial(many(), &proof(vec![remedy("masu", 1.0, 0.98, 1.02)]));
    assert_eq!((findings[0].id, findings[0].confidence), (Id::ManyAllocations, Confidence::Low));
    assert!(findings[0].remedies.iter().all(|remedy| remedy.variant.is_none()), "{findings:?}");
    // The findings that the runs leave open stay open.
    let findings = with_trial(many(), &proof(vec![remedy("masu", 0.95, 0.8, 1.1)]));
    assert_eq!(findings[0].confidence, Confidence::Medium);
    assert_eq!(findings[0].remedies.len(), 2);
    // Runs that lean to no gain leave the finding open only if they say hardly anything.
    let findings = with_trial(many(), &proof(vec![remedy("masu", 0.99, 0.9, 1.1)]));
    assert_eq!((findings[0].confidence, findings[0].remedies.len()), (Confidence::Low, 1));
    let findings = with_trial(many(), &proof(vec![remedy("masu", 0.99, 0.6, 1.6)]));
    assert_eq!((findings[0].confidence, findings[0].remedies.len()), (Confidence::Medium, 2));
}

#[test]
fn a_storm_that_its_remedy_hardly_ends_is_less_sure_and_says_so() {
    let keep = "glibc:top_pad=64M,trim_threshold=64M";
    let storm = || {
        let storm = Finding::new(Id::HeapCallStorm, Confidence::High, "A storm").sharing(0.65);
        vec![storm.remedied([Remedy::setting("keep it", keep.to_owned(), "memory")])]
    };
    let little = with_trial(storm(), &proof(vec![remedy(keep, 0.95, 0.92, 0.98)]));
    assert_eq!(little[0].confidence, Confidence::Medium);
    assert!(little[0].evidence.iter().any(|line| line.contains("malloc_trim")), "{little:?}");
    let most = with_trial(storm(), &proof(vec![remedy(keep, 0.40, 0.38, 0.42)]));
    assert_eq!(most[0].confidence, Confidence::High);
}

#[test]
fn a_storm_stands_for_all_that_keeping_free_memory_gains() {
    let keep = "glibc:top_pad=64M,trim_threshold=64M";
    let storm = Finding::new(Id::HeapCallStorm, Confidence::Medium, "A storm").sharing(0.05);
    let storm = storm.remedied([Remedy::setting("keep it", keep.to_owned(), "memory")]);
    let findings = with_trial(vec![storm], &proof(vec![remedy(keep, 0.88, 0.87, 0.89)]));
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].id, findings[0].confidence), (Id::HeapCallStorm, Confidence::High));
    assert!(findings[0].share.is_some_and(|share| (share - 0.12).abs() < 1e-9), "{findings:?}");
}

#[test]
fn what_gains_more_than_a_cause_names_is_named_beside_it() {
    let both = proof(vec![
        remedy("masu", 0.95, 0.92, 0.98),
        remedy("glibc:huge_pages=1", 0.70, 0.67, 0.74),
    ]);
    let ids: Vec<Id> = with_trial(many(), &both).iter().map(|finding| finding.id).collect();
    assert_eq!(ids, [Id::ManyAllocations, Id::GainShown]);
}

#[test]
fn a_finding_that_explains_little_of_a_gain_does_not_hide_it() {
    let little = || vec![many().remove(0).sharing(0.06)];
    let gain = proof(vec![remedy("masu", 0.30, 0.28, 0.32)]);
    let mut findings = with_trial(little(), &gain);
    findings.sort_by_key(Finding::order);
    let ids: Vec<Id> = findings.iter().map(|finding| finding.id).collect();
    assert_eq!(ids, [Id::GainShown, Id::ManyAllocations]);
    // Other runs showed the findings that a busy machine made doubtful.
    let doubtful = vec![Finding { confidence: Confidence::Low, ..many().remove(0) }];
    let small = proof(vec![remedy("masu", 0.81, 0.77, 0.86)]);
    let findings = with_trial(doubtful, &small);
    assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium), "{findings:?}");
}

#[test]
fn further_candidates_follow_where_time_is_left() {
    let workload = Workload::new(["sh", "-c", "echo hello"], Input::Empty).unwrap();
    let catalogue = Catalogue::find(&Places::default());
    let variants = ["system", "system:top_pad=1M", "system:top_pad=2M", "system:top_pad=4M"]
        .map(|text| catalogue.resolve(&text.parse().unwrap(), &workload.program).unwrap());
    let trial = |one_more_s| {
        let mut plan = prove::plan(&workload, &variants[0], &variants[1..], 2);
        let rest = plan.cases[0].rows.split_off(2);
        let (longest, one_more) = (Duration::from_secs(600), Duration::from_secs(one_more_s));
        Trial { plan, longest, what: String::new(), rest, failed: Vec::new(), one_more }
    };
    let labels = |proof: &Proof| -> Vec<String> {
        proof.remedies.iter().map(|one| one.medians.label.clone()).collect()
    };
    let mut short = trial(0);
    let proof = short.make(&Stop::never(), &mut |_| {}).unwrap();
    assert_eq!(labels(&proof), variants[1..].iter().map(|one| &*one.label).collect::<Vec<_>>());
    assert_eq!((short.rest.len(), proof.rounds), (0, 2));
    let mut long = trial(3600);
    let proof = long.make(&Stop::never(), &mut |_| {}).unwrap();
    assert_eq!((labels(&proof).len(), long.rest.len()), (1, 2));
    let mut diagnosis = diagnosis(fine_so_far(), Facts::default());
    long.conclude(&mut diagnosis, proof);
    let [left] = &diagnosis.not_seen[..] else { panic!("{diagnosis:?}") };
    assert!(left.contains("there was no time") && left.contains("-a system:top_pad=4M"), "{left}");
}

#[test]
fn a_further_candidate_that_cannot_be_run_is_named_with_the_reason() {
    let workload = Workload::new(["true"], Input::Empty).unwrap();
    let catalogue = Catalogue::find(&Places::default());
    let system = catalogue.resolve(&"system".parse().unwrap(), &workload.program).unwrap();
    let mut plan = prove::plan(&workload, &system, std::slice::from_ref(&system), 1);
    let row = plan.cases[0].rows.remove(1);
    let error = Error::NotInEffect { variant: row.variant.label.clone(), reason: "why".to_owned() };
    let (longest, one_more) = (Duration::ZERO, Duration::ZERO);
    let failed = vec![(row, error)];
    let trial = Trial { plan, longest, what: String::new(), rest: Vec::new(), failed, one_more };
    let mut diagnosis = diagnosis(fine_so_far(), Facts::default());
    trial.conclude(&mut diagnosis, proof(vec![remedy("masu", 1.0, 0.98, 1.02)]));
    assert!(diagnosis.not_seen[0].ends_with("did not take effect: why"), "{diagnosis:?}");
    assert!(diagnosis.findings[0].title.contains("not tried: "), "{diagnosis:?}");
    assert_eq!(diagnosis.findings[0].id, Id::MemoryOpen);
    assert_eq!(diagnosis.findings[0].confidence, Confidence::Low);
}

#[test]
fn long_programs_are_tried_with_less_or_not_at_all() {
    let affordable =
        |candidates, run_s, is_busy| pace(run_s, is_busy).affordable(candidates, false);
    assert_eq!(affordable(4, 0.1, false), Some(4));
    assert_eq!(affordable(4, 0.5, false), Some(4));
    for (run_s, is_busy) in [0.7, 1.0, 2.0, 4.0].map(|run_s| (run_s, run_s < 3.0)) {
        let count = affordable(4, run_s, is_busy).expect("that can be afforded");
        let takes_s = run_s * ((count + 1) * (rounds::FIRST + 1)) as f64;
        let budget_s = pace(run_s, is_busy).budget_s();
        assert!(takes_s <= budget_s && budget_s <= 50.0, "{run_s}: {count}");
    }
    assert_eq!(affordable(4, 5.0, false), None);
    assert_eq!(affordable(0, 0.1, true), None);
}

fn pace(run_s: f64, is_busy: bool) -> Pace {
    Pace { run_s, own_s: run_s, is_busy }
}

#[test]
fn beside_others_runs_that_share_a_cpu_are_all_made() {
    // A run takes a third of a second, and ten times as long beside others.
    let starved = Pace { run_s: 3.5, own_s: 0.33, is_busy: true };
    let yes = |_: &usize| true;
    assert_eq!(starved.chosen(5, yes), Some((5, true)));
    let few = starved.chosen(5, |_| false).unwrap();
    assert!(few.0 < 3 && !few.1, "{few:?}");
    // Five candidates do not fit the memory, two do.
    assert_eq!(starved.chosen(5, |count| *count < 4), Some((2, true)));
    // On a quiet machine, runs side by side take as long as runs one after the other.
    for run_s in [0.1, 0.7, 2.0, 4.0, 5.0] {
        let quiet = pace(run_s, false);
        assert_eq!(quiet.affordable(5, true), quiet.affordable(5, false), "{run_s}");
    }
    assert_eq!(pace(9.0, false).chosen(5, yes), None);
}

#[test]
fn a_busy_machine_has_more_time() {
    let (busy, quiet) = (pace(0.1, true), pace(0.1, false));
    assert!((busy.budget_s() - LONGER * quiet.budget_s()).abs() < 1e-9);
    let affordable =
        |candidates, run_s, is_busy| pace(run_s, is_busy).affordable(candidates, false);
    assert!(affordable(5, 1.0, true) > affordable(5, 1.0, false));
    assert_eq!((affordable(4, 8.0, true), affordable(4, 8.5, true)), (Some(1), None));
}

#[test]
fn the_line_to_compare_by_hand_can_be_pasted_where_it_is_short() {
    let line = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        line(&words, &[])
    };
    assert_eq!(line(&["sort", "-k2", "a.txt"]), "`masu compare -a system -- sort -k2 a.txt`");
    for words in [["sh", "-c", "a | b"], ["sort", "-k2", &"a".repeat(90)]] {
        assert!(line(&words).ends_with(" …`"), "{words:?}");
    }
}

#[test]
fn where_no_malloc_can_gain_there_is_no_trial() {
    let found = |id| [fine_so_far(), vec![Finding::new(id, Confidence::Medium, "found")]].concat();
    let nothing_known = Facts::default();
    assert!(!is_closed(&found(Id::CpuBound), &nothing_known));
    // Held memory explains no time.
    let held = [Finding::new(Id::Retention, Confidence::Medium, "held")];
    assert!(!is_closed(&held, &nothing_known));
    assert!(is_closed(&found(Id::IoBound), &nothing_known));
    assert!(is_closed(&found(Id::ForkStorm), &nothing_known));
    // Programs that touch 40 MiB: one maps nearly all of it itself, one requests it from the malloc.
    let facts = |asked_bytes, malloc_share| Facts {
        calls: Some(CallFacts {
            moves: Moves { asked_bytes, ..Moves::default() },
            ..CallFacts::default()
        }),
        memory: Memory {
            minor_faults: 10_000,
            os_page_bytes: 4096,
            peak_rss_bytes: 40 << 20,
            ..Memory::default()
        },
        clock: Clock { wall_s: 1.0, user_s: 1.0, ..Clock::default() },
        samples: Some(Sampled { samples: 500, malloc_share, ..Sampled::default() }),
        cpus: 1,
        ..Facts::default()
    };
    assert!(is_closed(&fine_so_far(), &facts(4 << 20, 0.01)));
    assert!(!is_closed(&fine_so_far(), &facts(40 << 20, 0.01)));
    assert!(!is_closed(&fine_so_far(), &facts(4 << 20, 0.1)));
}

fn microsecond(service: Service) -> Price {
    let (median_ns, lower_ns, upper_ns) = (1e3, 1e3, 1e3);
    Price { service, median_ns, lower_ns, upper_ns, batches: 9, batch: 1, remark: None }
}

#[test]
fn what_cannot_help_takes_no_time() {
    let facts = |break_downs, asked_bytes| Facts {
        calls: Some(CallFacts {
            moves: Moves { break_ups: break_downs, break_downs, asked_bytes, ..Moves::default() },
            ..CallFacts::default()
        }),
        memory: Memory { refaults: Some(0), ..Memory::default() },
        clock: Clock { wall_s: 1.0, user_s: 1.0, ..Clock::default() },
        prices: Prices { known: vec![microsecond(Service::BreakPair)], ..Prices::default() },
        cpus: 1,
        ..Facts::default()
    };
    let tried = |facts: &Facts| candidates(Vec::new(), facts);
    assert!(!tried(&facts(10, 100 << 20)).contains(&PADDING.to_owned()));
    assert!(tried(&facts(50_000, 100 << 20)).contains(&PADDING.to_owned()));
    assert!(!tried(&facts(10, 1 << 20)).contains(&HUGE_PAGES.to_owned()));
    assert!(tried(&facts(10, 1 << 20)).contains(&"masu".to_owned()));
    assert_eq!(tried(&Facts::default()).len(), CANDIDATES.len(), "without counts nothing is known");
}
