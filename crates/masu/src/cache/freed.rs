//! Freed blocks on trays: where a thread's frees by layout go while its true stacks are hidden for a heap profile.
//!
//! Relies on the counted caches, which deal from here, and on the pages of sampled blocks to say whether there are
//! any. A layout's free looks at nothing but a stack, so to tell a sampled block from others each would have to be slow.
//! Instead the slot's second word has it push onto a *tray*: a short stack of that class, from which nothing is popped.
//! Trays are sifted as a whole: when one is full, when its class is dealt again, and at the thread's end. The hard idea is
//! the profile that is written meanwhile: what lies on trays is free and not yet known to be, so whoever
//! writes looks at all threads' trays first. That is why blocks are pushed as atomics.

use core::ptr;

use super::counted::{DEALT, PLACES, room, start};
use super::{Stack, Stacks, ThreadCache};
use crate::class::{Class, FIRST, SAMPLED};
use crate::shard::{self, sampled};
use crate::sync::{AtomicUsize, Ordering};
use crate::{arena, metadata, profile};

/// Where frees by layout go: the stacks without a home of the classes that a table knows, by code.
#[repr(transparent)]
pub(crate) struct Frees([Stack; FIRST + DEALT]);

/// A thread's trays.
#[repr(C)]
pub(super) struct Trays {
    stacks: Frees,
    /// Their arrays; the first place of each stays empty, as in all stacks.
    arrays: [AtomicUsize; PLACES],
}

impl Stacks {
    /// These as what frees by layout push to.
    pub(crate) fn frees(&'static self) -> &'static Frees {
        // SAFETY: Stacks by code are the first part, and more than that.
        unsafe { &*ptr::from_ref(self).cast() }
    }
}

impl Frees {
    /// Keeps a block at this offset, from the table of layouts; false where its stack is full.
    #[inline(always)]
    pub(super) fn push_at(&self, offset: usize, block: *mut u8) -> bool {
        debug_assert!(offset < size_of::<Frees>() && offset.is_multiple_of(size_of::<Stack>()));
        // SAFETY: The table holds offsets of these stacks.
        unsafe { &*ptr::from_ref(self).byte_add(offset).cast::<Stack>() }.push(block)
    }
}

impl Trays {
    /// Empty trays in memory that is never given back; `None` for want of it.
    pub(super) fn make() -> Option<&'static Trays> {
        const WORDS: usize = size_of::<Trays>() / size_of::<usize>();
        let words = metadata::words(WORDS)?;
        words.fill(0);
        // SAFETY: The words are as many as these need, and zeros are a valid value.
        let trays: &'static Trays = unsafe { &*words.as_mut_ptr().cast() };
        for class in Class::all().take(DEALT) {
            let (tray, base) = (trays.tray(class), trays.base(class));
            tray.top.set(base);
            tray.limit.set(base.wrapping_add(room(class)));
        }
        Some(trays)
    }

