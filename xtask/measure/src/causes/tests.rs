//! The judge, on diagnoses that were written for it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::judge::{Judged, Verdict, read};
use super::page;
use super::table::{Case, Group, Places, cases};

fn diagnosis(ids: &[&str]) -> String {
    let finding = |id: &&str| {
        format!(
            "{{\"id\":\"{id}\",\"confidence\":\"high\",\"share\":0.5,\"evidence\":[\"of {id}\"]}}"
        )
    };
    let findings: Vec<String> = ids.iter().map(finding).collect();
    let facts = "\"facts\":{\"ending\":\"returned 0\"}";
    format!("{{\"version\":1,{facts},\"findings\":[{}]}}", findings.join(","))
}

fn all() -> Vec<Case> {
    let places = Places { causes: PathBuf::from("causes"), programs: PathBuf::from("programs") };
    cases(&places).unwrap()
}

fn judged(group: Group, name: &str, ids: &[&str]) -> Judged {
    let case =
        all().into_iter().find(|case| case.group == group && case.known.name == name).unwrap();
    Judged::new(case, read(&diagnosis(ids), false))
}

#[test]
fn a_cause_of_threads_may_be_out_of_sight_where_the_diagnosis_says_so() {
    let says = |name: &str, not_seen: &str| {
        let case = all()
            .into_iter()
            .find(|case| case.group == Group::C && case.known.name == name)
            .unwrap();
        let text = diagnosis(&["many-allocations"]);
        let text = text.replacen('{', &format!("{{\"not_seen\":[\"{not_seen}\"],"), 1);
        Judged::new(case, read(&text, false)).verdict
    };
    let cannot = "whether threads wait for each other: the machine was busy";
    assert_eq!(says("arena-lock", cannot), Verdict::CannotTell(vec!["malloc-lock"]));
    assert!(matches!(says("arena-lock", "swap"), Verdict::Missed(_)));
    assert!(matches!(says("brk-storm", cannot), Verdict::Missed(_)));
}

#[test]
fn a_program_that_was_to_be_cut_short_was() {
    let cut = diagnosis(&["growth"]).replace("returned 0", "ran out of time and was killed");
    assert!(read(&cut, true).is_ok() && read(&cut, false).is_err());
    assert!(read(&diagnosis(&["growth"]), true).is_err(), "it was to grow for longer");
}

#[test]
fn the_cause_must_be_named_first_and_nothing_that_is_not_true() {
    let missed = |id| Verdict::Missed(vec![id]);
    let wrong = |id: &str| Verdict::False(vec![id.to_owned()]);
    let (fine, many) = ("memory-is-fine", "many-allocations");
    let pool = ["wrapper", "serial-phase", "one-lock", "unoptimized-build", "small-writes"];
    for (group, name, ids, verdict) in [
        (
            Group::C,
            "brk-storm",
            &["heap-call-storm", "fault-storm", "cpu-bound"][..],
            Verdict::Right,
        ),
        (Group::C, "brk-storm", &["fault-storm", "heap-call-storm"], missed("heap-call-storm")),
        (Group::Rust, "small-writes", &[], missed("small-writes")),
        (Group::Rust, "small-writes", &["small-writes", "retention"], wrong("retention")),
        // Memory is fine only where it is not the cause.
        (Group::C, "phase-change", &["retention", fine], wrong(fine)),
        (Group::C, "small-writes", &["small-writes", fine], Verdict::Right),
        (Group::Ordinary, "xz", &[fine], Verdict::Right),
        // An ordinary program is accused of what is true alone.
        (Group::Ordinary, "perl", &[many], Verdict::Right),
        (Group::Ordinary, "xz", &[many], wrong(many)),
        // All finds of the field report are needed, in any order.
        (Group::Report, "pool", &pool, Verdict::Right),
        (Group::Report, "pool", &pool[1..], missed("wrapper")),
    ] {
        assert_eq!(judged(group, name, ids).verdict, verdict, "{name}: {ids:?}");
    }
}

#[test]
fn what_is_no_diagnosis_is_a_failure() {
    let ill = diagnosis(&["heap-call-storm"]).replace("returned 0", "returned 3");
    let nameless = diagnosis(&["heap-call-storm"]).replace("\"id\"", "\"title\"");
    for text in ["", "{}", &ill, &nameless] {
        let case = all().remove(0);
        let one = Judged::new(case, read(text, false));
        assert!(matches!(one.verdict, Verdict::Failed(_)), "{text}: {:?}", one.verdict);
    }
}

#[test]
fn there_are_thirteen_causes_in_two_languages_and_ten_ordinary_programs() {
    let count = |group| all().iter().filter(|case| case.group == group).count();
    let counts = Group::ALL.map(count);
    assert_eq!(counts, [13, 13, 10, 2]);
    let expected: BTreeSet<&str> = all()
        .iter()
        .filter(|case| case.group == Group::C)
        .map(|case| case.known.expected[0])
        .collect();
    assert_eq!(expected.len(), 13, "each cause has a finding of its own");
}

#[test]
fn the_page_counts_what_is_right_and_names_what_is_not() {
    let rows = [
        judged(Group::C, "small-writes", &["small-writes"]),
        judged(Group::C, "brk-storm", &["fault-storm"]),
        judged(Group::Ordinary, "xz", &["swap"]),
    ];
    let text = page::text(&rows, "0123456");
    assert!(text.contains("Causes in C, on which thresholds were fixed: 1 of 2 right"), "{text}");
    assert!(
        text.contains("| brk-storm | heap-call-storm | fault-storm (high, 50 %) | – | **missed**"),
        "{text}"
    );
    assert!(text.contains("- xz (ordinary): **false**: swap\n  - swap: of swap"), "{text}");
}
