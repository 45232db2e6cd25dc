//! The arguments of `masu code`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Machine code: how scattered a process's is; load objects densely
#[derive(Debug, Args)]
#[command(override_usage = "masu code map -p PID\n       masu code load [OPTIONS] FILE|DIR…")]
#[command(after_help = include_str!("help/code.txt").trim_end())]
pub(crate) struct Code {
    #[command(subcommand)]
    pub(crate) command: CodeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CodeCommand {
    Map(CodeMap),
    Load(CodeLoad),
}

/// How scattered a running process's machine code is
#[derive(Debug, Args)]
#[command(override_usage = "masu code map -p PID")]
#[command(after_help = "\
Example:
  masu code map -p 4711")]
pub(crate) struct CodeMap {
    /// The process
    #[arg(short, long, value_name = "PID", value_parser = super::pid)]
    pub(crate) pid: u32,
}

/// Load objects into a code arena of this process; call a function
#[derive(Debug, Args)]
#[command(override_usage = "masu code load [OPTIONS] FILE|DIR… [-- ARGS…]")]
#[command(after_help = include_str!("help/code-load.txt").trim_end())]
pub(crate) struct CodeLoad {
    /// Objects (cc -c), static libraries, folders of them
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Call this function and print its result
    #[arg(long, value_name = "NAME")]
    pub(crate) call: Option<String>,
    /// Into the lowest 2 GiB, which -fno-pic code needs
    #[arg(long)]
    pub(crate) low: bool,
    /// The arguments of the function
    #[arg(value_name = "ARGS", last = true, requires = "call", hide = true)]
    pub(crate) words: Vec<OsString>,
}
