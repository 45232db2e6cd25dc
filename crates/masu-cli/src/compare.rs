//! `masu compare`: which variant is better for a program, and how sure that is.
//!
//! The arguments become a suite, as a suite file does; the lab does the rest.

use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use masu_lab::compare::{Destination, Event};
use masu_lab::plan::Mallocs;
use masu_lab::report::{self, Document, Format};
use masu_lab::results::{self, LeftOut, Record, Rounds};
use masu_lab::server::ServerRequest;
use masu_lab::statistics::DEFAULT_PRECISION;
use masu_lab::suite::{Choice, DEFAULT_BUDGET, DEFAULT_ROUNDS, Entry, Source};
use masu_lab::summary::{Criterion, Gate, Held, Standing, decide, gate};
use masu_lab::tables::Table;
use masu_lab::{
    Catalogue, CompareOptions, Comparison, Input, Libc, Limits, Places, Plan, Redact, ServerPlan,
    Stop, Suite, compare,
};

use crate::arguments::{self, Arguments, Command};
use crate::embedded;
use crate::exit::Ending;
use crate::notices;
use crate::progress::{Progress, Waiting};

/// The time that masu waits for standard input before it prints that it is reading.
const PATIENCE: Duration = Duration::from_secs(2);

/// The option that asks about runs as they are, and so may stand beside `--resume` alone.
const GATE: &str = "--fail-if-slower";

/// The total time of the timed runs when the user sets none.
const USUAL_TIME: Duration = Duration::from_secs(60);

pub(crate) struct Request {
    plan: Plan,
    options: CompareOptions,
    /// The limit in per cent: no variant may surely be slower than the reference by more.
    gate: Option<f64>,
}

/// The arguments in effect, and their words. `--resume` alone takes over the arguments that the file's comparison was
/// begun with.
fn resumed(given: arguments::Compare) -> Result<(arguments::Compare, Vec<String>)> {
    let own = own_words(given.words.len());
    let is_alone = given.words.is_empty() && given.suite.is_none();
    let Some(path) = given.resume.as_deref().filter(|_| is_alone) else {
        // Words that are no text cannot be kept.
        let is_text = env::args_os().all(|word| word.to_str().is_some());
        return Ok((given, if is_text { own } else { Vec::new() }));
    };
    if let Some(word) = own.iter().find(|word| word.starts_with('-') && !word.starts_with(GATE)) {
        bail!(
            "{word} beside --resume: {} goes on as it was begun; leave {word} out, or give the whole command \
             again",
            path.display()
        );
    }
    let records = results::read(path)?;
    let asked = match records.first() {
        Some(Record::Header(header)) => header.asked.clone(),
        _ => Vec::new(),
    };
    if asked.is_empty() {
        bail!(
            "{}: it does not say with which words it was begun (an earlier masu, or --redact); give them \
             again behind --resume",
            path.display()
        );
    }
    let begun = report::shortened(&asked, report::COMMAND_LINES * report::width());
    notices::say(report::notice(&format!("Going on with: masu compare {begun}")));
    let words = ["masu", "compare"].into_iter().map(str::to_owned).chain(asked.clone());
    match Arguments::try_parse_from(words).map(|arguments| arguments.command) {
        Ok(Command::Compare(begun)) => {
            let fail_if_slower = given.fail_if_slower.or(begun.fail_if_slower);
            let resume = given.resume;
            Ok((arguments::Compare { resume, json: None, fail_if_slower, ..*begun }, asked))
        }
        _ => bail!("{}: this masu does not understand how it was begun", path.display()),
    }
}

/// The words behind `compare` on the command line, without those about the results file; bytes that are no text are
/// replaced.
fn own_words(count: usize) -> Vec<String> {
    let all = env::args_os().skip(2);
    let mut options: Vec<String> = all.map(|word| word.to_string_lossy().into_owned()).collect();
    let program = options.split_off(options.len().saturating_sub(count));
    let mut kept = Vec::new();
    let mut words = options.into_iter();
    while let Some(word) = words.next() {
        if ["--json", "--resume"].contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with("--json=") && !word.starts_with("--resume=") {
            kept.push(word);
        }
    }
    kept.extend(program);
    kept
}

