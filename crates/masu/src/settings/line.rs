//! A line of text for standard error, built on the stack.
//!
//! Relies on the kernel door. It replaces `core::fmt`, because the code that reads the environment must stay small, and a
//! report of misuse neither formats nor allocates. Text that does not fit is cut off.

use crate::platform::bounds::Bounded;
use crate::platform::kernel;

/// Longer than any line that masu writes, except for one with the name of an object.
const ROOM: usize = 512;

#[derive(Debug)]
pub(crate) struct Line {
    bytes: [u8; ROOM],
    length: usize,
}

impl Line {
    pub(crate) const fn new() -> Line {
        Line { bytes: [0; ROOM], length: 0 }
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Line {
        self.raw(text.as_bytes())
    }

    /// Appends a text of unknown encoding.
    #[cold]
    #[inline(never)]
    pub(crate) fn raw(&mut self, text: &[u8]) -> &mut Line {
        // Keeps room for the newline.
        let room = self.bytes.iter_mut().take(ROOM - 1).skip(self.length);
        for (to, from) in room.zip(text) {
            *to = *from;
            self.length += 1;
        }
        self
    }

    /// Appends a text in capitals.
    #[cold]
    #[inline(never)]
    pub(crate) fn capitals(&mut self, text: &[u8]) -> &mut Line {
        for byte in text {
            self.raw(&[byte.to_ascii_uppercase()]);
        }
        self
    }

    /// Appends a number in decimal.
    pub(crate) fn number(&mut self, number: usize) -> &mut Line {
        self.digits(number, 10)
    }

    /// Appends an address in hexadecimal.
    pub(crate) fn address(&mut self, address: usize) -> &mut Line {
        self.text("0x").digits(address, 16)
    }

    #[cold]
    #[inline(never)]
    fn digits(&mut self, number: usize, base: usize) -> &mut Line {
        if number >= base {
            self.digits(number / base, base);
        }
        self.raw(&[*b"0123456789abcdef".at(number % base)])
    }

    /// Appends a number of bytes, with the word.
    #[cold]
    #[inline(never)]
    pub(crate) fn count(&mut self, bytes: usize) -> &mut Line {
        self.number(bytes).text(if bytes == 1 { " byte" } else { " bytes" })
    }

    /// Appends a number of bytes in the form of a variable, with a unit where that is exact.
    #[cold]
    #[inline(never)]
    pub(crate) fn size(&mut self, bytes: usize) -> &mut Line {
        for (shift, unit) in [(30, b'G'), (20, b'M'), (10, b'K')] {
            if bytes > 0 && bytes.trailing_zeros() >= shift {
                return self.number(bytes >> shift).raw(&[unit]);
            }
        }
        self.number(bytes)
    }

    /// The line so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The line with a newline behind it.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(&mut self) -> &[u8] {
        *self.bytes.at_mut(self.length) = b'\n';
        self.bytes.at(..=self.length)
    }

    /// Writes the line to standard error; the next one begins.
    #[cold]
    #[inline(never)]
    pub(crate) fn write(&mut self) {
        kernel::write_error(self.end());
        self.length = 0;
    }
}
