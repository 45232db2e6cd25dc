//! The terminal that someone looks at: whether there is something to read from it, and whether it is still there.
//!
//! Relies on the kernel door. The hard part is a terminal that was closed: it says for ever that it can be read,
//! at once, and then that there is nothing. A process that goes on reading keeps a CPU busy, and not every program hears
//! the signal that goes with it.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::kernel;

/// What became of waiting for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// There is something to read.
    Key,
    /// There was nothing so long, or a signal came.
    Nothing,
    /// Standard output is no terminal any more.
    Closed,
}

/// Waits until a key is pressed at the terminal of standard output, for `patience` at most.
///
/// # Errors
///
/// When the kernel cannot wait for it.
pub fn wait_for_key(patience: Duration) -> io::Result<Wait> {
    let output = io::stdout();
    let [readable] = kernel::wait_readable([Some(output.as_fd())], patience)?;
    Ok(match (readable, output.is_terminal()) {
        (_, false) => Wait::Closed,
        (true, true) => Wait::Key,
        (false, true) => Wait::Nothing,
    })
}

/// How the terminal of standard output hands keys on.
#[derive(Clone, Copy)]
pub struct Mode(kernel::terminal::Mode);

impl Mode {
    /// The mode that the terminal has.
    ///
    /// # Errors
    ///
    /// When standard output is no terminal.
    pub fn of_output() -> io::Result<Mode> {
        kernel::terminal::Mode::of(io::stdout().as_fd()).map(Mode)
    }

    /// This mode with each key handed on at once and not shown; Ctrl-C is a key like others.
    #[must_use]
    pub fn key_by_key(self) -> Mode {
        Mode(self.0.key_by_key())
    }

    /// Gives the terminal this mode.
    ///
    /// # Errors
    ///
    /// When standard output is no terminal any more.
    pub fn set(&self) -> io::Result<()> {
        self.0.set(io::stdout().as_fd())
    }
}
