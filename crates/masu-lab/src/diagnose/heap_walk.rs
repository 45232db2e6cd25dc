//! A walk through glibc's first heap, from outside the process: the share of it that is free blocks.
//!
//! Relies on glibc's layout of a heap, which has been the same since its beginning: blocks one after another, each
//! behind a word that holds its size and whether the block before it is in use; a free block's size stands at its end
//! too. Blocks in a thread's cache count as in use; they are few. The difficulty is that the program runs on at the same
//! time, and may have an allocator of its own in the same mapping, so the walk may read a size that never was one. A
//! size that does not lead to another block ends the walk, and a walk that ends early says nothing.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::facts::Heap;
use masu_run::execute::tree::Pid;
use masu_run::mapping::Mapping;
use masu_run::proc_files;

/// The most bytes of a heap that are walked through.
const WALKED_MAX: u64 = 64 << 20;

/// A walk that ends before this many bytes went wrong.
const WALKED_MIN: u64 = 1 << 20;

/// The bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// The smallest block, its size included.
const BLOCK_MIN: u64 = 32;

/// Walks through the heap of a process that runs on glibc's malloc; none if there is no such heap, or if it is smaller
/// than a walk must be.
pub(super) fn walk(process: Pid) -> Option<Heap> {
    let maps = proc_files::text(format!("/proc/{process}/maps"))?;
    let range = heap_in(&maps)?;
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    walk_in(range, &mut |at, piece| memory.read_exact_at(piece, at).is_ok())
}

/// The addresses of the heap, in a process that has glibc.
fn heap_in(maps: &str) -> Option<Range<u64>> {
    if !maps.contains("/libc.so") && !maps.contains("/libc-2.") {
        return None;
    }
    let heap = Mapping::all(maps).find(|one| one.path == "[heap]")?;
    Some(heap.start..heap.end)
}

/// Walks through a heap; `read` reads pieces of it.
fn walk_in(range: Range<u64>, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Option<Heap> {
    const FLAGS: u64 = 7;
    const BEFORE_IS_USED: u64 = 1;
    let bytes = range.end - range.start;
    let mut piece = vec![0; PIECE];
    let mut piece_at = None;
    let mut word = |at: u64| -> Option<u64> {
        let start = at - (at - range.start) % PIECE as u64;
        let length = (range.end - start).min(PIECE as u64);
        let length = usize::try_from(length).ok()?;
        if piece_at != Some(start) {
            if !read(start, &mut piece[..length]) {
                return None;
            }
            piece_at = Some(start);
        }
        let from = usize::try_from(at - start).ok()?;
        Some(u64::from_ne_bytes(*piece[..length].get(from..)?.first_chunk()?))
    };
    let (mut at, mut free, mut last) = (range.start, 0, 0);
    while at - range.start < WALKED_MAX {
        let Some(size) = word(at + 8) else { break };
        // Each block holds the state of the block before it, and the size of a free one.
        if size & BEFORE_IS_USED == 0 {
            if word(at) != Some(last) {
                // The last size was none: another allocator's memory, or a block that has just changed.
                at -= last;
                break;
            }
            free += last;
        }
        let size = size & !FLAGS;
        if size < BLOCK_MIN || !size.is_multiple_of(16) || size > range.end - at {
            break;
        }
        last = size;
        at += size;
        if at + 16 > range.end {
            break;
        }
    }
    let walked_bytes = at - range.start;
    (walked_bytes >= WALKED_MIN).then_some(Heap {
        bytes,
        walked_bytes,
        free_bytes: free,
        at_s: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap of blocks, each with its size and whether it is in use.
    fn heap(blocks: &[(u64, bool)]) -> Vec<u8> {
        let mut memory = Vec::new();
        let (mut before, mut last) = (true, 0_u64);
        for &(size, used) in blocks {
            let start = memory.len();
            memory.resize(start + size as usize, 0);
            if !before {
                memory[start..start + 8].copy_from_slice(&last.to_ne_bytes());
            }
            memory[start + 8..start + 16]
                .copy_from_slice(&(size | u64::from(before)).to_ne_bytes());
            (before, last) = (used, size);
        }
        memory
    }

    fn walked(memory: &[u8]) -> Option<Heap> {
        const START: u64 = 0x5561_b100_0000;
        walk_in(START..START + memory.len() as u64, &mut |at, piece| {
            let from = (at - START) as usize;
            piece.copy_from_slice(&memory[from..from + piece.len()]);
            true
        })
    }

    #[test]
    fn free_blocks_are_those_that_the_next_one_says_are() {
        let blocks: Vec<(u64, bool)> =
            (0..30_000_u64).map(|index| (48 + index % 5 * 16, index % 3 != 0)).collect();
        let memory = heap(&blocks);
        let free: u64 = blocks.iter().filter(|(_, used)| !used).map(|(size, _)| size).sum();
        let heap = walked(&memory).unwrap();
        assert_eq!((heap.bytes, heap.walked_bytes), (memory.len() as u64, memory.len() as u64));
        assert_eq!(heap.free_bytes, free);
        assert!((heap.free() - free as f64).abs() < 1.0);
    }

    #[test]
    fn a_walk_that_is_led_astray_says_nothing() {
        assert_eq!(walked(&vec![0; 4 << 20]), None);
        let mut memory = heap(&[(64, true); 40_000]);
        memory[64 * 100 + 8..][..8].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(walked(&memory), None);
        // As if another allocator's memory began behind the first block: a number that looks like a size leads far.
        let mut memory = heap(&[(64, true), (6 << 20, false), (64, true)]);
        memory[64 + (6 << 20)..][..8].copy_from_slice(&[0; 8]);
        assert_eq!(walked(&memory), None);
        // A short walk says nothing either.
        assert_eq!(walked(&heap(&[(64, true); 10])), None);
        let unread = walk_in(0..8 << 20, &mut |_, _| false);
        assert_eq!(unread, None);
    }

    #[test]
    fn only_a_heap_of_glibcs_is_walked_through() {
        let glibc = "55e0-55f0 rw-p 0 00:00 0    [heap]\n7f00-7f10 r--p 0 08:01 2 /lib/libc.so.6\n";
        assert_eq!(heap_in(glibc), Some(0x55e0..0x55f0));
        assert_eq!(heap_in("55e0-55f0 rw-p 0 00:00 0    [heap]\n"), None);
        assert_eq!(heap_in("7f00-7f10 r--p 0 08:01 2 /lib/libc.so.6\n"), None);
    }
}
