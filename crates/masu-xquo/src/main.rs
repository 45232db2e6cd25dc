//! `xquo`: quotes records for bash, one line each, at the speed of a pipe.
//!
//! It passes standard input through [`quote`] to standard output. Relies on masu-chunk to read, quote and write at
//! once. Quoting a byte needs no record, so the input is cut anywhere, records of any length pass through the same few
//! buffers, and the only state between two pieces is the last byte of the first.

mod arguments;
mod exit;
mod filter;
mod input;
mod manual;
mod output;
mod quote;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Printed};

/// masu is the allocator.
#[cfg(feature = "masu")]
#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return exit::of_usage(&error),
    };
    match arguments.printed() {
        Some(Printed::Manual) => exit::of(manual::print()),
        Some(Printed::Completions(shell)) => exit::of(manual::print_completions(shell)),
        None => exit::of(filter::run(&arguments)),
    }
}
