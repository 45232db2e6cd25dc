//! The exit code: the one place that decides it, and the one that prints errors.

use std::io::{self, Write};
use std::process::{self, ExitCode};

use clap::error::ErrorKind;

/// Why there is no more output.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The reader of the output has seen enough.
    Enough,
    /// Something failed; the text names what, and why.
    Failed(String),
    /// The arguments do not go together with what is there.
    Refused(&'static str),
}

impl Ending {
    /// Writing to standard output failed.
    pub(crate) fn of_output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Enough;
        }
        Self::Failed(format!("writing to standard output: {error}"))
    }

    /// Reading standard input failed.
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
        // Where errors go nowhere, the code still tells.
        let _ = writeln!(io::stderr(), "xquo: {said}");
    }
}

/// The exit code of a run that came to its end.
pub(crate) fn of(outcome: Result<(), Ending>) -> ExitCode {
    let Err(ending) = outcome else { return ExitCode::SUCCESS };
    ending.complain();
    ending.code().into()
}

/// Ends the program now: other threads may be waiting for input that does not come.
pub(crate) fn now(ending: &Ending) -> ! {
    ending.complain();
    process::exit(ending.code().into())
}

/// The exit code for arguments that clap refused; help and version are no error.
pub(crate) fn of_usage(error: &clap::Error) -> ExitCode {
    // A terminal that is gone shows nothing any more.
    let _ = error.print();
    let is_asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_asked { ExitCode::SUCCESS } else { 2.into() }
}
