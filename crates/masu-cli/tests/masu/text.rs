//! The output of `masu`: pages and messages as files, to be read as a user reads them.
//!
//! `SNAPSHOTS=overwrite cargo test -p masu-cli` overwrites the files; the diff is the review.

use std::path::Path;

use snapbox::cmd::OutputAssert;
use snapbox::{Data, file};

use crate::{masu, printed};

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
    pages(&["-h"], file!["text/help.txt"]);
    pages(&["help"], file!["text/help.txt"]);
    pages(&["diagnose", "-h"], file!["text/diagnose.txt"]);
    for (command, name) in [
        ("--help", "help"),
        ("compare --help", "compare"),
        ("compare -h", "compare-short"),
        ("tune --help", "tune"),
        ("tune -h", "tune-short"),
        ("run --help", "run"),
        ("list --help", "list"),
        ("report --help", "report"),
        ("top --help", "top"),
        ("code --help", "code"),
        ("code load --help", "code-load"),
        ("doctor --help", "doctor"),
        ("diagnose --help", "diagnose"),
    ] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/masu/text/{name}.txt"));
        pages(&command.split(' ').collect::<Vec<_>>(), Data::read_from(&path, None));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{command}: wider than 80");
        let is_short = command.ends_with(" -h");
        assert!(!is_short || text.lines().count() <= 40, "{command}: longer than a screen");
    }
}

#[test]
fn pages_fit_a_narrow_terminal() {
    let own = std::process::id().to_string();
    let pages: [&[&str]; 5] = [
        &["-h"],
        &["list"],
        &["list", "--settings"],
        &["list", "--options"],
        &["code", "map", "-p", &own],
    ];
    for page in pages {
        let output = masu(page).env("COLUMNS", "40").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 40).collect();
        // A path is kept whole, to be copied.
        let wide: Vec<&str> = wide.into_iter().filter(|line| !line.contains('/')).collect();
        assert!(output.status.success() && wide.is_empty(), "{page:?}: {wide:#?}\n{text}");
    }
}

#[test]
fn without_a_command_the_help_is_shown() {
    says(&[]).code(2).stdout_eq("").stderr_eq(file!["text/help.txt"]);
}

#[test]
fn version() {
    pages(&["--version"], Data::from("masu [VERSION]\n"));
}

#[test]
fn the_list_has_the_systems_malloc_first_and_masu() {
    let text = printed(&mut masu(&["list"]));
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
