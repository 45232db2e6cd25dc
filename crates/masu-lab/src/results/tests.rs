//! Tests of results files: written records are read back, and other files are refused.

use tempfile::{NamedTempFile, TempPath};

use super::*;
use crate::Redact;

fn file(content: &str) -> TempPath {
    let path = NamedTempFile::new().unwrap().into_temp_path();
    fs::write(&path, content).unwrap();
    path
}

fn read_text(content: &str) -> Result<Vec<Record>, String> {
    read(&file(content)).map_err(|error| error.to_string())
}

fn header() -> Header {
    Header {
        schema_version: SCHEMA_VERSION,
        masu_version: "0".to_owned(),
        began: "2026-01-01T00:00:00Z".to_owned(),
        suite: None,
        cases: vec![Case {
            name: "true".to_owned(),
            command: vec!["true".to_owned()],
            ..Case::default()
        }],
        rounds: Rounds::Fixed(1),
        seed: 7,
        machine: Machine::here(),
        decide: None,
        asked: Vec::new(),
        files: Vec::new(),
    }
}

#[test]
fn a_record_reads_back_as_it_was_written() {
    let path = file("{\"record\":\"header\", and so on");
    let record = Record::Header(header());
    let mut journal = Journal::create(Some(&path), &Redact::default()).unwrap();
    journal.write(&record).unwrap();
    assert_eq!(journal.read_back().unwrap(), std::slice::from_ref(&record));
    assert!(read(&path).is_err(), "what is there stays until there is a run");
    let run = Record::Run(Run::default());
    journal.write(&run).unwrap();
    assert_eq!(read(&path).unwrap(), [record, run]);
    // A file without results stays unchanged.
    let other = file("old content");
    let refused = Journal::create(Some(&other), &Redact::default()).unwrap_err().to_string();
    assert!(refused.contains("no results file"), "{refused}");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "old content");
}

#[test]
fn a_last_line_that_was_cut_off_is_left_out() {
    let line = serde_json::to_string(&Record::Header(header())).unwrap();
    let records = read_text(&format!("{line}\n{{\"record\":\"run\",\"vari"));
    assert_eq!(records.unwrap().len(), 1);
    let message = read_text(&format!("{line}\n{{\"record\"\n{line}\n")).unwrap_err();
    assert!(message.contains("line 2"), "{message}");
}

#[test]
fn a_file_that_was_cut_off_within_a_letter_is_read() {
    let mut bytes = serde_json::to_vec(&Record::Header(header())).unwrap();
    bytes.extend("\n{\"record\":\"run\",\"left_behind\":[\"ß".as_bytes());
    bytes.pop();
    let path = NamedTempFile::new().unwrap().into_temp_path();
    fs::write(&path, bytes).unwrap();
    assert_eq!(read(&path).unwrap().len(), 1);
}

#[test]
fn other_files_and_later_versions_are_refused() {
    assert!(read_text("").unwrap_err().contains("empty"));
    assert!(read_text("hello\n").unwrap_err().contains("no results file"));
    // A disk was full, or the file was copied in part.
    let cut = read_text("{\"record\":\"header\",\"schema_ver").unwrap_err();
    assert!(cut.contains("cut off in its first line"), "{cut}");
    let later = "{\"record\":\"header\",\"schema_version\":999,\"new\":1}\n";
    assert!(read_text(later).unwrap_err().contains("later masu"));
    let earlier = "{\"record\":\"header\",\"schema_version\":1}\n";
    assert!(read_text(earlier).unwrap_err().contains("earlier masu"));
}

#[test]
fn what_is_known_well_enough_is_decided() {
    use crate::statistics::{Estimate, Look, Measure, Ratio, Verdict};
    let decided = |verdict: Verdict, estimate: f64, interval: (f64, f64)| {
        let ratio = Ratio { estimate, interval: Some(interval), pairs: 11 };
        let measured = Estimate {
            measure: Measure::Wall,
            median: None,
            spread: None,
            range: None,
            ratio: Some(ratio),
        };
        let row = |verdict| Row {
            variant: String::new(),
            verdict,
            estimates: vec![measured.clone()],
            valid_runs: 11,
            starved_runs: 0,
        };
        let summary = |rows| Summary {
            primary: Measure::Wall,
            rows,
            confidence: 0.99,
            look: Look::ONLY,
            warnings: Vec::new(),
            notes: Vec::new(),
            repeatable: true,
        };
        assert!(!summary(vec![row(Verdict::Reference)]).is_decided(), "alone nothing is compared");
        summary(vec![row(Verdict::Reference), row(verdict)]).is_decided()
    };
    assert!(decided(Verdict::Faster, 0.52, (0.47, 0.58)), "half, whatever it is exactly");
    assert!(decided(Verdict::Faster, 0.90, (0.87, 0.93)));
    assert!(!decided(Verdict::Faster, 0.90, (0.83, 0.98)));
    assert!(decided(Verdict::NoDifferenceShown { could_have_seen: 0.015 }, 1.0, (0.99, 1.01)));
    assert!(!decided(Verdict::NoDifferenceShown { could_have_seen: 0.03 }, 1.0, (0.98, 1.02)));
    assert!(!decided(Verdict::TooFewRuns { pairs: 5, needed: 9 }, 0.5, (0.4, 0.6)));
    assert!(decided(Verdict::RunsFailed { failed: 5, of: 9 }, 0.5, (0.4, 0.6)));
}
