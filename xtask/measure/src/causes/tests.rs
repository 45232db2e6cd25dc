//! The judge, on diagnoses that were written for it.

use clap::Parser;
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::judge::{Judged, Verdict, read};
use super::table::{Case, Group, Places, cases};
use super::{Request, page};

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
fn a_cause_that_is_named_first_is_right() {
    let one = judged(Group::C, "brk-storm", &["heap-call-storm", "fault-storm", "cpu-bound"]);
    assert_eq!(one.verdict, Verdict::Right);
}

#[test]
fn a_cause_that_is_named_second_is_missed() {
    let one = judged(Group::C, "brk-storm", &["fault-storm", "heap-call-storm"]);
    assert_eq!(one.verdict, Verdict::Missed(vec!["heap-call-storm"]));
}

#[test]
fn nothing_found_is_missed() {
    let one = judged(Group::Rust, "small-writes", &[]);
    assert_eq!(one.verdict, Verdict::Missed(vec!["small-writes"]));
}

#[test]
fn what_is_not_true_is_false_even_after_the_cause() {
    let one = judged(Group::Rust, "small-writes", &["small-writes", "retention"]);
    assert_eq!(one.verdict, Verdict::False(vec!["retention".to_owned()]));
}

#[test]
fn memory_is_fine_where_it_is_not_the_cause() {
    let fine = "memory-is-fine";
    let one = judged(Group::C, "phase-change", &["retention", fine]);
    assert_eq!(one.verdict, Verdict::False(vec![fine.to_owned()]));
    assert_eq!(judged(Group::C, "small-writes", &["small-writes", fine]).verdict, Verdict::Right);
    assert_eq!(judged(Group::Ordinary, "xz", &[fine]).verdict, Verdict::Right);
}

#[test]
fn an_ordinary_program_is_accused_of_nothing_but_what_is_true() {
    assert_eq!(judged(Group::Ordinary, "perl", &["many-allocations"]).verdict, Verdict::Right);
    let one = judged(Group::Ordinary, "xz", &["many-allocations"]);
    assert_eq!(one.verdict, Verdict::False(vec!["many-allocations".to_owned()]));
}

#[test]
fn all_finds_of_the_field_report_are_needed_in_any_order() {
    let ids = ["wrapper", "serial-phase", "one-lock", "unoptimized-build", "small-writes"];
    assert_eq!(judged(Group::Report, "pool", &ids).verdict, Verdict::Right);
    let one = judged(Group::Report, "pool", &ids[1..]);
    assert_eq!(one.verdict, Verdict::Missed(vec!["wrapper"]));
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

#[test]
fn a_record_holds_everything() {
    let parse = |words: &str| Request::try_parse_from(words.split(' '));
    let request = parse("causes --language rust --only brk-storm").unwrap();
    assert_eq!(request.choose(all()).unwrap().len(), 1);
    assert!(parse("causes --record --language c").is_err());
    assert!(parse("causes --language ordinary").is_err());
    let nothing = Request { only: vec!["no-such-cause".to_owned()], ..Request::default() };
    assert!(nothing.choose(all()).is_err());
}
