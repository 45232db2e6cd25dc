//! Tests that secrets are hidden everywhere, and nothing else is.

use super::*;
use crate::Measure;
use crate::results::{
    Case, FileMark, Header, LeftOut, Record, Rounds, Row, SCHEMA_VERSION, Summary,
};
use crate::statistics::{Look, Verdict};
use masu_run::execute::Output;
use masu_run::{Ending, Evidence, Run, Variant};

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn given_texts_are_taken_out_wherever_they_are() {
    assert_eq!(
        Redact::texts(["ab"]).text("ab cab áb abab"),
        "[redacted] c[redacted] áb [redacted][redacted]"
    );
    assert_eq!(Redact::texts(["old", "older"]).text("old older"), "[redacted 1] [redacted 2]");
    assert_eq!(Redact::texts([""]).text("as it was"), "as it was");
    assert!(Redact::texts([""]).is_empty());
}

#[test]
fn a_person_and_a_host_are_taken_out_as_whole_names() {
    let who = Redact::who(&set(&["/people/ed", "/"]), &set(&["ed", "root", ""]), "box.example.org");
    for (text, expected) in [
        ("/people/ed/bin/sed -e ed", "~/bin/sed -e [user]"),
        ("/people/eddy /srv/people/ed", "/people/eddy /srv/people/[user]"),
        ("root@box, box.example.org:1, boxes", "root@[host], [host]:1, boxes"),
        ("/", "/"),
    ] {
        assert_eq!(who.text(text), expected);
    }
    assert!(Redact::who(&set(&[]), &set(&["root"]), "localhost").is_empty());
}

#[test]
fn this_process_knows_who_it_is() {
    let passwd = "root:x:0:0:root:/root:/bin/sh\ned:x:1000:1000::/people/ed:/bin/sh\n";
    assert_eq!(account(passwd, 1000), Some(("ed".to_owned(), "/people/ed".to_owned())));
    assert_eq!(account(passwd, 1), None);
    let home = std::env::var("HOME").unwrap_or_default();
    if home.len() > 1 {
        assert_eq!(Redact::own().text(&format!("{home}/file")), "~/file");
    }
}

#[test]
fn both_kinds_go_together() {
    let both =
        Redact::who(&set(&["/people/ed"]), &set(&[]), "").and(Redact::texts(["/people/ed/x"]));
    assert_eq!(both.text("/people/ed/x /people/ed/y"), "[redacted] ~/y");
}

/// One record of each kind, with something in every list.
fn records() -> Vec<Record> {
    let text = || "x".to_owned();
    let pair = || vec![(text(), text())];
    let variant = Variant {
        version: Some(text()),
        library: Some("/x".into()),
        tunables: pair(),
        variables: pair(),
        parameters: pair(),
        ..Variant::default()
    };
    let header = Header {
        schema_version: SCHEMA_VERSION,
        masu_version: text(),
        began: text(),
        suite: Some(text()),
        cases: vec![Case {
            command: vec![text()],
            variants: vec![variant],
            left_out: vec![LeftOut { label: text(), reason: text() }],
            settings: pair(),
            ..Case::default()
        }],
        rounds: Rounds::Fixed(1),
        seed: 1,
        machine: masu_run::Machine::here(),
        decide: Some(text()),
        asked: vec![text()],
        files: vec![FileMark { path: text(), bytes: 1, hash: text() }],
    };
    let output = || Output { tail: text(), ..Output::default() };
    let run = Run {
        ending: Ending::OutOfMemory { process: text(), bytes: 1 },
        left_behind: vec![text()],
        stdout: output(),
        stderr: output(),
        ..Run::default()
    };
    let evidence = Evidence {
        served: vec![text()],
        idle: vec![text()],
        not_served: vec![text()],
        notes: vec![text()],
    };
    let summary = Summary {
        primary: Measure::Wall,
        rows: vec![Row {
            variant: text(),
            verdict: Verdict::Reference,
            estimates: Vec::new(),
            valid_runs: 1,
            starved_runs: 1,
        }],
        confidence: 0.99,
        look: Look::ONLY,
        warnings: vec![text()],
        notes: vec![text()],
        repeatable: true,
    };
    vec![
        Record::Header(header),
        Record::WarmUp { evidence, run: run.clone() },
        Record::Run(run),
        Record::Summary { case: 0, summary },
    ]
}

/// Puts a secret into every free text of `value`.
fn fill(value: &mut Value) {
    const FIXED: [&str; 8] = [
        "record", "masu_version", "began", "hash", "primary", "verdict",
        // Models and versions.
        "machine", "rounds",
    ];
    match value {
        Value::String(text) => text.push_str("SECRET"),
        Value::Array(values) => values.iter_mut().for_each(fill),
        Value::Object(fields) => {
            let free = fields.iter_mut().filter(|(name, _)| !FIXED.contains(&name.as_str()));
            free.for_each(|(_, value)| fill(value));
        }
        _ => {}
    }
}

#[test]
fn no_text_of_a_record_is_forgotten() {
    for record in records() {
        let mut json = serde_json::to_value(&record).unwrap();
        fill(&mut json);
        assert!(json.to_string().contains("SECRET"));
        let mut record: Record = serde_json::from_value(json).unwrap();
        Redact::texts(["SECRET"]).all_of(&mut record);
        let json = serde_json::to_string(&record).unwrap();
        assert!(!json.contains("SECRET"), "{json}");
    }
}

#[test]
fn what_machines_read_is_left_alone() {
    let words = ["wall", "record", "header", "out_of_memory", "reference", "variant", "1"];
    for mut record in records() {
        let before = record.clone();
        Redact::texts(words).all_of(&mut record);
        assert_eq!(record, before);
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), before);
    }
}

#[test]
fn the_end_of_a_word_whose_beginning_was_cut_off_is_taken_out_too() {
    let redact = Redact::texts(["hünter2"]);
    let kept = |tail: &str, bytes: u64| {
        let stderr = Output { bytes, tail: tail.to_owned(), ..Output::default() };
        let mut run = Run { stderr, ..Run::default() };
        redact.all_of(&mut run);
        run.stderr.tail
    };
    for tail in ["hünter2 x", "ünter2 x", "\u{fffd}nter2 x", "er2 x", "2 x"] {
        let kept = kept(tail, 5000);
        assert!(kept.ends_with(" x") && !kept.contains('2'), "{tail}: {kept}");
    }
    assert_eq!(kept("er2 x", 5), "er2 x", "nothing was cut off");
    assert_eq!(kept("", 5000), "");
}
