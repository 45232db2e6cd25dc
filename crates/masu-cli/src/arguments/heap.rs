//! The arguments of `masu heap`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use masu_lab::heap::{Shape, What};

use super::{Program, pid};

/// Heap profiles: the callers that hold memory
#[derive(Debug, Args)]
#[command(
    override_usage = "masu heap [OPTIONS] -- PROGRAM [ARGS…]\n       masu heap show FILE | -p PID\n       masu heap diff OLD NEW"
)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = include_str!("help/heap.txt").trim_end())]
pub(crate) struct Heap {
    #[command(subcommand)]
    pub(crate) command: Option<HeapCommand>,
    #[command(flatten)]
    pub(crate) view: View,
    #[command(flatten)]
    pub(crate) program: Program,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HeapCommand {
    Show(HeapShow),
    Diff(HeapDiff),
}

/// One profile: a table, a flame graph, or a file for other tools
#[derive(Debug, Args)]
#[command(override_usage = "masu heap show [OPTIONS] FILE\n       masu heap show [OPTIONS] -p PID")]
#[command(after_help = "\
Examples:
  masu heap show /tmp/heap.4711.0.pb
  masu heap show -p 4711 -o heap.svg
  masu heap show --of allocated --format folded heap.pb | flamegraph.pl")]
pub(crate) struct HeapShow {
    /// A profile
    #[arg(value_name = "FILE", required_unless_present = "pid")]
    pub(crate) file: Option<PathBuf>,
    /// Ask this process for its profile of now
    #[arg(short, long, alias = "process", value_name = "PID", value_parser = pid)]
    #[arg(conflicts_with = "file")]
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) view: View,
}

/// The difference of two profiles: more and less
#[derive(Debug, Args)]
#[command(override_usage = "masu heap diff [OPTIONS] OLD NEW")]
#[command(after_help = "\
Examples:
  masu heap diff heap.4711.0.pb heap.4711.1.pb
  masu heap diff --of allocated before.pb after.pb -o change.svg")]
pub(crate) struct HeapDiff {
    /// The profile to start from
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// The profile to compare with it
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    #[command(flatten)]
    pub(crate) view: View,
}

#[derive(Debug, Args)]
pub(crate) struct View {
    /// live or allocated: blocks not freed yet, or all blocks ever
    #[arg(long, value_name = "WHICH", default_value = "live")]
    pub(crate) of: Which,
    /// Count blocks instead of bytes
    #[arg(long)]
    pub(crate) blocks: bool,
    /// text, folded, svg, speedscope or pprof [default: what the name of --output ends in, else text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Shape>,
    /// Write to this file, replacing it, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Which {
    Live,
    Allocated,
}

impl View {
    pub(crate) fn what(&self) -> What {
        match (self.of, self.blocks) {
            (Which::Live, false) => What::LiveBytes,
            (Which::Live, true) => What::LiveBlocks,
            (Which::Allocated, false) => What::AllocatedBytes,
            (Which::Allocated, true) => What::AllocatedBlocks,
        }
    }
}
