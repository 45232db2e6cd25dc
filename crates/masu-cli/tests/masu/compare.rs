//! `masu compare`: its measures and its refusals.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::suite::order;
use crate::{failure, masu, printed, unread};

/// The fewest runs that make a comparison.
const FEW: [&str; 6] = ["-n", "2", "-a", "system", "-a", "masu"];

fn compare(more: &[&str]) -> String {
    printed(&mut masu(&[&["compare"], &FEW[..], more].concat()))
}

#[test]
fn whoever_starts_it_may_ignore_how_children_end() {
    let masu = masu(&[&["compare"], &FEW[..], &["--", "true"]].concat());
    let mut starter = Command::new("env");
    starter.arg("--ignore-signal=CHLD").arg(masu.get_program()).args(masu.get_args());
    printed(starter.env_remove("LD_PRELOAD"));
}

#[test]
fn the_page_has_a_row_and_a_verdict_for_each_variant() {
    let page = compare(&["--", "sh", "-c", "printf 'he%s' llo"]);
    for label in ["system", "masu"] {
        let lines = page.lines().filter(|line| line.split(' ').next() == Some(label));
        assert_eq!(lines.count(), 2, "{page}");
    }
    assert!(page.contains("the reference"), "{page}");
    assert!(page.contains("too few runs for a verdict"), "{page}");
    assert!(!page.contains("hello"), "the program's output is not shown: {page}");
}

#[test]
fn every_malloc_found_but_the_hardened_one_takes_part_when_none_is_named() {
    let page = printed(&mut masu(&["compare", "-n", "1", "--", "sh", "-c", "echo"]));
    let list = printed(&mut masu(&["list"]));
    let found = list.lines().take_while(|line| !line.is_empty()).skip(1);
    for line in found.filter(|line| line.contains(" glibc ")) {
        let name = line.split(' ').next().unwrap();
        let takes_part = page.lines().any(|line| line.split(' ').next() == Some(name));
        assert_eq!(takes_part, name != "masu-secure", "{name}: {page}");
    }
}

#[test]
fn a_criterion_is_kept_and_its_verdict_is_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("runs.jsonl");
    let decided = |criterion: &str, runs: &str| {
        let arguments =
            ["compare", "-n", runs, "-a", "system", "-a", "masu", "--decide", criterion];
        let mut masu = masu(&arguments);
        masu.arg("--json").arg(&results).args(["--", "sh", "-c", ":"]);
        let output = masu.output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    };
    // Bounds that no machine misses, however busy it is.
    let (page, code) = decided("masu if wall <= 1000 and wall >= 0.001", "10");
    assert_eq!(code, 0, "{page}");
    assert!(page.contains("Decided         masu: wall ×"), "{page}");
    assert_eq!(printed(&mut masu(&["report", results.to_str().unwrap()])), page);
    let (page, code) = decided("masu if wall <= 0.0001", "10");
    assert!(code == 1 && page.contains("Decided         not masu: wall ×"), "{code} {page}");
    let (page, code) = decided("masu if wall <= 1000", "2");
    assert!(code == 2 && page.contains("could not be judged"), "{code} {page}");
}

#[test]
fn a_gate_fails_though_nobody_reads_the_page() {
    // Memory decides, which no other load changes.
    let arguments = "compare -n 8 -a system --primary peak_rss -P s=1M,32M --fail-if-slower 1 \
                     -- dd status=none if=/dev/zero of=/dev/null bs={s} count=1";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let output = unread(&mut masu(&arguments));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("Gate failed"), "{output:?}");
}

#[test]
fn a_file_alone_is_enough_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("runs.jsonl");
    let path = results.to_str().unwrap();
    let whole = compare(&["--json", path, "--", "sh", "-c", "echo --json"]);
    let text = fs::read_to_string(&results).unwrap();
    // Cut off after the first timed run that counts.
    let is_run = |line: &&str| {
        line.starts_with("{\"record\":\"run\"") && line.contains("\"replaced\":false")
    };
    let end = text.find(text.lines().find(is_run).unwrap()).unwrap();
    let end = end + text[end..].find('\n').unwrap() + 1;
    fs::write(&results, &text[..end]).unwrap();
    let output = masu(&["compare", "--resume", path]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Going on with: masu compare -n 2"), "{said}");
    assert!(said.contains("1 run is there already"), "{said}");
    assert!(output.status.success(), "{said}");
    let resumed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(resumed.lines().next(), whole.lines().next());
    assert_eq!(order(&results).len(), 4);
    let (message, code) = failure(&["compare", "--redact", "--json", path, "-n1", "--", "no-such"]);
    assert_eq!(code, 2, "{message}");
    compare(&["--redact", "--json", path, "--", "true"]);
    let (message, code) = failure(&["compare", "--resume", path]);
    assert!(code == 2 && message.contains("does not say with which words"), "{message}");
}

