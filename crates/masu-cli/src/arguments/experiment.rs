//! The arguments of `masu experiment`.

use std::path::PathBuf;

use clap::Args;

/// Field reports, each rerun here by one command
#[derive(Debug, Args)]
#[command(override_usage = "masu experiment NAME… [OPTIONS]\n       \
                            masu experiment --all [OPTIONS]\n       \
                            masu experiment [--clean]")]
#[command(after_help = include_str!("help/experiment.txt").trim_end())]
pub(crate) struct Experiment {
    /// The experiments [default: list them]
    #[arg(value_name = "NAME", conflicts_with_all = ["all", "clean"])]
    pub(crate) names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "clean")]
    pub(crate) all: bool,
    /// Small sizes, few rounds: minutes
    #[arg(long, conflicts_with_all = ["full", "clean"])]
    pub(crate) quick: bool,
    /// The report's sizes: up to hours
    #[arg(long, conflicts_with = "clean")]
    pub(crate) full: bool,
    /// As little as shows that everything works
    #[arg(long, hide = true, conflicts_with_all = ["quick", "full", "clean"])]
    pub(crate) tiny: bool,
    /// Folder of pages and results
    #[arg(short, long, value_name = "DIR", default_value = "masu-experiments")]
    pub(crate) output: PathBuf,
    /// Folder of built programs and inputs [default: masu/experiments in the user's cache]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// A checkout of masu [default: the one around this folder]
    #[arg(long, value_name = "DIR", conflicts_with = "clean")]
    pub(crate) source: Option<PathBuf>,
    /// Install missing packages with apt-get, as root on Debian
    #[arg(long, conflicts_with = "clean")]
    pub(crate) install: bool,
    /// Remove the cache
    #[arg(long)]
    pub(crate) clean: bool,
}
