//! The thread slot of the models: two words for each of loom's threads.

extern crate std;

use std::cell::Cell;
use std::ptr;

use super::{CacheHead, EMPTY, Stacks};

loom::thread_local! {
    pub(super) static SLOT: Cell<*const Stacks> = Cell::new((&raw const EMPTY).cast());
    pub(super) static BEHIND: Cell<*const CacheHead> = Cell::new(ptr::null());
}

macro_rules! read_word {
    ("masu_slot_") => {
        arch::SLOT.with(core::cell::Cell::get)
    };
    ("masu_hidden_") => {
        arch::BEHIND.with(core::cell::Cell::get)
    };
}

macro_rules! write_word {
    ("masu_slot_", $value:expr) => {
        arch::SLOT.with(|word| word.set($value))
    };
    ("masu_hidden_", $value:expr) => {
        arch::BEHIND.with(|word| word.set($value))
    };
}

pub(super) use {read_word, write_word};