    /// What the slot's second word is to lead to.
    pub(super) fn frees(&'static self) -> &'static Frees {
        &self.stacks
    }

    fn tray(&self, class: Class) -> &Stack {
        debug_assert!(class.index() < FIRST + DEALT);
        // SAFETY: Layouts of the table have these classes.
        unsafe { self.stacks.0.get_unchecked(class.index()) }
    }

    fn base(&self, class: Class) -> *mut usize {
        self.arrays.as_ptr().wrapping_add(start(class)).cast_mut().cast()
    }

    /// What lies on a tray, be it another thread's.
    fn blocks(&self, class: Class) -> &[AtomicUsize] {
        let base = self.base(class);
        let count = (self.tray(class).top.get().addr() - base.addr()) / size_of::<usize>();
        // SAFETY: So many entries lie above the base, and are as long as these.
        unsafe { core::slice::from_raw_parts(base.add(1).cast(), count) }
    }

    /// Takes the sampled blocks from a tray; what is left there.
    #[inline(always)]
    fn sift(&self, class: Class) -> &[AtomicUsize] {
        let blocks = self.blocks(class);
        if let Some(slices) = sampled::slices(class)
            && any_in(slices, blocks)
        {
            return self.sift_slow(class);
        }
        blocks
    }

    /// Frees the sampled blocks on a tray and moves the others together.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.profile")]
    fn sift_slow(&self, class: Class) -> &[AtomicUsize] {
        let (blocks, mut left) = (self.blocks(class), 0);
        for entry in blocks {
            // ORDERING: Relaxed, here and below: this thread put it there, and who looks from outside only asks
            // whether it was sampled.
            let block = entry.load(Ordering::Relaxed);
            if arena::code_of(block) == SAMPLED {
                // Both before the block can be handed out again, which takes locks.
                entry.store(0, Ordering::Relaxed);
                profile::remove(block);
                let _ = shard::flush(class, &[block]);
            } else {
                // SAFETY: No more are left than there were.
                unsafe { blocks.get_unchecked(left) }.store(block, Ordering::Relaxed);
                left += 1;
            }
        }
        self.tray(class).top.set(self.base(class).wrapping_add(left));
        self.blocks(class)
    }
}

/// Whether any of these blocks lies in these slices.
#[inline(always)]
fn any_in(slices: sampled::Slices, blocks: &[AtomicUsize]) -> bool {
    // SAFETY: They are this thread's, and others only read them. Plain numbers are compared several at once.
    let blocks: &[usize] = unsafe { &*(ptr::from_ref(blocks) as *const [usize]) };
    blocks.iter().fold(false, |any, block| any | slices.hold(*block))
}

impl ThreadCache {
    /// Where this cache's frees by layout go.
    pub(crate) fn frees(&'static self) -> &'static Frees {
        self.trays_in_use().map_or(self.stacks.frees(), Trays::frees)
    }

    /// Keeps a block whose layout has `size` bytes, at most [`crate::class::TABLE_LIMIT`], and whose tray is full; false
    /// where there are no trays.
    #[inline(never)]
    pub(crate) fn push_to_tray(&'static self, size: usize, block: *mut u8) -> bool {
        let Some(trays) = self.trays_in_use() else { return false };
        let class = Class::of_size(size);
        self.clear_tray(trays, class);
        trays.tray(class).push(block)
    }

    /// Puts what lies on a tray into the true stack.
    #[inline(always)]
    pub(super) fn clear_tray(&'static self, trays: &Trays, class: Class) {
        if trays.tray(class).top.get() != trays.base(class) {
            self.clear_tray_slow(trays, class);
        }
    }

    #[inline(never)]
    fn clear_tray_slow(&'static self, trays: &Trays, class: Class) {
        let (blocks, stack) = (trays.sift(class), self.stack(class));
        let room = stack.limit.get().addr().saturating_sub(stack.top.get().addr());
        if blocks.len() * size_of::<usize>() <= room {
            stack.take_over(blocks);
        } else {
            for entry in blocks {
                // ORDERING: Relaxed, as above.
                let block = ptr::with_exposed_provenance_mut(entry.load(Ordering::Relaxed));
                if !stack.push(block) {
                    self.push_slow(class, block);
                }
            }
        }
        trays.tray(class).top.set(trays.base(class));
    }

    /// The same of all trays.
    pub(super) fn clear_trays(&'static self) {
        if let Some(trays) = self.trays_in_use() {
            Class::all().take(DEALT).for_each(|class| self.clear_tray(trays, class));
        }
    }

    /// Calls `visit` with the address of each block on this cache's trays, be it another thread's.
    pub(crate) fn for_each_on_trays(&self, mut visit: impl FnMut(usize)) {
        let Some(trays) = self.countdown.trays() else { return };
        for entry in Class::all().take(DEALT).flat_map(|class| trays.blocks(class)) {
            // ORDERING: Relaxed: whoever is told that the block was freed sees it here; and whoever knows that it
            // was handed out again sees that it is gone, for it went through a lock.
            visit(entry.load(Ordering::Relaxed));
        }
    }

    /// How many blocks of `class` lie on its tray, as another thread sees them.
    pub(super) fn blocks_on_tray(&self, class: Class) -> usize {
        self.countdown.trays().map_or(0, |trays| trays.blocks(class).len())
    }
}

impl Stack {
    /// Puts blocks from a tray on top, for which there is room.
    #[inline(always)]
    fn take_over(&self, blocks: &[AtomicUsize]) {
        let (top, count) = (self.top.get(), blocks.len());
        // SAFETY: There are so many places above the top, and not on a tray; no other thread writes on this one's trays.
        unsafe { ptr::copy_nonoverlapping(blocks.as_ptr().cast(), top.add(1), count) };
        self.top.set(top.wrapping_add(count));
    }
}
