//! Random numbers that an attacker cannot predict: ChaCha with eight rounds, with a key from the kernel.
//!
//! Relies on the kernel door for the key and for the page that holds it. The hard idea is `fork`: a child must not draw its
//! parent's numbers. So the kernel wipes that page in children, and a key that is zero is drawn again. The page has a mark too,
//! by which a stream finds that its numbers at hand are of another key. Where the kernel cannot wipe (before Linux 4.14), a child
//! draws what its parent would have drawn.

use core::ptr::{self, NonNull};

use crate::memory::slice::SLICE_BYTES;
use crate::platform::kernel::{self, Advice, Protection};
use crate::platform::sync::{AtomicPtr, AtomicU32, Lock, Ordering, Visit};

const KEY_WORDS: usize = 8;
const WORDS: usize = 16;

/// The key and its mark, a random number that is no secret.
type Drawn<T> = [T; KEY_WORDS + 1];

/// The key, on a page of its own; null before there is one.
static KEY: AtomicPtr<Drawn<AtomicU32>> = AtomicPtr::new(ptr::null_mut());
/// The key where there is no page for it.
static SPARE_KEY: Drawn<AtomicU32> = [const { AtomicU32::new(0) }; KEY_WORDS + 1];
/// Held by the thread that makes the key, which takes no other lock in that time.
static MAKING: Lock<()> = Lock::new(());

/// A stream of random numbers, which differs from all others by its address. All zero: nothing was drawn yet.
pub(crate) struct Random {
    words: [u32; WORDS],
    left: u32,
    blocks: u32,
    /// The mark of the key that the words were made with.
    mark: u32,
}

impl Random {
    pub(crate) const fn new() -> Random {
        Random { words: [0; WORDS], left: 0, blocks: 0, mark: 0 }
    }

    /// The next number.
    #[inline]
    pub(crate) fn next(&mut self) -> u32 {
        if self.left == 0 || self.mark != mark() {
            self.refill();
        }
        self.left -= 1;
        // Erased, so that a reader of this memory learns no number that was drawn.
        core::mem::take(&mut self.words[self.left as usize])
    }

    /// A number below `end`, which is not 0.
    #[inline]
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u64::from(self.next()) * end as u64) >> 32) as usize
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        self.blocks = self.blocks.wrapping_add(1);
        let place = ptr::from_ref(self).addr() as u64;
        let [key @ .., mark] = &key();
        self.words = block(key, self.blocks, place);
        (self.left, self.mark) = (WORDS as u32, *mark);
    }
}

/// The mark of the present key; 0 where there is none.
#[inline]
fn mark() -> u32 {
    // ORDERING: Acquire pairs with the Release in `make_key`.
    let words = KEY.load(Ordering::Acquire);
    // SAFETY: It is null or leads to a page that stays mapped.
    // ORDERING: Relaxed: a thread that forked finds the mark wiped, or made again by itself.
    unsafe { words.as_ref() }.map_or(0, |words| words[KEY_WORDS].load(Ordering::Relaxed))
}

/// The key, made if there is none.
fn key() -> Drawn<u32> {
    // ORDERING: Acquire pairs with the Release in `make_key`.
    let words = KEY.load(Ordering::Acquire);
    // SAFETY: It is null or leads to a page that stays mapped.
    if let Some(words) = unsafe { words.as_ref() } {
        // ORDERING: Relaxed: a key that is being made in a child is zero in part, and is made again.
        let key = words.each_ref().map(|word| word.load(Ordering::Relaxed));
        if !key.contains(&0) {
            return key;
        }
    }
    make_key()
}

/// Draws a key from the kernel without a word that is zero.
#[cold]
#[inline(never)]
fn make_key() -> Drawn<u32> {
    let _making = MAKING.lock();
    // ORDERING: Relaxed: written under the lock.
    let known = KEY.load(Ordering::Relaxed);
    // SAFETY: As in `key`.
    let words = unsafe { known.as_ref() }.unwrap_or_else(place);
    // ORDERING: Relaxed: as above.
    let mut key = words.each_ref().map(|word| word.load(Ordering::Relaxed));
    if key.contains(&0) {
        kernel::entropy::fill(&mut key);
        key.iter_mut().for_each(|word| *word = (*word).max(1));
        for (place, word) in words.iter().zip(key) {
            // ORDERING: Relaxed: a thread that sees part of it sees a zero and comes here.
            place.store(word, Ordering::Relaxed);
        }
    }
    // ORDERING: Release publishes the key to the Acquire in `key`.
    KEY.store(ptr::from_ref(words).cast_mut(), Ordering::Release);
    key
}

