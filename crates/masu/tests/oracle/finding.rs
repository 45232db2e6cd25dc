//! The oracle's findings, with the numbers of the block and the request.

/// A fault of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Null for a possible request.
    Refused { size: usize, align: usize },
    /// A block for an impossible request.
    Impossible { size: usize },
    /// A block without its alignment.
    Misaligned { start: usize, size: usize, align: usize },
    /// A usable size under the requested size.
    UsableTooSmall { start: usize, size: usize, usable: usize },
    /// A usable size that has changed.
    UsableChanged { start: usize, before: usize, after: usize },
    /// A block that shares bytes with another live block.
    Overlap { start: usize, end: usize, other_start: usize, other_end: usize },
    /// A byte of a live block that its owner did not write.
    ContentsLost { start: usize, size: usize, offset: usize },
    /// A byte that resizing did not keep.
    ResizeLost { size_before: usize, size_after: usize, offset: usize },
    /// A byte of a zeroed block that is not zero.
    NotZero { start: usize, size: usize, offset: usize },
    /// A statistic that differs from the oracle's count.
    Statistics { what: &'static str, counted: usize, expected: usize },
    /// A block in another heap than the requested one.
    WrongHeap { start: usize },
    /// A forked process with a finding, or with another wrong end.
    Child { wait_status: i32 },
}
