//! Standard input, read as far as it is there.
//!
//! Relies on `poll`. The hard part is when to pass on less than a whole buffer: as soon as nothing more waits, so that
//! the first names of `find` are quoted while it still searches, but not before, so that a pipe's small pieces do not
//! become small writes.

use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Standard input, unbuffered.
#[derive(Default)]
pub(crate) struct Input {
    /// Whether the end was read: a terminal says so only once.
    ended: bool,
}

impl Input {
    /// Whether a read would return at once; `patient`: waits until it does.
    fn is_ready(patient: bool) -> bool {
        let input = rustix::stdio::stdin();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        let ready = poll(&mut polled, if patient { None } else { Some(&now) });
        // An input that cannot be polled is read, which reports its error.
        ready.map_or(true, |count| count > 0)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() && !self.ended {
            match rustix::io::read(rustix::stdio::stdin(), &mut buffer[filled..]) {
                Ok(0) => self.ended = true,
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                // Another user of the same description made it non-blocking.
                Err(rustix::io::Errno::AGAIN) if filled == 0 => {
                    Self::is_ready(true);
                }
                // The bytes read come first; the next read fails again.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error.into()),
            }
            if filled > 0 && filled < buffer.len() && !Self::is_ready(false) {
                break;
            }
        }
        Ok(filled)
    }
}
