//! Allocating and freeing while a heap profile is taken or blocks are guarded.
//!
//! Relies on counted caches to choose the requests that are sampled or guarded. A sampled block comes from a page of its own
//! kind, which has a code of its own in the class map; otherwise it is a block of its class. So a thread that has not
//! noticed the profile yet may free it by layout without harm: the block reaches its page when its stack is flushed or
//! searched.

use core::ptr;

use crate::blocks::ownership::Shard;
use crate::blocks::page::page_of;
use crate::blocks::shard::sampled;
use crate::blocks::slot;
use crate::diagnostics::guards::{self, Request};
use crate::diagnostics::sampling;
use crate::memory::arena::code_of;
use crate::memory::class::{Class, SAMPLED};
use crate::memory::map;
use crate::threads::cache::{ThreadCache, all, are_counted};
use crate::threads::statistics::page;
use crate::threads::thread;

/// A cached block for `size` bytes within the table, counted, where this thread's layouts take slow paths; null where they
/// do not, or there is none.
#[inline(always)]
pub(super) fn cached_layout(size: usize) -> *mut u8 {
    if !slot::get().hides_cache() {
        return ptr::null_mut();
    }
    // SAFETY: The visible stacks are not the thread's own.
    ThreadCache::of(unsafe { slot::hidden() }).pop_counted(size)
}

/// The same where only C's family takes slow paths.
#[inline(always)]
pub(super) fn cached(size: usize) -> *mut u8 {
    let stacks = slot::get();
    if !stacks.counts() {
        return ptr::null_mut();
    }
    stacks.cache().map_or(ptr::null_mut(), |cache| cache.pop_counted(size))
}

/// As [`super::allocate_class`], counted.
#[inline(never)]
pub(super) fn allocate(request: Request) -> *mut u8 {
    page::refresh_if_stale();
    // Where frees by layout take slow paths too, they use the class map.
    let kept = request.class.laned();
    match slot::get().cache() {
        Some(cache) if cache.passes_request(request.size) => cache.pop_hidden(kept),
        Some(cache) => allocate_perhaps_special(cache, request, kept),
        None => all::take_uncached(request.class),
    }
}

#[cold]
#[inline(never)]
fn allocate_perhaps_special(cache: &'static ThreadCache, request: Request, kept: Class) -> *mut u8 {
    let hit = cache.hit(request.size);
    let mut block: *mut u8 = ptr::null_mut();
    if let Some(random) = hit.guarded {
        block = ptr::with_exposed_provenance_mut(cache.take_guarded(request, random));
    }
    let is_guarded = !block.is_null();
    if hit.is_sampled && !is_guarded {
        block = sampled::take(request.class);
    }
    if block.is_null() {
        return cache.pop_hidden(kept);
    }
    if hit.is_sampled {
        cache.sample(block.addr(), request.size);
        if is_guarded {
            guards::note_sampled(block.addr());
        }
    }
    block
}

/// Whether this thread's frees by layout take slow paths and so use the class map.
#[inline(always)]
pub(super) fn frees_by_map() -> bool {
    slot::get().hides_cache()
}

/// Pushes a block onto its hidden stack; false where that is full, or the block is sampled.
#[inline(always)]
pub(super) fn keeps(block: *mut u8) -> bool {
    // SAFETY: The visible stacks are not the thread's own.
    unsafe { slot::hidden() }.stacks.push(map::double_code(block.addr()), block)
}

/// Whether this thread's frees by layout must look for sampled blocks. Not where nothing is counted: then no profile needs
/// to know.
#[inline(always)]
pub(super) fn sees_layouts_free() -> bool {
    match slot::get().cache() {
        Some(cache) if cache.stacks.counts() => {
            cache.notice_profile();
            true
        }
        Some(_) => false,
        None => are_counted(),
    }
}

/// Notes that a small block has a new size in its place, where this thread counts layouts for a profile.
#[inline(always)]
pub(super) fn note_resized_layout(block: *mut u8, size: usize) {
    if sampling::IS_BUILT_IN && slot::get().hides_cache() {
        note_resized(block.addr(), size);
    }
}

#[cold]
#[inline(never)]
fn note_resized(address: usize, size: usize) {
    if code_of(address) == SAMPLED {
        sampling::resize(address, size, 0);
    }
}

/// Frees a block in a page of sampled blocks or in a guarded slot.
///
/// # Safety
///
/// - As [`super::free`], and the class map has `SAMPLED` for `block`.
#[cold]
#[inline(never)]
pub(super) unsafe fn free_sampled(block: *mut u8) {
    debug_assert!(code_of(block.addr()) == SAMPLED);
    let page = page_of(block.addr());
    if guards::IS_BUILT_IN && page.owner() == Shard::GUARDED {
        return guards::free(block.addr());
    }
    let class = Class::from_code(page.0.sampled.get()).unwrap_or(Class::of_size(1));
    // This may be the thread's first call, and the only other thread may fork.
    let _ = thread::cache();
    all::put_uncached(class, block);
}

#[cfg(all(test, not(loom), feature = "profile"))]
mod tests {
    extern crate std;

    use super::*;
    use crate::{c, profile};

    #[test]
    fn a_thread_whose_first_call_frees_a_sampled_block_is_registered() {
        // Admits pages of sampled blocks, also where another test takes a profile.
        let _ = profile::start(Some(usize::MAX));
        profile::stop();
        let block = sampled::take(Class::of_size(100)).expose_provenance();
        assert_ne!(block, 0, "there is memory");
        let other = std::thread::spawn(move || {
            let was_registered = slot::get().cache().is_some();
            // SAFETY: The block was taken for this thread, which does not use it.
            unsafe { c::free(ptr::with_exposed_provenance_mut(block)) };
            (was_registered, slot::get().cache().is_some())
        });
        assert_eq!(other.join().expect("it ends"), (false, true));
    }
}
