//! A pseudo-terminal, for programs that write line by line only to a terminal; and the mode in which a terminal passes
//! keys on.
//!
//! Once no process holds the program's side open, a read from the other side is an error and not the end of a file.

use std::fs::File;
use std::io;

use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, LocalModes, OptionalActions, Termios, Winsize};

/// A new terminal of 80 by 24: text written to the second is read from the first. The terminal controls no process.
pub(crate) fn terminal() -> io::Result<(File, File)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let shown = pty::openpt(flags)?;
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    termios::tcsetwinsize(&shown, size)?;
    pty::unlockpt(&shown)?;
    let own = pty::ioctl_tiocgptpeer(&shown, flags)?;
    Ok((shown.into(), own.into()))
}

/// True if a read failed because no process can write to the terminal any more.
pub(crate) fn is_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// The mode in which the terminal of standard output passes keys on.
#[derive(Clone)]
pub struct Mode(Termios);

impl Mode {
    /// The mode that the terminal has. An error when standard output is no terminal.
    pub fn of_output() -> io::Result<Mode> {
        Ok(Mode(termios::tcgetattr(io::stdout())?))
    }

    /// This mode with each key passed on at once and not shown; Ctrl-C is a key like others.
    pub fn key_by_key(mut self) -> Mode {
        self.0.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        self
    }

    /// Gives the terminal this mode.
    pub fn set(&self) -> io::Result<()> {
        Ok(termios::tcsetattr(io::stdout(), OptionalActions::Now, &self.0)?)
    }
}
