//! The arguments as they stand on the command line, before anything is looked up.
//!
//! `masu --help` is written out here, because the commands stand in groups; a test holds it against the commands that
//! exist.

mod code;
mod diagnose;
mod experiment;
mod heap;
mod tune;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
pub(crate) use code::{Code, CodeCommand, CodeLoad, CodeMap};
pub(crate) use diagnose::Diagnose;
pub(crate) use experiment::Experiment;
pub(crate) use heap::{Heap, HeapCommand, HeapDiff, HeapShow, View, Which};
use masu_lab::report::{Format, width};
use masu_lab::server::LatencyRate;
use masu_lab::suite::Entry;
use masu_lab::summary::Criterion;
use masu_lab::{Hooks, Limits, Measure, Parameter, Scratch, Spec, suite};
pub(crate) use tune::Tune;

use crate::line_wrap;

const HELP: &str = include_str!("arguments/help/masu.txt").trim_ascii_end();

/// The arguments of this process. On a narrow terminal its own page fits that too.
pub(crate) fn read() -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    if width() < HELP_COLUMNS {
        let usage = "masu COMMAND [OPTIONS]\n       [-- PROGRAM ARGS…]";
        command = command.help_template(line_wrap::fit(HELP, width())).override_usage(usage);
    }
    Arguments::from_arg_matches(&command.try_get_matches()?)
}

/// The columns that the help takes.
const HELP_COLUMNS: usize = 80;

#[derive(Debug, Parser)]
#[command(name = "masu", version, help_template = HELP, max_term_width = 80)]
#[command(about = "is memory what makes your program slow? Find out, prove it, fix it")]
#[command(override_usage = "masu COMMAND [OPTIONS] [-- PROGRAM ARGS…]")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Diagnose(Box<Diagnose>),
    Compare(Box<Compare>),
    Tune(Box<Tune>),
    Run(Run),
    Top(Top),
    Heap(Heap),
    Code(Code),
    Doctor(Doctor),
    List(List),
    Report(Report),
    Experiment(Experiment),
    #[command(name = "man")]
    Manual(Manual),
    Completions(Completions),
}

/// Allocators and their settings: which is better, and how sure
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
#[command(override_usage = "masu compare [OPTIONS] -- PROGRAM [ARGS…]\n       \
                            masu compare [OPTIONS] --suite FILE")]
#[command(after_help = "\
Examples:
  masu compare -a system -a glibc:top_pad=64M,trim_threshold=64M -- ./job
  masu compare -P bin=./old,./new --fail-if-slower 3 -- {bin} input
