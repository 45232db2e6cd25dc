//! `masu tune`: the smallest change to a program's malloc that is worth making, within a budget of time.
//!
//! The arguments become a suite of one command; the lab does the rest.

use std::path::PathBuf;

use anyhow::Result;
use masu_lab::diagnose::{self, diagnose};
use masu_lab::plan::Mallocs;
use masu_lab::report::Format;
use masu_lab::results::Rounds;
use masu_lab::suite::{Choice, Entry, Named, Source};
use masu_lab::tune::{Event, Form, Goal, leave_out_itself, named_by, worth_trying};
use masu_lab::{Error, Limits, Plan, Program, Spec, Stop, Suite, Workload, compare, report, tune};

use crate::compare::{mallocs, own_input};
use crate::exit::{Ending, unless_left};
use crate::progress::{Progress, Ticking};
use crate::report::{format_of, write_page};
use crate::{arguments, notices};

pub(crate) struct Request {
    plan: Plan,
    goal: Goal,
    budget: std::time::Duration,
    forms: Vec<Form>,
    format: Format,
    output: Option<PathBuf>,
    stop: Stop,
}

/// The part of the budget that the first look may take at most, as a divisor. If one run takes longer, there is no time
/// for enough runs either.
const FIRST_LOOK: u32 = 10;

impl Request {
    pub(crate) fn prepare(arguments: arguments::Tune) -> Result<Self> {
        let format = format_of(arguments.json, arguments.output.as_deref())?;
        let words = arguments.program.words.clone();
        let first = words.first().cloned().unwrap_or_default();
        let variants = if arguments.variants.is_empty() { None } else { Some(named(&arguments)) };
        let input = own_input()?;
        // Until here a signal ends masu: nothing would look at a request to stop while input is read.
        let stop = Stop::on_signals()?;
        let variants = match variants {
            Some(variants) => variants,
            None => {
                let program = Program::find(&first)?;
                let mallocs = mallocs(program.libc);
                let workload = Workload {
                    arguments: words.clone(),
                    program,
                    input: input.clone(),
                    folder: None,
                    shuffles_heap: false,
                };
                let first = first_look(&arguments, &workload, &mallocs, &stop)?;
                worth_trying(&mallocs.catalogue, &workload.program, &first)
            }
        };
        let entry = Entry {
            input: Source::Ready(input),
            variants: Choice::Named(variants),
            ..arguments.around.entry(words)
        };
        // The search decides how many rounds each stage has.
        let mut plan = Plan::make(&Suite::single(entry, Rounds::Fixed(1)), &mut mallocs)?;
        leave_out_itself(&mut plan);
        let usual = || vec![Form::Environment, Form::Systemd, Form::Docker];
        let forms = if arguments.forms.is_empty() { usual() } else { arguments.forms };
        let (goal, budget, output) = (arguments.primary, arguments.budget, arguments.output);
        Ok(Self { plan, goal, budget, forms, format, output, stop })
    }

    pub(crate) fn perform(self) -> Result<Ending> {
        let stop = self.stop;
        let progress = Progress::on_stderr("--timeout 60s is its limit.");
        let count: usize = self.plan.cases.iter().map(|case| case.rows.len() - 1).sum();
        if count > 0 {
            notices::say(report::notice(&format!(
                "Tuning within {}: {} to try, after a run of the program as it is.",
                report::about(self.budget),
                variants(count)
            )));
        }
        let made = tune(&self.plan, self.goal, self.budget, &stop, &mut |event| {
            observe(&progress, &event);
        });
        progress.finish();
        let tuning = made?;
        notices::say("");
        let page = report::tuned(&tuning, &self.forms);
        let json = || serde_json::to_string_pretty(&tuning);
        unless_left(write_page(&page, json, self.format, self.output.as_deref()))?;
        Ok(if tuning.stopped { Ending::Stopped } else { Ending::Done })
    }
}

/// The remedies that a diagnosis names, from one counted run: they are tried first. Empty if runs need something around
/// them, and if that run says nothing.
fn first_look(
    arguments: &arguments::Tune,
    workload: &Workload,
    mallocs: &Mallocs,
    stop: &Stop,
) -> Result<Vec<Spec>> {
    let arguments::Around { setup, prepare, cleanup, scratch, timeout, memory_limit, .. } =
        &arguments.around;
    let is_bare = setup.is_none() && prepare.is_none() && cleanup.is_none() && scratch.is_none();
    if !is_bare || workload.program.preloadable().is_err() {
        return Ok(Vec::new());
    }
    notices::say(report::notice("A first look: one counted run, to try first what it points to."));
    let longest = arguments.budget / FIRST_LOOK;
    let time = timeout.map_or(longest, |timeout| timeout.min(longest));
    let limits = Limits { time: Some(time), memory_bytes: *memory_limit };
    let options = diagnose::Options { limits, ..diagnose::Options::default() };
    let system = mallocs.catalogue.resolve(&"system".parse()?, &workload.program)?;
    let clock = Ticking::on_stderr(&format!("{} is its limit.", report::about(time)));
    let made = diagnose(workload, &system, &mallocs.catalogue, &options, stop, &mut |_| {});
    drop(clock);
    if stop.requested() {
        return Err(Error::Stopped.into());
    }
    if let Some(failure) = made.as_ref().ok().and_then(|made| made.facts.failure.as_ref()) {
        let says = failure.last_lines.last().map(|line| format!(" and says: {line}"));
        notices::say(report::notice(&format!(
            "It {}{}; make sure this is the work you want tuned.",
            failure.how,
            says.unwrap_or_default()
        )));
    }
    // Without a diagnosis the usual order holds.
    Ok(made.map(|diagnosis| named_by(&diagnosis.findings)).unwrap_or_default())
}

/// The program as it is, then the variants that the user named, which must work.
fn named(arguments: &arguments::Tune) -> Vec<Named> {
    let system = Spec::bare("system");
    let others = arguments.variants.iter().filter(|spec| **spec != system).cloned();
    let all = std::iter::once(system.clone()).chain(others);
    all.map(|spec| Named { spec, optional: false }).collect()
}

fn variants(count: usize) -> String {
    if count == 1 { "1 variant".to_owned() } else { format!("{count} variants") }
}

fn observe(progress: &Progress, event: &Event<'_>) {
    match event {
        Event::Planned { runs, run } => progress.say(&format!(
            "About {runs} runs of {}; Ctrl-C ends early and shows what there is.",
            report::seconds(run.as_secs_f64())
        )),
        Event::Stage { number, candidates, rounds, estimate, confirms } => {
            let what = if *confirms { "confirming by fresh runs" } else { "searching" };
            progress.say(&format!(
                "Stage {number}, {what}: {}, {}, {}.",
                variants(*candidates),
                if *rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") },
                report::about(*estimate)
            ));
        }
        // The number of runs was announced for the whole search.
        Event::Measuring(compare::Event::Planned { .. }) => {}
        Event::Measuring(event) => progress.observe(event),
        _ => {}
    }
}
