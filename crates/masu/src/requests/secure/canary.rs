//! Canaries: bytes behind each block that must be unchanged when the block is freed.
//!
//! Relies on the kernel for a secret of the process. A canary is eight bytes computed from the secret and the block's address,
//! so one canary does not reveal another. It is repeated up to the block's end, or for [`BYTES_MAX`]. None of its bytes is
//! zero, because an overrun by one byte most often writes a zero.

use crate::platform::kernel::entropy;
use crate::platform::sync::{AtomicUsize, Ordering};

/// The fewest bytes of canary behind a block of a class.
pub(super) const BYTES_MIN: usize = 8;
/// The most bytes that are written and checked.
const BYTES_MAX: usize = 64;

static SECRET: AtomicUsize = AtomicUsize::new(0);

/// Writes the canary of the block of `size` bytes at `start`, in room for `room` bytes.
///
/// # Safety
///
/// - From `start` on, `room` bytes may be written.
#[inline]
pub(super) unsafe fn write(start: *mut u8, size: usize, room: usize) {
    let bytes = of(start.addr());
    let (mut at, end) = (size, room.min(size + BYTES_MAX));
    while at + 8 <= end {
        // SAFETY: At least eight bytes are left.
        unsafe { start.add(at).cast::<[u8; 8]>().write(bytes) };
        at += 8;
    }
    for (place, byte) in (at..end).zip(bytes) {
        // SAFETY: The place lies before the end.
        unsafe { start.add(place).write(byte) };
    }
}

/// Whether the canary of the block at `start` is intact.
///
/// # Safety
///
/// - From `start` on, `room` bytes may be read.
#[inline]
pub(super) unsafe fn is_intact(start: *const u8, size: usize, room: usize) -> bool {
    let bytes = of(start.addr());
    let (mut at, end) = (size, room.min(size + BYTES_MAX));
    while at + 8 <= end {
        // SAFETY: At least eight bytes are left.
        if unsafe { start.add(at).cast::<[u8; 8]>().read() } != bytes {
            return false;
        }
        at += 8;
    }
    // SAFETY: The place lies before the end.
    (at..end).zip(bytes).all(|(place, byte)| unsafe { start.add(place).read() } == byte)
}

/// The canary of a block at this address.
#[inline]
fn of(address: usize) -> [u8; 8] {
    // ORDERING: Relaxed: no other memory depends on the number.
    let secret = match SECRET.load(Ordering::Relaxed) {
        0 => make_secret(),
        known => known,
    };
    let mixed = (address ^ secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32 ^ secret.rotate_left(17)).wrapping_mul(secret | 1);
    ((mixed ^ mixed >> 29) | 0x0101_0101_0101_0101).to_ne_bytes()
}

/// Draws the secret; where threads draw at the same time, the first value holds.
#[cold]
#[inline(never)]
fn make_secret() -> usize {
    let mut words = [0; 2];
    entropy::fill(&mut words);
    let drawn = (words[0] as usize | (words[1] as usize) << 32).max(1);
    // ORDERING: Relaxed, as above.
    match SECRET.compare_exchange(0, drawn, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => drawn,
        Err(known) => known,
    }
}
