//! Size classes: the rounded size of a request, and how its pages are cut.
//!
//! Relies on nothing. Steps of 16 bytes up to 256, then eight steps per doubling up to 64 KiB: over 256 bytes a request
//! wastes 4.2 % on average.
//!
//! The words for a class's identity:
//!
//! - **Index**: names a class in arrays, `FIRST..CLASSES`.
//! - **Code**: the byte in the class map. The first few codes are memory that no cache takes; the others name a class.
//!   A plain class has its index as its code.
//! - **Shard** and **lane**: a lane is the shards, usually one, that share the codes of the smallest classes.
//! - **Laned**: the smallest classes exist twice. Several of their blocks lie in one cache line, so threads of
//!   different lanes must not share them. The *laned* class has a code for each lane, so `free` finds the stack of
//!   another lane's block without a test. The *plain* class is for callers that do not read the map, and mixes all
//!   lanes.

use core::hint::assert_unchecked;

/// Bytes of a slice, the unit of all memory above blocks.
pub(crate) const SLICE_BYTES: usize = 1 << SLICE_SHIFT;
/// A slice's size as a power of two.
pub(crate) const SLICE_SHIFT: u32 = 16;
/// Memory that is not masu's.
pub(crate) const FOREIGN: u8 = 0;
/// A large block of whole slices.
pub(crate) const LARGE: u8 = 1;
/// A block or a page of a first-class heap.
pub(crate) const HEAP: u8 = 2;
/// A page of blocks in a heap profile or of guarded blocks; its slices have their class.
pub(crate) const SAMPLED: u8 = 3;
/// The code of the smallest size class.
pub(crate) const FIRST: usize = 4;
/// The code of the smallest laned class in lane 0.
pub(crate) const LANED_FIRST: usize = 84;
/// The number of laned classes: the smallest, whose blocks are shorter than a cache line.
pub(crate) const LANED: usize = 3;
/// Plain and laned classes: the length of arrays by index.
pub(crate) const CLASSES: usize = LANED_FIRST + LANED;
/// The number of lanes, as many as fit the class map's byte; further shards share them.
pub(crate) const LANES: usize = 14;
/// One more than the highest code in the class map.
pub(crate) const CODES: usize = LANED_FIRST + LANED * LANES;
/// The largest size in bytes that has a class.
pub(crate) const LARGEST_SMALL: usize = 64 << 10;
/// Blocks over this size in bytes may be small or large: a block that grew to it is large, because only large blocks
/// can grow in place.
pub(crate) const LARGEST_ALWAYS_SMALL: usize = 32 << 10;
/// The alignment of every block, as C's `max_align_t` needs it.
pub(crate) const MIN_ALIGN: usize = 16;
/// Up to this size in bytes, classes are looked up in a table with steps of 16 bytes.
pub(crate) const TABLE_LIMIT: usize = 1024;
/// Entries of such a table.
pub(crate) const TABLE_LENGTH: usize = TABLE_LIMIT / MIN_ALIGN + 1;

/// The end of the classes that are 16 bytes apart.
const STEP_LIMIT: usize = 256;
/// Classes per doubling above [`STEP_LIMIT`], as a power of two.
const PER_DOUBLING_LOG2: usize = 3;
/// The most of a page that may be lost behind its last block, in percent.
const TAIL_PERCENT_MAX: usize = 3;
/// The same for blocks of several OS pages: the loss is then in OS pages that are never touched, and shorter pages
/// become empty sooner.
const TAIL_PERCENT_MAX_BIG: usize = 13;
/// Blocks of at least this size are big in that sense.
const BIG: usize = 8 << 10;
/// The longest page, in slices.
pub(crate) const PAGE_SLICES_MAX: usize = 8;

