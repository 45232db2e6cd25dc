//! `masu run`: this process becomes the program, under one variant.
//!
//! Because it is an `exec` and nothing stays behind, exit code, signals, standard input and output
//! are the program's own by construction.

use std::convert::Infallible;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::{Error, Variant, Workload};

/// Replaces this process by the program of `workload` under `variant`. The program inherits
/// standard input, output and error as they are; `workload.input` is not used.
///
/// # Errors
///
/// Returns only when the program could not be started.
pub fn launch(workload: &Workload, variant: &Variant) -> Result<Infallible, Error> {
    let source = command(workload, variant).exec();
    Err(refused(workload, source))
}

/// The command of one run, with the variant's environment; standard streams are inherited.
pub(crate) fn command(workload: &Workload, variant: &Variant) -> Command {
    let mut command = Command::new(&workload.program.path);
    // A program that looks at its own name (busybox, compilers) sees what the user typed.
    command.arg0(&workload.arguments[0]);
    command.args(&workload.arguments[1..]);
    command.envs(variant.changes_here());
    command
}

/// What to say when the kernel would not start the program.
pub(crate) fn refused(workload: &Workload, source: io::Error) -> Error {
    Error::System { doing: format!("starting {}", workload.program.path.display()), source }
}