/// A place for the key that is zero in a child, if the kernel can do that.
fn place() -> &'static Drawn<AtomicU32> {
    // The largest OS page, so that it is whole wherever it begins.
    let bytes = SLICE_BYTES;
    let Ok(start) = kernel::map(2 * bytes, Protection::ReadWrite) else { return &SPARE_KEY };
    let before = start.as_ptr().addr().next_multiple_of(bytes) - start.as_ptr().addr();
    // SAFETY: So many bytes are left behind.
    let start = unsafe { start.add(before) };
    for advice in [Advice::WipeOnFork, Advice::DontDump] {
        // SAFETY: The page was mapped just now. If refused, the child shares the parent's key.
        let _ = unsafe { kernel::advise(start, bytes, advice) };
    }
    let words: NonNull<Drawn<AtomicU32>> = start.cast();
    // SAFETY: The page is zero, which is a valid value, aligned, and stays mapped.
    unsafe { words.as_ref() }
}

/// Visits this module's lock, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    visit.see(MAKING.raw());
}

/// The block `number` of the stream `stream`: D. J. Bernstein, "ChaCha, a variant of Salsa20" (2008), with eight rounds.
fn block(key: &[u32; KEY_WORDS], number: u32, stream: u64) -> [u32; WORDS] {
    let mut start = [0_u32; WORDS];
    // "expand 32-byte k"
    start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    start[4..12].copy_from_slice(key);
    start[12] = number;
    start[14] = stream as u32;
    start[15] = (stream >> 32) as u32;
    let mut state = start;
    for _ in 0..4 {
        quarters(&mut state, [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]);
        quarters(&mut state, [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]]);
    }
    for (word, first) in state.iter_mut().zip(start) {
        *word = word.wrapping_add(first);
    }
    state
}

fn quarters(state: &mut [u32; WORDS], rounds: [[usize; 4]; 4]) {
    for [a, b, c, d] in rounds {
        for (turns_d, turns_b) in [(16, 12), (8, 7)] {
            state[a] = state[a].wrapping_add(state[b]);
            state[d] = (state[d] ^ state[a]).rotate_left(turns_d);
            state[c] = state[c].wrapping_add(state[d]);
            state[b] = (state[b] ^ state[c]).rotate_left(turns_b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_key_gives_the_published_block_of_chacha8() {
        // The first words of the keystream for a zero key and nonce: draft-strombergson-chacha-test-vectors-01, ChaCha8,
        // TC1, 256 bits.
        let first = block(&[0; KEY_WORDS], 0, 0);
        assert_eq!(first[..4], [0x2fef_003e, 0xd640_5f89, 0xe8b8_5b7f, 0xa1a5_091f]);
    }

    #[test]
    fn a_forked_child_draws_other_numbers_at_once() {
        let (mut random, mut ends, mut drawn) = (Random::new(), [0; 2], [0_u32; 2]);
        random.next();
        // SAFETY: The calls write to variables of this test alone.
        assert_eq!(unsafe { ::libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: The child calls nothing that waits for another thread.
        let child = unsafe { ::libc::fork() };
        if child == 0 {
            let drawn = [mark(), random.next()];
            // SAFETY: As above.
            unsafe { ::libc::write(ends[1], drawn.as_ptr().cast(), 8) };
            // SAFETY: It ends the child and nothing else.
            unsafe { ::libc::_exit(0) };
        }
        // SAFETY: As above.
        assert_eq!(unsafe { ::libc::read(ends[0], drawn.as_mut_ptr().cast(), 8) }, 8, "a child");
        // SAFETY: As above.
        assert_eq!(unsafe { ::libc::waitpid(child, ptr::null_mut(), 0) }, child);
        // Some emulators wipe nothing.
        let is_wiped = drawn[0] == 0;
        assert!(!is_wiped || drawn[1] != random.next());
    }

    #[test]
    fn numbers_below_an_end_reach_all_of_them() {
        let mut random = Random::new();
        let mut seen = [0_u32; 10];
        for _ in 0..1000 {
            seen[random.below(10)] += 1;
        }
        assert!(seen.iter().all(|count| (50..200).contains(count)), "{seen:?}");
    }
}
