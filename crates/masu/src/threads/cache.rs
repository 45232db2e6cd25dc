//! Thread caches: for each class an array stack of free blocks that only one thread touches.
//!
//! Relies on the thread slot for the stacks (`blocks/slot/stacks.rs`), which the fast paths touch and nothing else, and on the
//! transfer cache to fill and empty them.
//!
//! How deep each stack may grow is decided in `threads/cache/depth.rs`; blocks that come and go one at a time
//! have slow paths of their own: `threads/cache/single.rs`. Blocks of homed classes whose home is another lane
//! have stacks that only `free` uses: `threads/cache/remote.rs`.

pub(crate) mod all;
mod counted;
mod depth;
pub(crate) mod idle;
pub(crate) mod near;
mod remote;
mod single;
mod traffic;

use core::ops::Deref;
use core::ptr;

use crate::blocks::slot::{HOMED_STEPS, OFFSETS, Own, Shared, Stack, Stacks};
use crate::blocks::whose::Shard;
use crate::memory::class::{CLASSES, Class};
use crate::platform::libc::Key;
use crate::platform::sync::{Cell, Count};
use counted::Countdown;
pub(crate) use counted::are_counted;
use depth::Depth;
use near::Near;
use remote::Remote;
pub(crate) use traffic::{Traffic, User};

/// A thread's cache. Only its thread touches it, except for statistics, which read the stacks'
/// depths from outside and accept stale ones.
#[repr(C)]
pub(crate) struct ThreadCache {
    // COUPLING: first, so that its address is the cache's.
    own: Own,
    /// What notices its thread's end; only caches that have one become idle.
    key: Option<Key>,
    depths: [Depth; CLASSES],
    /// The classes whose stack has an array, as bits by index.
    opened: Cell<u128>,
    remote: Remote,
    /// Blocks of first-class heaps, those of a heap where its number says.
    near: [Shared<Near>; near::PLACES],
    /// Bytes that the stacks may hold together, as their limits stand.
    limit_bytes: Count,
    /// What came and went, and who uses this cache.
    pub(crate) traffic: Traffic,
    denials: Cell<u32>,
    /// The code of the class that last gave up depth for another one.
    last_giver: Cell<u8>,
    /// What is counted for a heap profile.
    countdown: Countdown,
    /// Where the stacks for sizes of homed classes lie, whatever the table that the fast path reads says now.
    own_offsets: [u16; HOMED_STEPS],
    /// The next in the list of all caches; see [`all`].
    pub(crate) next: Cell<Option<&'static ThreadCache>>,
    /// The next of those without a thread, and what this one held when its thread ended, in bytes.
    next_idle: Cell<Option<&'static ThreadCache>>,
    idle_bytes: Cell<usize>,
}

impl Deref for ThreadCache {
    type Target = Own;

    #[inline(always)]
    fn deref(&self) -> &Own {
        &self.own
    }
}

impl Stacks {
    /// The whole cache, where these are a live one's stacks or stand before one.
    #[inline]
    pub(crate) fn cache(&'static self) -> Option<&'static ThreadCache> {
        self.own().map(ThreadCache::of)
    }
}

impl ThreadCache {
    /// The cache of the thread that has this.
    #[inline(always)]
    pub(crate) fn of(own: &'static Own) -> &'static ThreadCache {
        // SAFETY: Threads have no other than the ones that their caches begin with.
        unsafe { &*ptr::from_ref(own).cast() }
    }

    /// A live cache that holds nothing.
    pub(crate) const fn new(shard: Shard, key: Option<Key>) -> ThreadCache {
        ThreadCache {
            own: Own::new(shard),
            key,
            depths: [const { Depth::new() }; CLASSES],
            opened: Cell::new(0),
            remote: Remote::new(),
            near: [const { Shared::new(ptr::null_mut()) }; near::PLACES],
            limit_bytes: Count::new(0),
            traffic: Traffic::new(),
            denials: Cell::new(0),
            last_giver: Cell::new(0),
            countdown: Countdown::new(),
            own_offsets: [0; HOMED_STEPS],
            next: Cell::new(None),
            next_idle: Cell::new(None),
            idle_bytes: Cell::new(0),
        }
    }

    /// Has homed classes keep the blocks that this cache's shard is home to. Apart from [`ThreadCache::new`], so that the
    /// cache, of several KiB, need not be built on the thread's stack more often than once.
    pub(crate) fn settle(&mut self) {
        self.own.stacks.settle(self.own.shard);
        for (own, offset) in self.own_offsets.iter_mut().zip(&mut self.own.stacks.offsets) {
            *own = *offset.get_mut() as u16;
        }
    }

    /// Where the stack for a size of so many steps lies, whatever the table of the stacks says now.
    #[inline(always)]
    fn own_offset(&self, step: usize) -> usize {
        let offset = if step < HOMED_STEPS { self.own_offsets[step] } else { OFFSETS[step] };
        usize::from(offset)
    }

    /// What notices the end of its thread.
    pub(crate) fn key(&self) -> Option<Key> {
        self.key
    }

    /// Blocks of `class` held now, with and without a home, for readers outside.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.statistics.cache_held_blocks")]
    pub(crate) fn held_blocks(&self, class: Class) -> usize {
        let homed = class.homed();
        let kept_apart = if homed == class {
            0
        } else {
            self.count_from_outside(homed) + self.remote_blocks(homed)
        };
        self.count_from_outside(class) + kept_apart
    }

    /// Bytes that the stacks may hold together, as their limits stand.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes.get()
    }
}

const _: () = assert!(CLASSES <= 128, "a bit a class");
