//! What the oracle can find: each promise of an allocator, broken.
//!
//! A finding carries the numbers that name the block and the request, so that a failure can be
//! read without a debugger.

/// A broken promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Null for a request that is possible.
    Refused { size: usize, align: usize },
    /// A block for a request that no machine can meet.
    Impossible { size: usize },
    /// A block that does not start at a multiple of the alignment asked for.
    Misaligned { start: usize, size: usize, align: usize },
    /// Usable size under the size asked for.
    UsableTooSmall { start: usize, size: usize, usable: usize },
    /// Usable size that differs from what it was when the block was handed out.
    UsableChanged { start: usize, before: usize, after: usize },
    /// A block that shares bytes with another live one.
    Overlap { start: usize, end: usize, other_start: usize, other_end: usize },
    /// A byte of a live block that its owner did not write.
    ContentsLost { start: usize, size: usize, offset: usize },
    /// A byte that `realloc` did not carry over.
    ResizeLost { size_before: usize, size_after: usize, offset: usize },
    /// A byte of a zeroed block that is not zero.
    NotZero { start: usize, size: usize, offset: usize },
    /// A number of the allocator's that differs from what the oracle counted.
    Books { what: &'static str, counted: usize, expected: usize },
    /// A block that is in another heap than the one it was asked of.
    OtherHeap { start: usize },
    /// A process forked here that found something, or came to another end than it should.
    Child { wait_status: i32 },
}
