//! The `masu` command: arguments in, lab called, terminal out.
//!
//! Arguments become a request that is looked up and ready, the request is performed, and [`exit`] turns the outcome
//! into an exit code. Measurements and knowledge of allocators come from `masu-lab`.
//!
//! Only `masu code load` runs foreign code in this process, and only it has `unsafe`.
#![deny(unsafe_code)]

mod arguments;
mod code;
mod compare;
mod completions;
mod diagnose;
mod doctor;
mod embedded;
mod exit;
mod experiment;
mod heap;
mod line_wrap;
mod list;
mod manual;
mod notices;
mod progress;
mod report;
mod run;
mod top;
mod tune;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::arguments::Command;
use crate::exit::Ending;

fn main() -> ExitCode {
    report::fit_terminal();
    exit::name_refused_threads();
    let command = match arguments::read() {
        Ok(arguments) => arguments.command,
        Err(error) => return exit::of_usage(&error),
    };
    if let Err(error) = needs(&command) {
        return exit::of(Err(error));
    }
    match command {
        Command::Compare(arguments) => {
            exit::of(compare::Request::prepare(*arguments).and_then(compare::Request::perform))
        }
        Command::Tune(arguments) => {
            exit::of(tune::Request::prepare(*arguments).and_then(tune::Request::perform))
        }
        Command::Run(arguments) => {
            let program = arguments.program.name().to_owned();
            exit::of_run(&program, run::Request::prepare(arguments).map(run::Request::perform))
        }
        Command::Report(arguments) => {
            exit::of(report::Request::prepare(arguments).and_then(report::Request::perform))
        }
        Command::Code(arguments) => {
            exit::of(code::perform(&arguments.command).map(|()| Ending::Done))
        }
        Command::Top(arguments) => exit::of(top::perform(&arguments).map(|()| Ending::Done)),
        Command::Heap(arguments) => match arguments.command {
            Some(command) => exit::of(heap::perform(command)),
            None => {
                let outcome = heap::run(&arguments.program, &arguments.view);
                exit::of_watched(arguments.program.name(), outcome)
            }
        },
        Command::Diagnose(arguments) => exit::of(diagnose::perform(*arguments)),
        Command::Experiment(arguments) => exit::of(experiment::perform(&arguments)),
        Command::Doctor(arguments) => exit::of(doctor::perform(&arguments).map(|()| Ending::Done)),
        Command::List(arguments) => exit::of(list::perform(&arguments).map(|()| Ending::Done)),
        Command::Manual(arguments) => exit::of(manual::perform(&arguments)),
        Command::Completions(arguments) => exit::of(completions::perform(&arguments)),
    }
}

/// Refuses commands that would say untrue things without `/proc`.
fn needs(command: &Command) -> Result<()> {
    let reads = matches!(
        command,
        Command::Compare(_)
            | Command::Tune(_)
            | Command::Top(_)
            | Command::Diagnose(_)
            | Command::Experiment(_)
            | Command::Doctor(_)
    );
    if reads && !Path::new("/proc/self/stat").exists() {
        bail!("there is no /proc here, which masu reads; mount it: mount -t proc proc /proc");
    }
    Ok(())
}
