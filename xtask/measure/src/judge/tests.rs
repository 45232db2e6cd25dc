//! The judge, on diagnoses and measurements that were written for it.

use clap::Parser;
use serde_json::{Value, json};

use super::busy::Change;
use super::diagnosis::Said;
use super::tune;
use super::verdict::{Judged, Verdict, effects};
use super::{Half, Request, page};
use masu_lab::Suite;

fn said(findings: &[(&str, &str, &[&str])]) -> Said {
    let finding = |(id, confidence, variants): &(&str, &str, &[&str])| {
        let remedies: Vec<Value> = variants.iter().map(|one| json!({"variant": one})).collect();
        json!({"id": id, "confidence": confidence, "title": id, "share": 0.2, "remedies": remedies})
    };
    let findings: Vec<Value> = findings.iter().map(finding).collect();
    let kept = json!({"diagnosis": {"findings": findings}, "seconds": 8.0, "load": "1.50 1 1"});
    Said::read(&kept).unwrap()
}

fn proof(of: &[(&str, f64)]) -> Value {
    let ratio = |estimate: f64| json!({"estimate": estimate, "interval": [estimate - 0.03, estimate + 0.03], "pairs": 12});
    let remedy = |(label, estimate): &(&str, f64)| json!({"label": label, "cpu": ratio(*estimate), "peak_rss": ratio(1.3)});
    json!({"remedies": of.iter().map(remedy).collect::<Vec<_>>()})
}

fn judged(findings: &[(&str, &str, &[&str])], of: &[(&str, f64)]) -> Judged {
    let effects = effects(&[&proof(of), &Value::Null]).unwrap();
    Judged::new("a", Half::Judging, said(findings), effects, Some(0.5))
}

const GAINS: &[(&str, f64)] = &[("masu", 0.8), ("jemalloc", 1.0), ("glibc:huge_pages=1", 1.1)];

#[test]
fn a_gain_that_a_remedy_gets_is_right() {
    assert!(judged(&[("gain-shown", "high", &["masu"])], GAINS).is_right());
    assert!(judged(&[("memory-is-fine", "high", &[])], &[("masu", 0.97)]).is_right());
}

#[test]
fn a_gain_is_missed_or_denied() {
    let one = judged(&[("cpu-bound", "high", &[])], GAINS);
    assert_eq!(one.verdict, Verdict::Missed);
    let one = judged(&[("memory-is-fine", "low", &[])], GAINS);
    assert_eq!(one.verdict, Verdict::Denied("low".to_owned()));
}

#[test]
fn a_program_that_failed_is_no_case() {
    let failure = json!({"how": "returned 1", "last_lines": ["first", "no macro file"]});
    let diagnosis = json!({"findings": [], "facts": {"failure": failure}});
    let said = Said::read(&json!({"diagnosis": diagnosis})).unwrap();
    let reason = said.succeeded().unwrap_err().to_string();
    assert_eq!(reason, "the program returned 1: no macro file");
    assert!(self::said(&[]).succeeded().is_ok());
}

#[test]
fn a_finding_is_false_where_no_remedy_gains() {
    let one = judged(&[("many-allocations", "medium", &["jemalloc", "glibc:huge_pages=1"])], GAINS);
    assert_eq!(one.false_ones.len(), 1);
    assert_eq!(one.wrong, ["jemalloc", "glibc:huge_pages=1"]);
    // Remedies that need code, and remedies that could not be run, are not judged.
    let one = judged(&[("serial-phase", "high", &[]), ("first-touch", "low", &["other"])], &[]);
    assert!(one.is_right());
}

#[test]
fn runs_that_leave_room_for_a_gain_decide_nothing() {
    let one = judged(&[("many-allocations", "high", &["masu"])], &[("masu", 0.94)]);
    assert_eq!(one.verdict, Verdict::Right, "a gain, if a small one");
    let one = judged(&[("many-allocations", "high", &["masu"])], &[("masu", 0.975), ("b", 0.9)]);
    assert_eq!((&one.verdict, one.false_ones.len()), (&Verdict::Missed, 1));
    let mut wide = proof(&[("masu", 0.97)]);
    wide["remedies"][0]["cpu"]["interval"] = json!([0.8, 1.1]);
    let said = said(&[("many-allocations", "high", &["masu"])]);
    let one = Judged::new("a", Half::Tuning, said, effects(&[&wide]).unwrap(), None);
    assert_eq!((&one.verdict, one.false_ones.len(), one.wrong.len()), (&Verdict::Open, 0, 0));
    // The other malloc's gain was shown, that of the one that was named is as large and was not.
    let mut both = proof(&[("masu", 0.8), ("jemalloc", 0.8)]);
    both["remedies"][0]["cpu"]["interval"] = json!([0.6, 1.1]);
    let said = self::said(&[("many-allocations", "high", &["masu"])]);
    let one = Judged::new("a", Half::Tuning, said, effects(&[&both]).unwrap(), None);
    assert_eq!(one.verdict, Verdict::Open);
}

#[test]
fn what_says_that_it_cannot_tell_is_neither_right_nor_false() {
    let nothing = &[("masu", 1.0)];
    let one = judged(&[("memory-open", "low", &["masu"])], nothing);
    assert_eq!((&one.verdict, one.is_right()), (&Verdict::LeftOpen, false));
    assert!(one.false_ones.is_empty() && one.wrong.is_empty(), "{one:?}");
    // The named variants must include the gain, if there is one.
    let gain = &[("masu", 0.8), ("jemalloc", 1.0)];
    assert!(judged(&[("memory-open", "low", &["masu"])], gain).is_right());
    assert_eq!(judged(&[("memory-open", "low", &["jemalloc"])], gain).verdict, Verdict::Missed);
}

