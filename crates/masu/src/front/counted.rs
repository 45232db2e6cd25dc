//! Allocating and freeing while a heap profile is taken.
//!
//! Relies on counted caches to say which block is sampled. A sampled block of a class comes from a page of
//! its own kind, whose code in the class map says so; but it is a block like any other of its
//! class, in a page like any other. So whoever frees it without looking at the map, as a layout may in a
//! thread that has not noticed the profile yet, does no harm: the profile only takes it to be live. Where the thread has,
//! such frees lie on trays (`cache/freed.rs`) and are looked at together.

use super::FreedBy;
use crate::cache::ThreadCache;
use crate::class::Class;
use crate::shard::sampled;
use crate::slice::Slice;
use crate::{profile, slot, thread};

/// As [`super::allocate_class`], counted.
#[inline(never)]
pub(super) fn allocate(class: Class, size: usize, freed_by: FreedBy) -> *mut u8 {
    let by_layout = freed_by == FreedBy::Layout;
    let kept = if by_layout { class } else { class.homed() };
    let Some(cache) = slot::get().cache() else { return thread::take_uncached(class) };
    match cache.pop_counted(kept, size, by_layout) {
        Some(block) => block,
        None => allocate_sampled(cache, class, size, kept),
    }
}

#[cold]
#[inline(never)]
fn allocate_sampled(
    cache: &'static ThreadCache,
    class: Class,
    size: usize,
    kept: Class,
) -> *mut u8 {
    let block = sampled::take(class);
    if block.is_null() {
        return cache.pop_true(kept);
    }
    cache.sample(block.addr(), size);
    block
}

/// Keeps a block whose layout has `size` bytes on a tray, which was full; false where there is none.
#[inline(always)]
pub(super) fn keeps(block: *mut u8, size: usize) -> bool {
    let stacks = slot::get();
    stacks.counts() && stacks.cache().is_some_and(|cache| cache.push_to_tray(size, block))
}

/// Whether this thread's frees by layout have to look for sampled blocks. Not while no profile is taken, for
/// then nobody asks what became of them.
#[inline(always)]
pub(super) fn sees_layouts_free() -> bool {
    match slot::get().cache() {
        Some(cache) => {
            let counts = cache.stacks.counts();
            if counts {
                cache.notice_profile();
            }
            counts
        }
        None => profile::is_running(),
    }
}

/// The class of a block in a page of sampled ones.
///
/// # Safety
///
/// - The class map says so of `block`.
pub(super) unsafe fn class_of_sampled(block: *mut u8) -> Class {
    // SAFETY: The block lies in a page.
    let page = unsafe { Slice::at(block.addr()) }.page();
    Class::from_code(page.sampled.get()).unwrap_or(Class::of_size(1))
}

/// Frees a block that lies in a page of sampled ones.
///
/// # Safety
///
/// - As [`super::free`], and the class map says so of `block`.
#[cold]
#[inline(never)]
pub(super) unsafe fn free_sampled(block: *mut u8) {
    // Before the block can be handed out again.
    profile::remove(block.addr());
    // SAFETY: The caller's condition.
    thread::put_uncached(unsafe { class_of_sampled(block) }, block);
}
