//! The arguments of `masu tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use masu_lab::Spec;
use masu_lab::tune::{Form, Goal};

use super::{Around, Program, RESULT, WHAT, time};

/// The smallest change worth making, within a budget
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
#[command(override_usage = "masu tune [OPTIONS] -- PROGRAM [ARGS…]")]
#[command(after_help = "\
Examples:
  masu tune --budget 60s -- ./job input
  masu tune --budget 1h --primary peak_rss --as systemd -- ./nightly
Exit: 0 done, 2 usage or failure, 130 stopped")]
#[command(after_long_help = include_str!("help/tune.txt").trim_end())]
pub(crate) struct Tune {
    /// The time it may take: 60s, 5m, 1h
    ///
    /// It ends earlier when more runs would decide nothing more.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5m")]
    #[arg(help_heading = WHAT)]
    pub(crate) budget: Duration,
    /// The measure to reduce: wall, cpu or peak_rss
    #[arg(long, value_name = "MEASURE", default_value = "wall", help_heading = WHAT)]
    pub(crate) primary: Goal,
    /// Try this instead of masu's own candidates; repeats
    #[arg(short = 'a', long = "allocator", value_name = "VARIANT")]
    #[arg(help_heading = WHAT)]
    pub(crate) variants: Vec<Spec>,
    #[command(flatten)]
    pub(crate) around: Around,
    /// Lines to paste: env, systemd, docker, kubernetes
    ///
    /// Repeats. Without this option: the first three.
    #[arg(long = "as", value_name = "FORM", help_heading = RESULT)]
    pub(crate) forms: Vec<Form>,
    /// As JSON
    #[arg(long, help_heading = RESULT)]
    pub(crate) json: bool,
    /// Write it here: .html, .md, .txt or .json
    #[arg(short, long, value_name = "FILE", help_heading = RESULT)]
    pub(crate) output: Option<PathBuf>,
    /// This page; --help for all options
    #[arg(short, long, action = ArgAction::Help, help_heading = RESULT)]
    pub(crate) help: Option<bool>,
    #[command(flatten)]
    pub(crate) program: Program,
}
