//! Memory that a walk reads besides tables: words of the thread's stack, if the tables are right.
//!
//! Relies on the kernel to say which memory is readable. The hard idea: tables are not trusted. Some are written by
//! hand in assembly, and a wrong table leads to any address. A profile must not end the program for that, so each piece
//! of memory is checked before it is first read; a walk meets few.

use core::ptr;

use crate::platform::kernel;

/// The smallest OS page: all of it is readable, or nothing.
const PIECE_BYTES: usize = 4096;

/// The memory of one walk.
pub(super) struct Memory {
    /// The start of the piece that was checked last; no piece starts at 1.
    piece: usize,
}

impl Memory {
    pub(super) const fn new() -> Memory {
        Memory { piece: 1 }
    }

    /// The word at an address; `None` where it is not aligned or not readable.
    #[inline]
    pub(super) fn word_at(&mut self, address: usize) -> Option<usize> {
        if !address.is_multiple_of(size_of::<usize>()) {
            return None;
        }
        let piece = address & !(PIECE_BYTES - 1);
        if piece != self.piece {
            if !kernel::is_readable(address) {
                return None;
            }
            self.piece = piece;
        }
        let place: *const usize = ptr::with_exposed_provenance(address);
        // SAFETY: The whole piece is readable. If the tables are right it is this thread's stack, which no other thread
        // writes; if not, any value will do.
        Some(unsafe { place.read_volatile() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_memory_is_no_word() {
        let words = [7_usize, 8];
        let address = ptr::from_ref(&words).expose_provenance();
        let mut memory = Memory::new();
        assert_eq!(memory.word_at(address), Some(7));
        assert_eq!(memory.word_at(address + 8), Some(8));
        assert_eq!(memory.word_at(address + 1), None, "not aligned");
        let none = kernel::map(PIECE_BYTES, kernel::Protection::None).expect("addresses");
        for nowhere in [0, 8, none.as_ptr().addr(), 1 << 63, usize::MAX - 7] {
            assert_eq!(memory.word_at(nowhere), None, "{nowhere:#x}");
            assert_eq!(Memory::new().word_at(nowhere), None, "{nowhere:#x}");
        }
        assert_eq!(memory.word_at(address), Some(7));
        // SAFETY: The range was mapped above, and nothing refers to it.
        unsafe { kernel::unmap(none, PIECE_BYTES) };
    }
}
