//! Where memory is short: what is kept for later is given up before a request fails.
//!
//! Relies on every room's way to send home what it keeps. The hard idea is when: at the door that the request came
//! in by, where no lock is held, so that any room may be asked; and once. What a thread that runs keeps in its
//! own cache, or has parked, stays there, for only that thread may touch it: a bounded part of what is live.

#[cfg(feature = "secure")]
use crate::blocks::shard::hardened as shard;
use crate::blocks::{owner, slot};
#[cfg(not(feature = "secure"))]
use crate::blocks::{shard, transfer};
use crate::memory::ranges::stripes;
use crate::platform::fault::{self, Fault};
use crate::settings;
#[cfg(not(feature = "secure"))]
use crate::threads::cache::idle;
use crate::threads::thread;

/// What `ask` returns for `size` bytes, which was null, once more after everything was given up. Where there is no
/// memory even then, that may be the program's end, or else null.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.scarce.scarce_ask_again")]
pub(crate) fn ask_again(size: usize, ask: &dyn Fn() -> *mut u8) -> *mut u8 {
    if gives_up(size) {
        let block = ask();
        if !block.is_null() {
            return block;
        }
    }
    out_of_memory();
    core::ptr::null_mut()
}

/// Gives up what is kept, where that may be enough for `size` bytes; whether there was anything.
fn gives_up(size: usize) -> bool {
    let before = stripes::read();
    // No more than that can come back.
    if size > before.committed_bytes {
        return false;
    }
    send_home();
    slot::ranges().lock().bring_home(slot::parked());
    stripes::read().live_bytes < before.live_bytes
}

/// There is no memory for a block: ends the program if that was asked for.
#[cold]
#[inline(never)]
pub(crate) fn out_of_memory() {
    // It may be the first thing that was asked for.
    thread::settle();
    if settings::aborts_on_oom() {
        fault::stop(Fault::OutOfMemory);
    }
}

/// Returns to the kernel what is free, all but about `kept_bytes`; whether anything was returned.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.scarce_trim")]
pub(crate) fn trim(kept_bytes: usize) -> bool {
    send_home();
    slot::ranges().lock().bring_home(slot::parked());
    stripes::trim(kept_bytes)
}

/// Sends home what this thread's cache, idle ones and all other rooms keep, but for the ranges.
#[cfg(not(feature = "secure"))]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.scarce_send_home")]
fn send_home() {
    if let Some(cache) = thread::cache() {
        cache.empty_stacks();
        cache.empty_near();
    }
    owner::trim();
    idle::empty_warm();
    transfer::trim();
    shard::trim();
}

/// Sends home what heaps keep, and empty pages. What rests goes on resting.
#[cfg(feature = "secure")]
fn send_home() {
    let _ = thread::cache();
    owner::trim();
    shard::trim();
}
