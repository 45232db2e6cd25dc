//! `masu run`: the program is alone with its caller, and under the allocator asked for.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::programs::static_program;
use crate::{masu, printed};

#[test]
fn the_exit_code_is_the_programs() {
    for code in [0, 1, 2, 125, 255] {
        let script = format!("exit {code}");
        let status = masu(&["run", "--", "sh", "-c", &script]).status().unwrap();
        assert_eq!(status.code(), Some(code));
    }
}

#[test]
fn a_signal_that_ends_the_program_is_seen_by_the_caller() {
    let status = masu(&["run", "--", "sh", "-c", "kill -USR1 $$"]).status().unwrap();
    assert_eq!(status.signal(), Some(Signal::USR1.as_raw()));
}

#[test]
fn a_signal_sent_to_masu_reaches_the_program() {
    let script = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child =
        masu(&["run", "--", "sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "caught");
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn a_reader_that_leaves_ends_the_program_as_without_masu() {
    let mut child = masu(&["run", "--", "yes"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::PIPE.as_raw()));
}

#[test]
fn input_and_output_are_the_programs_own() {
    let mut child = masu(&["run", "--", "sh", "-c", "cat; echo aside >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\0two\n\xff").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"one\0two\n\xff");
    assert_eq!(output.stderr, b"aside\n", "masu itself says nothing");
}

#[test]
fn the_program_runs_under_masu_by_default() {
    let mapped = |arguments: &[&str]| printed(&mut masu(arguments)).contains("/libmasu-");
    assert!(mapped(&["run", "--", "cat", "/proc/self/maps"]));
    assert!(mapped(&["run", "cat", "/proc/self/maps"]));
    assert!(!mapped(&["run", "-a", "system", "--", "cat", "/proc/self/maps"]));
}

#[test]
fn options_of_the_program_stay_its_own() {
    let said = printed(&mut masu(&["run", "sh", "-c", "echo $0 $*", "-a", "--", "-n"]));
    assert_eq!(said, "-a -- -n\n");
}

#[test]
fn a_preload_of_the_user_is_kept_behind_ours() {
    // The C library is loaded anyway, so preloading it changes nothing but the variable.
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let own = maps.split_whitespace().find(|word| word.ends_with("/libc.so.6")).unwrap();
    let mut command = masu(&["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
    let value = printed(command.env("LD_PRELOAD", own));
    let (first, rest) = value.trim_end().split_once([':', ' ']).unwrap();
    assert!(first.contains("/libmasu-glibc-"), "{value}");
    assert_eq!(rest, own);
}

#[test]
fn a_static_program_still_runs_under_the_systems_malloc() {
    let folder = tempfile::tempdir().unwrap();
    let program = static_program(folder.path());
    let said = printed(&mut masu(&["run", "-a", "system", program.to_str().unwrap()]));
    assert_eq!(said, "[1, 2]\n");
}
