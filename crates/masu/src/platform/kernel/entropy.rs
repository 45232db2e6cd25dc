//! Random bytes from the kernel, for the hardened build.
//!
//! Relies on `getrandom(2)`, from Linux 3.17 on. Where a kernel or a sandbox refuses it, the 16 random bytes that the
//! kernel gave the program at its start, a clock and the process number replace it, with a warning.

use super::arch::{self, number};
use super::{Clock, check, nanoseconds, process_number, write_error};
use crate::platform::atomics::{AtomicBool, Ordering};
use crate::platform::libc;

/// Fills `words` with random bytes.
#[cold]
#[inline(never)]
pub(crate) fn fill<const COUNT: usize>(words: &mut [u32; COUNT]) {
    // Without this flag the program would wait on a machine that has just started.
    const NOT_BLOCKING: usize = 1;
    let (bytes, place) = (size_of_val(words), words.as_mut_ptr().expose_provenance());
    // SAFETY: The kernel writes at most so many bytes there.
    let result = unsafe { arch::call6(number::GETRANDOM, place, bytes, NOT_BLOCKING, 0, 0, 0) };
    if check(result) != Ok(bytes) {
        fill_without_kernel(words);
    }
}

/// The fallback where the kernel refuses.
fn fill_without_kernel(words: &mut [u32]) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed: only the message depends on it.
    if !SAID.swap(true, Ordering::Relaxed) {
        write_error(
            b"masu: the kernel gives no random bytes (getrandom); a clock and the program's start stand in\n",
        );
    }
    let start = libc::random_at_start();
    let (time, process) = (nanoseconds(Clock::Exact) as u64, process_number() as u64);
    let mut state = start[0] ^ time.rotate_left(32) ^ process << 48;
    for (index, word) in words.iter_mut().enumerate() {
        // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) ^ start[1];
        *word = (mixed ^ mixed >> 31 ^ index as u64) as u32;
    }
}
