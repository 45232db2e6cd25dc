//! `masu diagnose`: the reasons why a program is slow, with evidence and remedies.

mod prove;
mod trial;

use std::time::Duration;

use anyhow::{Result, bail};
use masu_lab::diagnose::{self, Hold, Means, Options, Step};
use masu_lab::report::{self, notice};
use masu_lab::{Diagnosis, Limits, Stop, Workload};

use crate::compare::own_input;
use crate::exit::{Ending, unless_left};
use crate::progress::Ticking;
use crate::report::{format_of, write_page};
use crate::{arguments, embedded, notices};

/// The time for which a running process is observed by default.
const USUAL_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn perform(arguments: arguments::Diagnose) -> Result<Ending> {
    if arguments.pid.is_none() && (arguments.attach || arguments.patience.is_some()) {
        let option = if arguments.attach { "--attach" } else { "--for" };
        bail!(
            "{option} is about a process that runs already: give its number with -p PID (`pidof NAME` says it), \
             and no program"
        );
    }
    let format = format_of(arguments.json, arguments.output.as_deref())?;
    let output = arguments.output.clone();
    let diagnosis = match arguments.pid {
        Some(pid) => of_process(pid, &arguments)?,
        None => of_command(arguments)?,
    };
    // A file has room for the whole command.
    let columns = if output.is_some() { usize::MAX } else { report::width() };
    let page = report::diagnosed(&diagnosis, columns);
    let json = || serde_json::to_string_pretty(&diagnosis);
    unless_left(write_page(&page, json, format, output.as_deref()))?;
    Ok(if diagnose::was_stopped(&diagnosis) { Ending::Stopped } else { Ending::Done })
}

fn of_process(pid: u32, arguments: &arguments::Diagnose) -> Result<Diagnosis> {
    let stop = Stop::on_signals()?;
    let patience = arguments.patience.unwrap_or(USUAL_PATIENCE);
    let hold = if arguments.attach { Hold::Attached } else { Hold::None };
    notices::say(notice(&match hold {
        Hold::None => format!("Looking at process {pid}."),
        Hold::Attached => format!(
            "Attaching to process {pid} for {:.1} s: it is stopped at every system call until then, and \
             slower. Ctrl-C lets it go at once.",
            patience.as_secs_f64()
        ),
    }));
    Ok(diagnose::diagnose_running(pid, patience, hold, &stop)?)
}

fn of_command(arguments: arguments::Diagnose) -> Result<Diagnosis> {
    let arguments::Diagnose {
        variant,
        inside,
        prove,
        once,
        terminal,
        timeout,
        memory_limit,
        words,
        ..
    } = arguments;
    let input = own_input()?;
    // Until here a signal ends masu: nothing would look at a request to stop while input is read.
    let stop = &Stop::on_signals()?;
    let workload = Workload::new(words, input)?;
    let asked = std::slice::from_ref(&variant);
    let mut catalogue = embedded::catalogue_for(asked, &workload.program)?;
    let variant = catalogue.resolve(&variant, &workload.program)?;
    if inside || prove {
        catalogue = embedded::catalogue(workload.program.libc)?;
    } else if !once && let Ok(whole) = embedded::catalogue(workload.program.libc) {
        catalogue = whole;
    }
    let inside = if inside {
        workload.program.preloadable()?;
        Some(Means {
            masu: Some(catalogue.resolve(&"masu".parse()?, &workload.program)?),
            counting: Some(embedded::counting(workload.program.libc)?),
        })
    } else {
        None
    };
    let limits = Limits { time: timeout, memory_bytes: memory_limit };
    let options = Options { limits: limits.clone(), inside, terminal, once };
    let mut clock = None;
    let mut tell = |step: Step| match step {
        Step::Run => {
            notices::say(notice("Running it once, counted."));
            clock = Some(Ticking::on_stderr(
                "Ctrl-C ends it and judges what was seen, --timeout 60s is a limit.",
            ));
        }
        Step::Uncounted => {
            notices::say(notice("It traces programs itself: running it once more, not counted."));
        }
        Step::Undisturbed => {
            notices::say(notice("Counting slowed it down: running it once more, not counted."));
        }
        Step::Inside => notices::say(notice("Running it twice more, to look inside.")),
        Step::Prices => {
            clock = None;
            notices::say(notice("Measuring what that costs here."));
        }
        _ => {}
    };
    let diagnosis = masu_lab::diagnose(&workload, &variant, &catalogue, &options, stop, &mut tell);
    drop(clock);
    let mut diagnosis = diagnosis?;
    if prove && !stop.requested() {
        match prove::perform(&diagnosis, &workload, &variant, &catalogue, &limits, stop) {
            Ok(proof) => diagnosis.proof = proof,
            // The diagnosis is made, whatever became of its proof.
            Err(error) => diagnosis.not_seen.push(format!("whether the remedies gain: {error}")),
        }
    } else if !once && !stop.requested() {
        trial::perform(&mut diagnosis, &workload, &variant, &catalogue, &limits, stop);
    }
    Ok(diagnosis)
}
