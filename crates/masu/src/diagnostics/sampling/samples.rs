//! The samples: stacks with their sums, and the live sampled blocks.
//!
//! Relies on the store for memory. A block of b bytes is sampled with probability 1 − e^(−b/T) for the interval T, so
//! it stands for one over that many blocks, its *weight*. Sums are of weighted blocks, in whole parts of a block, and
//! of whole bytes. The hard idea: a block's share is computed from two numbers alone, so its free subtracts exactly the
//! values that its allocation added.

use super::probability::probability_of_hit;
use super::store::{ENTRY_WORDS, Index, Place, Store, mix};

/// Blocks are counted in parts of one over two to this power.
pub(super) const PARTS_LOG2: u32 = 10;

/// Estimates of the blocks and bytes that one stack allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Blocks allocated, in parts.
    pub(super) allocated_parts: usize,
    pub(super) allocated_bytes: usize,
    /// Live blocks, in parts.
    pub(super) live_parts: usize,
    pub(super) live_bytes: usize,
}

/// A sampled block's length, which may change, and the bytes that exposed it to sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) bytes: usize,
    pub(crate) exposed_bytes: usize,
}

impl Extent {
    /// The block's share of the sums: blocks in parts, and bytes.
    #[inline(never)]
    fn share(self, interval: usize) -> (usize, usize) {
        let probability = probability_of_hit(self.exposed_bytes, interval);
        let parts = (1 << PARTS_LOG2) as f64 / probability;
        (parts as usize, (self.bytes as f64 / probability) as usize)
    }
}

/// Offsets of a stack's words behind those of an entry: sums, depth, then as many frames.
mod stack {
    use super::ENTRY_WORDS;
    pub(super) const ALLOCATED_PARTS: usize = ENTRY_WORDS;
    pub(super) const ALLOCATED_BYTES: usize = ENTRY_WORDS + 1;
    pub(super) const LIVE_PARTS: usize = ENTRY_WORDS + 2;
    pub(super) const LIVE_BYTES: usize = ENTRY_WORDS + 3;
    pub(super) const DEPTH: usize = ENTRY_WORDS + 4;
    pub(super) const FRAMES: usize = ENTRY_WORDS + 5;
}

/// Offsets of a live block's words. Its hash is its address, spread.
mod block {
    use super::ENTRY_WORDS;
    pub(super) const STACK: usize = ENTRY_WORDS;
    pub(super) const BYTES: usize = ENTRY_WORDS + 1;
    pub(super) const EXPOSED_BYTES: usize = ENTRY_WORDS + 2;
    pub(super) const WORDS: usize = ENTRY_WORDS + 3;
}

/// Offsets of a frame's words. Its hash does not identify the address, which is stored too.
mod frame {
    use super::ENTRY_WORDS;
    pub(super) const ADDRESS: usize = ENTRY_WORDS;
    pub(super) const NUMBER: usize = ENTRY_WORDS + 1;
    pub(super) const WORDS: usize = ENTRY_WORDS + 2;
}

pub(super) struct Samples {
    pub(super) interval: usize,
    store: Store,
    frames: Index,
    stacks: Index,
    blocks: Index,
    /// Free entries of blocks, linked by their first words.
    free_block: Place,
    /// Samples that were dropped because there was no room for them.
    pub(super) dropped: usize,
}

impl Samples {
    pub(super) const fn new(interval: usize) -> Samples {
        Samples {
            interval,
            store: Store::new(),
            frames: Index::new(),
            stacks: Index::new(),
            blocks: Index::new(),
            free_block: 0,
            dropped: 0,
        }
    }

    /// Frees all memory and starts again.
    pub(super) fn reset(&mut self, interval: usize) {
        self.store.clear();
        self.interval = interval;
        (self.frames, self.stacks, self.blocks) = (Index::new(), Index::new(), Index::new());
        (self.free_block, self.dropped) = (0, 0);
    }

    /// Bytes that the samples take.
    pub(super) fn bytes(&self) -> usize {
        self.store.bytes()
    }

    /// Adds a sampled block at `address`, allocated by `frames`, innermost first.
    pub(super) fn add(&mut self, address: usize, extent: Extent, frames: &[usize]) {
        // A block here was freed without a report, and its address is used again.
        self.remove(address);
        if self.add_block(address, extent, frames).is_none() {
            self.dropped += 1;
        }
    }

    #[inline(never)]
    fn add_block(&mut self, address: usize, extent: Extent, frames: &[usize]) -> Option<()> {
        let stack = self.stack(frames)?;
        let (parts, bytes) = extent.share(self.interval);
        self.store.add(stack + stack::ALLOCATED_PARTS, parts);
        self.store.add(stack + stack::ALLOCATED_BYTES, bytes);
        let block = match self.free_block {
            0 => self.store.take(block::WORDS)?,
            free => {
                self.free_block = self.store.get(free);
                free
            }
        };
        self.store.set(block + block::STACK, stack);
        self.store.set(block + block::BYTES, extent.bytes);
        self.store.set(block + block::EXPOSED_BYTES, extent.exposed_bytes);
        if !self.blocks.insert(&mut self.store, spread(address), block) {
            return None;
        }
        self.store.add(stack + stack::LIVE_PARTS, parts);
        self.store.add(stack + stack::LIVE_BYTES, bytes);
        Some(())
    }

