//! Remote stacks: small blocks freed here that belong to another lane, on their way there.
//!
//! Relies on shards. Blocks smaller than a cache line share lines. If a thread reused a freed block of another
//! thread's, it would write to a line whose other blocks that thread uses, and each would wait for the line at every
//! write: passive false sharing. So the class map has a code for each lane of such classes ([`crate::memory::class`]),
//! and the stack for another lane's code is filled by `free` and not used by `malloc`. A full one is sent, whole, to
//! where threads of that lane refill. The hard idea: this costs the fast path nothing, and a remote free no more than a
//! local one that overflows.

use core::ptr::{self, NonNull};

use super::depth;
use super::{Shared, Stack, ThreadCache};
use crate::blocks::ownership::Shard;
use crate::blocks::shard;
use crate::memory::class::{Class, LANED, LANED_FIRST, LANES};
use crate::memory::metadata;
use crate::platform::bounds::Bounded;
use crate::platform::sync::{Cell, Count};

/// Blocks that a remote stack may hold at first, and after repeated overflows.
const ENTRIES_FIRST: usize = 32;
const ENTRIES: usize = 128;

/// A thread's remote stacks.
pub(super) struct Remote {
    /// One array for all of them; null until the first remote free. A stack's part of it is touched only if the stack
    /// is used.
    array: Shared<usize>,
    words: Count,
    /// The stacks that overflowed in this epoch, a bit for each code from the first laned one on.
    busy: Cell<u64>,
}

impl Remote {
    pub(super) const fn new() -> Remote {
        Remote { array: Shared::new(ptr::null_mut()), words: Count::new(0), busy: Cell::new(0) }
    }

    /// The number of stacks, from the first laned code on, that have a part of the array. Only the array's length says
    /// so: the number of lanes may grow while the program runs.
    fn stacks(&self) -> usize {
        if cfg!(masu_plant = "lanes_once") && !self.array.get().is_null() {
            // A planted fault for the oracle: as if the array had room for lanes that are added later.
            return LANES * LANED;
        }
        (self.words.get() / ENTRIES).min(LANES * LANED)
    }

    /// The lowest place of a stack.
    pub(super) fn start(&self, code: u8) -> *mut usize {
        self.array.get().wrapping_add((usize::from(code) - LANED_FIRST) * ENTRIES)
    }

    fn note_busy(&self, code: u8) {
        self.busy.set(self.busy.get() | 1 << (usize::from(code) - LANED_FIRST));
    }
}

impl ThreadCache {
    /// The remote stacks in the array, with their codes and classes.
    pub(super) fn remote_stacks(&self) -> impl Iterator<Item = (u8, Class, &Stack)> {
        let end = LANED_FIRST + self.remote.stacks();
        (LANED_FIRST as u8..end as u8).filter_map(|code| {
            let class = Class::from_code(code)?;
            let is_remote = code != class.code_in(self.shard.0);
            is_remote.then(|| (code, class, self.stacks.stacks.at(usize::from(code))))
        })
    }

    /// Blocks in a remote stack; approximate for other threads.
    pub(super) fn remote_count(&self, code: u8, stack: &Stack) -> usize {
        // `top` of an empty stack is just below the lowest place.
        let end = stack.top.get().addr().wrapping_add(size_of::<usize>());
        let bytes = end.wrapping_sub(self.remote.start(code).addr());
        if bytes > ENTRIES * size_of::<usize>() { 0 } else { bytes / size_of::<usize>() }
    }

    /// Blocks of a laned class in remote stacks, for other threads.
    pub(super) fn remote_blocks(&self, laned: Class) -> usize {
        let of_class = self.remote_stacks().filter(|(_, class, _)| *class == laned);
        of_class.map(|(code, _, stack)| self.remote_count(code, stack)).sum()
    }

    /// Pushes a block of `class` with this code after its stack was found full.
    #[inline(always)]
    pub(crate) fn push_code_slow(&'static self, code: u8, class: Class, block: *mut u8) {
        if code == class.code_in(self.shard.0) {
            self.push_slow(class, block);
        } else {
            self.push_remote(code, class, block);
        }
    }

