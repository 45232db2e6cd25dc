//! Random bytes from the kernel, for the hardened build.
//!
//! Relies on `getrandom(2)`, from Linux 3.17 on. A kernel or a sandbox may refuse it; then the 16
//! random bytes that the kernel gave the program at its start, a clock and an address stand in,
//! and a message says so.

use super::arch::{self, number};
use super::{Clock, check, nanoseconds, process_number, write_error};
use crate::platform::atomics::{AtomicBool, Ordering};
use crate::platform::libc;

/// Fills `words` with random bytes.
#[cold]
#[inline(never)]
pub(crate) fn fill<const COUNT: usize>(words: &mut [u32; COUNT]) {
    // Without this, a machine that has just started would let the program wait.
    const NOT_BLOCKING: usize = 1;
    let (bytes, place) = (size_of_val(words), words.as_mut_ptr().expose_provenance());
    // SAFETY: The kernel writes at most so many bytes there.
    let result = unsafe { arch::call6(number::GETRANDOM, place, bytes, NOT_BLOCKING, 0, 0, 0) };
    if check(result) != Ok(bytes) {
        fill_otherwise(words);
    }
}

/// The same where the kernel refuses.
fn fill_otherwise(words: &mut [u32]) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed: nothing but the message hangs on it.
    if !SAID.swap(true, Ordering::Relaxed) {
        write_error(
            b"masu: the kernel gives no random bytes (getrandom); a clock and the program's start stand in\n",
        );
    }
    let start = libc::random_at_start();
    let (time, process) = (nanoseconds(Clock::Exact) as u64, process_number() as u64);
    let mut state = start[0] ^ time.rotate_left(32) ^ process << 48;
    for (index, word) in words.iter_mut().enumerate() {
        // SplitMix64, as Steele, Lea and Flood have it (OOPSLA 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) ^ start[1];
        *word = (mixed ^ mixed >> 31 ^ index as u64) as u32;
    }
}
