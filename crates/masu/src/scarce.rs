//! Where memory is short: what is kept for later is given up before a request fails.
//!
//! Relies on every room's way to send home what it keeps. The hard idea is when: at the door that the request came
//! in by, where no lock is held, so that any room may be asked; and once. What a thread that runs keeps in its
//! own cache, or has parked, stays there, for only that thread may touch it: a bounded part of what is live.

use crate::ranges::RANGES;
use crate::{arena, fault, front, slot};

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
    fault::out_of_memory();
    core::ptr::null_mut()
}

/// Gives up what is kept, where that may be enough for `size` bytes; whether there was anything.
fn gives_up(size: usize) -> bool {
    let live_bytes = {
        let ranges = RANGES.lock();
        // No more than that can come back.
        let committed = arena::all().map(|arena| arena.committed_bytes()).sum::<usize>();
        if size > committed {
            return false;
        }
        ranges.live_bytes()
    };
    front::send_home();
    let mut ranges = RANGES.lock();
    ranges.bring_home(slot::parked());
    ranges.live_bytes() < live_bytes
}