/// A size class, by its index.
// INVARIANT: at least `FIRST` and below `CLASSES`, however one is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    /// The class of the smallest blocks that hold `size` bytes, at most [`LARGEST_SMALL`]; a size of 0 counts as 1.
    #[inline(always)]
    pub(crate) const fn of_size(size: usize) -> Class {
        if size <= TABLE_LIMIT { Class(TABLE[(size + 15) >> 4]) } else { Class::compute(size) }
    }

    /// The class for `size` bytes aligned to `align`, a power of two; `None` where only a large block will do. Blocks
    /// lie at multiples of their size from a 64 KiB boundary, so a class is aligned to any power of two that divides
    /// its size.
    #[inline(always)]
    pub(crate) const fn of(size: usize, align: usize) -> Option<Class> {
        if align <= MIN_ALIGN {
            return if size <= LARGEST_SMALL { Some(Class::of_size(size)) } else { None };
        }
        Class::of_aligned(size, align)
    }

    const fn of_aligned(size: usize, align: usize) -> Option<Class> {
        if align > LARGEST_SMALL || size > LARGEST_SMALL {
            return None;
        }
        let rounded = (if size == 0 { 1 } else { size } + align - 1) & !(align - 1);
        if rounded > LARGEST_SMALL {
            return None;
        }
        let mut class = Class::of_size(rounded);
        // Ends at `LARGEST_SMALL` at the latest, a multiple of every alignment up to itself.
        while class.size() & (align - 1) != 0 {
            class = Class(class.0 + 1);
        }
        Some(class)
    }

    #[inline(always)]
    const fn compute(size: usize) -> Class {
        debug_assert!(size <= LARGEST_SMALL, "larger blocks have no class");
        if size <= STEP_LIMIT {
            let steps = size.div_ceil(MIN_ALIGN);
            let steps = if steps == 0 { 1 } else { steps };
            return Class((FIRST - 1 + steps) as u8);
        }
        let last = size - 1;
        let doubling = last.ilog2() as usize;
        // The steps of a doubling begin at 1 << PER_DOUBLING_LOG2, so they count one doubling more.
        let step = last >> (doubling - PER_DOUBLING_LOG2);
        let steps = (doubling << PER_DOUBLING_LOG2) + step;
        let steps_below = (STEP_LIMIT.ilog2() as usize + 1) << PER_DOUBLING_LOG2;
        Class((FIRST + STEP_LIMIT / MIN_ALIGN + steps - steps_below) as u8)
    }

    /// The class of a code; `None` for memory that no cache takes.
    #[inline]
    pub(crate) const fn from_code(code: u8) -> Option<Class> {
        match code as usize {
            FIRST..LANED_FIRST => Some(Class(code)),
            LANED_FIRST..CODES => {
                Some(Class((LANED_FIRST + (code as usize - LANED_FIRST) % LANED) as u8))
            }
            _ => None,
        }
    }

    /// The class with this index; `None` where there is none.
    #[inline]
    pub(crate) const fn from_index(index: usize) -> Option<Class> {
        if index >= FIRST && index < CLASSES { Some(Class(index as u8)) } else { None }
    }

    /// All plain classes, smallest first.
    pub(crate) fn all() -> impl Iterator<Item = Class> {
        (FIRST as u8..LANED_FIRST as u8).map(Class)
    }

    /// The laned class of these blocks, or the class itself if it has none.
    #[inline(always)]
    pub(crate) const fn laned(self) -> Class {
        if (self.0 as usize) < FIRST + LANED {
            Class(self.0 + (LANED_FIRST - FIRST) as u8)
        } else {
            self
        }
    }

    /// Whether this is a laned class.
    #[inline(always)]
    pub(crate) const fn is_laned(self) -> bool {
        self.0 as usize >= LANED_FIRST
    }

    /// The code of this class in shard `shard`: of a laned class that of the shard's lane.
    #[inline(always)]
    pub(crate) const fn code_in(self, shard: u8) -> u8 {
        if self.is_laned() { self.0 + LANED as u8 * (shard % LANES as u8) } else { self.0 }
    }

    /// The lane of a laned class's code, which is also a shard of it.
    pub(crate) const fn lane_of(code: u8) -> u8 {
        code.saturating_sub(LANED_FIRST as u8) / LANED as u8
    }

    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        // SAFETY: The invariant. Stated so that arrays of that length are indexed without a check.
        unsafe { assert_unchecked((self.0 as usize) < CLASSES) };
        self.0 as usize
    }

    /// The index of the plain class, by which pages are kept.
    #[inline]
    pub(crate) const fn page_index(self) -> usize {
        let index = SHAPES[self.index()].page_index as usize;
        // SAFETY: The table holds indices. Stated as above.
        unsafe { assert_unchecked(index < CLASSES) };
        index
    }

    const fn plain(self) -> Class {
        if self.is_laned() { Class(self.0 - (LANED_FIRST - FIRST) as u8) } else { self }
    }

    /// Bytes of a block.
    #[inline]
    pub(crate) const fn size(self) -> usize {
        let size = SHAPES[self.index()].size as usize;
        // SAFETY: The table holds sizes from `FIRST` on, where classes begin. Stated so that divisions are not checked.
        unsafe { assert_unchecked(size > 0) };
        size
    }

    /// Slices of a page.
    pub(crate) const fn page_slices(self) -> usize {
        SHAPES[self.index()].page_slices as usize
    }

    /// Blocks of a page.
    pub(crate) const fn page_blocks(self) -> usize {
        SHAPES[self.index()].page_blocks as usize
    }

    /// The index of the block that starts `offset` bytes into its page; meaningful only if one does. Up to
    /// [`LARGEST_SMALL`] it is also how many blocks fit `offset` bytes.
    #[inline]
    pub(crate) const fn block_index(self, offset: usize) -> usize {
        ((offset as u64 * SHAPES[self.index()].reciprocal as u64) >> 32) as usize
    }
}

