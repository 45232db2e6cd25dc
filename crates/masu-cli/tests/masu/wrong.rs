//! Wrong input and broken surroundings, from end to end: every message in one file, to be read as a
//! user meets them, and nothing left behind after any of it.
//!
//! `SNAPSHOTS=overwrite cargo test -p masu-cli` overwrites the file; the diff is the review. `suite.rs` tests the
//! effects of a full disk, an interrupt and a resumption on results.

mod surroundings;

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use snapbox::{Data, file};

use self::surroundings::Surroundings;
use crate::{masu, unread};

/// The commands that are refused, or that end a comparison, with their messages. The test reads the commands from here:
/// a new command is a line `$ masu …`, and `SNAPSHOTS=overwrite` writes its message.
const TRANSCRIPT: &str = include_str!("text/wrong.txt");

#[test]
fn what_is_wrong_is_reported_with_what_to_do() {
    let surroundings = Surroundings::new().with_programs();
    let mut transcript = String::new();
    for line in TRANSCRIPT.lines() {
        if line.starts_with('#') {
            writeln!(transcript, "{line}\n").unwrap();
        }
        let Some(case) = line.strip_prefix("$ masu ") else { continue };
        let script = format!("'{}' {case}", env!("CARGO_BIN_EXE_masu"));
        let output = surroundings.shell(&script).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{case}");
        let code = output.status.code().expect(case);
        let is_run = case.starts_with("run ");
        assert!(if is_run { (125..=127).contains(&code) } else { code == 2 }, "{case}: {code}");
        writeln!(transcript, "$ masu {case}\n{}=> {code}\n", surroundings.message(&said)).unwrap();
        surroundings.assert_nothing_is_left(case);
    }
    let assert = snapbox::Assert::new().action_env("SNAPSHOTS");
    assert.eq(Data::from(transcript), file!["text/wrong.txt"]);
}

