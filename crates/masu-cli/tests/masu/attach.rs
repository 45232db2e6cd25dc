//! `masu diagnose -p PID --attach` as a guest in someone's process: whatever ends masu, the process goes on.

use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::{fs, io};

use serde_json::Value;

use crate::ending::wait_until;
use crate::guest::Folder;
use crate::masu;

mod crowd;

/// A shell that writes lines without end, killed at the end of the test.
struct Target {
    child: Child,
    lines: ChildStdout,
}

impl Target {
    fn new() -> Target {
        let mut child = Command::new("sh")
            .args(["-c", "while :; do echo line; done"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let lines = child.stdout.take().expect("it is piped");
        Target { child, lines }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The thread that traces it; `0` where none does.
    fn tracer(&self) -> String {
        let status = fs::read_to_string(Path::new("/proc").join(self.pid()).join("status"));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        line.unwrap_or_default().trim().to_owned()
    }

    /// Reads the shell's output until it is more than a pipe and the shell can hold, so that the shell must be running.
    fn goes_on(&mut self) {
        let mut taken = (&mut self.lines).take(256 << 10);
        let bytes = io::copy(&mut taken, &mut io::sink()).expect("a pipe can be read");
        assert_eq!(bytes, 256 << 10, "it has ended");
    }

    fn attached(&mut self) -> Child {
        let mut command = masu(&["diagnose", "--attach", "--for", "1h", "--json", "-p"]);
        let command = command.arg(self.pid()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let masu = command.spawn().expect("masu starts");
        wait_until("it is attached to", || self.tracer() != "0");
        self.goes_on();
        masu
    }

    /// Checks that the shell is no longer traced, and works.
    fn runs_free(mut self) {
        wait_until("it is let go", || self.tracer() == "0");
        self.goes_on();
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
fn its_calls_are_counted_and_it_goes_on_when_masu_is_interrupted() {
    for name in ["-INT", "-TERM"] {
        let mut target = Target::new();
        let masu = target.attached();
        signal(name, &masu.id().to_string());
        let diagnosis = diagnosis(&masu.wait_with_output().unwrap());
        let calls = &diagnosis["facts"]["calls"];
        // 256 KiB of lines of five bytes, of which a pipe may have held 64 before.
        assert!(calls["counts"]["write"].as_u64().is_some_and(|it| it > 30_000), "{diagnosis}");
        assert!(calls["small_writes"]["pipes"].as_u64().is_some_and(|it| it > 30_000), "{calls}");
        assert!(diagnosis["not_seen"][1].as_str().unwrap().contains("children"), "{diagnosis}");
        target.runs_free();
    }
}

#[test]
fn a_process_that_is_killed_ends_the_diagnosis() {
    let mut target = Target::new();
    let masu = target.attached();
    signal("-KILL", &target.pid());
    // A busy parent does not wait for its child: the child stays, and has ended all the same.
    let diagnosis = diagnosis(&masu.wait_with_output().unwrap());
    let not_seen = diagnosis["not_seen"][0].as_str().unwrap();
    assert!(not_seen.contains("the process ended after"), "{not_seen}");
}

#[test]
fn a_user_who_may_not_attach_gets_the_reason_and_a_remedy() {
    let mut target = Target::new();
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
    target.goes_on();
}