/// Whether a layout's class follows from the table. Constant for most layouts, which are known at compile time.
#[inline(always)]
pub(crate) const fn is_in_table(size: usize, align: usize) -> bool {
    align <= MIN_ALIGN && size <= TABLE_LIMIT
}

/// Whether a block of `old_size` bytes that grows to `size` should become large: a block that grew so far will grow on.
pub(crate) fn grows_large(old_size: usize, size: usize) -> bool {
    size > old_size && size > LARGEST_ALWAYS_SMALL
}

/// The properties of a class.
#[derive(Clone, Copy)]
struct Shape {
    size: u32,
    /// 2³² / size, rounded down, plus 1: exact for multiples of the size within a page.
    reciprocal: u32,
    page_blocks: u16,
    page_slices: u8,
    page_index: u8,
}

static SHAPES: [Shape; CLASSES] = shapes();

const fn shapes() -> [Shape; CLASSES] {
    let mut shapes =
        [Shape { size: 0, reciprocal: 0, page_blocks: 0, page_slices: 0, page_index: 0 }; CLASSES];
    let mut code = FIRST;
    while code < CLASSES {
        let plain = Class(code as u8).plain().0;
        let size = size_of_code(plain as usize);
        shapes[code] = Shape {
            size: size as u32,
            reciprocal: ((1_u64 << 32) / size as u64 + 1) as u32,
            page_blocks: (fewest_slices(size) * SLICE_BYTES / size) as u16,
            page_slices: fewest_slices(size) as u8,
            page_index: plain,
        };
        code += 1;
    }
    shapes
}

const fn size_of_code(code: usize) -> usize {
    let steps = STEP_LIMIT / MIN_ALIGN;
    if code < FIRST + steps {
        return (code - FIRST + 1) * MIN_ALIGN;
    }
    let above = code - FIRST - steps;
    let doubling = STEP_LIMIT.ilog2() as usize + (above >> PER_DOUBLING_LOG2);
    let step = above & ((1 << PER_DOUBLING_LOG2) - 1);
    ((1 << PER_DOUBLING_LOG2) + step + 1) << (doubling - PER_DOUBLING_LOG2)
}

const fn tail_percent_max(size: usize) -> usize {
    if size >= BIG { TAIL_PERCENT_MAX_BIG } else { TAIL_PERCENT_MAX }
}

/// The fewest slices whose loss at the end is within bounds, at most [`PAGE_SLICES_MAX`].
const fn fewest_slices(size: usize) -> usize {
    let mut slices = 1;
    while slices < PAGE_SLICES_MAX {
        let bytes = slices * SLICE_BYTES;
        if (bytes % size) * 100 <= bytes * tail_percent_max(size) {
            break;
        }
        slices += 1;
    }
    slices
}

/// Indices by size in 16-byte steps; `const`, so that a size known at compile time folds away in other crates too.
const TABLE: [u8; TABLE_LENGTH] = {
    let mut table = [0; TABLE_LENGTH];
    let mut step = 0;
    while step < TABLE_LENGTH {
        table[step] = Class::compute(step * MIN_ALIGN).0;
        step += 1;
    }
    table
};

#[cfg(test)]
#[path = "class/tests.rs"]
mod tests;
