//! A line of text for standard error, built on the stack.
//!
//! Relies on the kernel door. It replaces `core::fmt`, because the code that reads the environment must stay small. Text
//! that does not fit is cut off.

use crate::platform::bounds::Bounded;
use crate::platform::kernel;

/// Longer than any line that masu writes.
const ROOM: usize = 256;

#[derive(Debug)]
pub(super) struct Line {
    bytes: [u8; ROOM],
    length: usize,
}

impl Line {
    pub(super) const fn new() -> Line {
        Line { bytes: [0; ROOM], length: 0 }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn text(&mut self, text: &[u8]) -> &mut Line {
        let room = self.bytes.iter_mut().skip(self.length);
        for (to, from) in room.zip(text) {
            *to = *from;
            self.length += 1;
        }
        self
    }

    /// Appends a text in capitals.
    #[cold]
    #[inline(never)]
    pub(super) fn capitals(&mut self, text: &[u8]) -> &mut Line {
        for byte in text {
            self.text(&[byte.to_ascii_uppercase()]);
        }
        self
    }

    /// Appends a number in decimal.
    #[cold]
    #[inline(never)]
    pub(super) fn number(&mut self, number: usize) -> &mut Line {
        if number >= 10 {
            self.number(number / 10);
        }
        self.text(&[b'0' + (number % 10) as u8])
    }

    /// Appends a number of bytes, with a unit where that is exact.
    #[cold]
    #[inline(never)]
    pub(super) fn bytes(&mut self, bytes: usize) -> &mut Line {
        for (shift, unit) in [(30, b"G"), (20, b"M"), (10, b"K")] {
            if bytes > 0 && bytes.trailing_zeros() >= shift {
                return self.number(bytes >> shift).text(unit);
            }
        }
        self.number(bytes)
    }

    /// The line so far.
    #[cfg(test)]
    #[cold]
    #[inline(never)]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Writes the line to standard error.
    #[cold]
    #[inline(never)]
    pub(super) fn write(&mut self) {
        self.length = self.length.min(ROOM - 1);
        self.text(b"\n");
        kernel::write_error(self.bytes.at(..self.length));
    }
}