Exit: 0 done, 1 gate failed, 2 usage or failure, 130 stopped")]
#[command(after_long_help = include_str!("arguments/help/compare.txt").trim_end())]
pub(crate) struct Compare {
    /// A variant; the first is the reference; repeats
    ///
    /// A single one is compared with the system's malloc. Without this option: every malloc found, or
    /// with -P only the system's.
    #[arg(short = 'a', long = "allocator", value_name = "VARIANT")]
    #[arg(help_heading = WHAT)]
    pub(crate) variants: Vec<Spec>,
    /// A row for each value of {NAME}; repeats
    ///
    /// Write a comma that belongs to a value as `\,`. With --suite: another value for one of its
    /// [values].
    #[arg(short = 'P', long = "parameter", value_name = "NAME=A,B", help_heading = WHAT)]
    pub(crate) parameters: Vec<Parameter>,
    /// A table for each value of {NAME}; repeats
    #[arg(long, value_name = "NAME=A,B", conflicts_with = "suite", help_heading = WHAT)]
    pub(crate) each: Vec<Parameter>,
    /// Read workloads, variants and options from FILE
    #[arg(long, value_name = "FILE", help_heading = WHAT)]
    #[arg(conflicts_with_all = ["words", "setup", "prepare", "cleanup", "scratch"])]
    pub(crate) suite: Option<PathBuf>,
    /// Only this workload of the suite; repeats
    #[arg(long, value_name = "NAME", requires = "suite", conflicts_with = "words")]
    #[arg(hide_short_help = true, help_heading = WHAT)]
    pub(crate) only: Vec<String>,
    /// Timed runs of each variant [default: up to 30]
    ///
    /// By default runs end when each difference is shown, or can be no larger than 2 %. At most 30, or as many as take
    /// about a minute, or 12 if these take longer. With --decide or --fail-if-slower: always that many.
    #[arg(short = 'n', long, value_name = "RUNS", value_parser = count)]
    #[arg(conflicts_with_all = ["budget", "precision"], help_heading = LONG)]
    pub(crate) runs: Option<u32>,
    /// As many runs as this time takes: 90s, 10m
    ///
    /// Ends earlier when every interval is narrow. Warm-ups come on top.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = LONG)]
    pub(crate) budget: Option<Duration>,
    /// Run until intervals are ± this narrow [default: 1]
    ///
    /// In per cent of the estimate; within 10 minutes if there is no --budget.
    #[arg(long, value_name = "PCT", value_parser = share, help_heading = LONG)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) precision: Option<f64>,
    #[command(flatten)]
    pub(crate) around: Around,
    #[command(flatten)]
    pub(crate) server: Server,
    /// The measure that decides [default: wall]
    ///
    /// wall, user, sys, cpu, peak_rss, minor_faults, major_faults, switches; of servers: throughput,
    /// latency_p50, latency_p99, latency_p999, cpu_per_request.
    #[arg(long, value_name = "MEASURE", value_parser = measure, help_heading = RESULT)]
    pub(crate) primary: Option<Measure>,
    /// Exit 1 if a variant is surely slower by this much
    ///
    /// In per cent of the reference, by the primary measure. An undecided comparison passes
    /// with a warning; one with too few runs to be judged at all, or too many
    /// that failed, does not: exit 2.
    #[arg(long, value_name = "PCT", value_parser = per_cent, help_heading = RESULT)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) fail_if_slower: Option<f64>,
    /// Fix a criterion first: 'masu if wall <= 0.97'
    ///
    /// Conditions on the intervals of the ratios to the reference: any measure, <= or >=, joined by `and`. The
    /// criterion is kept in FILE. The exit code follows it: 0 if all of it is shown to hold, 1 if not, 2 if there is
    /// no verdict.
    #[arg(long, value_name = "CRITERION", conflicts_with = "fail_if_slower")]
    #[arg(help_heading = RESULT)]
    pub(crate) decide: Option<Criterion>,
    /// Write every run to FILE, a line of JSON each
    #[arg(long, value_name = "FILE", conflicts_with = "resume", help_heading = RESULT)]
    pub(crate) json: Option<PathBuf>,
    /// Go on with the comparison that FILE holds
    ///
    /// Alone, without a program: with the options that it was begun with.
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    pub(crate) resume: Option<PathBuf>,
    /// Leave out the names of user, host and home, or TEXT
    #[arg(long, value_name = "TEXT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", help_heading = RESULT, hide_short_help = true)]
    pub(crate) redact: Vec<String>,
    /// Repeat the order of runs of an earlier comparison
    #[arg(long, value_name = "N", value_parser = seed, help_heading = RESULT)]
    #[arg(hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// This page; --help for all options
    #[arg(short, long, action = ArgAction::Help, help_heading = RESULT)]
    pub(crate) help: Option<bool>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required_unless_present_any = ["suite", "resume"])]
    #[arg(trailing_var_arg = true)]
    #[arg(hide = true)]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = AROUND)]
pub(crate) struct Around {
    /// Shell command once before all runs
    #[arg(long, value_name = "CMD")]
    pub(crate) setup: Option<OsString>,
    /// Shell command before every run
    #[arg(long, value_name = "CMD")]
    pub(crate) prepare: Option<OsString>,
    /// Shell command once after all runs
    #[arg(long, value_name = "CMD")]
    pub(crate) cleanup: Option<OsString>,
    /// A fresh folder for each run, or a copy of DIR
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "")]
    pub(crate) scratch: Option<OsString>,
    /// Kill runs that take longer: 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Kill runs that hold more: 512M, 2G
    ///
    /// Resident bytes of the whole process tree. Without this option: three quarters of the memory
    /// that is available.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Draw another placement in masu's heap for each run
    ///
    /// No single lucky layout decides then. The size of the environment and the kernel's random addresses vary in any
    /// case. For variants and programs that run on masu.
    #[arg(long, hide_short_help = true)]
    pub(crate) shuffle_heap: bool,
}

