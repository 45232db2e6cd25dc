//! The thread slot of the models: two words for each of loom's threads.

extern crate std;

use std::cell::Cell;
use std::ptr;

use super::{CacheHead, EMPTY, Stacks};

// What the real variables' names end with: there are none here.
const _: &str = super::suffix!();

loom::thread_local! {
    static SLOT: Cell<*const Stacks> = Cell::new((&raw const EMPTY).cast());
    static BEHIND: Cell<*const CacheHead> = Cell::new(ptr::null());
}

pub(super) unsafe fn read() -> *const Stacks {
    SLOT.with(Cell::get)
}

pub(super) unsafe fn read_hidden() -> *const CacheHead {
    BEHIND.with(Cell::get)
}

pub(super) unsafe fn write(stacks: *const Stacks) {
    SLOT.with(|slot| slot.set(stacks));
}

pub(super) unsafe fn write_hidden(own: *const CacheHead) {
    BEHIND.with(|behind| behind.set(own));
}
