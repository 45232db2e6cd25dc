//! Tests that results files become documents, even if they were cut off, and that other files are refused.

use super::*;
use crate::report::fixtures;
use crate::results::Record;

fn file(records: &[Record]) -> Content {
    let lines: Vec<String> =
        records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
    (format!("{}.jsonl", records.len()).into(), lines.concat().into_bytes())
}

/// The records of a made-up comparison, its summary last.
fn records() -> Vec<Record> {
    let source = &fixtures::of_commands().sources[0];
    let table = &source.tables[0];
    let mut records = vec![Record::Header(source.header.clone())];
    records.extend(table.runs.iter().cloned().map(Record::Run));
    records.push(Record::Summary { case: 0, summary: table.summary.clone() });
    records
}

#[test]
fn what_was_cut_off_is_summarized_from_its_runs() {
    let mut records = records();
    let whole = Source::of(&file(&records)).unwrap();
    assert_eq!(whole.tables[0].extent, Extent::Whole);
    records.pop();
    let cut = Source::of(&file(&records)).unwrap();
    assert_eq!(cut.tables[0].extent, Extent::CutOff);
    assert_eq!(cut.tables[0].summary, whole.tables[0].summary);
    assert!(cut.tables[0].shortfall(&cut.header).unwrap().1.contains("60 of 60 runs"));
}

#[test]
fn what_has_fewer_rounds_than_were_asked_for_was_stopped() {
    let mut records = records();
    // The summary is last; before it stand the runs, three for each round.
    for (name, runs) in [("a run", 1), ("a round", 3)] {
        let mut fewer = records.clone();
        fewer.drain(fewer.len() - 1 - runs..fewer.len() - 1);
        let stopped = Source::of(&file(&fewer)).unwrap();
        assert_eq!(stopped.tables[0].extent, Extent::Stopped, "{name}");
    }
    let Record::Header(header) = &mut records[0] else { unreachable!("it stands first") };
    header.rounds = Rounds::Budget { seconds: 60.0, precision: 0.01 };
    records.drain(records.len() - 4..records.len() - 1);
    let budget = Source::of(&file(&records)).unwrap();
    assert_eq!(budget.tables[0].extent, Extent::Whole, "a budget ends after any round");
}

#[test]
fn absurd_rounds_are_shown_and_do_no_harm() {
    let mut records = records();
    let Record::Header(header) = &mut records[0] else { panic!() };
    header.rounds = Rounds::Fixed(usize::MAX);
    records.pop();
    for record in &mut records {
        if let Record::Run(run) = record
            && run.round == Some(3)
        {
            run.round = Some(usize::MAX);
        }
    }
    let document = Document::of(&[file(&records)]).unwrap();
    for format in crate::report::Format::ALL {
        assert!(!crate::report::render(&document, format).is_empty());
    }
}

#[test]
fn one_comparison_counts_once_and_its_longer_file_is_taken() {
    let mut records = records();
    let whole = file(&records);
    records.truncate(30);
    let cut = file(&records);
    let document = Document::of(&[cut, whole.clone(), whole]).unwrap();
    assert_eq!(document.sources.len(), 1);
    assert_eq!(document.sources[0].tables[0].extent, Extent::Whole);
    assert_eq!(document.notes.len(), 2);
    assert!(document.notes[0].contains("30.jsonl holds the same"), "{}", document.notes[0]);
    assert!(Document::of(&[]).unwrap_err().to_string().contains("no results file given"));
}

#[test]
fn what_holds_no_case_or_a_second_header_is_refused() {
    let refusal = |records: &[Record]| Source::of(&file(records)).unwrap_err().to_string();
    let none = refusal(&[Record::Header(fixtures::header(Vec::new()))]);
    assert!(none.contains("names no case"), "{none}");
    let mut two = records();
    two.push(two[0].clone());
    let two = refusal(&two);
    assert!(two.contains("second header"), "{two}");
    let headless = refusal(&records()[1..]);
    assert!(headless.contains("no results file"), "{headless}");
}
