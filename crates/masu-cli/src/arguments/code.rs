//! The arguments of `masu code`.
//!
//! Relies on clap for the grammar, as its parent module does.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Machine code: how scattered a process's is; objects loaded densely
#[derive(Debug, Args)]
#[command(override_usage = "masu code map -p PID\n       masu code load [OPTIONS] FILE|DIR…")]
#[command(after_help = "\
Every OS page of code in use wants an entry of the instruction TLB, and code at
equal offsets competes for the same few sets of the caches: a JIT that makes a
library of every method gets slower the more it compiles. A code arena puts
objects densely instead, without a linker.

Examples:
  masu code map -p 4711
  masu code load square.o --call main")]
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
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: u32,
}

/// Load objects into a code arena of this process; call a function
#[derive(Debug, Args)]
#[command(override_usage = "masu code load [OPTIONS] FILE|DIR… [-- ARGS…]")]
#[command(after_help = "\
Says what the objects take and whether they load at all: an undefined symbol,
a relocation out of reach and the like are named with their place.

Symbols come from the objects themselves, then from static libraries, of which
what is needed is loaded (of libraries alone, all), then from this process:
libraries in LD_PRELOAD count. Initializers run. The function is called as
`int NAME(int argc, char **argv)`, in this process: load what you trust.

Examples:
  masu code load build/
  masu code load main.o libz.a --call main -- input.gz
  LD_PRELOAD=libm.so.6 masu code load waves.o --call check
  gdb --args masu code load f.o --call f")]
pub(crate) struct CodeLoad {
    /// Objects (cc -c), static libraries, folders of them
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Call this function and say what it returns
    #[arg(long, value_name = "NAME")]
    pub(crate) call: Option<String>,
    /// Into the lowest 2 GiB, which -fno-pic code needs
    #[arg(long)]
    pub(crate) low: bool,
    /// What the function gets as its arguments
    #[arg(value_name = "ARGS", last = true, requires = "call", hide = true)]
    pub(crate) words: Vec<OsString>,
}