    #[inline(never)]
    fn push_remote(&'static self, code: u8, class: Class, block: *mut u8) {
        let stack = self.stacks.stacks.at(usize::from(code));
        // There may be room: a thread that has just started may have got another stack, and without a class map no
        // stack was tried.
        if stack.push(block) {
            return;
        }
        self.count_slow_call(None);
        let entries = self.remote_limit(code, stack);
        if entries > 0 {
            self.remote.note_busy(code);
            self.send_remote(code, class, stack);
            if !self.budget_is_strict() {
                self.set_remote_limit(code, class, stack, (2 * entries).min(ENTRIES));
            }
            shard::purge_step();
        } else if !self.open_remote(code, class, stack) {
            let _ = shard::flush_one(class, block.expose_provenance());
            return;
        }
        let pushed = stack.push(block);
        debug_assert!(pushed, "room was made");
    }

    /// Gives a remote stack its part of the array. False without memory, or without budget where that is strict.
    fn open_remote(&'static self, code: u8, class: Class, stack: &Stack) -> bool {
        let bytes = ENTRIES_FIRST * depth::entry_bytes(class);
        if self.budget_is_strict() && !self.fits_budget(class, bytes) {
            return false;
        }
        let wanted = usize::from(code) - LANED_FIRST + 1;
        if wanted > self.remote.stacks() {
            // Empties the old array, if there is one.
            self.close_remote();
            let Some(words) = metadata::words(wanted * ENTRIES) else { return false };
            self.remote.array.set(words.as_mut_ptr());
            self.remote.words.set(words.len());
        }
        debug_assert!(wanted <= self.remote.stacks(), "a place for each code that is used");
        stack.top.set(self.remote.start(code).wrapping_sub(1));
        self.set_remote_limit(code, class, stack, ENTRIES_FIRST);
        true
    }

    /// Blocks that a remote stack may hold; 0 where it has no part of the array.
    pub(super) fn remote_limit(&self, code: u8, stack: &Stack) -> usize {
        let limit = stack.limit.get();
        if limit.is_null() {
            return 0;
        }
        (limit.addr() - self.remote.start(code).addr()) / size_of::<usize>() + 1
    }

    /// Changes how many blocks a remote stack may hold, to no fewer than it does.
    fn set_remote_limit(&self, code: u8, class: Class, stack: &Stack, entries: usize) {
        let bytes = |entries| entries * depth::entry_bytes(class);
        let others = self.limit_bytes.get() - bytes(self.remote_limit(code, stack));
        self.limit_bytes.set(others + bytes(entries));
        stack.limit.set(match entries {
            0 => ptr::null_mut(),
            _ => self.remote.start(code).wrapping_add(entries - 1),
        });
    }

    /// Empties a remote stack.
    #[inline(never)]
    fn send_remote(&self, code: u8, class: Class, stack: &Stack) {
        let (start, count) = (self.remote.start(code), self.remote_count(code, stack));
        if count == 0 {
            return;
        }
        self.traffic.lane_blocks.add(count);
        // SAFETY: The stack holds `count` entries from its lowest place on.
        let blocks = unsafe { core::slice::from_raw_parts(start, count) };
        debug_assert!(shard::are_of_lane(class, Shard(Class::lane_of(code)), blocks));
        let _ = shard::flush(class, blocks);
        stack.top.set(start.wrapping_sub(1));
    }

    /// Flushes the remote stacks that did not overflow in this epoch.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.several.remote_end_epoch")]
    pub(super) fn end_remote_epoch(&self) {
        let busy = self.remote.busy.replace(0);
        for (code, class, stack) in self.remote_stacks() {
            if busy & 1 << (usize::from(code) - LANED_FIRST) == 0 {
                self.send_remote(code, class, stack);
                let entries = self.remote_limit(code, stack).min(ENTRIES_FIRST);
                self.set_remote_limit(code, class, stack, entries);
            }
        }
    }

    /// Sends all remote blocks away.
    pub(super) fn empty_remote(&self) {
        for (code, class, stack) in self.remote_stacks() {
            self.send_remote(code, class, stack);
        }
    }

    /// Flushes all remote blocks and frees the array.
    pub(super) fn close_remote(&self) {
        for (code, class, stack) in self.remote_stacks() {
            self.send_remote(code, class, stack);
            self.set_remote_limit(code, class, stack, 0);
            stack.top.set(ptr::null_mut());
        }
        let words = self.remote.words.get();
        self.remote.words.set(0);
        if let Some(array) = NonNull::new(self.remote.array.replace(ptr::null_mut())) {
            // SAFETY: The array came from `metadata::words` with this length, and no stack is in it.
            unsafe { metadata::give_back(array, words) };
        }
    }
}
