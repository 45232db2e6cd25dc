//! `masu tune`: the smallest change to a program's malloc that is worth making, within a budget of time.
//!
//! Relies on the lab for what is tried, how often, and what is shown. The arguments become a suite of one
//! command, as those of `masu compare` do.

use std::io::Write;

use anyhow::{Context, Result};
use masu_lab::results::Rounds;
use masu_lab::suite::{Choice, Entry, Named, Source};
use masu_lab::tune::{Event, Form, Goal, worth_trying};
use masu_lab::{
    CompareOptions, Hooks, Limits, Plan, Program, Scratch, Spec, Stop, Suite, compare, report, tune,
};

use crate::compare::{ground, own_input};
use crate::exit::Ending;
use crate::progress::Progress;
use crate::{arguments, aside};

/// A search ready to be made.
pub(crate) struct Request {
    plan: Plan,
    goal: Goal,
    budget: std::time::Duration,
    options: CompareOptions,
    forms: Vec<Form>,
    json: bool,
}

impl Request {
    /// Looks up the program and what there is to try on it.
    pub(crate) fn prepare(arguments: arguments::Tune) -> Result<Self> {
        let words = arguments.program.words;
        let first = words.first().cloned().unwrap_or_default();
        let variants = if arguments.variants.is_empty() {
            let program = Program::find(&first)?;
            worth_trying(&ground(program.libc).catalogue, &program)
        } else {
            named(arguments.variants)
        };
        let scratch = match arguments.scratch {
            None => Scratch::None,
            Some(folder) if folder.is_empty() => Scratch::Empty,
            Some(folder) => Scratch::CopyOf(folder.into()),
        };
        let (setup, prepare, cleanup) = (arguments.setup, arguments.prepare, arguments.cleanup);
        let entry = Entry {
            name: first.to_string_lossy().into_owned(),
            command: words,
            input: Source::Ready(own_input()?),
            variants: Choice::Named(variants),
            limits: Limits { time: arguments.timeout, memory_bytes: arguments.memory_limit },
            hooks: Hooks { setup, prepare, cleanup },
            scratch,
            ..Entry::default()
        };
        // How many rounds each stage has is for the search to say.
        let plan = Plan::make(&Suite::single(entry, Rounds::Fixed(1)), &mut ground)?;
        let all = || Form::ALL.map(|(form, _)| form).to_vec();
        let forms = if arguments.forms.is_empty() { all() } else { arguments.forms };
        let options = CompareOptions { seed: arguments.seed, ..CompareOptions::default() };
        let (goal, budget, json) = (arguments.primary, arguments.budget, arguments.json);
        Ok(Self { plan, goal, budget, options, forms, json })
    }

    /// Searches and prints what came of it.
    pub(crate) fn perform(self) -> Result<Ending> {
        let stop = Stop::on_signals()?;
        let progress = Progress::on_stderr();
        let count: usize = self.plan.cases.iter().map(|case| case.rows.len() - 1).sum();
        aside::say(report::notice(&format!(
            "Tuning within {}: {count} variants to try, after a first look at the program as it is.",
            report::about(self.budget)
        )));
        let made = tune(&self.plan, self.goal, self.budget, &self.options, &stop, &mut |event| {
            observe(&progress, &event);
        });
        progress.finish();
        let tuning = made?;
        let page = if self.json {
            format!("{}\n", serde_json::to_string_pretty(&tuning).context("writing JSON")?)
        } else {
            aside::say("");
            report::tuned(&tuning, &self.forms)
        };
        write!(anstream::stdout(), "{page}").context("printing what was found")?;
        Ok(if tuning.stopped { Ending::Stopped } else { Ending::Done })
    }
}

/// The program as it is, then what was named and must work.
fn named(specs: Vec<Spec>) -> Vec<Named> {
    let system = Spec { allocator: "system".to_owned(), settings: Vec::new() };
    let others = specs.into_iter().filter(|spec| *spec != system).collect::<Vec<_>>();
    let all = std::iter::once(system.clone()).chain(others);
    all.map(|spec| Named { spec, optional: false }).collect()
}

fn observe(progress: &Progress, event: &Event<'_>) {
    match event {
        Event::Planned { runs, run } => progress.say(&format!(
            "About {runs} runs of {:.2} s; Ctrl-C ends early and shows what there is.",
            run.as_secs_f64()
        )),
        Event::Stage { number, candidates, rounds, estimate, confirms } => {
            let what = if *confirms { "confirming by fresh runs" } else { "searching" };
            progress.say(&format!(
                "Stage {number}, {what}: {candidates} variants, {rounds} rounds, {}.",
                report::about(*estimate)
            ));
        }
        // How many runs there are was said for the whole search.
        Event::Measuring(compare::Event::Planned { .. }) => {}
        Event::Measuring(event) => progress.observe(event),
        _ => {}
    }
}
