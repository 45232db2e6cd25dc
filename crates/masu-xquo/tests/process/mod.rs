//! xquo as a program: bytes in, bytes out.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

/// xquo with these arguments.
pub(crate) fn xquo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xquo"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The output of a command for this input.
pub(crate) fn outcome(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program is there");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    thread::scope(|scope| {
        // A program that ends early does not read everything.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("it can be waited for")
    })
}
