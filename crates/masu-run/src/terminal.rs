//! The terminal of standard output: tests for a key to read and for a terminal that was closed.
//!
//! A closed terminal can always be read and then has nothing, which would keep a CPU busy; not every program gets the
//! signal.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::kernel;
pub use crate::kernel::terminal::Mode;

/// The result of waiting for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// There is something to read.
    Key,
    /// There was nothing in that time, or a signal came.
    Nothing,
    /// Standard output is no terminal any more.
    Closed,
}

/// Waits until a key is pressed at the terminal of standard output, for `patience` at most.
pub fn wait_for_key(patience: Duration) -> io::Result<Wait> {
    let output = io::stdout();
    let [readable] = kernel::wait_readable([Some(output.as_fd())], patience)?;
    Ok(match (readable, output.is_terminal()) {
        (_, false) => Wait::Closed,
        (true, true) => Wait::Key,
        (false, true) => Wait::Nothing,
    })
}