impl Request {
    pub(crate) fn prepare(arguments: arguments::Compare) -> Result<Self> {
        let (mut arguments, asked) = resumed(arguments)?;
        let mut options = options(&mut arguments, asked);
        if options.results.path().is_some_and(|path| path == "-") {
            bail!("--json -: name a file: the page goes to standard output");
        }
        let gate = arguments.fail_if_slower;
        // A test of a bound asks another question than a search for a difference.
        let usual = match (gate, &options.decide) {
            (None, None) => Rounds::UntilDecided { most: DEFAULT_ROUNDS },
            _ => Rounds::Fixed(DEFAULT_ROUNDS),
        };
        if arguments.suite.is_none() && rounds(&arguments, usual).is_none() {
            options.within = Some(USUAL_TIME);
        }
        let suite = match arguments.suite.take() {
            Some(path) => from_file(path, arguments)?,
            None => from_words(arguments, usual)?,
        };
        let plan = Plan::make(&suite, &mut mallocs)?;
        if gate.is_some() && plan.cases.iter().all(|case| case.rows.len() < 2) {
            bail!(
                "--fail-if-slower: there is nothing beside the reference; add a variant (-a) or values (-P)"
            );
        }
        Ok(Self { plan, options, gate })
    }

    pub(crate) fn perform(self) -> Result<Ending> {
        let stop = Stop::on_signals()?;
        let progress = Progress::on_stderr(
            "--timeout 60s is its limit; a program that does not end by itself is compared with --server.",
        );
        notices::say(announcement(&self.plan, self.options.within.is_some()));
        let mut so_far = None;
        let made = compare(&self.plan, &self.options, &stop, &mut |event| {
            if let Event::CutShort { so_far: made } = &event {
                so_far = Some((*made).clone());
            }
            progress.observe(&event);
        });
        progress.finish();
        if let Some(so_far) = so_far {
            // The error that follows matters more than a reader who has gone.
            let _ = print(&so_far);
            self.say_how_to_go_on();
        }
        let comparison = made?;
        // A reader that has seen enough of the page does not make a gate pass.
        let printed = print(&comparison);
        let ending = self.judged(&comparison)?;
        if ending == Ending::Done {
            printed?;
        }
        Ok(ending)
    }

    /// Says where the runs are, and applies the gate or the criterion.
    fn judged(&self, comparison: &Comparison) -> Result<Ending> {
        if comparison.stopped {
            self.say_how_to_go_on();
            return Ok(Ending::Stopped);
        }
        if let Some(file) = self.options.results.path() {
            notices::say(format_args!("Every run is in {}.", file.display()));
        }
        match (self.gate, &self.options.decide) {
            (Some(limit), _) => judge(comparison, limit),
            (None, Some(criterion)) => decided(comparison, criterion),
            (None, None) => Ok(Ending::Done),
        }
    }

    fn say_how_to_go_on(&self) {
        if let Some(file) = self.options.results.path() {
            let file = report::shortened(&[file.display().to_string()], usize::MAX);
            notices::say(format_args!("To go on: masu compare --resume {file}"));
        }
    }
}

/// The options that hold for the whole comparison.
fn options(arguments: &mut arguments::Compare, asked: Vec<String>) -> CompareOptions {
    let results = match (arguments.json.take(), arguments.resume.take()) {
        (_, Some(path)) => Destination::Resume(path),
        (Some(path), None) => Destination::New(path),
        (None, None) => Destination::Nowhere,
    };
    let redacted = std::mem::take(&mut arguments.redact);
    let mut redact = Redact::default();
    if redacted.iter().any(String::is_empty) {
        redact = redact.and(Redact::own());
    }
    redact = redact.and(Redact::texts(redacted));
    // The words are not kept when something must be redacted.
    let keeps = redact.is_empty() && results.path().is_some();
    let asked = if keeps { asked } else { Vec::new() };
    let (seed, decide) = (arguments.seed, arguments.decide.take());
    CompareOptions { seed, results, redact, asked, decide, ..CompareOptions::default() }
}

