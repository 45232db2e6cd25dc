//! Processes of this machine, attached to: their counts, and that they go on afterwards. They are children of the
//! tracer's process, so no thread here may wait for a child while it is attached to: the kernel would take that for
//! waiting for its stops. The tests of the command have a process that ends in that time.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::super::Call;
use super::*;
use crate::execute::alone;
use crate::proc_files::Stat;

/// The time after which a test ends that has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A shell that says that it has begun and waits for a word to go on with its script.
fn shell(script: &str) -> Child {
    let mut child = Command::new("sh")
        .args(["-c", &format!("echo begun; read line; {script}; echo done; read line")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    assert_eq!(said(&mut child), "begun");
    child
}

/// The next line of the shell, byte for byte, because the bytes behind it belong to the next line.
fn said(child: &mut Child) -> String {
    let mut line = Vec::new();
    let output = child.stdout.as_mut().expect("it is piped");
    loop {
        let mut byte = [0];
        if output.read(&mut byte).expect("a pipe can be read") == 0 || byte[0] == b'\n' {
            return String::from_utf8(line).expect("it says text");
        }
        line.push(byte[0]);
    }
}

fn tell(child: &mut Child) {
    child.stdin.as_mut().expect("it is piped").write_all(b"go on\n").expect("it reads");
}

fn end(mut child: Child) {
    child.kill().expect("it is a child");
    child.wait().expect("it ends");
}

fn standing(child: &Child) -> Standing {
    let pid = Pid::try_from(child.id()).expect("numbers are small");
    Standing::of(pid, pid).expect("it is there")
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "in vain until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn calls_of_a_running_process_and_of_what_it_starts_are_counted_until_it_is_let_go() {
    let _alone = alone();
    let mut child = shell("echo one; echo two; (echo three); /bin/echo four");
    let attached = Attached::to(child.id()).expect("it is ours");
    assert_eq!(standing(&child).tracer, attached.thread);
    tell(&mut child);
    for expected in ["one", "two", "three", "four", "done"] {
        assert_eq!(said(&mut child), expected);
    }
    let Counted { calls, children } = attached.finish().expect("the kernel tells");
    assert_eq!(calls.total.of(Call::Write), 5, "{calls:?}");
    assert_eq!(calls.total.of_any(&[Call::Execve, Call::Execveat]), 1, "{calls:?}");
    assert_eq!(calls.processes, 3, "{calls:?}");
    assert!(calls.total.of(Call::Mmap) >= 1 && calls.stops >= 2 * 6, "{calls:?}");
    // The order of these calls by time is a matter of luck.
    assert_eq!(calls.kinds.len(), 8, "{:?}", calls.kinds);
    assert!(children.max_rss_bytes > 0, "{children:?}");
    // The process goes on by itself.
    assert_eq!(standing(&child).tracer, 0);
    tell(&mut child);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn one_that_is_dropped_lets_the_process_go() {
    let _alone = alone();
    let mut child = shell("echo free");
    drop(Attached::to(child.id()).expect("it is ours"));
    assert_eq!(standing(&child).tracer, 0);
    tell(&mut child);
    assert_eq!((said(&mut child), said(&mut child)), ("free".to_owned(), "done".to_owned()));
    end(child);
}

#[test]
fn a_stopped_process_stays_stopped_until_it_is_continued() {
    let _alone = alone();
    let mut child = shell("echo went on");
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(status.expect("kill starts").success());
    };
    let state = || Stat::of(&format!("/proc/{}", child.id())).and_then(|stat| stat.state());
    signal("-STOP");
    wait_until("it has stopped", || state() == Some('T'));
    let attached = Attached::to(child.id()).expect("it is ours");
    drop(attached);
    wait_until("it is stopped as before", || state() == Some('T') && standing(&child).tracer == 0);
    let attached = Attached::to(child.id()).expect("it is ours");
    signal("-CONT");
    tell(&mut child);
    assert_eq!(said(&mut child), "went on");
    drop(attached);
    end(child);
}

#[test]
fn a_traced_process_is_refused_with_the_name_of_the_tracer() {
    let _alone = alone();
    let child = shell("true");
    let attached = Attached::to(child.id()).expect("it is ours");
    let error = Attached::to(child.id()).expect_err("one can only").to_string();
    let tracer = format!("counting ({})", attached.thread);
    assert!(error.contains(&tracer) && error.contains(&child.id().to_string()), "{error}");
    drop(attached);
    let error = Attached::to(std::process::id()).expect_err("nobody can").to_string();
    assert!(error.contains("itself"), "{error}");
    end(child);
    assert!(matches!(Attached::to(u32::MAX), Err(Error::Ended { pid: u32::MAX })));
    assert!(matches!(Attached::to(4_000_000), Err(Error::Ended { .. })));
}

#[test]
fn processes_that_come_and_go_are_each_counted_once() {
    let _alone = alone();
    let mut child = shell("while read line; do (:) & (:) & wait; echo turn; done");
    tell(&mut child);
    for _ in 0..20 {
        let attached = Attached::to(child.id()).expect("it is ours");
        for _ in 0..5 {
            tell(&mut child);
            assert_eq!(said(&mut child), "turn");
        }
        let Counted { calls, .. } = attached.finish().expect("the kernel tells");
        assert_eq!((calls.processes, calls.total.of(Call::Write)), (11, 5), "{calls:?}");
    }
    end(child);
}

#[test]
fn what_a_status_says_and_what_yama_forbids() {
    let read = Standing::read("Name:\tx\nState:\tS (sleeping)\nTracerPid:\t12\n");
    assert_eq!((read.is_gone, read.tracer), (false, 12));
    let read = Standing::read("State:\tZ (zombie)\nTracerPid:\t0\n");
    assert_eq!((read.is_gone, read.tracer), (true, 0));
    for (scope, part) in [("1", "set it to 0"), ("2", "only root"), ("3", "starts again")] {
        assert!(forbidden_by(scope).is_some_and(|said| said.contains(part)), "{scope}");
    }
    assert_eq!((forbidden_by("0"), forbidden_by("")), (None, None));
}
