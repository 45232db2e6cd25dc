//! `masu diagnose -p PID --attach` as a guest in someone's process: whatever ends masu, the process goes on.

use std::process::{Command, Output};

use crowd::Crowd;
use serde_json::Value;

use crate::guest::Folder;
use crate::masu;

mod crowd;

fn signal(name: &str, pid: &str) {
    let status = Command::new("kill").args([name, pid]).status();
    assert!(status.expect("kill starts").success());
}

fn diagnosis(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("stopped at every system call"), "{said}");
    serde_json::from_slice(&output.stdout).expect("a diagnosis is JSON")
}

#[test]
fn a_process_that_is_killed_ends_the_diagnosis() {
    let mut target = Crowd::new("turns");
    let masu = target.attached();
    // Threads take a turn only when all are attached to.
    target.turn();
    signal("-KILL", &target.pid());
    // A busy parent does not wait for its child: the child stays, and has ended all the same.
    let diagnosis = diagnosis(&masu.wait_with_output().unwrap());
    let not_seen = diagnosis["not_seen"].to_string();
    assert!(not_seen.contains("the process ended after"), "{not_seen}");
}

#[test]
fn a_user_who_may_not_attach_gets_the_reason_and_a_remedy() {
    let mut target = Crowd::new("turns");
    let refused = |output: Output, part: &str| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(part), "{part}: {said}");
    };
    let attach = ["diagnose", "--attach", "--for", "10ms", "-p"];
    // Another tracer is there already.
    let mut first = target.attached();
    let tracer = target.tracer();
    refused(masu(&attach).arg(target.pid()).output().unwrap(), &format!("({tracer}) traces it"));
    first.kill().unwrap();
    first.wait().unwrap();
    // A sandbox forbids tracing.
    let folder = Folder::new();
    let mut sandboxed = Command::new(folder.sandbox());
    sandboxed.args(["ptrace", "--"]).arg(env!("CARGO_BIN_EXE_masu"));
    refused(sandboxed.args(attach).arg(target.pid()).output().unwrap(), "outside the sandbox");
    // The process belongs to another user.
    if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(folder.masu());
        let output = nobody.args(attach).arg(target.pid()).current_dir("/").output().unwrap();
        refused(output, "try as its user, or as root");
    }
    target.turn();
}
