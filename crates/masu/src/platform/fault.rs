//! The one way this crate ends a program: a static message on standard error, then an abort.
//!
//! Relies on the kernel door to write. Nothing is formatted or allocated, because the heap may be
//! what is broken.

use crate::platform::kernel;
use crate::platform::libc;

/// Why the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `free` or `realloc` of a pointer that is not masu's, and no other malloc is known.
    ForeignPointer,
    /// A pointer into one of our pages, but not to the start of a block.
    NotABlock,
    /// A block that was free already.
    FreedTwice,
    /// `realloc` or `malloc_usable_size` of a free block.
    UsedFreed,
    /// A pointer into masu's memory where there never was a block.
    NeverHandedOut,
    /// There is no memory, and the option `abort_on_oom` is set.
    OutOfMemory,
    /// A block of a first-class heap was freed to another heap or to none.
    NotTheHeaps,
    /// A block was freed by a layout of another size class.
    NotTheLayouts,
    /// A first-class heap was used after it was destroyed.
    HeapGone,
    /// A forked child needs a lock of a thread that it does not have.
    HolderLost,
    /// The allocator's own data leads outside of one of its arrays.
    OutOfBounds,
}

/// In the cold segment, because the constants that every program maps fill their OS pages.
#[unsafe(link_section = ".rodata.masu_cold.fault")]
static OVERWRITTEN: [u8; 45] = *b"masu: its own data was overwritten; stopping\n";

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
            Fault::UsedFreed => {
                b"masu: realloc or malloc_usable_size of a block after it was freed; stopping\n"
            }
            Fault::NeverHandedOut => {
                b"masu: free or realloc of a pointer into masu's memory that it never handed out; stopping\n"
            }
            Fault::OutOfMemory => {
                b"masu: there is no memory for a block; stopping, as MASU_ABORT_ON_OOM asks\n"
            }
            Fault::NotTheHeaps => {
                b"masu: a block of a heap was freed to another heap or to none; stopping\n"
            }
            Fault::NotTheLayouts => {
                b"masu: a block was freed by a layout that is not its own; stopping\n"
            }
            Fault::HeapGone => b"masu: a heap was used after it was destroyed; stopping\n",
            Fault::HolderLost => {
                b"masu: a lock was lost by fork in a signal handler; stopping\n"
            }
            Fault::OutOfBounds => &OVERWRITTEN,
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

/// Ends the program with a message built by the caller.
#[cfg(feature = "secure")]
#[cold]
#[inline(never)]
pub(crate) fn abort_with(message: &[u8]) -> ! {
    kernel::write_error(message);
    libc::abort()
}
