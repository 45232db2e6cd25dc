//! Reclaiming memory before a request fails.
//!
//! Relies on each layer's function that gives up the layer's kept memory. The hard idea is when: at the entry of the
//! request, where no lock is held, so that every layer can be asked; and once. Caches and parked runs of other running
//! threads stay, because only their threads may touch them; they are a bounded part of live memory.

use crate::blocks::{owner, shard, slot, transfer};
use crate::memory::ranges::stripes;
use crate::platform::fault::{self, Fault};
use crate::platform::kernel;
use crate::settings;
use crate::threads::cache::idle;
use crate::threads::thread;

/// The block that `ask` returns for `size` bytes; where that is null, the block of [`retry`].
#[inline]
pub(crate) fn or_retry(size: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
    let block = ask();
    if block.is_null() { retry(size, &ask) } else { block }
}

/// Reclaims memory and calls `ask`, which returned null for `size` bytes, once more. Where there is still no memory,
/// ends the program if the option `abort_on_oom` is set, else returns null.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.reclaim.reclaim_retry")]
pub(crate) fn retry(size: usize, ask: &dyn Fn() -> *mut u8) -> *mut u8 {
    if reclaim(size) {
        let block = ask();
        if !block.is_null() {
            return block;
        }
    }
    out_of_memory();
    core::ptr::null_mut()
}

/// Reclaims kept memory, if that may suffice for `size` bytes; returns whether there was any.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.reclaim.reclaim")]
fn reclaim(size: usize) -> bool {
    let before = stripes::read();
    // No more than what is reserved can be reclaimed; the rest must be had from the kernel.
    let rest = size.saturating_sub(before.reserved_bytes);
    if rest > 0 && kernel::free_address(rest).is_none() {
        return false;
    }
    flush_all(false);
    stripes::give_up() || stripes::read().live_bytes < before.live_bytes
}

/// Ends the program, if the option `abort_on_oom` is set.
#[cold]
#[inline(never)]
fn out_of_memory() {
    // This may be the first request of the program.
    thread::read_options_once();
    if settings::aborts_on_oom() {
        fault::stop(Fault::OutOfMemory);
    }
}

/// Purges free memory except for about `kept_bytes`; returns whether the kernel took anything back.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.reclaim_trim")]
pub(crate) fn trim(kept_bytes: usize) -> bool {
    let before = kernel::advised().purges;
    flush_all(true);
    stripes::trim(kept_bytes);
    kernel::advised().purges != before
}

/// Returns to the ranges the memory that this thread, idle caches, heaps, transfer caches and shards keep. In
/// the hardened build nothing is cached, and quarantined blocks stay. `purges` also what is free inside pages, which
/// makes no room for a request.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.reclaim_flush_all")]
fn flush_all(purges: bool) {
    if let Some(cache) = thread::cache() {
        cache.empty_stacks();
        cache.flush_heaps();
    }
    owner::trim(purges);
    idle::empty_warm();
    transfer::trim();
    shard::trim(purges);
    slot::ranges().lock().bring_home(slot::parked());
}
