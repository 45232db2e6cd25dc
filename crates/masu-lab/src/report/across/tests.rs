//! Tests of merging: comparisons that may be merged, comparisons that may not, and the words about several machines.

use super::*;
use crate::report::fixtures;

/// A comparison of masu with glibc in which masu takes `times` as long.
fn source(cpu: &str, times: f64, command: &str) -> Source {
    let runs =
        (0..20).flat_map(|round| [fixtures::run(0, round, 1.0), fixtures::run(1, round, times)]);
    let case = fixtures::a_case(command, &["glibc", "masu"], Measure::Wall);
    let mut source = fixtures::source(vec![fixtures::table(case, runs.collect())]);
    source.header.machine = fixtures::machine(cpu);
    source.file = Some(format!("{cpu}.jsonl"));
    source
}

fn said(times: &[f64]) -> String {
    let sources = times
        .iter()
        .enumerate()
        .map(|(index, times)| source(&format!("CPU {index}"), *times, "job"));
    let document = Document { sources: sources.collect(), notes: Vec::new() };
    let groups = groups(&document);
    let variants = groups[0].variants();
    assert_eq!(variants[0].statement("machines"), "the reference");
    variants[1].statement(noun(&document))
}

#[test]
fn machines_are_counted_and_never_pooled() {
    let all = said(&[0.8, 0.9]);
    assert!(all.starts_with("better on all 2 machines; estimates ×0."), "{all}");
    let some = said(&[0.8, 1.0, 0.9]);
    assert!(
        some.starts_with("of 3 machines: better on 2, no difference shown on 1; estimates"),
        "{some}"
    );
    let both = said(&[0.8, 1.2]);
    assert!(both.contains("better on 1, worse on 1; which it is depends on where"), "{both}");
}

#[test]
fn a_variant_that_some_machines_lack_is_not_said_to_hold_on_all() {
    let mut document = Document {
        sources: ["a", "b", "c"].map(|cpu| source(cpu, 0.8, "job")).into(),
        notes: Vec::new(),
    };
    document.sources[2].tables[0].summary.rows.pop();
    let group = &groups(&document)[0];
    let said = group.variants()[1].statement("machines");
    assert!(said.starts_with("better on 2, not compared on 1; estimates"), "{said}");
}

#[test]
fn what_compares_something_else_is_not_merged() {
    let of = |sources: Vec<Source>| Document { sources, notes: Vec::new() };
    let other = of(vec![source("a", 0.8, "job"), source("b", 0.8, "other")]);
    let message = other.check_common_ground().unwrap_err().to_string();
    assert!(message.contains("nothing to merge") && message.contains("`other "), "{message}");
    let mut against = source("b", 0.8, "job");
    against.tables[0].case.variants[0].label = "jemalloc".to_owned();
    assert!(of(vec![source("a", 0.8, "job"), against]).check_common_ground().is_err());
    let partly = of(vec![source("a", 0.8, "job"), source("b", 0.9, "job"), source("c", 1.0, "x")]);
    assert!(partly.check_common_ground().is_ok());
    assert_eq!(alone(&partly), ["C: x (x --with 'two words')"]);
}

#[test]
fn what_may_be_one_machine_twice_is_not_called_machines() {
    let mut document = Document {
        sources: vec![source("a", 0.8, "job"), source("b", 0.8, "job")],
        notes: Vec::new(),
    };
    assert_eq!(noun(&document), "machines");
    document.sources[1].header.machine = fixtures::machine("a");
    assert_eq!(noun(&document), "comparisons");
}
