//! `masu compare` beyond one command: suite files, parameters, gates, and going on.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::masu;

fn compare(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = masu(&["compare"]);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn compare_in(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = compare(folder, arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

/// Case, variant and round of every timed run that counts; on a busy machine some runs are repeated.
pub(crate) fn order(results: &Path) -> Vec<String> {
    let text = fs::read_to_string(results).unwrap_or_default();
    let runs = text.lines().filter(|line| line.starts_with("{\"record\":\"run\""));
    let lasting = runs.filter(|line| line.contains("\"replaced\":false"));
    lasting.map(|line| line.split("\"ending\"").next().unwrap_or_default().to_owned()).collect()
}

/// The suite that docs/suites.md shows.
fn documented() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/suites.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, behind) = page.split_once("```toml\n").unwrap();
    behind.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_suite_that_the_documentation_shows_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sorting.toml"), documented()).unwrap();
    let arguments =
        ["--suite", "sorting.toml", "-n", "1", "-P", "lines=100", "--json", "runs.jsonl"];
    let (page, said, code) = compare_in(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    for table in ["sort threads=1", "sort threads=2", "words"] {
        assert!(page.lines().any(|line| line.contains(table)), "{table}: {page}");
    }
    assert!(page.contains("system program=sort -u"), "{page}");
    assert!(!folder.path().join("numbers").exists(), "what the setup made is cleaned up");
    let again = ["--suite", "sorting.toml", "-n", "1", "-P", "lines=100", "--resume", "runs.jsonl"];
    let before = fs::read(folder.path().join("runs.jsonl")).unwrap();
    let (repeated, _, code) = compare_in(folder.path(), &again);
    assert_eq!((code, repeated), (0, page));
    assert_eq!(fs::read(folder.path().join("runs.jsonl")).unwrap(), before);
}

#[test]
fn a_part_of_a_suite_is_measured_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sorting.toml"), documented()).unwrap();
    let arguments = ["--suite", "sorting.toml", "--only", "words", "-n", "1", "-a", "system"];
    let (page, said, code) = compare_in(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    assert!(!page.contains("threads="), "{page}");
}

#[test]
fn each_value_of_another_parameter_gets_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["-n", "1", "-a", "system", "--each", "n=1,2", "--", "sh", "-c", "exit $(({n}-1))"];
    let (page, said, code) = compare_in(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    assert!(page.contains("sh n=1") && page.contains("sh n=2"), "{page}");
    assert!(page.contains("returned 1"), "the second table fails: {page}");
}

#[test]
fn the_gate_fails_passes_or_says_that_it_cannot_tell() {
    let folder = tempfile::tempdir().unwrap();
    // Memory decides, which no other load changes.
    let gate = |limit: &str, runs: &str, sizes: &str| {
        let asked = ["--primary", "peak_rss", "--fail-if-slower", limit, "-n", runs, "-P", sizes];
        let copying = "dd status=none if=/dev/zero of=/dev/null bs={s} count=1".split(' ');
        let words: Vec<&str> = asked.into_iter().chain(["--"]).chain(copying).collect();
        compare_in(folder.path(), &words)
    };
    let (page, said, code) = gate("3", "10", "s=1M,32M");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("s=32M is surely slower by more than 3 %"), "{said}");
    assert!(page.contains("s=32M"), "the page is shown nevertheless");
    let (_, said, code) = gate("3", "2", "s=1M,32M");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("too few runs for a verdict"), "{said}");
    assert_eq!(gate("900", "10", "s=32M,1M").2, 0);
    let other = ["--fail-if-slower=900", "-n", "10", "-P", "s=1,2", "--", "echo", "{s}"];
    let (_, said, _) = compare_in(folder.path(), &other);
    assert!(said.contains("did not all do the same work"), "{said}");
}