impl Around {
    /// A workload of these words, with all this around it.
    pub(crate) fn entry(self, words: Vec<OsString>) -> Entry {
        let Around { setup, prepare, cleanup, scratch, timeout, memory_limit, shuffle_heap } = self;
        Entry {
            name: words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default(),
            command: words,
            limits: Limits { time: timeout, memory_bytes: memory_limit },
            hooks: Hooks { setup, prepare, cleanup },
            scratch: match scratch {
                None => Scratch::None,
                Some(folder) if folder.is_empty() => Scratch::Empty,
                Some(folder) => Scratch::CopyOf(folder.into()),
            },
            shuffle_heap,
            ..Entry::default()
        }
    }
}

/// Servers, kept warm while load comes in bursts.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = SERVER)]
pub(crate) struct Server {
    /// A server: keep it warm, load it in bursts
    ///
    /// A server runs under each variant, side by side, at {port} and with its data in {dir}; see
    /// docs/servers.md.
    #[arg(long, requires = "load", conflicts_with_all = ["suite", "scratch"])]
    pub(crate) server: bool,
    /// The load of a burst; URLs repeat, or @FILE
    #[arg(long, value_name = "URL|CMD", requires = "server")]
    pub(crate) load: Vec<String>,
    /// Ready when this answers [default: the load's URL]
    ///
    /// HOST:PORT must accept a connection, a URL must answer with a status below 400, a command must
    /// return 0.
    #[arg(long, value_name = "URL|HOST:PORT|CMD", requires = "server", hide_short_help = true)]
    pub(crate) ready: Option<String>,
    /// The longest that a start may take [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "server")]
    #[arg(hide_short_help = true)]
    pub(crate) ready_within: Option<Duration>,
    /// Post this file to the URLs
    #[arg(long, value_name = "FILE", requires = "server", hide_short_help = true)]
    pub(crate) load_body: Option<PathBuf>,
    /// Connections to its URLs [default: 8]
    #[arg(long, value_name = "N", requires = "server", hide_short_help = true)]
    pub(crate) connections: Option<usize>,
    /// Requests a second, answered or not
    ///
    /// With it, CPU time per request decides. Without it, each connection sends its next request as
    /// soon as it has an answer, and throughput decides.
    #[arg(long, value_name = "R", requires = "server", hide_short_help = true)]
    pub(crate) rate: Option<f64>,
    /// Unlimited for throughput, then R a second for latencies
    ///
    /// Each burst has both halves. R may be a share of the reference's throughput: 50%.
    #[arg(long, value_name = "R", requires = "server", conflicts_with = "rate")]
    #[arg(hide_short_help = true)]
    pub(crate) latency_rate: Option<LatencyRate>,
    /// The longest a request may take [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "server")]
    #[arg(hide_short_help = true)]
    pub(crate) request_timeout: Option<Duration>,
    /// Length of a burst [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "server")]
    #[arg(hide_short_help = true)]
    pub(crate) burst: Option<Duration>,
    /// For servers that cannot run side by side
    ///
    /// Each run is a start, a warm-up and a burst.
    #[arg(long, requires = "server", hide_short_help = true)]
    pub(crate) one_at_a_time: bool,
}

/// The groups of `masu compare --help`.
const WHAT: &str = "What to compare";
const LONG: &str = "Number of runs";
const AROUND: &str = "Around the runs";
const RESULT: &str = "Verdict and output";
const SERVER: &str = "Servers";

fn measure(text: &str) -> Result<Measure, String> {
    suite::parse_measure(text)
}

fn count(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "write a whole number from 1 on".to_owned())
}

fn pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write the number of a process, such as 4711".to_owned())
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write the number that an earlier page shows".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    suite::parse_duration(text).ok_or_else(|| "write a time such as 90s, 10m or 1.5h".to_owned())
}

/// From a tenth of a second on: programs write their pages no more often.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = suite::parse_duration(text).filter(|time| *time >= Duration::from_millis(100));
    interval.ok_or_else(|| "write a time from 100ms on, such as 2s or 1m".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    suite::parse_memory(text).ok_or_else(|| format!("write {}", suite::MEMORY))
}

