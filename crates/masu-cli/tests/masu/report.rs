//! `masu report`: the page that `masu compare` printed, again; other forms; and the refusals.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::{masu, printed};

/// A folder with the results of a comparison of `command` in `runs.jsonl`, and its page.
fn compared(command: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("runs.jsonl");
    let mut masu = masu(&["compare", "-n", "2", "-a", "system", "-a", "masu", "--json"]);
    let page = printed(masu.arg(&results).args(["--", "sh", "-c", command]));
    (folder, page)
}

fn report(folder: &Path, arguments: &[&str]) -> String {
    printed(masu(&["report"]).args(arguments).current_dir(folder))
}

#[test]
fn the_form_is_named_or_guessed_from_the_outputs_name() {
    let (folder, _) = compared("echo");
    let to_file = |name: &str| {
        assert_eq!(report(folder.path(), &["runs.jsonl", "-o", name]), "");
        fs::read_to_string(folder.path().join(name)).unwrap()
    };
    assert!(to_file("a.md").contains("| :-- |"));
    assert!(to_file("a.csv").starts_with("file,began,"));
    assert!(to_file("a.json").starts_with('{'));
    assert!(to_file("a.html").starts_with("<!DOCTYPE html>"));
    assert!(!to_file("a.txt").contains('\u{1b}'));
    let csv = report(folder.path(), &["runs.jsonl", "--format", "csv"]);
    // On a busy machine some runs are repeated.
    assert!(csv.lines().skip(1).count() >= 4, "{csv}");
}

#[test]
fn a_full_disk_leaves_the_old_page_whole() {
    let (folder, _) = compared("echo");
    let page = folder.path().join("page.html");
    fs::write(&page, "the old page").unwrap();
    fs::set_permissions(&page, Permissions::from_mode(0o640)).unwrap();
    symlink("page.html", folder.path().join("link.html")).unwrap();
    let report = |limit: &str| {
        let script = format!("trap '' XFSZ; {limit}; exec \"$0\" report runs.jsonl -o link.html");
        let mut bash = Command::new("bash");
        bash.args(["-c", &script, env!("CARGO_BIN_EXE_masu")]).current_dir(folder.path());
        let output = bash.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // The limit on the length of a file stands in for a full disk.
    let (code, said) = report("ulimit -f 4");
    assert!(code == Some(2) && said.contains("writing link.html: File too large"), "{said}");
    assert_eq!(fs::read_to_string(&page).unwrap(), "the old page");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no other file is left");
    let (code, said) = report("true");
    assert_eq!(code, Some(0), "{said}");
    assert!(fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn several_comparisons_of_the_same_thing_are_shown_together() {
    let (first, _) = compared("echo");
    let (second, _) = compared("echo");
    let [first, second] = [&first, &second].map(|it| it.path().join("runs.jsonl"));
    let page = report(Path::new("/"), &[first.to_str().unwrap(), second.to_str().unwrap()]);
    assert!(page.starts_with("2 comparisons"), "{page}");
    assert!(page.contains("no verdict on all 2 comparisons"), "{page}");
}

#[test]
fn styles_are_for_terminals_and_for_those_who_ask() {
    let (folder, _) = compared("echo");
    let styled = |variables: &[(&str, &str)]| {
        let mut command = masu(&["report", "runs.jsonl"]);
        command.env_remove("NO_COLOR").envs(variables.iter().copied());
        let output = command.current_dir(folder.path()).output().unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(!styled(&[]), "a pipe is no terminal");
    assert!(styled(&[("CLICOLOR_FORCE", "1")]));
    assert!(!styled(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
}

#[test]
fn the_page_that_compare_printed_is_printed_again() {
    let (folder, page) = compared("echo");
    assert_eq!(report(folder.path(), &["runs.jsonl"]), page);
    let file = fs::File::open(folder.path().join("runs.jsonl")).unwrap();
    assert_eq!(printed(masu(&["report", "-"]).stdin(file)), page);
    // A pipe can be read only once.
    let mut bash = Command::new("bash");
    bash.args(["-c", "\"$0\" report <(cat runs.jsonl)", env!("CARGO_BIN_EXE_masu")])
        .env("COLUMNS", "80");
    assert_eq!(printed(bash.current_dir(folder.path())), page);
}

#[test]
fn diagnoses_are_held_against_each_other() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["before.json", "after.json"] {
        let mut diagnose = masu(&["diagnose", "--once", "-o", name, "--", "sh", "-c", ":"]);
        printed(diagnose.current_dir(folder.path()));
    }
    let page = report(folder.path(), &["before.json", "after.json"]);
    for words in ["before.json", "peak RSS", "B to A", "memory-is-fine"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let json = report(folder.path(), &["before.json", "after.json", "--format", "json"]);
    assert!(json.contains("\"diagnoses\""), "{json}");
    fs::write(folder.path().join("runs.jsonl"), "{\"record\":\"header\"}\n").unwrap();
    let mut mixed = masu(&["report", "before.json", "runs.jsonl"]);
    let output = mixed.current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("runs.jsonl: it is no diagnosis"));
}
