//! Size classes: which rounded size a request gets, and how its pages are cut.
//!
//! Relies on nothing. Steps of 16 bytes up to 256, then eight to a doubling up to 64 KiB: 4.2 % of
//! a request are wasted on average over 256 bytes. A class is named by its *code*, the number that
//! the class map holds for its pages; the first few codes stand for memory that no cache takes.
//!
//! Several blocks of the smallest classes lie in one cache line, so the map says of their pages also
//! who owns them: there is a code for each *lane*, the shards that share it, so that `free` meets
//! another lane's block without a test of its own. Such a class is *homed*: its free blocks are
//! kept apart by lane. The same class without a home stands for blocks of any lane together, for
//! callers that do not look at the map.

use core::hint::assert_unchecked;

/// Bytes of a slice, the unit of everything above blocks.
pub(crate) const SLICE_BYTES: usize = 1 << SLICE_SHIFT;
/// A slice's size as a power of two.
pub(crate) const SLICE_SHIFT: u32 = 16;
/// Memory that is not ours.
pub(crate) const FOREIGN: u8 = 0;
/// A large block: whole slices of its own.
pub(crate) const LARGE: u8 = 1;
/// A block of a first-class heap, or any slice of a page of such blocks.
pub(crate) const HEAP: u8 = 2;
/// A page of blocks that a heap profile sampled: what class they are is known of its slices.
pub(crate) const SAMPLED: u8 = 3;
/// The code of the smallest size class.
pub(crate) const FIRST: usize = 4;
/// The code of the smallest homed class in lane 0.
pub(crate) const HOMED_FIRST: usize = 84;
/// How many of the smallest classes are homed: those under a cache line.
pub(crate) const HOMED: usize = 3;
/// Classes with and without a home: the length of arrays indexed by class.
pub(crate) const CLASSES: usize = HOMED_FIRST + HOMED;
/// Lanes that are distinguished, as many as fit the class map's byte; shards further on share them.
pub(crate) const LANES: usize = 14;
/// One more than the highest code in the class map.
pub(crate) const CODES: usize = HOMED_FIRST + HOMED * LANES;
/// The largest size in bytes that has a class.
pub(crate) const LARGEST_SMALL: usize = 64 << 10;
/// Over this size in bytes a block may be one of a class or a large one, whatever its size: a block that
/// grew so far gets slices of its own, because only those can grow on where they are.
pub(crate) const LARGEST_ALWAYS_SMALL: usize = 32 << 10;
/// The alignment of every block, as C's `max_align_t` needs it.
pub(crate) const MIN_ALIGN: usize = 16;
/// Up to this size in bytes, classes are looked up in a table of 16-byte steps.
pub(crate) const TABLE_LIMIT: usize = 1024;
/// Entries of such a table.
pub(crate) const TABLE_LENGTH: usize = TABLE_LIMIT / MIN_ALIGN + 1;

/// The end of the classes that lie 16 bytes apart, and the first power of two above.
const STEP_LIMIT: usize = 256;
/// Classes to a doubling above [`STEP_LIMIT`], as a power of two.
const PER_DOUBLING_LOG2: usize = 3;
/// The share of a page that may be lost behind its last block, in percent.
const TAIL_PERCENT_MAX: usize = 3;
/// The same for blocks of several OS pages: the tail then lies in OS pages that nobody touches, and
/// shorter pages empty sooner.
const TAIL_PERCENT_MAX_BIG: usize = 13;
/// From this size on, blocks are big in that sense.
const BIG: usize = 8 << 10;
/// The longest page, in slices.
pub(crate) const PAGE_SLICES_MAX: usize = 8;

