//! A checked allocator: every operation is followed by the checks of its result.
//!
//! It relies on [`Live`] for overlap and on [`Pattern`] for contents. The hard idea is the order: a
//! block leaves the live intervals *before* it is freed, because another thread may get its bytes at
//! once; and it enters them before its first byte is written.

use std::alloc::Layout;

use crate::finding::Finding;
use crate::live::Live;
use crate::malloc::Malloc;
use crate::pattern::{Pattern, first_not_zero};

/// The function of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// `malloc`
    Malloc,
    /// `calloc`, the size split into this count and the rest.
    Calloc { count: usize },
    /// `aligned_alloc`
    AlignedAlloc,
    /// `GlobalAlloc::alloc`
    Layout,
    /// `GlobalAlloc::alloc_zeroed`
    LayoutZeroed,
}

/// A request for a block. The size of a request by layout is not 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) function: Function,
    pub(crate) size: usize,
    pub(crate) align: usize,
}

impl Request {
    fn layout(self) -> Layout {
        Layout::from_size_align(self.size, self.align).expect("sizes and alignments are small")
    }

    fn by_layout(self) -> bool {
        matches!(self.function, Function::Layout | Function::LayoutZeroed)
    }
}

/// A live block, filled with its pattern over its usable size.
#[derive(Debug)]
pub(crate) struct Block {
    start: *mut u8,
    request: Request,
    usable: usize,
    id: u64,
}

// SAFETY: A block is memory that only its holder uses.
unsafe impl Send for Block {}

impl Block {
    /// The requested size.
    pub(crate) fn size(&self) -> usize {
        self.request.size
    }

    /// Whether the block is freed by layout.
    pub(crate) fn by_layout(&self) -> bool {
        self.request.by_layout()
    }

    pub(crate) fn request(&self) -> Request {
        self.request
    }

    /// The current `malloc_usable_size` of the block, also if the block has a layout.
    pub(crate) fn size_by_masu(&self) -> usize {
        // SAFETY: The block is live and masu's.
        unsafe { masu::c::usable_size(self.start) }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    fn address(&self) -> usize {
        self.start.addr()
    }

    fn pattern(&self) -> Pattern {
        Pattern { id: self.id, length: self.usable }
    }
}

/// A checked allocator.
pub(crate) struct Checked<'a> {
    malloc: &'a dyn Malloc,
    live: Live,
}

impl<'a> Checked<'a> {
    pub(crate) fn new(malloc: &'a dyn Malloc) -> Self {
        Checked { malloc, live: Live::new() }
    }

    /// Whether every block was freed.
    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Allocates a block, checks it, and fills it with the pattern of `id`.
    pub(crate) fn allocate(&self, id: u64, request: Request) -> Result<Block, Finding> {
        let Request { function, size, align } = request;
        let malloc = self.malloc;
        self.allocate_by(id, request, || match function {
            Function::Malloc => malloc.malloc(size),
            Function::Calloc { count } => malloc.calloc(count, size / count),
            Function::AlignedAlloc => malloc.aligned_alloc(align, size),
            // SAFETY: The size of a request for a layout is not 0.
            Function::Layout => unsafe { malloc.alloc(request.layout()) },
            // SAFETY: As above.
            Function::LayoutZeroed => unsafe { malloc.alloc_zeroed(request.layout()) },
        })
    }

    /// [`Checked::allocate`] by a function that returns the block or null.
    pub(crate) fn allocate_by(
        &self,
        id: u64,
        request: Request,
        allocate: impl FnOnce() -> *mut u8,
    ) -> Result<Block, Finding> {
        let Request { function, size, .. } = request;
        let start = allocate();
        let zeroed = matches!(function, Function::Calloc { .. } | Function::LayoutZeroed);
        let block = self.admit(id, request, start)?;
        if zeroed {
            // SAFETY: The block is this thread's and at least `size` bytes long.
            if let Some(offset) = unsafe { first_not_zero(block.start, size) } {
                return Err(Finding::NotZero { start: block.address(), size, offset });
            }
        }
        // SAFETY: The block is this thread's, and `usable` bytes of it may be used.
        unsafe { block.pattern().fill(block.start) };
        Ok(block)
    }

    /// Checks the result of a request, and enters it into the live intervals.
    fn admit(&self, id: u64, request: Request, start: *mut u8) -> Result<Block, Finding> {
        let Request { size, align, .. } = request;
        if start.is_null() {
            return Err(Finding::Refused { size, align });
        }
        if !start.addr().is_multiple_of(align) {
            return Err(Finding::Misaligned { start: start.addr(), size, align });
        }
        let usable = match request.by_layout() {
            true => size,
            // SAFETY: The block was handed out just now.
            false => unsafe { self.malloc.usable_size(start) },
        };
        if usable < size {
            return Err(Finding::UsableTooSmall { start: start.addr(), size, usable });
        }
        self.live.claim(start.addr(), usable)?;
        Ok(Block { start, request, usable, id })
    }

    /// Has masu check all of its counts against its memory, while no other thread uses it: a free block in a cache is in one
    /// only, and is no live one.
    pub(crate) fn audit(&self) -> Result<(), Finding> {
        let free = audit();
        free.iter().try_for_each(|(start, size)| self.live.claim(*start, *size))?;
        free.iter().for_each(|(start, size)| self.live.release(*start, *size));
        Ok(())
    }