/// Per cent above zero, as a share.
fn share(text: &str) -> Result<f64, String> {
    let share = per_cent(text)? / 100.0;
    if share > 0.0 { Ok(share) } else { Err(PER_CENT.to_owned()) }
}

fn per_cent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    number.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(|| PER_CENT.to_owned())
}

const PER_CENT: &str = "write a number of per cent such as 3 or 1.5";

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

/// The memory of a program that runs on masu, live
#[derive(Debug, Args)]
#[command(override_usage = "masu top [-p PID] [--once] [--json] [--interval TIME]")]
#[command(after_help = include_str!("arguments/help/top.txt").trim_end())]
pub(crate) struct Top {
    /// The process
    #[arg(short, long, value_name = "PID", value_parser = pid)]
    pub(crate) pid: Option<u32>,
    /// Print the page once, as text, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// A line of JSON each time, until the process ends
    #[arg(long)]
    pub(crate) json: bool,
    /// Time between two readings: 500ms, 2s, 1m
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,
}

/// Saved results as text, Markdown, CSV, HTML, JSON
#[derive(Debug, Args)]
#[command(override_usage = "masu report [OPTIONS] FILE…\n       masu report [OPTIONS] - < FILE")]
#[command(after_help = include_str!("arguments/help/report.txt").trim_end())]
pub(crate) struct Report {
    /// Results files; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// text, markdown, csv, html or json [default: what the name of --output ends in, else text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write to this file, replacing it, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The machine: its limits, its permissions, the price of its kernel's services
#[derive(Debug, Args)]
#[command(override_usage = "masu doctor [--json]")]
#[command(after_help = include_str!("arguments/help/doctor.txt").trim_end())]
pub(crate) struct Doctor {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Allocators found, and those that a package would install
#[derive(Debug, Args)]
#[command(override_usage = "masu list [OPTIONS]")]
pub(crate) struct List {
    /// Every setting of a variant, and its form for each malloc
    #[arg(long)]
    pub(crate) settings: bool,
    /// Every option of masu, the allocator, and those of glibc that it takes
    #[arg(long, conflicts_with = "settings")]
    pub(crate) options: bool,
    /// As JSON: the allocators, or with --options the options
    #[arg(long, conflicts_with = "settings")]
    pub(crate) json: bool,
}

/// The manual pages
#[derive(Debug, Args)]
#[command(override_usage = "masu man [COMMAND]\n       masu man --output DIR")]
#[command(after_help = "\
On a terminal the page is shown by `man`; into a file or a pipe its source is
written.

Examples:
  masu man compare
  masu man --output ~/.local/share/man/man1")]
pub(crate) struct Manual {
    /// The command [default: masu's own page]
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub(crate) command: Option<String>,
    /// Write every page into this folder
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Completions for a shell
#[derive(Debug, Args)]
#[command(override_usage = "masu completions SHELL")]
#[command(after_help = "\
Examples:
  masu completions bash > ~/.local/share/bash-completion/completions/masu
  masu completions zsh > ~/.zfunc/_masu     # a folder in zsh's fpath
  masu completions fish > ~/.config/fish/completions/masu.fish")]
pub(crate) struct Completions {
    /// The shell whose script to write
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
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
        let default = format!("[default: up to {}]", masu_lab::suite::DEFAULT_ROUNDS);
        assert!(page.unwrap().to_string().contains(&default));
    }

    #[test]
    fn the_long_help_names_every_measure() {
        let mut command = Arguments::command();
        let page = command.find_subcommand_mut("compare").unwrap().render_long_help().to_string();
        let words: Vec<&str> = page.split([',', '.', ' ', '\n', ';']).collect();
        for measure in masu_lab::Measure::ALL {
            assert!(words.contains(&measure.name()), "{}: {page}", measure.name());
        }
    }

    #[test]
    fn the_help_page_names_every_command() {
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            let (line, aside) = (format!("\n  {name} "), format!("; {name}: "));
            assert!(
                HELP.contains(&line) || HELP.contains(&aside),
                "{} is missing",
                command.get_name()
            );
        }
    }
}