#[test]
fn one_remedy_of_several_may_be_wrong() {
    let one = judged(&[("many-allocations", "high", &["masu", "jemalloc"])], GAINS);
    assert!(one.false_ones.is_empty() && one.verdict == Verdict::Right);
    assert_eq!(one.wrong, ["jemalloc"]);
}

#[test]
fn memory_that_is_held_is_judged_by_memory() {
    let one = judged(&[("retention", "high", &["masu"])], GAINS);
    assert_eq!(one.false_ones.len(), 1);
}

#[test]
fn what_is_named_beside_is_measured_once() {
    let said = said(&[("heap-call-storm", "high", &["glibc:top_pad=1M", "masu"])]);
    let truth = proof(GAINS);
    assert_eq!(said.named_beside(&truth, &Value::Null), ["glibc:top_pad=1M"]);
    assert!(said.named_beside(&truth, &proof(&[("glibc:top_pad=1M", 0.9)])).is_empty());
}

#[test]
fn every_second_program_is_of_the_half_that_may_be_learned_from() {
    let root = xtask::root().unwrap();
    let suite = Suite::read(&root.join(super::FILE)).unwrap();
    let all = Request::default().choose(&suite).unwrap();
    assert!(all.len() >= 40);
    for name in ["gawk", "imagemagick", "clang++", "graphviz", "xmllint", "arrays"] {
        assert!(all.contains(&(name.to_owned(), Half::Tuning)), "{name}");
    }
    let parse = |words: &str| Request::try_parse_from(words.split(' '));
    let only = parse("judge --only mawk").unwrap();
    assert_eq!(only.choose(&suite).unwrap(), [("mawk".to_owned(), Half::Judging)]);
    assert!(parse("judge --record --only mawk").is_err());
}

#[test]
fn the_page_counts_what_is_wrong() {
    let rows = [
        judged(&[("memory-is-fine", "low", &[])], GAINS),
        judged(&[("gain-shown", "high", &["masu"])], GAINS),
    ];
    let text = page::text(&rows, 46, "0123456");
    assert!(text.contains("1 of 2 right, 0 left open, 0 not decided"), "{text}");
    assert!(text.contains("denied: 0 high, 0 medium, 1 low"), "{text}");
    assert!(text.contains("| a | 0.50 s | 8 s | 1.50 |"), "{text}");
}

#[test]
fn what_tune_names_is_held_against_the_best_of_all() {
    let all = effects(&[&proof(&[("a", 0.70), ("b", 0.72), ("c", 0.78), ("d", 0.9)])]).unwrap();
    let of = |named| tune::Verdict::of(named, &all).unwrap().0;
    assert_eq!(of(Some("a")), tune::Verdict::Near);
    assert_eq!(of(Some("b")), tune::Verdict::Near);
    assert_eq!(of(Some("c")), tune::Verdict::Open, "0.75 is within 3 % of 0.73");
    assert_eq!(of(Some("d")), tune::Verdict::Far);
    assert_eq!(of(None), tune::Verdict::Far);
    assert!(tune::Verdict::of(Some("e"), &all).unwrap_err().to_string().contains("e, which"));
    let none = effects(&[&proof(&[("a", 1.1)])]).unwrap();
    assert_eq!(tune::Verdict::of(None, &none).unwrap(), (tune::Verdict::Near, None));
}

#[test]
fn another_first_finding_beside_loops_is_a_change() {
    let fine = |confidence| said(&[("memory-is-fine", confidence, &[])]);
    let lock = said(&[("malloc-lock", "medium", &["masu"]), ("memory-is-fine", "low", &[])]);
    assert_eq!(Change::of(&fine("high"), &fine("low")), Change::Same);
    let open = said(&[("memory-open", "low", &[])]);
    assert_eq!(Change::of(&fine("high"), &open), Change::Open);
    let computes = said(&[("cpu-bound", "low", &[]), ("memory-is-fine", "low", &[])]);
    assert_eq!(Change::of(&fine("high"), &computes), Change::Answer);
    assert_eq!(Change::of(&lock, &said(&[("gain-shown", "high", &["masu"])])), Change::Answer);
    assert_eq!(Change::of(&fine("high"), &lock), Change::Changed);
    assert_eq!(Change::of(&lock, &fine("high")), Change::High);
}

#[test]
fn a_user_acts_alike_where_both_name_a_remedy_against_lost_time_or_the_same_one() {
    let one = |id, variants: &[&str]| said(&[(id, "high", variants)]);
    let change = |id, variants: &[&str], other, others: &[&str]| {
        Change::of(&one(id, variants), &one(other, others))
    };
    let huge = "masu:huge_pages_from=0";
    assert_eq!(change("locality", &["masu", huge], "gain-shown", &[huge]), Change::Answer);
    assert_eq!(change("locality", &["masu"], "gain-shown", &["jemalloc"]), Change::Answer);
    // A gain that is denied is another answer, however sure, and so is one where there was none.
    assert_eq!(change("gain-shown", &["masu"], "memory-is-fine", &[]), Change::High);
    assert_eq!(change("cpu-bound", &[], "gain-shown", &["masu"]), Change::High);
    // A finding that is left open beside the loops promises nothing, and a smaller program is not a faster one.
    assert_eq!(change("gain-shown", &["masu"], "memory-open", &["masu"]), Change::Open);
    assert_eq!(change("memory-open", &["masu"], "gain-shown", &["masu"]), Change::High);
    assert_eq!(change("retention", &["masu"], "gain-shown", &["jemalloc"]), Change::High);
    assert_eq!(change("serial-phase", &[], "cpu-bound", &[]), Change::High);
    assert_eq!(Change::of(&said(&[]), &said(&[])), Change::Same);
}
