//! The field reports, rerun: each experiment measures what an engineer once measured, with today's programs on this
//! machine, and says whether today's machine agrees.
//!
//! Relies on the engine for every run, on suite files for the workloads, and on [`diagnose`](mod@crate::diagnose) for
//! the lab's unaided diagnosis. The hard idea is the meaning of "agrees": a report is taken apart into `Claim`s, each
//! is compared with an interval of today's figures, and the sentence on top of the page counts them. No part of that
//! sentence is written beforehand.

use std::path::PathBuf;

use crate::page::{Block, Figure, Form, Page, Sheet};
use crate::report;
use masu_run::Error;

mod brk;
mod build;
mod claim;
mod code;
mod field_report;
mod format;
mod found;
mod kept_files;
mod outcome;
mod page_file;
mod parallel;
mod quote;
mod search;
mod series;
mod workbench;

pub use claim::{Agreement, Verdict};
use claim::{Claim, Expect, Held};
use field_report::FieldReport;
use outcome::Outcome;
use page_file::Figures;
use series::Series;
pub use workbench::{Asked, Depth, Missing, News, Workbench, source_above};

#[derive(Debug)]
pub struct Experiment {
    /// The experiment's name on the command line, which also begins the names of its files.
    pub name: &'static str,
    /// The subject of the experiment, on one line.
    pub about: &'static str,
    pub title: &'static str,
    /// The duration of the experiment at each depth, the smallest first.
    takes: [&'static str; 4],
    /// The content of the report, a file of `experiments/reports`.
    report: &'static str,
    /// Prepares the programs and inputs, and measures; [`Workbench::miss`] notes missing parts, and the rest is run.
    run: fn(&mut Workbench<'_>) -> Result<Measured, Error>,
}

/// The figures, and the lab's unaided diagnosis of the slow configuration.
type Measured = (Box<dyn Figures>, Vec<Block>);

impl Experiment {
    /// The duration of the experiment at `depth` on two cores, builds included.
    pub fn takes(&self, depth: Depth) -> &'static str {
        depth.choose(self.takes)
    }
}

pub const ALL: [&Experiment; 5] =
    [&quote::QUOTE, &parallel::PARALLEL, &brk::BRK, &code::CODE, &search::SEARCH];

pub fn find(name: &str) -> Option<&'static Experiment> {
    ALL.into_iter().find(|one| one.name == name)
}

/// The paths of an experiment's pages, and their verdict.
#[derive(Debug, Clone)]
pub struct Written {
    pub html: PathBuf,
    /// The page as Markdown; its plots lie beside it.
    pub markdown: PathBuf,
    /// The verdict on whether today's machine agrees.
    pub verdict: Verdict,
    /// Whether nothing could be measured; the pages say why.
    pub is_empty: bool,
}

/// Runs `experiment` and writes its pages into the folder of `bench`; a stopped experiment's pages have the figures so
/// far. A stop before the first run is [`Error::Stopped`].
pub fn perform(experiment: &Experiment, bench: &mut Workbench<'_>) -> Result<Written, Error> {
    let (figures, diagnosis) = (experiment.run)(bench)?;
    let report = FieldReport::parse(experiment.report);
    let outcome = report.outcome(experiment.name, &*figures, diagnosis);
    if bench.is_empty_handed() {
        return Err(Error::Stopped);
    }
    bench.put_aside()?;
    let verdict = outcome.verdict.clone();
    let page = bench.page(experiment, outcome);
    let [html, markdown] = ["html", "md"].map(|end| bench.output(end));
    workbench::write(&html, &page.render(Form::Html, experiment.name))?;
    workbench::write(&markdown, &page.render(Form::Markdown, experiment.name))?;
    for figure in page.figures() {
        let plot = markdown.with_file_name(figure.file(experiment.name));
        workbench::write(&plot, &report::standalone(&figure.svg))?;
    }
    Ok(Written { html, markdown, verdict, is_empty: figures.is_empty() })
}

#[cfg(test)]
mod tests {
    use super::page_file::Known;
    use super::*;

    struct Nothing;

    impl Figures for Nothing {
        fn known(&self, _: &str) -> Option<Known> {
            Some(Known::Number(None))
        }

        fn is_empty(&self) -> bool {
            true
        }
    }

    #[test]
    fn without_figures_the_page_is_made_and_nothing_is_claimed() {
        for experiment in ALL {
            let report = FieldReport::parse(experiment.report);
            let outcome = report.outcome(experiment.name, &Nothing, Vec::new());
            assert!(outcome.claims.is_empty() && outcome.now.is_empty(), "{}", experiment.name);
            assert!(outcome.change.is_empty() && outcome.then.len() >= 2, "{}", experiment.name);
            assert_eq!(outcome.verdict.agreement, Agreement::Undecided);
            assert!(outcome.verdict.sentence.contains("nothing could be measured"));
        }
    }

    #[test]
    fn every_figure_of_a_claim_is_known() {
        let check = |experiment: &Experiment, figures: &dyn Figures| {
            FieldReport::parse(experiment.report).check(figures);
        };
        check(&quote::QUOTE, &quote::Measured::default());
        check(&parallel::PARALLEL, &parallel::Measured::default());
        check(&code::CODE, &code::Measured::default());
    }
}
