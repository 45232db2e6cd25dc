//! The arguments as they stand on the command line, before anything is looked up.
//!
//! Relies on clap for the grammar. The page `masu --help` prints is written out here, because the
//! commands stand in groups; a test holds it against the commands that exist.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, value_parser};
use masu_lab::Spec;
use masu_lab::report::Format;

const HELP: &str = "\
masu: is memory what makes your program slow? Find out, prove it, fix it.

{usage-heading} {usage}

Fix a program
  compare   Allocators and their settings: which is better, and how sure
  run       Run it under one variant (default masu)
Know the ground
  list      Allocators found; --settings: what a variant can set
  report    Saved results as text, Markdown, CSV, HTML, JSON
  help      This page, or the one of a command

{options}

A variant is ALLOCATOR[:NAME=VALUE,…], for example
  masu, system, jemalloc, /opt/lib/libmymalloc.so, glibc:top_pad=64M

Exit: 0 done, 2 usage or failure; run: the program's, 125–127 ours";

/// What was asked for.
#[derive(Debug, Parser)]
#[command(name = "masu", version, help_template = HELP, max_term_width = 80)]
#[command(override_usage = "masu COMMAND [OPTIONS] [-- PROGRAM ARGS…]")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, each with its own arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compare(Compare),
    Run(Run),
    List(List),
    Report(Report),
}

/// Allocators and their settings: which is better, and how sure
#[derive(Debug, Args)]
#[command(override_usage = "masu compare [OPTIONS] -- PROGRAM [ARGS…]")]
#[command(after_help = "\
Runs the program many times, the variants taking turns in random
order, and says which differences are real. The program's output is compared
and not shown; standard input is read once and given to every run.

Examples:
  masu compare -- sort --parallel=2 words.txt
  masu compare -a system -a glibc:top_pad=64M,trim_threshold=64M -- ./job
  masu compare -n 40 --json runs.jsonl -- python3 script.py < input")]
pub(crate) struct Compare {
    /// A variant to compare; repeat for more. The first is the reference; one alone is held
    /// against the system's malloc. Without: every malloc found
    #[arg(short = 'a', long = "allocator", value_name = "VARIANT")]
    pub(crate) variants: Vec<Spec>,
    /// Timed runs of each variant [default: 30]
    #[arg(short = 'n', long, value_name = "RUNS", value_parser = value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Write every run to this file, one line of JSON each
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Repeat the order of runs that an earlier comparison drew
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) program: Program,
}

/// Run a program under one variant (default masu)
#[derive(Debug, Args)]
#[command(override_usage = "masu run [-a VARIANT] -- PROGRAM [ARGS…]")]
#[command(after_help = "\
The program takes masu's place: its exit code, signals and streams are its own.
Exit: the program's; 125 masu failed, 126 it cannot be started, 127 not found

Examples:
  masu run -- ./server --port 8080
  masu run -a glibc:arena_max=2 -- python3 script.py")]
pub(crate) struct Run {
    /// The variant to run it under
    #[arg(short = 'a', long = "allocator", value_name = "VARIANT", default_value = "masu")]
    pub(crate) variant: Spec,
    #[command(flatten)]
    pub(crate) program: Program,
}

/// Saved results as text, Markdown, CSV, HTML, JSON
#[derive(Debug, Args)]
#[command(override_usage = "masu report [OPTIONS] FILE…")]
#[command(after_help = "\
The files are what `masu compare --json FILE` writes; one that is still being
written, or was cut off, is shown as far as it goes. Several files of the same
comparison, made on several machines or days, are shown together: counted,
never pooled.

CSV has a line for every run, in seconds and bytes; `counts` says whether the
run is among those that the medians rest on.

Examples:
  masu report runs.jsonl
  masu report laptop.jsonl server.jsonl -o both.html")]
pub(crate) struct Report {
    /// Results files
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// text, markdown, csv, html or json [default: what the name of --output ends in, else text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write to this file, replacing it, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Allocators found, and those a package would bring
#[derive(Debug, Args)]
#[command(override_usage = "masu list [OPTIONS]")]
pub(crate) struct List {
    /// Every setting a variant can have, and what it becomes for each malloc
    #[arg(long)]
    pub(crate) settings: bool,
}

/// The program and its arguments: everything from the first word that is not an option of masu.
#[derive(Debug, Args)]
pub(crate) struct Program {
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, hide = true)]
    pub(crate) words: Vec<OsString>,
}

impl Program {
    /// The program as it was named.
    pub(crate) fn name(&self) -> &OsStr {
        self.words.first().map_or(OsStr::new(""), OsString::as_os_str)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Arguments, HELP};

    #[test]
    fn the_grammar_holds() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_help_page_gives_the_default_that_the_lab_has() {
        let page = Arguments::command().find_subcommand_mut("compare").map(|it| it.render_help());
        let default = format!("[default: {}]", masu_lab::compare::DEFAULT_RUNS);
        assert!(page.unwrap().to_string().contains(&default));
    }

    #[test]
    fn the_help_page_names_every_command() {
        for command in Arguments::command().get_subcommands() {
            let line = format!("\n  {} ", command.get_name());
            assert!(HELP.contains(&line), "{} is missing", command.get_name());
        }
    }
}
