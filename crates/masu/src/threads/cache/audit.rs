//! Checks a cache's limits and entries, and shows its blocks, for tests.
//!
//! Relies on the cache's thread to do nothing.

use core::slice;

use super::heap_cache::HeapCache;
use super::{Stack, ThreadCache, depth};
use crate::blocks::ownership::Shard;
use crate::blocks::shard;
use crate::memory::class::{CLASSES, Class};

impl ThreadCache {
    /// Checks this cache; shows each of its blocks and the block's size.
    pub(crate) fn audit(&'static self, see: &mut dyn FnMut(usize, usize)) {
        let mut limit_bytes = 0;
        let mut see_block = |class: Class, block: usize| {
            shard::audit::audit_taken(class, block);
            see(block, class.size());
        };
        for class in (0..CLASSES).filter_map(Class::from_index) {
            let is_open = !self.depth(class).base().is_null();
            assert_eq!(self.opened().any(|opened| opened == class), is_open);
            limit_bytes += self.depth(class).limit() * depth::entry_bytes(class);
            if is_open {
                self.audit_stack(class, &mut see_block);
            }
        }
        for (code, class, stack) in self.remote_stacks() {
            limit_bytes += self.remote_limit(code, stack) * depth::entry_bytes(class);
            self.audit_remote(code, class, stack, &mut see_block);
        }
        assert_eq!(self.limit_bytes(), limit_bytes, "the sum of all limits");
        self.places().for_each(|cached| cached.audit(see));
    }

    fn audit_stack(&self, class: Class, see: &mut dyn FnMut(Class, usize)) {
        let (stack, depth, count) = (self.stack(class), self.depth(class), self.count(class));
        let limit = (stack.limit.get().addr() - depth.base().addr()) / size_of::<usize>();
        assert_eq!(limit, depth.limit());
        assert!(count <= limit, "{count} entries of at most {limit}");
        // SAFETY: The zero and the entries are there, and the cache's thread does nothing.
        let entries = unsafe { slice::from_raw_parts(depth.base(), count + 1) };
        let (mark, marked) = depth.mark();
        assert!(mark <= count && entries[0] == 0 && entries[mark] == 0, "zeros where pops end");
        for (place, entry) in entries.iter().enumerate().skip(1) {
            see(class, if place == mark { marked } else { *entry });
        }
    }

    fn audit_remote(
        &self,
        code: u8,
        class: Class,
        stack: &Stack,
        see: &mut dyn FnMut(Class, usize),
    ) {
        let count = self.remote_count(code, stack);
        assert!(count <= self.remote_limit(code, stack));
        if count > 0 {
            // SAFETY: So many entries are there, and the cache's thread does nothing.
            let blocks = unsafe { slice::from_raw_parts(self.remote.start(code), count) };
            assert!(shard::are_of_lane(class, Shard(Class::lane_of(code)), blocks));
            blocks.iter().for_each(|block| see(class, *block));
        }
    }
}

impl HeapCache {
    /// Checks the blocks of a heap that still exists, and shows them.
    fn audit(&self, see: &mut dyn FnMut(usize, usize)) {
        let Some(owner) = self.owner() else { return };
        for class in HeapCache::classes() {
            let (base, count) = (self.base(class), self.count(class));
            // SAFETY: The zero and the entries are there, and the cache's thread does nothing.
            let entries = unsafe { slice::from_raw_parts(base, count + 1) };
            assert_eq!(entries[0], 0, "a zero where pops end");
            for block in &entries[1..] {
                owner.audit_taken(class, *block);
                see(*block, class.size());
            }
        }
    }
}
