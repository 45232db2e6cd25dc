//! A line of text for standard error, put together on the stack.
//!
//! It relies on the kernel door. What `core::fmt` would do is done here in a few instructions,
//! because reading the environment must stay small. What does not fit is cut off.

use crate::platform::kernel;

/// Longer than any line that is written.
const ROOM: usize = 256;

/// The line so far.
#[derive(Debug)]
pub(super) struct Line {
    bytes: [u8; ROOM],
    length: usize,
}

impl Line {
    pub(super) const fn new() -> Line {
        Line { bytes: [0; ROOM], length: 0 }
    }

    /// Adds a text.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.options.line_text")]
    pub(super) fn text(&mut self, text: &[u8]) -> &mut Line {
        let room = &mut self.bytes[self.length..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text[..length]);
        self.length += length;
        self
    }

    /// Adds a text in capitals.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.options.line_capitals")]
    pub(super) fn capitals(&mut self, text: &[u8]) -> &mut Line {
        for byte in text {
            self.text(&[byte.to_ascii_uppercase()]);
        }
        self
    }

    /// Adds a number in decimal.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.options.line_number")]
    pub(super) fn number(&mut self, number: usize) -> &mut Line {
        if number >= 10 {
            self.number(number / 10);
        }
        self.text(&[b'0' + (number % 10) as u8])
    }

    /// Adds a number of bytes, with a unit where that is exact.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.options.line_bytes")]
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

    /// Writes it to standard error, with an end.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.options.line_write")]
    pub(super) fn write(&mut self) {
        self.length = self.length.min(ROOM - 1);
        self.text(b"\n");
        kernel::write_error(&self.bytes[..self.length]);
    }
}
