//! The one way this crate ends a program: a static message on standard error, then an abort.
//!
//! Relies on the kernel door to write. Nothing is formatted or allocated, because the heap may be
//! what is broken.

use crate::kernel;
use crate::libc;

/// A reason to end the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `free` or `realloc` of a pointer that is no block of ours, and no other malloc is known.
    ForeignPointer,
    /// A pointer into one of our pages, but not to the start of a block.
    NotABlock,
    /// A block that was free already.
    FreedTwice,
}

impl Fault {
    const fn message(self) -> &'static [u8] {
        match self {
            Fault::ForeignPointer => {
                b"masu: free or realloc of a pointer that masu did not allocate; stopping\n"
            }
            Fault::NotABlock => {
                b"masu: free or realloc of a pointer into the middle of a block; stopping\n"
            }
            Fault::FreedTwice => b"masu: a block was freed twice; stopping\n",
        }
    }
}

/// Ends the program.
#[cold]
#[inline(never)]
pub(crate) fn stop(fault: Fault) -> ! {
    kernel::write_error(fault.message());
    libc::abort()
}