#[test]
fn a_run_that_ends_otherwise_is_no_error_and_is_named() {
    let surroundings = Surroundings::new();
    let page = |script: &str| {
        let pair = ["compare", "-n", "3", "-a", "system", "-a", "masu", "--", "sh", "-c", script];
        let output = surroundings.masu(&pair).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        surroundings.assert_nothing_is_left(script);
        let page = String::from_utf8(output.stdout).unwrap();
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let killed = page("kill -SEGV $$");
    assert!(killed.contains("was ended by signal 11 (SIGSEGV)"), "{killed}");
    let failing = page("exit 3");
    assert!(failing.contains("returned 3"), "{failing}");
    let changing = page("echo >> ran; exit $(($(wc -l < ran) % 2))");
    assert!(changing.contains("not repeatable") && changing.contains("returned 1"), "{changing}");
    let output = page("echo $$");
    assert!(output.contains("not repeatable"), "{output}");
    let behind = page("sleep 1000 >/dev/null 2>&1 & :");
    assert!(behind.contains("still ran and were killed"), "{behind}");
}

#[test]
fn a_reader_that_left_does_not_change_how_a_command_ends() {
    let stops = "kill -INT $PPID; sleep 1000";
    for (arguments, expected) in [
        (vec!["diagnose", "--once", "--", "sh", "-c", stops], 130),
        (vec!["heap", "--blocks", "--", "sh", "-c", "exit 3"], 3),
    ] {
        let output = unread(&mut masu(&arguments));
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {output:?}");
    }
}

#[test]
fn standard_streams_that_are_closed_or_full_end_nothing_in_a_panic() {
    let surroundings = Surroundings::new();
    let results = "compare -n 1 -a system -a masu --json runs.jsonl -- true";
    let commands = [
        results,
        "compare --help",
        "report runs.jsonl",
        "report runs.jsonl --format html",
        "list",
        "list --settings",
        "list --options",
        "list --options --json",
        "man compare",
        "completions bash",
        "--version",
    ];
    let programs = ["compare -n 1 -a system -- cat", "run -- cat /dev/null"];
    for command in commands.iter().chain(&programs) {
        for (streams, expected) in [
            ("| head -n 1 >/dev/null; exit \"${PIPESTATUS[0]}\"", 0),
            ("2>&1 | true; exit \"${PIPESTATUS[0]}\"", 0),
            ("<&-", 0),
            (">&-", 0),
            ("2>&-", 0),
            ("<&- >&- 2>&-", 0),
            (">/dev/full", 2),
            (">/dev/null 2>/dev/full", 0),
        ] {
            let script = format!("'{}' {command} {streams}", env!("CARGO_BIN_EXE_masu"));
            let output = surroundings.shell(&script).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code();
            let is_help = ["compare --help", "--version"].contains(command);
            let is_program = command.starts_with("run ");
            if !(is_help || is_program) {
                assert_eq!(code, Some(expected), "{script}: {said}");
            }
            assert!(code.is_some() && !said.contains("panicked"), "{script}: {said}");
            if expected == 2 && !is_help && !is_program {
                assert!(said.contains("No space left"), "{script}: {said}");
            }
            if *command == results {
                let runs = fs::read_to_string(surroundings.path("runs.jsonl")).unwrap();
                assert!(runs.contains("\"record\":\"summary\""), "{script}: it ended early");
            }
            surroundings.assert_nothing_is_left(&script);
        }
    }
}

#[test]
fn what_steers_a_terminal_is_shown_in_errors_and_not_obeyed() {
    let surroundings = Surroundings::new();
    for words in [["run", "--", "/no\u{1b}[31msuch"], ["list", "--no\u{1b}[31msuch", "x"]] {
        let mut command = surroundings.masu(&words);
        command.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(said.contains("such") && !said.contains("\u{1b}[31msuch"), "{said:?}");
    }
}

#[test]
fn an_empty_environment_is_enough() {
    let surroundings = Surroundings::new();
    let mut command = surroundings.masu(&["compare", "-n", "1", "-a", "system", "-a", "masu"]);
    let mark = surroundings.mark();
    let path = std::env::var_os("PATH").unwrap();
    command.args(["--", "true"]).env_clear().env("PATH", path).env(mark.0, mark.1);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_results_file_that_was_cut_anywhere_is_shown_or_refused() {
    let surroundings = Surroundings::new();
    let line = "compare -n 2 -a system -a masu --json runs.jsonl -- true";
    let arguments: Vec<&str> = line.split(' ').collect();
    assert_eq!(surroundings.masu(&arguments).output().unwrap().status.code(), Some(0));
    let whole = fs::read(surroundings.path("runs.jsonl")).unwrap();
    // Without its last line break alone, the file is whole.
    for length in (0..whole.len() - 1).step_by(whole.len() / 40) {
        fs::write(surroundings.path("cut.jsonl"), &whole[..length]).unwrap();
        let output = surroundings.masu(&["report", "cut.jsonl"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let page = String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => assert!(page.contains("Cut off"), "{length}: {page}"),
            Some(2) => assert!(said.starts_with("masu: cut.jsonl, "), "{length}: {said}"),
            code => panic!("{length}: {code:?}: {said}"),
        }
    }
}

#[test]
fn results_stay_until_there_are_new_ones_and_resume_alone_takes_no_option() {
    let surroundings = Surroundings::new();
    let run = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = surroundings.masu(&arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run("compare -n 1 -a system --timeout 10ms --json runs.jsonl -- sleep 9");
    assert!(code == Some(2) && !surroundings.path("runs.jsonl").exists(), "{said}");
    let read = || fs::read(surroundings.path("runs.jsonl")).unwrap();
    assert_eq!(run("compare -n 1 -a system --json runs.jsonl -- true").0, Some(0));
    let before = read();
    let (code, said) = run("compare -n 1 -a system --timeout 10ms --json runs.jsonl -- sleep 9");
    assert!(code == Some(2) && read() == before, "{said}");
    for option in ["--decide", "--seed"] {
        let (code, said) = run(&format!("compare --resume runs.jsonl {option}=1"));
        let refused = code == Some(2) && said.contains(option);
        assert!(refused && read() == before, "{code:?}: {said}");
    }
    assert_eq!(run("compare -n 1 -a system --json runs.jsonl -- echo").0, Some(0));
    assert!(
        String::from_utf8_lossy(&read()).starts_with("{\"record\":\"header\"") && read() != before
    );
}

#[test]
fn whoever_ends_masu_leaves_neither_folders_nor_processes() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let surroundings = Surroundings::new();
        // SIGHUP is ignored where these tests run under nohup. A grandchild in a session of its own, as a daemon would be.
        let script = format!(
            "exec env --default-signal=HUP '{}' compare -n 100000 -a system -a masu --scratch --json runs.jsonl \
             -- sh -c 'setsid sleep 1000 & sleep 0.01'",
            env!("CARGO_BIN_EXE_masu")
        );
        let mut command = surroundings.shell(&script);
        command.stdout(Stdio::piped());
        let mut child = surroundings.in_a_group(command).spawn().unwrap();
        surroundings.wait_for(&mut child, "runs.jsonl", "\"record\":\"run\"");
        kill_process_group(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{signal:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        surroundings.assert_nothing_is_left(&format!("{signal:?}"));
    }
}

#[test]
fn every_run_gets_the_input_that_was_spooled_and_nothing_is_left_of_it() {
    let surroundings = Surroundings::new();
    let script = format!(
        "head -c 3000000 /dev/zero | '{}' compare -n 1 -a system -a masu --json runs.jsonl -- cat",
        env!("CARGO_BIN_EXE_masu")
    );
    let output = surroundings.shell(&script).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let results = fs::read_to_string(surroundings.path("runs.jsonl")).unwrap();
    let runs: Vec<&str> =
        results.lines().filter(|line| line.starts_with("{\"record\":\"run\"")).collect();
    let all = runs.iter().all(|run| run.contains("\"bytes\":3000000"));
    assert!(runs.len() >= 2 && all, "{runs:?}");
    surroundings.assert_nothing_is_left("spooled");
}

/// The programs that tests need are kept apart from the programs under test.
#[test]
fn the_mark_finds_what_is_left() {
    let surroundings = Surroundings::new();
    let (name, value) = surroundings.mark();
    let mut cat = Command::new("cat");
    let mut child =
        cat.env(name, value).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // `spawn` may return before the kernel has laid down the new program's environment. An answer shows that it has.
    child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    assert_eq!(surroundings.left_processes().len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(surroundings.left_processes(), [""; 0]);
}
