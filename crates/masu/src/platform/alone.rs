//! Tests that change the whole process, or end it: each runs this program again, for a process of its own.
//!
//! It relies on the name of a closure's type, which has the name of the test around it.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test program uses its own part of this"
)]

extern crate std;

use std::any::type_name;
use std::process::Command;
use std::string::String;

/// Set in a process that is for one test.
const VARIABLE: &str = "TEST_IS_ALONE";

/// The command that runs the test with this whole name, without the crate's, even if it is ignored.
pub(crate) fn again(test: &str) -> Command {
    let mut program = Command::new(std::env::current_exe().expect("this program has a file"));
    program.args(["--exact", test, "--include-ignored", "--nocapture"]);
    program
}

/// Whether this process is for the test around the closure. If not, runs the test in one that is, where it must pass.
pub(crate) fn is_alone<F>(_inside: &F) -> bool {
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let (_, test) = type_name::<F>().split_once("::").expect("a crate's name is in front");
    let test = test.strip_suffix("::{{closure}}").expect("a closure of the test");
    passes(again(test).env(VARIABLE, "1"));
    false
}

/// Runs a command of [`again`], whose test must pass; returns what it printed.
pub(crate) fn passes(command: &mut Command) -> String {
    let output = command.output().expect("this program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}{errors}");
    printed
}

/// Has the rest of a test run in a process of its own.
macro_rules! run_alone {
    () => {
        if !alone::is_alone(&|| ()) {
            return;
        }
    };
}

pub(crate) use run_alone;
