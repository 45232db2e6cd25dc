//! The thread slot of the models: two words for each of loom's threads.

extern crate std;

use std::cell::Cell;
use std::ptr;

use super::{EMPTY, Own, Stacks};

// What the real variables' names end with: there are none here.
const _: &str = super::suffix!();

loom::thread_local! {
    static SLOT: Cell<*const Stacks> = Cell::new((&raw const EMPTY).cast());
    static BEHIND: Cell<*const Own> = Cell::new(ptr::null());
}

pub(super) unsafe fn read() -> *const Stacks {
    SLOT.with(Cell::get)
}

pub(super) unsafe fn read_behind() -> *const Own {
    BEHIND.with(Cell::get)
}

pub(super) unsafe fn write(stacks: *const Stacks) {
    SLOT.with(|slot| slot.set(stacks));
}

pub(super) unsafe fn write_behind(own: *const Own) {
    BEHIND.with(|behind| behind.set(own));
}
