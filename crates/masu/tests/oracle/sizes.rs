//! Sizes and alignments of requests: those of programs, and edge cases.
//!
//! It relies on `usable_size` to find the edges of the size classes, and so not on the allocator's table.

use crate::checked::{Function, Request};
use crate::finding::Finding;
use crate::malloc::Malloc;
use crate::random::Random;

/// The weights of the kinds of sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    /// 1 to 64 bytes.
    pub(crate) tiny: u32,
    /// 64 bytes to 1 KiB.
    pub(crate) small: u32,
    /// A class's largest size, one more, or one less.
    pub(crate) edge: u32,
    /// 1 to 8 KiB.
    pub(crate) medium: u32,
    /// 8 to 64 KiB.
    pub(crate) big: u32,
    /// 64 KiB to 4 MiB.
    pub(crate) large: u32,
    /// 8 to 64 MiB.
    pub(crate) huge: u32,
}

/// Half of all requests are tiny, as in most programs measured.
pub(crate) const USUAL: Mix = Mix {
    tiny: 50_000,
    small: 32_000,
    edge: 12_000,
    medium: 4_000,
    big: 1_500,
    large: 150,
    huge: 1,
};

/// Other classes, for the pages that tiny blocks leave.
pub(crate) const MEDIUM: Mix = Mix {
    tiny: 10_000,
    small: 30_000,
    edge: 30_000,
    medium: 25_000,
    big: 5_000,
    large: 300,
    huge: 2,
};

/// Buffers: most bytes and many requests are in large blocks.
pub(crate) const BUFFERS: Mix = Mix {
    tiny: 50_000,
    small: 30_000,
    edge: 5_000,
    medium: 5_000,
    big: 9_000,
    large: 1_200,
    huge: 12,
};

/// Draws requests.
#[derive(Clone)]
pub(crate) struct Sizes {
    edges: Vec<usize>,
}

impl Sizes {
    /// Finds the edges of the size classes of `malloc`, up to 64 KiB.
    pub(crate) fn of(malloc: &dyn Malloc) -> Result<Sizes, Finding> {
        let mut edges = Vec::new();
        let mut size = 1;
        while size <= 64 << 10 {
            let block = malloc.malloc(size);
            if block.is_null() {
                return Err(Finding::Refused { size, align: 16 });
            }
            // SAFETY: The block was handed out just now.
            let usable = unsafe { malloc.usable_size(block) };
            // SAFETY: As above, and it is not used any more.
            unsafe { malloc.free(block) };
            edges.push(usable.max(size));
            size = usable.max(size) + 1;
        }
        Ok(Sizes { edges })
    }

    /// A size of the mix; now and then 0.
    pub(crate) fn size(&self, mix: &Mix, random: &mut Random) -> usize {
        let Mix { tiny, small, edge, medium, big, large, huge } = *mix;
        let zero = tiny / 100;
        match random.weighted(&[tiny, small, edge, medium, big, large, huge, zero]) {
            0 => 1 + random.below(64),
            1 => random.doubling(64, 1 << 10),
            2 => self.edges[random.below(self.edges.len())] + random.below(3) - 1,
            3 => random.doubling(1 << 10, 8 << 10),
            4 => random.doubling(8 << 10, 64 << 10),
            5 => random.doubling(64 << 10, 4 << 20),
            6 => random.doubling(8 << 20, 64 << 20),
            _ => 0,
        }
    }

    /// A request of the mix: half through C's functions, half through Rust's.
    pub(crate) fn request(&self, mix: &Mix, random: &mut Random) -> Request {
        let size = self.size(mix, random);
        let (function, align) = match random.below(20) {
            0..=6 => (Function::Malloc, 16),
            7 | 8 => (Function::Calloc { count: count_in(size, random) }, 16),
            9 => (Function::AlignedAlloc, alignment(random)),
            10..=16 => (Function::Layout, 1 << random.below(5)),
            17 | 18 => (Function::LayoutZeroed, 1 << random.below(5)),
            _ => (Function::Layout, alignment(random)),
        };
        let by_layout = matches!(function, Function::Layout | Function::LayoutZeroed);
        Request { function, size: size.max(by_layout.into()), align }
    }
}

/// A count that divides `size`.
fn count_in(size: usize, random: &mut Random) -> usize {
    let count = 1 << random.below(4);
    if size.is_multiple_of(count) { count } else { 1 }
}

/// Any power of two up to 1 MiB, mostly up to an OS page, and now and then up to 32 MiB.
fn alignment(random: &mut Random) -> usize {
    match random.below(10_000) {
        0 => 1 << (21 + random.below(5)),
        1..=500 => 1 << (13 + random.below(8)),
        _ => 1 << random.below(13),
    }
}