#[test]
fn what_was_interrupted_is_shown_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("runs.jsonl");
    // One run waits for the interrupt: the one whose number is in `waits`.
    let script = "echo >> ran; [ $(wc -l < ran) -ne $(cat waits) ] || sleep 1000";
    let command = ["--", "sh", "-c", script];
    let ran = || fs::read_to_string(folder.path().join("ran")).unwrap_or_default().len();
    let write_waits = |run: usize| fs::write(folder.path().join("waits"), run.to_string()).unwrap();
    write_waits(0);
    let variants = ["-n", "10", "-a", "system", "-a", "masu"];
    let whole = [&variants[..], &["--seed", "7", "--json", "whole.jsonl"], &command].concat();
    let (page, said, code) = compare_in(folder.path(), &whole);
    assert!(code == 0 && page.contains("--seed 7"), "{said}{page}");
    // After the warm-ups and half of the timed runs, of which a quarter may be repeats.
    let waits = ran() + 2 + 12;
    write_waits(waits);
    let mut child = masu(&["compare", "--seed", "7", "--json", "runs.jsonl"])
        .args(variants)
        .args(command)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    while ran() < waits {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        thread::sleep(Duration::from_millis(1));
    }
    // The signal goes to masu and to all that it runs, as a terminal sends it.
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("Stopped"), "{page}");
    assert!(page.lines().any(|line| line.starts_with("masu ") && line.contains(" ms")), "{page}");
    let there = order(&results);
    assert!((6..20).contains(&there.len()), "{there:?}");
    // The file ends in the middle of a line, as after a crash.
    let text = fs::read_to_string(&results).unwrap();
    fs::write(&results, &text[..text.len() - 20]).unwrap();
    let resumed = [&variants[..], &["--resume", "runs.jsonl"], &command].concat();
    let (_, said, code) = compare_in(folder.path(), &resumed);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("there already"), "{said}");
    assert_eq!(order(&results), order(&folder.path().join("whole.jsonl")));
    // A comparison with another plan cannot be resumed.
    let other = ["-n", "11", "-a", "system", "-a", "masu", "--resume", "runs.jsonl"];
    let (_, message, code) = compare_in(folder.path(), &[&other[..], &command].concat());
    assert_eq!(code, 2);
    assert!(message.contains("rounds.fixed was 10 and is 11"), "{message}");
}

#[test]
fn a_full_disk_is_reported_and_what_is_there_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (_, message, code) = compare_in(
        folder.path(),
        &["-n", "1", "-a", "system", "--json", "/dev/full", "--", "true"],
    );
    assert_eq!(code, 2);
    assert!(message.contains("No space left") && message.contains("start again"), "{message}");
    // A disk of 16 KiB in a namespace of this test's own: full after some runs.
    let masu = env!("CARGO_BIN_EXE_masu");
    let arguments = "-n 40 -a system --seed 3 -- true";
    let script = format!(
        "mount -t tmpfs -o size=16k none disk || exit 99; \
         {masu} compare --json disk/runs {arguments} 2> said; code=$?; \
         cp disk/runs runs; exit $code"
    );
    fs::create_dir(folder.path().join("disk")).unwrap();
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.current_dir(folder.path()).env_remove("LD_PRELOAD").stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = fs::read_to_string(folder.path().join("said")).unwrap_or_default();
    if said.is_empty() {
        eprintln!("skipped: this machine lets nobody mount inside a namespace of their own");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left") && said.contains("--resume"), "{said}");
    let before = order(&folder.path().join("runs"));
    assert!((1..40).contains(&before.len()), "{before:?}");
    let mut resumed = vec!["--resume", "runs"];
    resumed.extend(arguments.split(' '));
    let (_, said, code) = compare_in(folder.path(), &resumed);
    assert_eq!(code, 0, "{said}");
    let after = order(&folder.path().join("runs"));
    assert_eq!((after.len(), &after[..before.len()]), (40, before.as_slice()));
}

#[test]
fn names_are_kept_out_of_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["-n", "1", "-a", "system", "--redact=hush", "--json", "r", "--", "echo", "hush"];
    let (page, said, code) = compare_in(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    let results = fs::read_to_string(folder.path().join("r")).unwrap();
    assert!(!results.contains("hush") && results.contains("[redacted]"), "{results}");
    assert!(!page.contains("hush"), "{page}");
}