/// The number of rounds, if the user asks for one; a budget or a precision alone leaves the other one of `usual`.
fn rounds(arguments: &arguments::Compare, usual: Rounds) -> Option<Rounds> {
    let arguments::Compare { runs, budget, precision, .. } = arguments;
    let (usual_s, usual_precision) = match usual {
        Rounds::Budget { seconds, precision } => (seconds, precision),
        _ => (DEFAULT_BUDGET.as_secs_f64(), DEFAULT_PRECISION),
    };
    match (runs, budget, precision) {
        (Some(runs), ..) => Some(Rounds::Fixed(usize::try_from(*runs).unwrap_or(usize::MAX))),
        (None, None, None) => None,
        (None, budget, precision) => Some(Rounds::Budget {
            seconds: budget.map_or(usual_s, |budget| budget.as_secs_f64()),
            precision: precision.unwrap_or(usual_precision),
        }),
    }
}

fn from_words(arguments: arguments::Compare, usual: Rounds) -> Result<Suite> {
    let rounds = rounds(&arguments, usual).unwrap_or(usual);
    let server = server(arguments.server)?;
    let usual = server.as_ref().map(ServerPlan::primary).unwrap_or_default();
    let entry = Entry {
        // A server gets its requests over the network.
        input: if server.is_some() { Source::Empty } else { Source::Ready(own_input()?) },
        variants: Choice::of(arguments.variants),
        parameters: arguments.parameters,
        each: arguments.each,
        primary: arguments.primary.unwrap_or(usual),
        server,
        ..arguments.around.entry(arguments.words)
    };
    Ok(Suite::single(entry, rounds))
}

fn server(arguments: arguments::Server) -> Result<Option<ServerPlan>> {
    if !arguments.server {
        return Ok(None);
    }
    let asked = ServerRequest {
        ready: arguments.ready,
        ready_within: arguments.ready_within,
        load: arguments.load,
        load_body: arguments.load_body,
        connections: arguments.connections,
        rate: arguments.rate,
        latency_rate: arguments.latency_rate,
        request_timeout: arguments.request_timeout,
        burst: arguments.burst,
        one_at_a_time: arguments.one_at_a_time,
    };
    Ok(Some(asked.plan("".as_ref())?))
}

fn from_file(path: PathBuf, arguments: arguments::Compare) -> Result<Suite> {
    let mut suite = Suite::read(&path)?;
    suite.rounds = rounds(&arguments, suite.rounds).unwrap_or(suite.rounds);
    for parameter in &arguments.parameters {
        suite.set(parameter).with_context(|| format!("in {}", path.display()))?;
    }
    if !arguments.only.is_empty() {
        suite.keep_only(&arguments.only)?;
    }
    for entry in &mut suite.entries {
        if !arguments.variants.is_empty() {
            entry.variants = Choice::of(arguments.variants.clone());
        }
        let Limits { time, memory_bytes } = &mut entry.limits;
        *time = arguments.around.timeout.or(*time);
        *memory_bytes = arguments.around.memory_limit.or(*memory_bytes);
        entry.shuffle_heap |= arguments.around.shuffle_heap;
        entry.primary = arguments.primary.unwrap_or(entry.primary);
    }
    Ok(suite)
}

/// The mallocs for programs on `libc`: with masu's own, or with the reason why it is missing.
pub(crate) fn mallocs(libc: Libc) -> Mallocs {
    match embedded::catalogue(libc) {
        Ok(catalogue) => {
            // Without the counting library allocations are not counted; all else works.
            let counting = embedded::counting(libc).ok();
            Mallocs { catalogue, absent: Vec::new(), counting }
        }
        Err(error) => {
            let absent = LeftOut { label: "masu".to_owned(), reason: error.to_string() };
            let catalogue = Catalogue::find(&Places::default());
            Mallocs { catalogue, absent: vec![absent], counting: None }
        }
    }
}

