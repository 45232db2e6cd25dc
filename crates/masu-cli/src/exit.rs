//! The exit code: the one place that decides it, and the one that prints errors.
//!
//! A command that measures or lists ends with 0 or 2, and with 1 only for a failed gate; `run` and `heap -- PROGRAM` keep
//! out of the program's way with 125 to 127, as `env` and `nohup` do.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::panic;
use std::path::Path;
use std::process::{self, ExitCode, ExitStatus};

use anstyle::{AnsiColor, Style};
use anyhow::{Error, Result, anyhow};
use clap::error::ErrorKind;
use masu_lab::Error as LabError;

use crate::notices;

/// The ending of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    /// The command did its work, and a variant was slower than the gate lets pass.
    GateFailed,
    Stopped,
}

/// Something is slower than the gate lets pass.
pub(crate) const GATE_FAILED: u8 = 1;
/// The arguments were wrong, or something kept masu from its work.
pub(crate) const FAILED: u8 = 2;
/// The exit code that a shell reports for a program ended by SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;
/// `run` could not do its part.
pub(crate) const RUN_FAILED: u8 = 125;
/// `run` found the program, but it cannot be started.
pub(crate) const RUN_CANNOT_START: u8 = 126;
pub(crate) const RUN_NOT_FOUND: u8 = 127;

/// The exit code of a command that measures or lists.
pub(crate) fn of(outcome: Result<Ending>) -> ExitCode {
    match outcome {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::GateFailed) => GATE_FAILED.into(),
        Ok(Ending::Stopped) => INTERRUPTED.into(),
        // The reader of the output has seen enough: `masu list | head -1`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            let is_stop = matches!(error.downcast_ref(), Some(LabError::Stopped));
            if is_stop { INTERRUPTED.into() } else { FAILED.into() }
        }
    }
}

/// The exit code of a program that masu stayed beside: the program's, or the code that a shell reports for its signal.
pub(crate) fn of_watched(program: &OsStr, outcome: Result<ExitStatus>) -> ExitCode {
    match outcome {
        Ok(status) => {
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(RUN_FAILED).into()
        }
        Err(error) => of_not_started(program, &error),
    }
}

/// The exit code of a `run` that did not become `program`: `Ok` holds why it could not start.
pub(crate) fn of_run(program: &OsStr, outcome: Result<Error>) -> ExitCode {
    match outcome {
        Ok(error) => {
            complain(&error);
            RUN_CANNOT_START.into()
        }
        Err(error) => of_not_started(program, &error),
    }
}

fn of_not_started(program: &OsStr, error: &Error) -> ExitCode {
    complain(error);
    let code = match error.downcast_ref() {
        Some(LabError::Program { .. }) if exists(program) => RUN_CANNOT_START,
        Some(LabError::Program { .. }) => RUN_NOT_FOUND,
        _ => RUN_FAILED,
    };
    code.into()
}

/// True if there is a file that `program` could mean, fit to be started or not.
fn exists(program: &OsStr) -> bool {
    if program.as_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// The exit code for arguments that clap refused; help and version are no error.
pub(crate) fn of_usage(error: &clap::Error) -> ExitCode {
    let is_plain = |word: OsString| word.into_encoded_bytes().iter().all(|byte| *byte >= b' ');
    if env::args_os().all(is_plain) {
        // A closed terminal shows nothing any more.
        let _ = error.print();
    } else {
        // clap shows words as they are, and only its plain text is without what steers a terminal.
        notices::say(error.render().to_string().trim_end());
    }
    let is_asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let is = |at, words: &[&str]| {
        env::args_os().nth(at).is_some_and(|word| words.iter().any(|known| word == **known))
    };
    let runs = is(1, &["run"]) || is(1, &["heap"]) && !is(2, &["show", "diff"]);
    match (is_asked, runs) {
        (true, _) => ExitCode::SUCCESS,
        (false, true) => RUN_FAILED.into(),
        (false, false) => FAILED.into(),
    }
}

/// Has the standard library's panic about a thread that cannot be started end as other errors do. A limit on processes
/// refuses threads too.
pub(crate) fn name_refused_threads() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let said = info.payload_as_str().unwrap_or_default();
        if said.starts_with("failed to spawn thread") {
            complain(&anyhow!(
                "no further thread can be started; allow more processes (ulimit -u, or the container's limit)"
            ));
            // Nothing is unwound: the kernel ends what masu runs.
            process::exit(FAILED.into());
        }
        usual(info);
    }));
}

fn complain(error: &Error) {
    let style: Style = AnsiColor::Red.on_default().bold();
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // The lab's errors end in the system's reason already.
        if !said.ends_with(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    notices::say_behind(format_args!("{style}masu:{style:#} "), said);
}

/// `printed`, in which a reader that has seen enough is no failure: what the command found decides its exit code.
pub(crate) fn unless_left(printed: Result<()>) -> Result<()> {
    match printed {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        printed => printed,
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    let cause = error.root_cause().downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