    /// Checks that a block is unchanged.
    pub(crate) fn inspect(&self, block: &Block) -> Result<(), Finding> {
        let start = block.address();
        if !block.by_layout() {
            // SAFETY: The block is live.
            let after = unsafe { self.malloc.usable_size(block.start) };
            if after != block.usable {
                return Err(Finding::UsableChanged { start, before: block.usable, after });
            }
        }
        // SAFETY: The block is this thread's.
        match unsafe { block.pattern().first_difference(block.start, usize::MAX) } {
            None => Ok(()),
            Some(offset) => Err(Finding::ContentsLost { start, size: block.size(), offset }),
        }
    }

    /// Checks and frees a block.
    pub(crate) fn free(&self, block: Block) -> Result<(), Finding> {
        let by_layout = block.by_layout();
        self.free_by(block, |start, layout| match by_layout {
            // SAFETY: The block is live and of this layout; it is not used any more.
            true => unsafe { self.malloc.dealloc(start, layout) },
            // SAFETY: The block is live and not used any more.
            false => unsafe { self.malloc.free(start) },
        })
    }

    /// [`Checked::free`] by a function that gets the block and its layout.
    pub(crate) fn free_by(
        &self,
        block: Block,
        free: impl FnOnce(*mut u8, Layout),
    ) -> Result<(), Finding> {
        let (start, layout) = (block.start, block.request.layout());
        self.abandon(block)?;
        free(start, layout);
        Ok(())
    }

    /// Checks and forgets a block that is about to be freed.
    pub(crate) fn abandon(&self, block: Block) -> Result<(), Finding> {
        self.inspect(&block)?;
        self.live.release(block.address(), block.usable);
        Ok(())
    }

    /// Checks and enters a block of the parent process.
    pub(crate) fn inherit(&self, block: &Block) -> Result<(), Finding> {
        self.live.claim(block.address(), block.usable)?;
        self.inspect(block)
    }

    /// Resizes a block and checks that its contents were kept; it has the pattern of `id` afterwards. Returns the old
    /// block if that was refused.
    pub(crate) fn resize(
        &self,
        block: Block,
        id: u64,
        size: usize,
    ) -> Result<Result<Block, Block>, Finding> {
        let request = if block.by_layout() {
            Request { size, ..block.request }
        } else {
            Request { size, function: Function::Malloc, align: 16 }
        };
        self.resize_by(block, id, request, |start, layout| match request.by_layout() {
            // SAFETY: The block is live and of this layout; a new size by layout is not 0.
            true => unsafe { self.malloc.resize(start, layout, size) },
            // SAFETY: The block is live.
            false => unsafe { self.malloc.realloc(start, size) },
        })
    }

    /// [`Checked::resize`] by a function that gets the old block and its layout and returns the new block
    /// or null. Returns the new block, with `request`, or the old one if it was refused.
    pub(crate) fn resize_by(
        &self,
        block: Block,
        id: u64,
        request: Request,
        resize: impl FnOnce(*mut u8, Layout) -> *mut u8,
    ) -> Result<Result<Block, Block>, Finding> {
        self.inspect(&block)?;
        self.live.release(block.address(), block.usable);
        let start = resize(block.start, block.request.layout());
        if start.is_null() {
            self.inherit(&block)?;
            return Ok(Err(block));
        }
        let resized = self.admit(id, request, start)?;
        let (size_before, size_after) = (block.size(), request.size);
        let kept = size_after.min(size_before);
        // SAFETY: The block is this thread's, and as long as the smaller of the two sizes.
        if let Some(offset) = unsafe { block.pattern().first_difference(start, kept) } {
            return Err(Finding::ResizeLost { size_before, size_after, offset });
        }
        // SAFETY: The block is this thread's.
        unsafe { resized.pattern().fill(start) };
        Ok(Ok(resized))
    }

    /// Requests an impossible `size`, as a new block and for `block`: both must be refused, and the block
    /// must be unchanged.
    pub(crate) fn request_too_much(
        &self,
        block: Option<&Block>,
        size: usize,
    ) -> Result<(), Finding> {
        let mut answers = vec![
            self.malloc.malloc(size),
            self.malloc.calloc(size / 2, 4),
            self.malloc.aligned_alloc(64, size),
        ];
        if let Some(block) = block.filter(|block| !block.by_layout()) {
            // SAFETY: The block is live, and stays live if this is refused, as it must be.
            answers.push(unsafe { self.malloc.realloc(block.start, size) });
        }
        match answers.iter().all(|answer| answer.is_null()) {
            false => Err(Finding::Impossible { size }),
            true => block.map_or(Ok(()), |block| self.inspect(block)),
        }
    }

    pub(crate) fn trim(&self) {
        self.malloc.trim(0);
    }
}

/// Has masu check itself; returns the free blocks in caches. An optimized build has no such checks.
fn audit() -> Vec<(usize, usize)> {
    #[cfg(not(debug_assertions))]
    return Vec::new();
    #[cfg(debug_assertions)]
    {
        let mut free = Vec::new();
        masu::statistics::audit(&mut |start, size| free.push((start, size)));
        free
    }
}