    #[inline(never)]
    fn find(&self, address: usize) -> Option<Place> {
        // `spread` is a bijection, so the hash identifies the address.
        self.blocks.find(&self.store, spread(address), |_, _| true)
    }

    #[inline(never)]
    fn extent(&self, block: Place) -> Extent {
        Extent {
            bytes: self.store.get(block + block::BYTES),
            exposed_bytes: self.store.get(block + block::EXPOSED_BYTES),
        }
    }

    /// Removes the block at `address`, if it was sampled.
    #[inline(never)]
    pub(super) fn remove(&mut self, address: usize) {
        let Some(block) = self.find(address) else { return };
        let stack = self.store.get(block + block::STACK);
        let (parts, bytes) = self.extent(block).share(self.interval);
        self.store.add(stack + stack::LIVE_PARTS, parts.wrapping_neg());
        self.store.add(stack + stack::LIVE_BYTES, bytes.wrapping_neg());
        self.blocks.remove(&mut self.store, block);
        self.store.set(block, self.free_block);
        self.free_block = block;
    }

    /// Changes a sampled block to `bytes`, with `more` exposed since; returns whether there is such a block.
    pub(super) fn resize(&mut self, address: usize, bytes: usize, more: usize) -> bool {
        let Some(block) = self.find(address) else { return false };
        let stack = self.store.get(block + block::STACK);
        let old = self.extent(block);
        let new = Extent { bytes, exposed_bytes: old.exposed_bytes + more };
        let ((old_parts, old_bytes), (new_parts, new_bytes)) =
            (old.share(self.interval), new.share(self.interval));
        let (parts, changed) =
            (new_parts.wrapping_sub(old_parts), new_bytes.wrapping_sub(old_bytes));
        self.store.add(stack + stack::LIVE_PARTS, parts);
        self.store.add(stack + stack::LIVE_BYTES, changed);
        // Growing into unused space allocates too, although it exposes no new bytes.
        if more > 0 || bytes > old.bytes {
            self.store.add(stack + stack::ALLOCATED_PARTS, parts);
            self.store.add(stack + stack::ALLOCATED_BYTES, changed);
        }
        self.store.set(block + block::BYTES, new.bytes);
        self.store.set(block + block::EXPOSED_BYTES, new.exposed_bytes);
        true
    }

    /// The entry of this stack, made if there is none.
    #[inline(never)]
    fn stack(&mut self, frames: &[usize]) -> Option<Place> {
        let hash = frames.iter().fold(frames.len(), |hash, frame| mix(hash, *frame));
        let is = |store: &Store, entry: Place| {
            store.get(entry + stack::DEPTH) == frames.len()
                && frames.iter().enumerate().all(|(number, address)| {
                    let frame = store.get(entry + stack::FRAMES + number);
                    store.get(frame + frame::ADDRESS) == *address
                })
        };
        if let Some(known) = self.stacks.find(&self.store, hash, is) {
            return Some(known);
        }
        let entry = self.store.take(stack::FRAMES + frames.len())?;
        self.store.set(entry + stack::DEPTH, frames.len());
        for (number, address) in frames.iter().enumerate() {
            let frame = self.frame(*address)?;
            self.store.set(entry + stack::FRAMES + number, frame);
        }
        self.stacks.insert(&mut self.store, hash, entry).then_some(entry)
    }

    /// The entry of a frame, made if there is none.
    #[inline(never)]
    fn frame(&mut self, address: usize) -> Option<Place> {
        let hash = mix(0, address);
        let is = |store: &Store, entry: Place| store.get(entry + frame::ADDRESS) == address;
        if let Some(known) = self.frames.find(&self.store, hash, is) {
            return Some(known);
        }
        let entry = self.store.take(frame::WORDS)?;
        self.store.set(entry + frame::ADDRESS, address);
        self.store.set(entry + frame::NUMBER, self.frames.len() + 1);
        self.frames.insert(&mut self.store, hash, entry).then_some(entry)
    }

    /// Calls `visit` with every frame: its number, from 1 on, and its address.
    pub(super) fn for_each_frame(&self, mut visit: impl FnMut(usize, usize)) {
        self.frames.for_each(&self.store, |store, entry| {
            visit(store.get(entry + frame::NUMBER), store.get(entry + frame::ADDRESS));
        });
    }

    /// Calls `visit` with every stack: its sums, its depth, and a function from a frame's index to its number.
    pub(super) fn for_each_stack(
        &self,
        mut visit: impl FnMut(Sums, usize, &dyn Fn(usize) -> usize),
    ) {
        self.stacks.for_each(&self.store, |store, entry| {
            let sums = Sums {
                allocated_parts: store.get(entry + stack::ALLOCATED_PARTS),
                allocated_bytes: store.get(entry + stack::ALLOCATED_BYTES),
                live_parts: store.get(entry + stack::LIVE_PARTS),
                live_bytes: store.get(entry + stack::LIVE_BYTES),
            };
            let number_of =
                |frame: usize| store.get(store.get(entry + stack::FRAMES + frame) + frame::NUMBER);
            visit(sums, store.get(entry + stack::DEPTH), &number_of);
        });
    }
}

/// An address as a hash that identifies it: low bits of block addresses hardly differ.
fn spread(address: usize) -> usize {
    address.rotate_right(4).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_right(32)
}

#[cfg(test)]
#[path = "samples/tests.rs"]
mod tests;