/// A size class, named by its code; a homed one by its code in lane 0.
// INVARIANT: at least `FIRST` and below `CLASSES`, however one is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    /// The class of the smallest blocks that hold `size` bytes, for `size` up to
    /// [`LARGEST_SMALL`]; a size of 0 counts as 1.
    #[inline(always)]
    pub(crate) const fn of_size(size: usize) -> Class {
        if size <= TABLE_LIMIT { Class(TABLE[(size + 15) >> 4]) } else { Class::compute(size) }
    }

    /// The class for `size` bytes aligned to `align`, a power of two; `None` where only a large
    /// block will do. Blocks lie at multiples of their size from a 64 KiB boundary, so a class is
    /// aligned as its size is divisible.
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
        // Ends at the latest at `LARGEST_SMALL`, a multiple of every alignment up to itself.
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

    /// The class that a map code stands for; `None` for memory that no cache takes.
    #[inline]
    pub(crate) const fn from_code(code: u8) -> Option<Class> {
        match code as usize {
            FIRST..HOMED_FIRST => Some(Class(code)),
            HOMED_FIRST..CODES => {
                Some(Class((HOMED_FIRST + (code as usize - HOMED_FIRST) % HOMED) as u8))
            }
            _ => None,
        }
    }

    /// The class with this index; `None` where there is none.
    #[inline]
    pub(crate) const fn from_index(index: usize) -> Option<Class> {
        if index >= FIRST && index < CLASSES { Some(Class(index as u8)) } else { None }
    }

    /// All classes, smallest first, without a home.
    pub(crate) fn all() -> impl Iterator<Item = Class> {
        (FIRST as u8..HOMED_FIRST as u8).map(Class)
    }

    /// The class of these blocks where they are kept apart by lane.
    #[inline(always)]
    pub(crate) const fn homed(self) -> Class {
        if (self.0 as usize) < FIRST + HOMED {
            Class(self.0 + (HOMED_FIRST - FIRST) as u8)
        } else {
            self
        }
    }

    /// Whether blocks of this class are kept apart by lane.
    #[inline(always)]
    pub(crate) const fn is_homed(self) -> bool {
        self.0 as usize >= HOMED_FIRST
    }

    /// The number that names this class in shard `shard`: of a homed class its lane's code.
    #[inline(always)]
    pub(crate) const fn code_in(self, shard: u8) -> u8 {
        if self.is_homed() { self.0 + HOMED as u8 * (shard % LANES as u8) } else { self.0 }
    }

    /// A shard whose code for the homed class is `code`.
    pub(crate) const fn lane_of(code: u8) -> u8 {
        code.saturating_sub(HOMED_FIRST as u8) / HOMED as u8
    }

    /// The class as an index into arrays of [`CLASSES`] entries.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        // SAFETY: The invariant. Said so that arrays of that length are indexed without a check.
        unsafe { assert_unchecked((self.0 as usize) < CLASSES) };
        self.0 as usize
    }

    /// The class without a home as an index, for what does not care: pages.
    #[inline]
    pub(crate) const fn page_index(self) -> usize {
        let index = SHAPES[self.index()].page_index as usize;
        // SAFETY: The table holds indices. Said as above.
        unsafe { assert_unchecked(index < CLASSES) };
        index
    }

    const fn without_home(self) -> Class {
        if self.is_homed() { Class(self.0 - (HOMED_FIRST - FIRST) as u8) } else { self }
    }

    /// Bytes of a block.
    #[inline]
    pub(crate) const fn size(self) -> usize {
        SHAPES[self.index()].size as usize
    }

    /// Slices of a page.
    pub(crate) const fn page_slices(self) -> usize {
        SHAPES[self.index()].page_slices as usize
    }

    /// Blocks of a page.
    pub(crate) const fn page_blocks(self) -> usize {
        SHAPES[self.index()].page_blocks as usize
    }

    /// The index of the block that starts `offset` bytes into its page; meaningful only if one
    /// does. Up to [`LARGEST_SMALL`] it is also how many blocks fit `offset` bytes.
    #[inline]
    pub(crate) const fn block_index(self, offset: usize) -> usize {
        ((offset as u64 * SHAPES[self.index()].reciprocal as u64) >> 32) as usize
    }
}

/// Whether a block's class follows from the table alone. Most layouts are known at compile time, and
/// with them this; the others stay out of the code that is inlined everywhere.
#[inline(always)]
pub(crate) const fn is_in_table(size: usize, align: usize) -> bool {
    align <= MIN_ALIGN && size <= TABLE_LIMIT
}

/// Whether a block of `old_size` bytes that is to hold `size` had better get slices of its own: what
/// grew so far will grow on.
pub(crate) fn grows_large(old_size: usize, size: usize) -> bool {
    size > old_size && size > LARGEST_ALWAYS_SMALL
}

/// What follows from a class.
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
        let plain = Class(code as u8).without_home().0;
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

/// The fewest slices whose tail waste stays within bounds, at most [`PAGE_SLICES_MAX`].
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

/// Codes by size in 16-byte steps; `const` so that a size known at compile time folds away in
/// other crates too.
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
