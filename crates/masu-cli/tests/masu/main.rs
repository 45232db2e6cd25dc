//! The `masu` command from outside, as a user and a script use it.
//!
//! Relies on the programs every Debian has (`sh`, `cat`, `env`) and on nothing that is installed
//! beside: allocators other than the system's and masu's own may be missing.

mod action;
mod attach;
mod code;
mod compare;
mod diagnose;
mod doctor;
mod documented;
#[path = "../../../masu-lab/tests/ending/mod.rs"]
mod ending;
mod experiment;
mod guest;
mod heap;
mod laid_out;
mod manual;
mod programs;
mod report;
mod run;
mod server;
mod suite;
mod text;
mod top;
mod tune;
mod wrong;

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The `masu` that was built, in an environment that is the same on every machine.
fn masu(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_masu"));
    command.args(arguments).env_remove("LD_PRELOAD").env_remove("GLIBC_TUNABLES");
    command.env("COLUMNS", "80").env("NO_COLOR", "1");
    command
}

/// The output of a command that succeeds.
fn printed(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

/// The same, as JSON.
fn json(command: &mut Command) -> Value {
    serde_json::from_str(&printed(command)).expect("it prints JSON")
}

/// The outcome of a command whose output nobody reads.
fn unread(command: &mut Command) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let command = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

fn failure(arguments: &[&str]) -> (String, i32) {
    let output = masu(arguments).output().expect("masu starts");
    let code = output.status.code().expect("masu ends by itself");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "failures go to standard error");
    (String::from_utf8(output.stderr).expect("messages are text"), code)
}
