//! A terminal that nobody sits at, for programs that write line by line only where somebody might; and how a terminal
//! hands keys on.
//!
//! It relies on the kernel's pseudo-terminals. The hard idea is its end: once nobody holds the program's side open, reading
//! from the other is an error and not the end of a file.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};

use super::checked;

/// A new terminal of 80 by 24: what is written to the second is read from the first. It controls no process.
pub(crate) fn terminal() -> io::Result<(File, File)> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: The call takes a number and returns a new descriptor.
    let shown = checked(unsafe { libc::posix_openpt(flags) })?;
    // SAFETY: The descriptor is new and nobody else's.
    let shown = unsafe { File::from_raw_fd(shown) };
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: The descriptor is a terminal's and open; the kernel reads the size from a local that lives through the call.
    checked(unsafe { libc::ioctl(shown.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })?;
    // SAFETY: The descriptor is a terminal's and open.
    checked(unsafe { libc::unlockpt(shown.as_raw_fd()) })?;
    // SAFETY: As above; the request takes the flags to open the other side with, wherever its name is mounted.
    let own = checked(unsafe { libc::ioctl(shown.as_raw_fd(), libc::TIOCGPTPEER, flags) })?;
    // SAFETY: The descriptor is new and nobody else's.
    Ok((shown, unsafe { File::from_raw_fd(own) }))
}

/// Whether reading failed because nobody can write to the terminal any more.
pub(crate) fn is_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// How a terminal hands keys on.
#[derive(Clone, Copy)]
pub(crate) struct Mode(libc::termios);

impl Mode {
    /// That of an open terminal.
    pub(crate) fn of(terminal: BorrowedFd<'_>) -> io::Result<Mode> {
        let mut mode = MaybeUninit::uninit();
        // SAFETY: The C library writes the mode into a local that lives through the call.
        checked(unsafe { libc::tcgetattr(terminal.as_raw_fd(), mode.as_mut_ptr()) })?;
        // SAFETY: The call succeeded, so it wrote the mode.
        Ok(Mode(unsafe { mode.assume_init() }))
    }

    /// This one with each key at once, unseen, Ctrl-C among them.
    pub(crate) fn key_by_key(mut self) -> Mode {
        self.0.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ISIG);
        self
    }

    /// Sets it.
    pub(crate) fn set(&self, terminal: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: The C library reads the mode from a place that lives through the call.
        checked(unsafe {
            libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &raw const self.0)
        })?;
        Ok(())
    }
}
