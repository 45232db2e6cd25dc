//! Copies, fills and comparisons against those of slices, up to pages that cannot be touched.

extern crate std;

use core::ffi::c_void;
use core::ptr;
use std::sync::{Mutex, PoisonError};
use std::vec::Vec;

use super::{STRING_FROM, STRING_FROM_WIDE, WIDE_FROM, compare, copy, fill, width};
use crate::platform::sync::Ordering;

/// Lengths around every step, and into the loops and string instructions.
fn lengths() -> impl Iterator<Item = usize> {
    let around = |length: usize| length - 1..=length + 1;
    let steps = [WIDE_FROM, 1024, STRING_FROM, STRING_FROM_WIDE, 3 * STRING_FROM];
    (0..=400).chain(steps.into_iter().flat_map(around))
}

/// Runs a test with vectors of 16 bytes, then with the widest. Tests take turns because the width is shared.
fn at_each_width(test: impl Fn()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    width::WIDTH.store(width::NARROW, Ordering::Relaxed);
    test();
    width::WIDTH.store(0, Ordering::Relaxed);
    test();
}

fn numbered(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

/// A page between two inaccessible pages.
struct Fenced(*mut u8);

impl Fenced {
    const PAGE: usize = 64 << 10;

    fn new() -> Fenced {
        // SAFETY: A mapping of its own, anywhere.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                3 * Fenced::PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        let middle = start.cast::<u8>().wrapping_add(Fenced::PAGE);
        // SAFETY: The middle third of the mapping above.
        let answer = unsafe {
            libc::mprotect(middle.cast(), Fenced::PAGE, libc::PROT_READ | libc::PROT_WRITE)
        };
        assert_eq!(answer, 0);
        Fenced(middle)
    }

    /// `length` bytes at the start of the page, and `length` bytes at its end.
    fn edges(&self, length: usize) -> [*mut u8; 2] {
        [self.0, self.0.wrapping_add(Fenced::PAGE - length)]
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        let start = self.0.wrapping_sub(Fenced::PAGE);
        // SAFETY: The mapping came from `new`; nothing uses it any more.
        unsafe { libc::munmap(start.cast(), 3 * Fenced::PAGE) };
    }
}

#[test]
fn copies_like_a_slice_at_any_address() {
    at_each_width(|| {
        for length in lengths() {
            let from = numbered(length + 16);
            for (here, there) in (0..16).map(|at| (at, (at * 7 + 3) % 16)) {
                let mut to = std::vec![255_u8; length + 32];
                let start = to[there..].as_mut_ptr();
                // SAFETY: Both have as many bytes there.
                let answer = unsafe { copy(start.cast(), from[here..].as_ptr().cast(), length) };
                assert_eq!(answer, start.cast::<c_void>());
                assert_eq!(to[there..][..length], from[here..][..length], "{length} bytes");
                assert!(to[..there].iter().chain(&to[there + length..]).all(|byte| *byte == 255));
            }
        }
    });
}

#[test]
fn moves_overlapping_memory_in_either_direction() {
    at_each_width(|| {
        for length in lengths() {
            for distance in [0, 1, 7, 8, 15, 16, 17, 31, 63, 64, 65, 127, 200, length / 2, length] {
                for (from, to) in [(3, 3 + distance), (3 + distance, 3)] {
                    let mut bytes = numbered(length + distance + 8);
                    let mut expected = bytes.clone();
                    expected.copy_within(from..from + length, to);
                    let start = bytes.as_mut_ptr();
                    // SAFETY: Both lie within `bytes`.
                    unsafe {
                        copy(start.wrapping_add(to).cast(), start.wrapping_add(from).cast(), length)
                    };
                    assert!(bytes == expected, "{length} bytes from {from} to {to}");
                }
            }
        }
    });
}

#[test]
fn fills_with_the_lowest_byte_of_the_value() {
    at_each_width(|| {
        for length in lengths() {
            for at in 0..16 {
                let mut to = std::vec![1_u8; length + 32];
                let start = to[at..].as_mut_ptr();
                // SAFETY: There are as many bytes there.
                let answer = unsafe { fill(start.cast(), -0x7fff_ff3c, length) };
                assert_eq!(answer, start.cast::<c_void>());
                assert!(to[at..][..length].iter().all(|byte| *byte == 0xc4), "{length} bytes");
                assert!(to[..at].iter().chain(&to[at + length..]).all(|byte| *byte == 1));
            }
        }
    });
}

#[test]
fn compares_by_the_first_different_byte() {
    for length in lengths() {
        let one = numbered(length + 16);
        // All positions near both ends, where the two loops work, and fewer in between, to save time.
        for differs in (0..length).filter(|at| *at < 300 || at % 97 == 0 || at + 70 > length) {
            let mut other = one[differs % 16..][..length].to_vec();
            let one = &one[differs % 16..][..length];
            // Bytes compare as unsigned, and later differences do not count.
            other[differs] = one[differs].wrapping_add(if differs % 2 == 0 { 128 } else { 1 });
            if let Some(last) = other[differs + 1..].last_mut() {
                *last = last.wrapping_sub(1);
            }
            // SAFETY: Both have as many bytes.
            let [answer, turned] = unsafe {
                [
                    compare(one.as_ptr().cast(), other.as_ptr().cast(), length),
                    compare(other.as_ptr().cast(), one.as_ptr().cast(), length),
                ]
            };
            assert_eq!(answer.cmp(&0), one.cmp(&other), "{length} bytes, at {differs}");
            assert_eq!(turned.cmp(&0), other.as_slice().cmp(one));
        }
        let same = one[..length].to_vec();
        // SAFETY: Both have as many bytes.
        assert_eq!(unsafe { compare(one.as_ptr().cast(), same.as_ptr().cast(), length) }, 0);
    }
}

#[test]
fn writes_nothing_before_or_after() {
    at_each_width(|| {
        let [one, other] = [Fenced::new(), Fenced::new()];
        for length in lengths() {
            for start in one.edges(length) {
                for end in other.edges(length) {
                    // SAFETY: All bytes lie in the pages; a touch beyond an edge ends the test.
                    unsafe {
                        fill(start.cast(), 0x11, length);
                        copy(end.cast(), start.cast(), length);
                        assert_eq!(compare(start.cast(), end.cast(), length), 0);
                        if length > 0 {
                            *end.wrapping_add(length - 1) = 0x12;
                            assert!(compare(start.cast(), end.cast(), length) < 0);
                            *end = 0x10;
                            assert!(compare(start.cast(), end.cast(), length) > 0);
                        }
                    }
                }
            }
        }
    });
}

#[cfg(target_env = "musl")]
#[test]
fn the_program_calls_these() {
    assert_eq!(libc::memcpy as *const () as usize, copy as *const () as usize);
    assert_eq!(libc::memmove as *const () as usize, copy as *const () as usize);
    assert_eq!(libc::memset as *const () as usize, fill as *const () as usize);
    assert_eq!(libc::memcmp as *const () as usize, compare as *const () as usize);
}
