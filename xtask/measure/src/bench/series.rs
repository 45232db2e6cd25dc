//! The two parts of a record, each measured as one suite: one file of results, one order of runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use masu_lab::compare::Destination;
use masu_lab::plan::Mallocs;
use masu_lab::{Catalogue, CompareOptions, Comparison, Event, Plan, Stop, Suite, compare};

use super::builds::{self, Library, Patterns};
use super::figures::{FLOOR, Figures};
use super::pattern::Pattern;
use super::{Bench, Request, programs, suite, table};
use xtask::{commands, files};

pub(super) fn patterns(
    bench: &mut Bench,
    request: &Request,
    chosen: Vec<Pattern>,
    made: &Patterns,
    library: &Library,
) -> Result<()> {
    let text = suite::text(request, &chosen, &made.program, bench.rounds)?;
    let file = folder()?.join("patterns.toml");
    files::write(&file, text)?;
    let catalogue = builds::catalogue(library, vec![made.floor.clone()]);
    let plan = plan(&Suite::read(&file)?, &catalogue)?;
    let smallest = request.measures_smallest().then(|| Pattern::unscaled("true", ""));
    let is_first = smallest.is_some();
    let all = smallest.into_iter().chain(chosen).collect();
    let mut figures = measure(bench, all, &plan, "patterns")?;
    if is_first {
        bench.smallest = Some(figures.remove(0));
    }
    bench.patterns = figures;
    Ok(())
}

pub(super) fn programs(
    bench: &mut Bench,
    suite: &Suite,
    counting: &Path,
    library: &Library,
) -> Result<()> {
    let plan = plan(suite, &builds::catalogue(library, Vec::new()))?;
    let page = folder()?.join("count");
    bench.asked = programs::count(&plan, counting, &page)?;
    let all =
        plan.cases.iter().map(|case| Pattern::unscaled(&case.name, programs::GROUP)).collect();
    bench.programs = measure(bench, all, &plan, "programs")?;
    Ok(())
}

fn folder() -> Result<PathBuf> {
    let folder = commands::target_folder()?.join("bench");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder)
}

fn plan(suite: &Suite, catalogue: &Catalogue) -> Result<Plan> {
    let mut mallocs = |_| Mallocs { catalogue: catalogue.clone(), ..Mallocs::default() };
    Ok(Plan::make(suite, &mut mallocs)?)
}

fn measure(
    bench: &mut Bench,
    patterns: Vec<Pattern>,
    plan: &Plan,
    name: &str,
) -> Result<Vec<Figures>> {
    let compared = compared(plan, name)?;
    bench.seeds.push(compared.header.seed);
    let labels: Vec<String> = bench.variants.iter().map(|one| one.label.clone()).collect();
    let mut tables = compared.tables.into_iter();
    let figures = patterns.into_iter().map(|pattern| {
        let table = tables.next().with_context(|| format!("{} has no table", pattern.name))?;
        Ok(Figures::of(pattern, &labels, table))
    });
    figures.collect()
}

/// Makes the runs of the plan, which are kept in `target/bench/NAME.jsonl`.
pub(crate) fn compared(plan: &Plan, name: &str) -> Result<Comparison> {
    let results = folder()?.join(format!("{name}.jsonl"));
    let options =
        CompareOptions { results: Destination::New(results.clone()), ..CompareOptions::default() };
    let compared = compare(plan, &options, &Stop::on_signals()?, &mut show)?;
    println!("every run is in {}", results.display());
    if compared.stopped {
        bail!("stopped; the runs made so far are in {}", results.display());
    }
    Ok(compared)
}

fn show(event: Event<'_>) {
    match event {
        Event::LeftOut { case, left_out } if left_out.label == FLOOR => {
            println!("{case}: without a floor, which may hold too little: {}", left_out.reason);
        }
        Event::LeftOut { case, left_out } => {
            println!("{case}: without {}: {}", left_out.label, left_out.reason);
        }
        Event::Finished { case, summary } => println!("{}: {}", case.name, table::line(summary)),
        _ => {}
    }
}
