//! An allocator with the oracle looking on: each operation is made, and what it promised checked.
//!
//! It relies on [`Live`] for overlap and on [`Pattern`] for contents. The hard idea is the order: a
//! block leaves the live intervals *before* the allocator gets it back, for from then on another
//! thread may be handed its bytes; and it enters them before the first byte is written.

use std::alloc::Layout;
use std::hint::black_box;

use crate::finding::Finding;
use crate::live::Live;
use crate::malloc::Malloc;
use crate::pattern::{Pattern, first_not_zero};

/// By which function a block is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
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

/// What a block is asked to be. Through the layout doors, the size is not 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) door: Door,
    pub(crate) size: usize,
    pub(crate) align: usize,
}

impl Request {
    fn layout(self) -> Layout {
        Layout::from_size_align(self.size, self.align).expect("sizes and alignments are small")
    }

    fn by_layout(self) -> bool {
        matches!(self.door, Door::Layout | Door::LayoutZeroed)
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
    /// The size that was asked for.
    pub(crate) fn size(&self) -> usize {
        self.request.size
    }

    /// Whether it belongs to `GlobalAlloc`.
    pub(crate) fn by_layout(&self) -> bool {
        self.request.by_layout()
    }

    /// What it was asked to be.
    pub(crate) fn request(&self) -> Request {
        self.request
    }

    /// What C's `malloc_usable_size` says of it now, however it was asked for.
    pub(crate) fn size_by_masu(&self) -> usize {
        // SAFETY: The block is live; only blocks of masu's are asked.
        unsafe { masu::c::usable_size(self.start) }
    }

    /// Where it begins.
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

/// An allocator under the oracle's eyes.
pub(crate) struct Checked<'a, M> {
    malloc: &'a M,
    live: Live,
}

impl<'a, M: Malloc> Checked<'a, M> {
    pub(crate) fn new(malloc: &'a M) -> Self {
        Checked { malloc, live: Live::new() }
    }

    /// Whether every block was freed.
    pub(crate) fn nothing_is_live(&self) -> bool {
        self.live.is_empty()
    }

    /// Allocates a block, checks it, and fills it with the pattern of `id`.
    pub(crate) fn allocate(&self, id: u64, request: Request) -> Result<Block, Finding> {
        let Request { door, size, align } = request;
        let malloc = self.malloc;
        self.allocate_by(id, request, || match door {
            Door::Malloc => malloc.malloc(size),
            Door::Calloc { count } => malloc.calloc(count, size / count),
            Door::AlignedAlloc => malloc.aligned_alloc(align, size),
            // SAFETY: The size of a request for a layout is not 0.
            Door::Layout => unsafe { malloc.alloc(request.layout()) },
            // SAFETY: As above.
            Door::LayoutZeroed => unsafe { malloc.alloc_zeroed(request.layout()) },
        })
    }

    /// As [`Checked::allocate`], by a function that returns the block or null.
    pub(crate) fn allocate_by(
        &self,
        id: u64,
        request: Request,
        allocate: impl FnOnce() -> *mut u8,
    ) -> Result<Block, Finding> {
        let Request { door, size, .. } = request;
        let start = allocate();
        let zeroed = matches!(door, Door::Calloc { .. } | Door::LayoutZeroed);
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

    /// Checks what an allocator returned for a request, and enters it into the live intervals.
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

    /// Checks that a block is as its holder left it.
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

    /// As [`Checked::free`], by a function that gets the block and its layout.
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

    /// Checks a block that is about to go in another way than by itself, and forgets it.
    pub(crate) fn abandon(&self, block: Block) -> Result<(), Finding> {
        self.inspect(&block)?;
        self.live.release(block.address(), block.usable);
        Ok(())
    }

    /// Enters a block that another oracle knows: that of the process which this one was forked from.
    pub(crate) fn inherit(&self, block: &Block) -> Result<(), Finding> {
        self.live.claim(block.address(), block.usable)?;
        self.inspect(block)
    }

    /// Checks a block, changes its size, and checks that the contents came along. The block has the
    /// pattern of `id` afterwards.
    pub(crate) fn resize(&self, block: Block, id: u64, size: usize) -> Result<Block, Finding> {
        let request = if block.by_layout() {
            Request { size, ..block.request }
        } else {
            Request { size, door: Door::Malloc, align: 16 }
        };
        let align = request.align;
        let resized =
            self.resize_by(block, id, request, |start, layout| match request.by_layout() {
                // SAFETY: The block is live and of this layout; a new size by layout is not 0.
                true => unsafe { self.malloc.resize(start, layout, size) },
                // SAFETY: The block is live.
                false => unsafe { self.malloc.realloc(start, size) },
            })?;
        resized.map_err(|_| Finding::Refused { size, align })
    }

    /// As [`Checked::resize`], by a function that gets the old block and its layout and returns the new
    /// block or null. The block as it was, where that is refused. The new one is as `request` says.
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

    /// Asks for `size` bytes, which no machine has, as a new block and in place of `block`: both must be
    /// refused, and the block stay as it is.
    pub(crate) fn ask_too_much(&self, block: Option<&Block>, size: usize) -> Result<(), Finding> {
        let mut answers = vec![
            self.malloc.malloc(size),
            self.malloc.calloc(size / 2, 4),
            self.malloc.aligned_alloc(64, size),
        ];
        if let Some(block) = block.filter(|block| !block.by_layout()) {
            // SAFETY: The block is live; where it is refused, as it must be, it stays so.
            answers.push(unsafe { self.malloc.realloc(block.start, size) });
        }
        // The compiler may suppose that an unused block of the C library was handed out.
        match black_box(answers).iter().all(|answer| answer.is_null()) {
            false => Err(Finding::Impossible { size }),
            true => block.map_or(Ok(()), |block| self.inspect(block)),
        }
    }

    /// Asks the allocator to give free memory back.
    pub(crate) fn trim(&self) {
        self.malloc.trim(0);
    }
}
