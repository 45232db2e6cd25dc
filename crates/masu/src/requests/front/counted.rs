//! Allocating and freeing while a heap profile is taken or blocks are guarded.
//!
//! Relies on counted caches to say which request is sampled and which is guarded. A sampled block of a class comes from a page of
//! its own kind, whose code in the class map says so; but it is a block like any other of its
//! class, in a page like any other. So a call that frees it without looking at the map, as a layout may in a
//! thread that has not noticed the profile yet, does no harm: it goes home when its stack is looked through or flushed.

use core::ptr;

use crate::blocks::page::page_of;
use crate::blocks::shard::{guarded, sampled};
use crate::blocks::slot;
use crate::blocks::whose::Shard;
use crate::diagnostics::guards::{self, Request};
use crate::memory::class::{Class, SAMPLED};
use crate::memory::map;
use crate::threads::books::page;
use crate::threads::cache::{ThreadCache, all, are_counted};

/// A cached block for `size` bytes, of which a table knows, counted, where this thread's layouts take slow paths; null
/// where they do not or there is none.
#[inline(always)]
pub(super) fn cached_layout(size: usize) -> *mut u8 {
    if !slot::get().stands_before_a_cache() {
        return ptr::null_mut();
    }
    // SAFETY: These stacks are no thread's own.
    ThreadCache::of(unsafe { slot::behind() }).pop_counted(size)
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
    page::look_at_news();
    // Where frees by layout take slow paths too, they look at the class map.
    let kept = request.class.homed();
    match slot::get().cache() {
        Some(cache) if cache.passes_request(request.size) => cache.pop_behind(kept),
        Some(cache) => allocate_maybe_chosen(cache, request, kept),
        None => all::take_uncached(request.class),
    }
}

#[cold]
#[inline(never)]
fn allocate_maybe_chosen(cache: &'static ThreadCache, request: Request, kept: Class) -> *mut u8 {
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
        return cache.pop_behind(kept);
    }
    if hit.is_sampled {
        cache.sample(block.addr(), request.size);
        if is_guarded {
            guards::note_sampled(block.addr());
        }
    }
    block
}

/// Whether this thread's frees take slow paths, for which their blocks go by the class map.
#[inline(always)]
pub(super) fn frees_by_map() -> bool {
    slot::get().stands_before_a_cache()
}

/// Keeps a block where they do; false where its stack is full, as it is for sampled ones.
#[inline(always)]
pub(super) fn keeps(block: *mut u8) -> bool {
    // SAFETY: The stacks that this thread sees are not its own.
    unsafe { slot::behind() }.stacks.push(map::double_code(block.addr()), block)
}

/// Whether this thread's frees by layout have to look for sampled blocks. Not while none are made, for
/// then nobody asks what became of them.
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

/// Frees a block that lies in a page of sampled ones, or in a slot of a guarded one.
///
/// # Safety
///
/// - As [`super::free`], and the class map says so of `block`.
#[cold]
#[inline(never)]
pub(super) unsafe fn free_sampled(block: *mut u8) {
    debug_assert!(crate::memory::arena::code_of(block.addr()) == SAMPLED);
    let page = page_of(block.addr());
    if guards::IS_BUILT_IN && page.owner() == Shard::GUARDED {
        return guarded::put(block.addr());
    }
    let class = Class::from_code(page.0.sampled.get()).unwrap_or(Class::of_size(1));
    all::put_uncached(class, block);
}
