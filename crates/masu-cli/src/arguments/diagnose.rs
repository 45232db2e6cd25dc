//! The arguments of `masu diagnose`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use masu_lab::Spec;

use super::{size, time};

/// Run a program once and say why it is slow
#[derive(Debug, Args)]
#[command(override_usage = "masu diagnose [OPTIONS] -- PROGRAM [ARGS…]\n       \
                            masu diagnose -p PID [--attach] [--for TIME] [--json]")]
#[command(after_help = "\
Runs the program once, counts what it asks of the kernel, looks at its threads
and its memory, and says what that costs on this machine: calls times price.
Its output is read and not shown. The cause stands first; below each finding
what to do, from allocating less over settings to another malloc. Needs no
rights. Ctrl-C ends the program and judges what was seen. If it is short and
memory may have a part in it, it runs again with what the findings name, another
malloc and some settings, for up to a minute; --once leaves that out. With
--inside it runs twice more: on masu with statistics, and with its requests for
memory counted. With --prove the settings and mallocs among the remedies run
against it, as in masu compare. How many runs that takes is said before.

With -p: a process that runs already, from /proc and samples of the CPU clock.
It is not stopped, and its system calls are not counted. With --attach they are:
it is stopped at every one, and so is what it starts then; what calls the
kernel often is many times slower for that long. It is let go at the end, by
Ctrl-C, and whatever else ends masu.

Examples:
  masu diagnose -- sed -rf script.sed input
  masu diagnose --prove -- ./job input
  masu diagnose -o why.html -- ./job
  masu diagnose -p 1234
  masu diagnose -p 1234 --attach --for 2s")]
pub(crate) struct Diagnose {
    /// The variant to run it under
    #[arg(short = 'a', long = "allocator", value_name = "VARIANT", default_value = "system")]
    #[arg(conflicts_with = "pid")]
    pub(crate) variant: Spec,
    /// A process that runs already
    #[arg(short, long, value_name = "PID", conflicts_with = "words")]
    pub(crate) pid: Option<u32>,
    /// With -p: count its system calls; stops it at each
    #[arg(long)]
    pub(crate) attach: bool,
    /// With -p: look for so long [default: 5s]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) patience: Option<Duration>,
    /// Two more runs: who frees, what lives, how often
    #[arg(long, conflicts_with = "pid")]
    pub(crate) inside: bool,
    /// It writes to a terminal, as by hand, and not a pipe
    #[arg(long, conflicts_with = "pid")]
    pub(crate) terminal: bool,
    /// Run settings and mallocs it names against it
    #[arg(long, conflicts_with = "pid")]
    pub(crate) prove: bool,
    /// Run it once and no more, whatever that leaves open
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
