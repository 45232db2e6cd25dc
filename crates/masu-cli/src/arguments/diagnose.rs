//! The arguments of `masu diagnose`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use masu_lab::Spec;

use super::{pid, size, time};

/// Run a program and say why it is slow
#[derive(Debug, Args)]
#[command(override_usage = "masu diagnose [OPTIONS] -- PROGRAM [ARGS…]\n       \
                            masu diagnose -p PID [--attach] [--for TIME] [--json]")]
#[command(after_help = include_str!("help/diagnose.txt").trim_end())]
pub(crate) struct Diagnose {
    /// The variant to run it under
    #[arg(short = 'a', long = "allocator", value_name = "VARIANT", default_value = "system")]
    #[arg(conflicts_with = "pid")]
    pub(crate) variant: Spec,
    /// A running process
    #[arg(short, long, value_name = "PID", value_parser = pid, conflicts_with = "words")]
    pub(crate) pid: Option<u32>,
    /// With -p: count its system calls; stops it at each
    #[arg(long)]
    pub(crate) attach: bool,
    /// With -p: observe for this long [default: 5s]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) patience: Option<Duration>,
    /// Two more runs: threads that free, lifetimes, rates
    #[arg(long, conflicts_with = "pid")]
    pub(crate) inside: bool,
    /// Give it a terminal to write to, not a pipe
    #[arg(long, conflicts_with = "pid")]
    pub(crate) terminal: bool,
    /// Then measure the settings and mallocs that it names
    #[arg(long, conflicts_with = "pid")]
    pub(crate) prove: bool,
    /// Run it once only, even if that leaves something open
    #[arg(long, conflicts_with_all = ["pid", "inside", "prove"])]
    pub(crate) once: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write it here: .html, .md, .txt or .json
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Kill it when it takes longer: 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "pid")]
    pub(crate) timeout: Option<Duration>,
    /// Kill it when it holds more: 512M, 2G
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "pid")]
    pub(crate) memory_limit: Option<u64>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required_unless_present_any = ["pid", "attach", "patience"])]
    #[arg(trailing_var_arg = true)]
    #[arg(hide = true)]
    pub(crate) words: Vec<OsString>,
}
