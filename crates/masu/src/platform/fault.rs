//! The one way this crate ends a program: a static message on standard error, then an abort.
//!
//! Relies on the kernel door to write. Nothing is formatted or allocated, because the heap may be broken.

use crate::platform::kernel;
use crate::platform::libc;

/// The faults, each with its line on standard error.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident: $line:literal)*) => {
        /// The reason why the program ends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Fault {
            $($(#[$doc])* $name,)*
        }

        /// The lines of the faults, one behind the other: pointers to lines would be relocated in every program.
        const TEXT: &[u8] = concat!($("masu: ", $line, "; stopping\n"),*).as_bytes();
    };
}

faults! {
    /// `free` or `realloc` of a pointer that is not masu's, and no other malloc is known.
    ForeignPointer: "free or realloc of a pointer that masu did not allocate"
    /// A pointer into one of our pages, but not to the start of a block.
    NotABlock: "free or realloc of a pointer into the middle of a block"
    /// A block that was free already.
    FreedTwice: "a block was freed twice"
    /// `realloc` or `malloc_usable_size` of a free block.
    UsedFreed: "realloc or malloc_usable_size of a block after it was freed"
    /// A pointer into masu's memory where there never was a block.
    NeverHandedOut: "free or realloc of a pointer into masu's memory that it never handed out"
    /// There is no memory, and the option `abort_on_oom` is set.
    OutOfMemory: "there is no memory for a block, and MASU_ABORT_ON_OOM is set"
    /// A block of a first-class heap was freed to another heap or to none.
    NotTheHeaps: "a block of a heap was freed to another heap or to none"
    /// A block was freed by a layout of another size class.
    NotTheLayouts: "a block was freed by a layout that is not its own"
    /// A first-class heap was used after it was destroyed.
    HeapGone: "a heap was used after it was destroyed"
    /// A forked child needs a lock of a thread that it does not have.
    HolderLost: "a lock was lost by fork in a signal handler"
    /// The allocator's own data leads outside of one of its arrays.
    OutOfBounds: "its own data was overwritten"
}

/// In the cold segment, because the constants that every program maps fill their OS pages.
#[unsafe(link_section = ".rodata.masu_cold.fault")]
static LINES: [u8; TEXT.len()] = *TEXT.first_chunk().unwrap();

/// Ends the program.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn stop(fault: Fault) -> ! {
    let mut lines = LINES.split_inclusive(|byte| *byte == b'\n');
    kernel::write_error(lines.nth(fault as usize).unwrap_or_default());
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
