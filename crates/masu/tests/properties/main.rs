//! Properties of the allocator, one a test: threads, memory use. The oracle checks the promises of every request.
//!
//! The tests call masu directly and keep their own memory in the system's malloc. Some properties are
//! sums over the process, so the tests take turns.

mod arenas;
mod memory;
mod resident;
mod threads;
mod turn;

use std::ptr::NonNull;

use turn::alone;

/// A block of masu's, freed when dropped.
struct Block {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: A block is memory that only its holder uses.
unsafe impl Send for Block {}

impl Block {
    /// Allocates a block.
    fn new(size: usize) -> Block {
        let start = NonNull::new(masu::c::malloc(size));
        let start = start.unwrap_or_else(|| panic!("no {size} bytes"));
        Block { start, size }
    }

    /// Allocates a block and writes every byte.
    fn filled(size: usize, byte: u8) -> Block {
        let mut block = Block::new(size);
        block.bytes().fill(byte);
        block
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: The block is that long and this value's alone; callers write before they read.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.size) }
    }

    /// Whether every byte is `byte`.
    fn is_all(&mut self, byte: u8) -> bool {
        self.bytes().iter().all(|&found| found == byte)
    }

    fn usable_size(&self) -> usize {
        // SAFETY: The block is live.
        unsafe { masu::c::usable_size(self.start.as_ptr()) }
    }

    /// Resizes the block; returns `Err` with the old block if that is refused.
    fn resized(self, size: usize) -> Result<Block, Block> {
        // SAFETY: The block is live; if the call succeeds, the old block is forgotten.
        let start = unsafe { masu::c::realloc(self.start.as_ptr(), size) };
        match NonNull::new(start) {
            None => Err(self),
            Some(start) => {
                std::mem::forget(self);
                Ok(Block { start, size })
            }
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: The block is live and nothing uses it afterwards.
        unsafe { masu::c::free(self.start.as_ptr()) };
    }
}

/// A number under `end`, the next of a sequence that is the same in every run (Knuth's LCG).
fn next_below(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % end
}
