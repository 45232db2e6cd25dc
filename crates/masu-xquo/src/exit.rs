//! The exit code, decided here only, and the printing of errors.

use std::io::{self, Write};
use std::process::{self, ExitCode};

use clap::error::ErrorKind;

/// The reason for the end of output.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The reader of the output closed it.
    Enough,
    Failed(String),
    /// The arguments do not fit the situation.
    Refused(&'static str),
}

impl Ending {
    pub(crate) fn of_output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Enough;
        }
        Self::Failed(format!("writing to standard output: {error}"))
    }

    pub(crate) fn of_input(error: &io::Error) -> Self {
        Self::Failed(format!("reading standard input: {error}"))
    }

    fn code(&self) -> u8 {
        match self {
            Self::Enough => 0,
            Self::Failed(_) => 1,
            Self::Refused(_) => 2,
        }
    }

    fn complain(&self) {
        let said = match self {
            Self::Enough => return,
            Self::Failed(said) => said,
            Self::Refused(said) => *said,
        };
        // If errors cannot be printed, the code still shows the failure.
        let _ = writeln!(io::stderr(), "xquo: {said}");
    }
}

/// The exit code of a completed run.
pub(crate) fn of(outcome: Result<(), Ending>) -> ExitCode {
    let Err(ending) = outcome else { return ExitCode::SUCCESS };
    ending.complain();
    ending.code().into()
}

/// Ends the program at once, because other threads may be waiting for input.
pub(crate) fn now(ending: &Ending) -> ! {
    ending.complain();
    process::exit(ending.code().into())
}

/// The exit code for arguments that clap refused; help and version are no error.
pub(crate) fn of_usage(error: &clap::Error) -> ExitCode {
    let printed = error.print().map_err(|error| Ending::of_output(&error));
    let is_asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_asked { of(printed) } else { 2.into() }
}
