//! The conclusions that a trial draws for a diagnosis, on made-up runs.

use super::pace::{LONGER, run_beside_others_s};
use super::*;
use crate::diagnose::facts::{Memory, Others};
use crate::diagnose::judge::LESS_SURE;
use crate::diagnose::judge::tests::reading::facts;
use crate::prove::Medians;
use crate::statistics::Ratio;
use masu_run::{Input, Places};

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

/// A program of 40 MiB that maps nearly all of it itself.
fn of_own_mappings() -> Facts {
    facts(
        "moves = asked_bytes 4M
         memory = minor_faults 10_000, os_page_bytes 4K, peak_rss_bytes 40M
         clock = wall_s 1, user_s 1
         samples = samples 500, malloc_share 0.01
         cpus 1",
    )
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
fn a_run_beside_others_takes_no_longer_than_the_counted_one() {
    for (times, waited_share, expected_s) in [
        ("wall_s 1, counting_s 0.5", "0", 0.5),
        ("wall_s 1, queued_s 0.5", "0.5", 1.0),
        // Most of the run's waits are in its clock already.
        ("wall_s 10.9, counting_s 3.3, queued_s 0.9", "0.68", 7.6),
    ] {
        let clock = format!("clock = user_s 0.4, {times}\ncpus 2");
        let facts = facts(&format!("{clock}\nothers = waited_share {waited_share}"));
        assert!((run_beside_others_s(&facts) - expected_s).abs() < 1e-9, "{times}");
    }
}

#[test]
fn what_was_not_tried_on_a_busy_machine_is_not_called_fine() {
    let said = |share, facts: Facts| {
        let computes = Finding::new(Id::CpuBound, Confidence::High, "It computes").sharing(0.9);
        let others = Others { share: Some(share), ..Others::default() };
        let findings = [vec![computes], fine_so_far()].concat();
        let mut diagnosis = diagnosis(findings, Facts { others, ..facts });
        not_tried(&mut diagnosis, "too long".to_owned());
        assert_eq!(diagnosis.not_seen, ["too long"]);
        diagnosis.findings.iter().map(|one| (one.id, one.confidence)).collect::<Vec<_>>()
    };
    let low = Confidence::Low;
    let none = Facts::default;
    assert_eq!(said(0.9, none()), [(Id::MemoryOpen, low), (Id::CpuBound, low)]);
    assert_eq!(said(0.1, none()), [(Id::CpuBound, low), (Id::MemoryIsFine, low)]);
    assert_eq!(said(0.9, of_own_mappings()), [(Id::CpuBound, low), (Id::MemoryIsFine, low)]);
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
fn only_a_program_of_one_thread_that_nobody_else_sees_takes_turns_with_itself() {
    for (calls, peak, cpus, free_bytes, expected) in [
        ("calls = outward 0", "10M", 4, 1 << 30, true),
        // All of them must fit.
        ("calls = outward 0", "10M", 4, 100 << 20, false),
        ("calls = outward 0", "150M", 4, 1 << 40, true),
        ("calls = outward 0", "150M", 2, 1 << 40, false),
        // So much memory makes equal runs differ.
        ("calls = outward 0", "150M", 30, 1 << 40, false),
        ("calls = outward 1", "10M", 4, 1 << 30, false),
        ("calls =", "10M", 4, 1 << 30, false),
        ("calls = outward 0, threads_started 1", "10M", 4, 1 << 30, false),
        ("no calls", "10M", 4, 1 << 30, false),
    ] {
        let facts = facts(&format!("{calls}\nmemory = peak_rss_bytes {peak}"));
        assert_eq!(may_take_turns(&facts, cpus, free_bytes), expected, "{calls} {peak} {cpus}");
    }
}

#[test]
fn what_a_finding_names_is_tried_first_and_once() {
    let storm = Finding::new(Id::HeapCallStorm, Confidence::High, "A storm").remedied([
        Remedy::setting("keep it", "glibc:top_pad=64M,trim_threshold=1G".to_owned(), "memory"),
        Remedy::allocator("another", "masu", "another malloc"),
    ]);
    let held = Finding::new(Id::Retention, Confidence::High, "Held")
        .remedied([Remedy::allocator("another", "tcmalloc", "another malloc")]);
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
    let limits =
        |trial: &Trial| trial.plan.cases.iter().map(|one| one.limits.time).collect::<Vec<_>>();
    let mut long = trial(3600);
    long.limit(&Limits::default());
    assert_eq!(limits(&long), [Some(long.longest)], "a run must not outlast the trial");
    let asked = Limits { time: Some(Duration::from_secs(9)), ..Limits::default() };
    long.limit(&asked);
    assert_eq!(limits(&long), [asked.time]);
    let proof = long.make(&Stop::never(), &mut |_| {}).unwrap();
    assert_eq!((labels(&proof).len(), long.rest.len()), (1, 2));
    let mut diagnosis = diagnosis(fine_so_far(), Facts::default());
    long.conclude(&mut diagnosis, proof);
    let [left] = &diagnosis.not_seen[..] else { panic!("{diagnosis:?}") };
    assert!(left.contains("there was no time") && left.contains("-a system:top_pad=4M"), "{left}");
}

#[test]
fn a_further_candidate_that_cannot_be_run_is_named_with_the_reason() {
    let diagnosis = with_one_that_cannot_be_run(diagnosis(fine_so_far(), Facts::default()), 0.98);
    assert!(diagnosis.not_seen[0].ends_with("did not take effect: why"), "{diagnosis:?}");
    let shown = Shown::LeftOut { reason: "it hangs".to_owned() };
    let none = Proved { shown, wall: None, ..remedy("masu", 1.0, 0.98, 1.02) };
    let open = with_trial(fine_so_far(), &proof(vec![none]));
    assert!(open[0].id == Id::MemoryOpen && open[0].title.ends_with("could run"), "{open:?}");
    assert!(diagnosis.findings[0].title.contains("not tried: "), "{diagnosis:?}");
    assert_eq!(diagnosis.findings[0].id, Id::MemoryOpen);
    assert_eq!(diagnosis.findings[0].confidence, Confidence::Low);
}

/// The diagnosis after runs of `masu` that leave room down to `low`, where another candidate could not be run.
fn with_one_that_cannot_be_run(mut diagnosis: Diagnosis, low: f64) -> Diagnosis {
    let workload = Workload::new(["true"], Input::Empty).unwrap();
    let catalogue = Catalogue::find(&Places::default());
    let system = catalogue.resolve(&"system".parse().unwrap(), &workload.program).unwrap();
    let mut plan = prove::plan(&workload, &system, std::slice::from_ref(&system), 1);
    let row = plan.cases[0].rows.remove(1);
    let error = Error::NotInEffect { variant: row.variant.label.clone(), reason: "why".to_owned() };
    let (longest, one_more) = (Duration::ZERO, Duration::ZERO);
    let failed = vec![(row, error)];
    let trial = Trial { plan, longest, what: String::new(), rest: Vec::new(), failed, one_more };
    trial.conclude(&mut diagnosis, proof(vec![remedy("masu", 1.0, low, 1.02)]));
    diagnosis
}

#[test]
fn of_a_program_that_maps_its_memory_nothing_is_sure_that_was_not_tried() {
    let said = |findings, low| {
        let diagnosis = with_one_that_cannot_be_run(diagnosis(findings, of_own_mappings()), low);
        let said = diagnosis.findings.iter().map(|one| (one.id, one.confidence));
        (said.collect::<Vec<_>>(), diagnosis.findings[0].title.clone())
    };
    for low in [0.98, 0.6] {
        let (found, title) = said(fine_so_far(), low);
        assert_eq!(found, [(Id::MemoryIsFine, Confidence::Low)], "{low}");
        assert!(title.contains("; not tried: "), "{title}");
    }
    // Memory is not fine beside a cause that is memory's, whatever the room of the runs.
    for kind in ["storm high 0.3", "touch medium 0.2"] {
        let (found, _) = said(findings_of(kind), 0.6);
        let open = found.contains(&(Id::MemoryOpen, Confidence::Low));
        assert!(open && found.len() == 2, "{kind}: {found:?}");
    }
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
    let long = "a".repeat(90);
    for (words, program) in [
        (&["sort", "-k2", "a.txt"][..], "sort -k2 a.txt"),
        (&["sh", "-c", "a | b", ""], "sh -c 'a | b' ''"),
        (&["sort", &long], "sort …"),
        (&["cat", "\u{fffd}"], "cat …"),
        (&[], "PROGRAM"),
    ] {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        let mut diagnosis = Diagnosis::of(command, Facts::default(), Vec::new(), Vec::new());
        assert_eq!(line(&diagnosis, &[]), format!("`masu compare -a system -- {program}`"));
        diagnosis.variant = "masu".to_owned();
        assert!(line(&diagnosis, &[]).starts_with("`masu compare -a masu -- "));
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
    // A run-time that collects garbage may ask a malloc for its memory.
    let collects = [Finding::new(Id::ManyAllocations, Confidence::High, "collects")];
    assert!(!is_closed(&collects, &nothing_known));
    assert!(is_closed(&found(Id::IoBound), &nothing_known));
    assert!(is_closed(&found(Id::ForkStorm), &nothing_known));
    // Programs that touch 40 MiB: one maps nearly all of it itself, one requests it from the malloc.
    for (asked, malloc_share, expected) in
        [("4M", "0.01", true), ("40M", "0.01", false), ("4M", "0.1", false)]
    {
        let facts = facts(&format!(
            "moves = asked_bytes {asked}
             memory = minor_faults 10_000, os_page_bytes 4K, peak_rss_bytes 40M
             clock = wall_s 1, user_s 1
             samples = samples 500, malloc_share {malloc_share}
             cpus 1"
        ));
        assert_eq!(is_closed(&fine_so_far(), &facts), expected, "{asked} {malloc_share}");
        // Counts that leave memory fine with little confidence close nothing.
        let doubted = [Finding { confidence: Confidence::Low, ..fine_so_far().swap_remove(0) }];
        assert!(!is_closed(&doubted, &facts));
        assert!(!is_closed(&findings_of("touch medium 0.2"), &facts));
    }
    // System calls take most of the time of a small program, which are too many to count them all.
    for (share, peak, malloc_share, expected) in [
        (0.7, "1M", "0.01", true),
        (0.3, "1M", "0.01", false),
        (0.7, "4M", "0.01", false),
        (0.7, "1M", "0.1", false),
    ] {
        let facts = facts(&format!(
            "calls =
             sampling 0.5 0.1
             memory = peak_rss_bytes {peak}
             clock = wall_s 1, user_s 1
             samples = samples 500, malloc_share {malloc_share}
             cpus 1"
        ));
        let mut found = found(Id::SystemCalls);
        found[1].share = Some(share);
        assert_eq!(is_closed(&found, &facts), expected, "{share} {peak} {malloc_share}");
    }
}

#[test]
fn where_there_is_nothing_to_try_no_run_is_said_to_take_too_long() {
    let workload = Workload::new(["true"], Input::Empty).unwrap();
    let facts = facts(
        "ending returned 0
         calls =
         clock = wall_s 1, user_s 1
         malloc = name glibc
         cpus 1",
    );
    let diagnosis = diagnosis(fine_so_far(), facts);
    let said = after(&diagnosis, &workload, &Variant::default(), &Catalogue::default());
    assert!(said.unwrap_err().ends_with("there is none here to try"));
}

#[test]
fn what_cannot_help_takes_no_time() {
    let facts = |pairs: &str, asked: &str| {
        facts(&format!(
            "moves = break_ups {pairs}, break_downs {pairs}, asked_bytes {asked}
             memory = refaults 0
             clock = wall_s 1, user_s 1
             malloc = name glibc
             price break_pair 1_000
             cpus 1"
        ))
    };
    let tried = |facts: &Facts| candidates(Vec::new(), facts);
    assert!(!tried(&facts("10", "100M")).contains(&PADDING.to_owned()));
    assert!(tried(&facts("50_000", "100M")).contains(&PADDING.to_owned()));
    assert!(!tried(&facts("10", "1M")).contains(&HUGE_PAGES.to_owned()));
    assert!(tried(&facts("10", "1M")).contains(&"masu".to_owned()));
    let held = |asked: &str, peak_rss_bytes, minor_faults| {
        let memory =
            Memory { peak_rss_bytes, minor_faults, os_page_bytes: 4096, ..Memory::default() };
        tried(&Facts { memory, ..facts("10", asked) }).contains(&HUGE_PAGES.to_owned())
    };
    assert!(held("100M", 90 << 20, 25_000));
    assert!(!held("100M", 1 << 20, 256), "threads' stacks are not touched");
    assert!(!held("8G", 90 << 20, 25_000), "what is sparse would be held whole");
    assert_eq!(tried(&Facts::default()).len(), CANDIDATES.len(), "without counts nothing is known");
}

#[test]
fn huge_pages_are_tried_unless_memory_is_known_to_be_sparse() {
    let reserving = |change: &str| {
        let facts = facts(&format!(
            "moves = asked_bytes 1G
             memory = peak_rss_bytes 90M, minor_faults 25_000, os_page_bytes 4K
             clock = wall_s 1, user_s 1
             cpus 1
             {change}"
        ));
        candidates(Vec::new(), &facts).contains(&HUGE_MASU.to_owned())
    };
    assert!(!reserving("malloc = name glibc") && !reserving("malloc = name masu"));
    assert!(reserving("malloc = name mimalloc"), "it reserves more than it hands out");
    assert!(reserving("malloc = name glibc\nsampling 0.5 0.1"), "samples show no sum");
}

/// The findings that a case of `conclusions.txt` begins with: `many high 0.2`.
fn findings_of(case: &str) -> Vec<Finding> {
    let words: Vec<&str> = case.split(' ').collect();
    let confidence = |word: &&&str| Confidence::ALL.into_iter().find(|it| it.name() == **word);
    let confidence = words.get(1).as_ref().and_then(confidence).unwrap_or(Confidence::Low);
    let another = Remedy::allocator("", "masu", "");
    let setting = |variant: &str| vec![Remedy::setting("", variant.to_owned(), "")];
    let (id, remedies) = match words[0] {
        "fine" => return fine_so_far(),
        "computes" => {
            let computes = Finding::new(Id::CpuBound, Confidence::Low, "It computes");
            let computes = computes.seeing("in f").seeing(format!("{LESS_SURE}: others"));
            return [fine_so_far(), vec![computes]].concat();
        }
        "open" => (Id::MemoryOpen, vec![another]),
        "many" => (Id::ManyAllocations, vec![Remedy::code(1, "", ""), another]),
        "collects" => (Id::ManyAllocations, vec![Remedy::code(1, "", "")]),
        "storm" => (Id::HeapCallStorm, setting(PADDING)),
        "touch" => (Id::FirstTouch, setting(HUGE_PAGES)),
        "maps" => (Id::FirstTouch, vec![Remedy::code(1, "", "")]),
        "both" => return [findings_of("collects high 0.4"), findings_of("held high 0.3")].concat(),
        _ => (Id::Retention, Vec::new()),
    };
    let mut finding = Finding::new(id, confidence, "").seeing("217,000 waits").remedied(remedies);
    finding.share = words.get(2).map(|share| share.parse().unwrap());
    vec![finding]
}

/// The runs of a case: `masu 0.81 0.77 0.86`, or the variant alone where its runs show nothing.
fn run_of(case: &str) -> Proved {
    let (label, numbers) = case.split_once(' ').unwrap_or((case, ""));
    if numbers == "left out" {
        let shown = Shown::LeftOut { reason: "it hangs".to_owned() };
        return Proved { shown, wall: None, ..remedy(label, 1.0, 0.98, 1.02) };
    }
    let numbers: Vec<f64> = numbers.split(' ').filter_map(|one| one.parse().ok()).collect();
    match numbers[..] {
        [estimate, low, high] => remedy(label, estimate, low, high),
        _ => Proved { wall: None, ..remedy(label, 1.0, 0.98, 1.02) },
    }
}

/// A finding in a line: identity, confidence, share, variants and the start of its title.
fn line_of(finding: &Finding) -> String {
    let variants = finding.remedies.iter().filter_map(|one| one.variant.as_deref());
    let variants: Vec<&str> = variants.collect();
    let share = finding.share.map(percent).unwrap_or_default();
    let title = finding.title.split(' ').take(6).collect::<Vec<_>>().join(" ");
    let (id, confidence) = (finding.id.name(), finding.confidence.name());
    format!("{id} {confidence} {share} [{}] {title}", variants.join(" ")).trim_end().to_owned()
}

#[test]
fn the_runs_decide_what_is_said() {
    let cases = include_str!("tests/conclusions.txt").lines().skip(3).collect::<Vec<_>>();
    let is_case = |line: &&str| !line.starts_with(['#', ' ']) && !line.is_empty();
    assert!(cases.iter().filter(|line| is_case(line)).count() > 30);
    let mut rest = &cases[..];
    while let Some(at) = rest.iter().position(is_case) {
        let (kind, runs) = rest[at].split_once(':').unwrap();
        let runs = runs.trim().split("; ").filter(|run| !run.is_empty()).map(run_of).collect();
        let mut findings = with_trial(findings_of(kind), &proof(runs));
        as_sure_as_memory(&Facts::default(), &mut findings);
        findings.sort_by_key(Finding::order);
        let below: Vec<&str> =
            rest[at + 1..].iter().map_while(|line| line.strip_prefix("  ")).collect();
        let (said, expected): (Vec<&str>, Vec<&str>) =
            below.iter().partition(|line| line.starts_with("says "));
        assert_eq!(findings.iter().map(line_of).collect::<Vec<_>>(), expected, "{}", rest[at]);
        let first = format!("{} {}", findings[0].title, findings[0].evidence.join(" "));
        let has_said = said.iter().all(|words| first.contains(&words["says ".len()..]));
        let is_sure = findings[0].id != Id::GainShown || !first.contains(LESS_SURE);
        assert!(has_said && is_sure && !first.contains("100 %"), "{}: {first}", rest[at]);
        // The page has each result once.
        let evidence = findings.iter().flat_map(|one| &one.evidence);
        let results = evidence.filter(|line| line.starts_with("another malloc (masu): "));
        assert!(results.count() <= 1, "{}: {findings:?}", rest[at]);
        rest = &rest[at + 1..];
    }
}

#[test]
fn a_remedy_that_was_tried_costs_the_memory_that_its_runs_held() {
    let runs = proof(vec![remedy("masu", 0.81, 0.77, 0.86)]);
    let finding = with_trial(findings_of("many high 0.2"), &runs).remove(0);
    let masu = finding.remedies.iter().find(|one| one.variant.is_some()).unwrap();
    assert_eq!(masu.cost, "memory ×1.10 at the peak");
}
