//! The profile's own memory: words addressed by number, in chunks of metadata.
//!
//! Relies on metadata. Words never move, and only the whole store is freed, so a word's number stays valid while a
//! profile is taken. The number of chunks bounds the memory of all tables together.

use core::ptr::NonNull;

use crate::memory::metadata::{self, WORDS_MAX};

/// The most chunks, of 64 KiB each.
const CHUNKS_MAX: usize = 1024;
/// The pointers to all chunks fit into one chunk.
const _: () = assert!(CHUNKS_MAX <= WORDS_MAX);

/// A word's number; 0 for none.
pub(super) type Place = usize;

/// Words in chunks.
pub(super) struct Store {
    chunks: [Option<NonNull<usize>>; CHUNKS_MAX],
    /// The number of chunks, and the first word that is not taken.
    count: usize,
    next: Place,
}

// SAFETY: The chunks belong to this store alone.
unsafe impl Send for Store {}

impl Store {
    pub(super) const fn new() -> Store {
        Store { chunks: [None; CHUNKS_MAX], count: 0, next: 0 }
    }

    /// `words` zeroed words in a row, fewer than a chunk has. `None` without memory, and where the store is full.
    #[inline(never)]
    pub(super) fn take(&mut self, words: usize) -> Option<Place> {
        debug_assert!(words < WORDS_MAX);
        if self.next + words > self.count * WORDS_MAX {
            let chunk = self.chunks.get_mut(self.count)?;
            let memory = metadata::words(WORDS_MAX)?;
            memory.fill(0);
            *chunk = Some(NonNull::from(memory).cast());
            // Place 0 stands for none.
            self.next = (self.count * WORDS_MAX).max(1);
            self.count += 1;
        }
        let place = self.next;
        self.next += words;
        Some(place)
    }

    fn word(&self, place: Place) -> NonNull<usize> {
        let chunk = self.chunks[(place / WORDS_MAX) % CHUNKS_MAX].unwrap_or(NonNull::dangling());
        debug_assert!(place < self.next);
        // SAFETY: `take` returned the place, so its chunk exists and is that long.
        unsafe { chunk.add(place % WORDS_MAX) }
    }

    /// The word at a place that [`Store::take`] returned.
    #[inline(never)]
    pub(super) fn get(&self, place: Place) -> usize {
        // SAFETY: The word is in a chunk, which this store alone touches.
        unsafe { self.word(place).read() }
    }

    /// Sets the word at a place that [`Store::take`] returned.
    #[inline(never)]
    pub(super) fn set(&mut self, place: Place, value: usize) {
        // SAFETY: As in `get`.
        unsafe { self.word(place).write(value) };
    }

    /// Adds to the word at a place that [`Store::take`] returned; the sum wraps.
    #[inline(never)]
    pub(super) fn add(&mut self, place: Place, value: usize) {
        self.set(place, self.get(place).wrapping_add(value));
    }

    /// Bytes of all chunks.
    pub(super) fn bytes(&self) -> usize {
        self.count * WORDS_MAX * size_of::<usize>()
    }

    /// Frees all chunks.
    pub(super) fn clear(&mut self) {
        for chunk in self.chunks[..self.count].iter_mut().filter_map(Option::take) {
            // SAFETY: The chunk came from `metadata::words` with this length, and no place in it is used any more.
            unsafe { metadata::give_back(chunk, WORDS_MAX) };
        }
        *self = Store::new();
    }
}

/// A hash table with entries in a store: an entry's first word is the place of the next, the second its hash.
pub(super) struct Index {
    /// Arrays of [`HEADS`] words: the first entry of each chain.
    arrays: [Place; ARRAYS_MAX],
    /// The number of arrays, a power of two once there is one.
    count: usize,
    entries: usize,
}

/// Half a chunk, which leaves room for entries in the first one.
const HEADS: usize = WORDS_MAX / 2;
const ARRAYS_MAX: usize = 128;
/// Entries per chain at which the number of chains doubles.
const LOAD_MAX: usize = 2;

/// Words at the start of every entry.
pub(super) const ENTRY_WORDS: usize = 2;

impl Index {
    pub(super) const fn new() -> Index {
        Index { arrays: [0; ARRAYS_MAX], count: 0, entries: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    fn head(&self, hash: usize) -> Place {
        self.arrays[(hash / HEADS) & (self.count - 1)] + hash % HEADS
    }

    /// The entry with this hash that `is` accepts.
    pub(super) fn find(
        &self,
        store: &Store,
        hash: usize,
        is: impl Fn(&Store, Place) -> bool,
    ) -> Option<Place> {
        if self.count == 0 {
            return None;
        }
        let mut entry = store.get(self.head(hash));
        while entry != 0 {
            if store.get(entry + 1) == hash && is(store, entry) {
                return Some(entry);
            }
            entry = store.get(entry);
        }
        None
    }

    /// Adds an entry; false without memory.
    #[inline(never)]
    pub(super) fn insert(&mut self, store: &mut Store, hash: usize, entry: Place) -> bool {
        if self.count == 0 {
            let Some(array) = store.take(HEADS) else { return false };
            self.arrays[0] = array;
            self.count = 1;
        } else if self.entries >= self.count * HEADS * LOAD_MAX {
            self.grow(store);
        }
        let head = self.head(hash);
        store.set(entry, store.get(head));
        store.set(entry + 1, hash);
        store.set(head, entry);
        self.entries += 1;
        true
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, store: &mut Store, entry: Place) {
        let mut before = self.head(store.get(entry + 1));
        while store.get(before) != entry {
            before = store.get(before);
            if before == 0 {
                return;
            }
        }
        store.set(before, store.get(entry));
        self.entries -= 1;
    }

    /// Doubles the number of chains, if there is memory.
    #[inline(never)]
    fn grow(&mut self, store: &mut Store) {
        let old = self.count;
        for array in old..2 * old {
            let Some(place) = self.arrays.get_mut(array) else { return };
            let Some(heads) = store.take(HEADS) else { return };
            *place = heads;
        }
        let old_arrays = self.arrays;
        self.count = 2 * old;
        for head in old_arrays[..old].iter().flat_map(|array| *array..*array + HEADS) {
            let mut entry = store.get(head);
            store.set(head, 0);
            while entry != 0 {
                let next = store.get(entry);
                let new_head = self.head(store.get(entry + 1));
                store.set(entry, store.get(new_head));
                store.set(new_head, entry);
                entry = next;
            }
        }
    }

    pub(super) fn for_each(&self, store: &Store, mut visit: impl FnMut(&Store, Place)) {
        for head in self.arrays[..self.count].iter().flat_map(|array| *array..*array + HEADS) {
            let mut entry = store.get(head);
            while entry != 0 {
                visit(store, entry);
                entry = store.get(entry);
            }
        }
    }
}

/// Mixes a word into a hash.
pub(super) fn mix(hash: usize, word: usize) -> usize {
    let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}
