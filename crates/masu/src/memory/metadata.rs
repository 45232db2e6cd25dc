//! Memory of the allocator's own: thread caches and their arrays.
//!
//! Relies on ranges, from which it takes slices forever. Arrays have lengths that are powers of two and are reused from a
//! free list for each length. Nothing is returned to the ranges; metadata stay small because the caches' budgets bound the
//! arrays. Where many threads run at once, they take arrays from several pools; an array may be freed to any.
//!
//! Slices are taken several at a time, because each that is taken later lies amid blocks, and parts what is free when they
//! are gone. In the hardened build they lie between two inaccessible ones, so that no block overruns into them.

use core::ptr::{self, NonNull};

use crate::memory::ranges::stripes;
use crate::memory::slice::{Kind, SLICE_BYTES};
use crate::platform::bounds::Bounded;
use crate::platform::kernel::{self, Protection};
use crate::platform::sync::{Guard, Lock, Ordering, Visit};
use crate::settings::SHARDS_MAX;

/// The longest array: a slice.
pub(crate) const WORDS_MAX: usize = SLICE_BYTES / size_of::<usize>();
/// The shortest array: a cache line.
pub(crate) const WORDS_MIN: usize = 8;
/// Slices taken at a time, and inaccessible ones on either side.
const SLICES: usize = 4;
const GUARD_SLICES: usize = cfg!(feature = "secure") as usize;
const LENGTHS: usize = (WORDS_MAX / WORDS_MIN).ilog2() as usize + 1;

/// In this order, and from the start of a line, what most threads need is on the lock's line.
#[repr(C)]
struct Metadata {
    /// The rest of the slices that were taken last.
    next: usize,
    end: usize,
    /// Freed arrays, by length; each holds the address of the next one.
    free: [usize; LENGTHS],
}

#[repr(align(128))]
struct Shared(Lock<Metadata>);

impl Shared {
    const fn new() -> Shared {
        Shared(Lock::new(Metadata { next: 0, end: 0, free: [0; LENGTHS] }))
    }
}

/// Serves everything but the arrays of many threads.
static METADATA: Shared = Shared::new();
/// The pools of the shards behind the first.
static POOLS: [Shared; SHARDS_MAX - 1] = [const { Shared::new() }; SHARDS_MAX - 1];

/// An array of `count` words, at most a slice, rounded up to a power of two; its contents are unspecified. `None` without
/// memory.
pub(crate) fn words(count: usize) -> Option<&'static mut [usize]> {
    words_of(0, count)
}

/// The same from a shard's pool.
#[inline(never)]
pub(crate) fn words_of(pool: u8, count: usize) -> Option<&'static mut [usize]> {
    let count = count.next_power_of_two().max(WORDS_MIN);
    debug_assert!(count <= WORDS_MAX);
    let start = lock(pool).take(count)?;
    // SAFETY: The array is `count` words long, aligned to its line, and nothing else uses it.
    Some(unsafe { core::slice::from_raw_parts_mut(start.as_ptr(), count) })
}

/// Frees an array.
///
/// # Safety
///
/// - `array` came from [`words`] with this length, and nothing refers to it any more.
pub(crate) unsafe fn give_back(array: NonNull<usize>, count: usize) {
    // SAFETY: The caller's condition.
    unsafe { give_back_to(0, array, count) };
}

/// The same to a pool, not necessarily that which the array came from.
///
/// # Safety
///
/// - The condition of [`give_back`].
#[inline(never)]
pub(crate) unsafe fn give_back_to(pool: u8, array: NonNull<usize>, count: usize) {
    let mut metadata = lock(pool);
    let list = metadata.list(count);
    // SAFETY: The array is at least a line long, and nothing uses it.
    unsafe { array.write(*list) };
    *list = array.as_ptr().expose_provenance();
}

fn lock(pool: u8) -> Guard<'static, Metadata> {
    let behind = usize::from(pool).checked_sub(1);
    behind.and_then(|index| POOLS.get(index)).unwrap_or(&METADATA).0.lock()
}

impl Metadata {
    /// The freed arrays of `count` words.
    fn list(&mut self, count: usize) -> &mut usize {
        self.free.at_mut((count / WORDS_MIN).trailing_zeros() as usize)
    }

    fn take(&mut self, count: usize) -> Option<NonNull<usize>> {
        let list = self.list(count);
        if let Some(array) = NonNull::new(ptr::with_exposed_provenance_mut::<usize>(*list)) {
            // SAFETY: `give_back` wrote the next one's address there.
            *list = unsafe { array.read() };
            return Some(array);
        }
        self.carve(count)
    }

    /// Words that were never used before.
    fn carve(&mut self, count: usize) -> Option<NonNull<usize>> {
        let bytes = count * size_of::<usize>();
        if self.end - self.next < bytes {
            (self.next, self.end) = take_slices()?;
        }
        let start = ptr::with_exposed_provenance_mut(self.next);
        self.next += bytes;
        NonNull::new(start)
    }
}

/// Takes slices forever; returns their start and end. `None` without memory.
fn take_slices() -> Option<(usize, usize)> {
    let all = GUARD_SLICES + SLICES + GUARD_SLICES;
    let run = stripes::first().lock_in_others().allocate(all, 1, Kind::Metadata)?;
    if cfg!(feature = "secure") {
        // SAFETY: The run was handed out to this function.
        for guard in [run.first, unsafe { run.first.ahead(GUARD_SLICES + SLICES) }] {
            // SAFETY: Nothing uses it. If refused, there is no guard.
            let _ = unsafe { kernel::protect(guard.start(), SLICE_BYTES, Protection::None) };
        }
    }
    let start = run.first.address() + GUARD_SLICES * SLICE_BYTES;
    Some((start, start + SLICES * SLICE_BYTES))
}

/// Stores a value forever, on cache lines of its own. `None` without memory.
pub(crate) fn forever<T>(value: T) -> Option<&'static mut T> {
    const { assert!(align_of::<T>() <= WORDS_MIN * size_of::<usize>()) };
    let count = size_of::<T>().div_ceil(size_of::<usize>()).next_multiple_of(WORDS_MIN);
    let mut start = lock(0).carve(count)?.cast::<T>();
    // SAFETY: The lines are long enough and aligned, and nothing else uses them.
    unsafe { start.write(value) };
    // SAFETY: Written just now, used by nothing else, and never freed.
    Some(unsafe { start.as_mut() })
}

/// Visits every lock of this module that is used, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    // ORDERING: Relaxed: it changes under the lock of all threads, which `fork` holds.
    let used = stripes::many_shards().load(Ordering::Relaxed);
    visit.see(METADATA.0.raw());
    POOLS.iter().take(used.saturating_sub(1)).for_each(|pool| visit.see(pool.0.raw()));
}
