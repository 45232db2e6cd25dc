//! Tests that change the whole process: each runs this program again, for a process of its own.

extern crate std;

use std::process::Command;
use std::string::String;

/// Runs the ignored test `check`, by its whole name without the crate's, in a process of its own.
pub(crate) fn passes(check: &str) {
    let program = std::env::current_exe().expect("this program has a file");
    let output = Command::new(program).args(["--exact", check, "--ignored"]).output();
    let output = output.expect("this program starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}