#[test]
fn an_error_in_a_later_round_keeps_the_table_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (log, results) = (folder.path().join("log"), folder.path().join("runs.jsonl"));
    let prepare = format!("echo >> '{0}'; [ $(wc -l < '{0}') -lt 9 ]", log.display());
    let results = results.to_str().unwrap();
    for more in [&["--json", results][..], &[]] {
        let asked = ["compare", "-n", "9", "-a", "system", "-a", "masu", "--prepare", &prepare];
        let output = masu(&[&asked, more, &["--", "true"]].concat()).output().unwrap();
        let (page, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(page.contains("of 18 runs were made; they are what is shown"), "{page}");
        assert!(said.contains("the prepare command"), "{said}");
        assert_eq!(said.contains("To go on: masu compare --resume"), !more.is_empty(), "{said}");
        std::fs::remove_file(&log).unwrap();
    }
}

#[test]
fn a_warm_up_that_does_not_end_is_said_to_be_waited_for() {
    let arguments = ["compare", "-a", "system", "--", "sleep", "1000"];
    let mut command = masu(&arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.find(|line| line.contains("Waiting for the warm-up under `system`"));
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success() && said.is_some());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(
        rest.last().is_some_and(|line| line.contains("before anything was measured")),
        "{rest:?}"
    );
}

#[test]
fn a_budget_without_room_for_a_verdict_is_refused_with_one_that_has() {
    let arguments =
        ["compare", "--budget", "1s", "-a", "system", "-a", "masu", "--", "sleep", "0.5"];
    let (said, code) = failure(&arguments);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("of the 8 rounds that a verdict takes") && said.contains("(--budget)"),
        "{said}"
    );
}

#[test]
fn a_variant_that_fails_is_named_with_what_it_said_first() {
    let script = "[ -z \"$LD_PRELOAD\" ] || { echo first words >&2; echo more >&2; exit 3; }";
    let page = compare(&["--", "sh", "-c", script]);
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("returned 3 where the reference returned 0 and said: first words"),
        "{page}"
    );
}

#[test]
fn a_narrow_page_is_not_wider_than_it_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("runs.jsonl");
    let path = results.to_str().unwrap();
    compare(&["--json", path, "--", "sh", "-c", ":"]);
    for columns in ["40", "80", "120"] {
        let page = printed(masu(&["report", path]).env("COLUMNS", columns));
        let widest = page.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{widest}: {page}");
        assert!(page.contains("peak RSS") && page.contains("faults"), "{page}");
    }
}

#[test]
fn a_copy_that_has_no_room_is_said_to_have_none() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("tree")).unwrap();
    fs::write(place.path().join("tree/file"), "x").unwrap();
    // The limit on the length of a file stands in for a full disk.
    let script =
        "trap '' XFSZ; ulimit -f 0; exec \"$0\" compare -n 1 -P x=1,2 --scratch=tree -- echo {x}";
    let (said, code) = said_by(script, place.path());
    assert!(code == Some(2) && said.contains("File too large"), "{said}");
}

#[test]
fn a_copy_ends_though_a_child_of_cp_goes_on() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("tree")).unwrap();
    // The child has the standard error of `cp` until masu ends.
    let cp = "#!/bin/sh\necho no room >&2\n(while kill -0 $PPID; do sleep 0.1; done) &\nexit 1\n";
    fs::write(place.path().join("cp"), cp).unwrap();
    let script = "chmod +x cp; PATH=$PWD:$PATH exec timeout -s KILL 60 \"$0\" compare -n 1 -P x=1,2 \
                  --scratch=tree -- echo {x}";
    let (said, code) = said_by(script, place.path());
    assert!(code == Some(2) && said.contains("no room"), "{said}");
}

/// The complaints of a shell that becomes masu (`$0`) in `place`, and how it ended.
fn said_by(script: &str, place: &Path) -> (String, Option<i32>) {
    let mut bash = Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_masu")]).current_dir(place);
    let output = bash.env_remove("LD_PRELOAD").output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

#[test]
fn runs_of_several_tables_are_announced_as_those_of_a_variant() {
    let each = ["compare", "--each", "x=1,2", "-n", "2", "-a", "system", "-a", "masu"];
    let output = masu(&[&each[..], &["--", "echo", "{x}"]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    let expected = "2 tables, 4 warm-ups, then 2 runs of each variant. That is too few";
    assert!(said.contains(expected), "{said}");
}
