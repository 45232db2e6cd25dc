//! Thread caches: for each class an array stack of free blocks that only one thread touches.
//!
//! Relies on the thread slot for the stacks (`blocks/slot/stacks.rs`), which are all that the fast paths touch, and on the
//! transfer cache to refill and flush them.
//!
//! `threads/cache/depth.rs` decides how deep each stack may grow, in arrays from `threads/cache/arrays.rs`. Blocks that are
//! sent one at a time have a slow path of their own: `threads/cache/single.rs`. Blocks of laned classes that belong to
//! another lane have stacks that only `free` uses: `threads/cache/remote.rs`.

pub(crate) mod all;
mod arrays;
#[cfg(debug_assertions)]
mod audit;
mod counted;
mod depth;
pub(crate) mod heap_cache;
pub(crate) mod idle;
mod remote;
mod single;
mod traffic;

use core::ops::Deref;
use core::ptr;

use crate::blocks::ownership::Shard;
use crate::blocks::slot::{CacheHead, Shared, Stack, Stacks};
use crate::memory::class::{CLASSES, Class};
use crate::platform::libc::Key;
use crate::platform::sync::{Cell, Count};
use arrays::Arrays;
use counted::Countdown;
pub(crate) use counted::are_counted;
use depth::Depth;
use depth::budget::Pace;
use depth::epoch::Looks;
use heap_cache::HeapCache;
use remote::Remote;
pub(crate) use traffic::{Traffic, User};

/// A thread's cache. Only its thread touches it, except for statistics, which read the stacks' depths and accept stale ones.
#[repr(C)]
pub(crate) struct ThreadCache {
    // COUPLING: First, because the address of these stacks is the cache's: `ThreadCache::of`.
    own: CacheHead,
    /// Notices the end of the cache's thread. Only caches with a key become idle.
    key: Option<Key>,
    depths: [Depth; CLASSES],
    /// The classes whose stack has an array, a bit for each index.
    opened: Cell<u128>,
    /// Memory for the stacks.
    arrays: Arrays,
    remote: Remote,
    /// Blocks of first-class heaps; a heap's number determines its place.
    heaps: [Shared<HeapCache>; heap_cache::PLACES],
    /// Bytes that the stacks may hold at their present limits.
    limit_bytes: Count,
    /// Statistics, and which thread uses this cache.
    pub(crate) traffic: Traffic,
    /// KiB that the stacks may hold unless an option says so: this thread's share of all threads' budget.
    share_kib: Cell<u32>,
    pace: Pace,
    denials: Cell<u8>,
    /// The index of the class that last gave up depth for another one.
    last_donor: Cell<u8>,
    looks: Looks,
    /// Counts requests for a heap profile or guards.
    countdown: Countdown,
    /// The next in the list of all caches; see [`all`].
    pub(crate) next: Cell<Option<&'static ThreadCache>>,
    /// The next of the caches without a thread, and the bytes that this one held when its thread ended.
    next_idle: Cell<Option<&'static ThreadCache>>,
    idle_bytes: Cell<usize>,
}

impl Deref for ThreadCache {
    type Target = CacheHead;

    #[inline(always)]
    fn deref(&self) -> &CacheHead {
        &self.own
    }
}

impl Stacks {
    /// The whole cache, where these stacks belong to a live one or hide one.
    #[inline]
    pub(crate) fn cache(&'static self) -> Option<&'static ThreadCache> {
        self.head().map(ThreadCache::of)
    }
}

impl ThreadCache {
    /// The cache that begins with `own`.
    #[inline(always)]
    pub(crate) fn of(own: &'static CacheHead) -> &'static ThreadCache {
        // SAFETY: Every `CacheHead` of a thread is the first field of a cache.
        unsafe { &*ptr::from_ref(own).cast() }
    }

    /// A live cache without blocks.
    pub(crate) const fn new(shard: Shard, number: u8, key: Option<Key>) -> ThreadCache {
        ThreadCache {
            own: CacheHead::new(shard, number),
            key,
            depths: [const { Depth::new() }; CLASSES],
            opened: Cell::new(0),
            arrays: Arrays::new(shard.0),
            remote: Remote::new(),
            heaps: [const { Shared::new(ptr::null_mut()) }; heap_cache::PLACES],
            limit_bytes: Count::new(0),
            traffic: Traffic::new(),
            share_kib: Cell::new(0),
            pace: Pace::new(),
            denials: Cell::new(0),
            last_donor: Cell::new(0),
            looks: Looks::new(),
            countdown: Countdown::new(),
            next: Cell::new(None),
            next_idle: Cell::new(None),
            idle_bytes: Cell::new(0),
        }
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.key
    }

    /// Blocks of `class` in this cache now, of all lanes, for other threads.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.statistics.cache_held_blocks")]
    pub(crate) fn held_blocks(&self, class: Class) -> usize {
        let laned = class.laned();
        let kept_apart = if laned == class {
            0
        } else {
            self.count_from_outside(laned) + self.remote_blocks(laned)
        };
        self.count_from_outside(class) + kept_apart
    }

    /// Bytes that the stacks may hold at their present limits.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes.get()
    }
}

const _: () = assert!(CLASSES <= 128, "a bit a class");