fn announcement(plan: &Plan, is_most: bool) -> String {
    if let [only] = plan.cases.as_slice() {
        let variants: Vec<_> = only.rows.iter().map(|row| row.variant.clone()).collect();
        return report::plan(&variants, &plan.rounds, is_most);
    }
    let rows: usize = plan.cases.iter().map(|prepared| prepared.rows.len()).sum();
    let name = plan.suite.as_deref().unwrap_or("the command");
    let count = match plan.rounds {
        Rounds::Fixed(rounds) => {
            let most = if is_most { "up to " } else { "" };
            let runs = if rounds == 1 { "run" } else { "runs" };
            format!(", then {most}{rounds} {runs} of each variant")
        }
        Rounds::UntilDecided { most } => format!(", then up to {most} runs of each variant"),
        _ => String::new(),
    };
    let tables = plan.cases.len();
    let most = plan.cases.iter().map(|prepared| prepared.rows.len()).max().unwrap_or(0);
    let few = report::too_few(&plan.rounds, is_most, most);
    report::notice(&format!("Comparing {name}: {tables} tables, {rows} warm-ups{count}.{few}"))
}

/// Applies the gate. A variant that is surely slower fails. A variant about which the runs cannot tell is reported and
/// passes, unless there was no verdict at all: a gate that guards nothing must not look as if it did.
fn judge(comparison: &Comparison, limit: f64) -> Result<Ending> {
    let mut ending = Ending::Done;
    let mut without_verdict = Vec::new();
    for table in &comparison.tables {
        let name = |standing: &Standing| format!("{}: {}", table.case.name, standing.variant);
        if !table.summary.repeatable {
            notices::say(report::notice(&format!(
                "Gate: the runs of {} did not all do the same work, see the warnings; who passes may \
                 have passed by doing less.",
                table.case.name
            )));
        }
        match gate(&table.summary, limit) {
            Gate::Passed => {}
            Gate::Failed(slower) => {
                ending = Ending::GateFailed;
                for one in &slower {
                    let failed = "is surely slower by more than";
                    let said = format!("Gate failed: {} {failed} {limit} %.", name(one));
                    notices::say(report::notice(&said));
                }
            }
            Gate::Undecided(unclear) => {
                for one in &unclear {
                    match one.could_have_seen {
                        // COUPLING: packaging/action/compare-commits.sh looks for the beginning.
                        Some(seen) => notices::say(report::notice(&format!(
                            "Gate: the runs cannot tell whether {} is slower by more than {limit} %; \
                             they would have shown {:.1} %. More runs tell more.",
                            name(one),
                            seen * 100.0
                        ))),
                        None => without_verdict.push(name(one)),
                    }
                }
            }
        }
    }
    if ending == Ending::Done && !without_verdict.is_empty() {
        let who = without_verdict.join(", ");
        bail!(
            "the gate cannot judge {who}: too few runs for a verdict (ask for more with -n), too many \
             that failed, or no ratio (the page says which)"
        );
    }
    Ok(ending)
}

/// Tests whether the criterion is shown to hold in every table that has its variant. The page says why.
fn decided(comparison: &Comparison, criterion: &Criterion) -> Result<Ending> {
    let has_it =
        |table: &&Table| table.summary.rows.iter().any(|row| row.variant == criterion.variant);
    let decisions: Vec<Held> = comparison
        .tables
        .iter()
        .filter(has_it)
        .map(|table| decide(&table.summary, criterion).holds)
        .collect();
    if decisions.iter().any(|held| matches!(held, Held::No | Held::Open)) {
        return Ok(Ending::GateFailed);
    }
    if decisions.is_empty() || decisions.contains(&Held::Unknown) {
        bail!(
            "the criterion cannot be judged: {} has too few runs that count (ask for more with -n), or was \
             left out (the table says why)",
            criterion.variant
        );
    }
    Ok(Ending::Done)
}

/// Reads standard input to its end. Prints a note if that takes a while: a user who gave no input on purpose would
/// wait for ever.
pub(crate) fn own_input() -> Result<Input> {
    let line =
        "Reading standard input to its end, to give it to every run; </dev/null if there is none.";
    let _waiting = Waiting::new(PATIENCE, None, line.to_owned());
    Ok(Input::own()?)
}

fn print(comparison: &Comparison) -> Result<()> {
    let page = report::render(&Document::from(comparison), Format::Text);
    notices::say("");
    write!(anstream::stdout(), "{page}").context("printing the comparison")
}
