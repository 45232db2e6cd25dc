//! What `masu` says: pages and messages as files, to be read as a user reads them.
//!
//! `SNAPSHOTS=overwrite cargo test -p masu-cli` overwrites the files; the diff is the review.

use std::process::Command;

use snapbox::cmd::OutputAssert;
use snapbox::{Data, file};

use crate::masu;

fn says(arguments: &[&str]) -> OutputAssert {
    let command = snapbox::cmd::Command::from_std(masu(arguments));
    let mut redactions = snapbox::Redactions::new();
    redactions.insert("[VERSION]", env!("CARGO_PKG_VERSION")).unwrap();
    command
        .with_assert(snapbox::Assert::new().redact_with(redactions).action_env("SNAPSHOTS"))
        .assert()
}

#[track_caller]
fn pages(arguments: &[&str], page: Data) {
    says(arguments).code(0).stdout_eq(page).stderr_eq("");
}

#[test]
fn help() {
    pages(&["--help"], file!["text/help.txt"]);
    pages(&["-h"], file!["text/help.txt"]);
    pages(&["help"], file!["text/help.txt"]);
    pages(&["compare", "--help"], file!["text/compare.txt"]);
    pages(&["compare", "-h"], file!["text/compare-short.txt"]);
    pages(&["tune", "--help"], file!["text/tune.txt"]);
    pages(&["tune", "-h"], file!["text/tune-short.txt"]);
    pages(&["run", "--help"], file!["text/run.txt"]);
    pages(&["list", "--help"], file!["text/list.txt"]);
    pages(&["report", "--help"], file!["text/report.txt"]);
    pages(&["top", "--help"], file!["text/top.txt"]);
    pages(&["code", "--help"], file!["text/code.txt"]);
    pages(&["code", "load", "--help"], file!["text/code-load.txt"]);
    pages(&["doctor", "--help"], file!["text/doctor.txt"]);
    pages(&["diagnose", "--help"], file!["text/diagnose.txt"]);
    pages(&["diagnose", "-h"], file!["text/diagnose.txt"]);
}

#[test]
fn without_a_command_the_help_is_shown() {
    says(&[]).code(2).stdout_eq("").stderr_eq(file!["text/nothing.txt"]);
}

#[test]
fn version() {
    pages(&["--version"], Data::from("masu [VERSION]\n"));
}

#[test]
fn every_short_page_fits_a_screen() {
    for command in ["compare", "tune", "run", "top", "doctor", "list", "report"] {
        let output = masu(&[command, "-h"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() <= 40, "{} lines: {text}", text.lines().count());
    }
}

#[test]
fn no_page_is_wider_than_80_columns() {
    for arguments in [
        &["--help"][..],
        &["compare", "--help"],
        &["compare", "-h"],
        &["tune", "--help"],
        &["run", "-h"],
        &["code", "-h"],
        &["code", "load", "-h"],
    ] {
        let output = masu(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn the_list_has_the_systems_malloc_first_and_masu() {
    let output = masu(&["list"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> =
        text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(["glibc", "musl"].contains(&names[0]), "{text}");
    assert!(names.contains(&"masu"), "{text}");
    // Each packaged allocator is either found or offered, never both.
    for name in ["jemalloc", "mimalloc", "tcmalloc", "tbbmalloc"] {
        let count = names.iter().filter(|found| found.starts_with(name)).count();
        assert!(count >= 1, "{name}: {text}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let script =
        format!("'{}' list | true; exit \"${{PIPESTATUS[0]}}\"", env!("CARGO_BIN_EXE_masu"));
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
