//! The class map: one byte for each 64 KiB of address space, with the code of the memory there.
//!
//! Relies on the kernel for a range of zero bytes that is not resident until written. `free` reads the map, so a read must
//! cost two loads and no branch. The hard idea is the mask: it removes the address bits that do not count. Where there is no
//! map (a limit on address space), the mask is 0, so every read returns the same byte, "not masu's", and `free` takes the
//! slow path, which asks the arenas ([`crate::memory::arena::code_at`]).
//!
//! A byte holds twice the code of [`crate::memory::class`], which is an offset into a thread's stacks in units of 8 bytes.

use core::ptr::NonNull;

use crate::memory::class::FOREIGN;
use crate::memory::slice::{ARENA_BYTES, SLICE_BYTES, SLICE_SHIFT};
use crate::platform::kernel::{self, Advice, Errno, Protection};
use crate::platform::sync::{AtomicPtr, AtomicUsize, Pair};

/// Address bits of a user program: 47 on x86-64, 48 on aarch64. Tags above them are ignored.
const ADDRESS_BITS: u32 = if cfg!(target_arch = "aarch64") { 48 } else { 47 };
/// Bytes of the whole map: 2 GiB or 4 GiB of addresses.
const MAP_BYTES: usize = 1 << (ADDRESS_BITS - SLICE_SHIFT);

/// The map is made writable in units of this size.
const OPENED_BYTES: usize = 64 << 10;

static NOTHING: u8 = FOREIGN;

/// The map, or one byte with "not masu's", and the mask for its index: [`MAP_BYTES`] − 1, or 0 while there is no map.
/// Published once, by [`establish`]; read by every `free`.
static MAP: Pair<u8> =
    Pair::of(AtomicUsize::new(0), AtomicPtr::new((&raw const NOTHING).cast_mut()));

/// Twice the code of the memory at `address`; 0 where it is not masu's, or there is no map.
#[inline(always)]
pub(crate) fn double_code(address: usize) -> usize {
    let (mask, bytes) = MAP.read();
    // SAFETY: The mask keeps the index inside the map, or at the one byte. No thread writes the byte at the same time: it was
    // written before the block was handed out and stays while the block lives, and outside arenas no byte is ever written.
    usize::from(unsafe { bytes.add((address >> SLICE_SHIFT) & mask).read() })
}

/// Reserves the map; `None` where the kernel refuses. Called once, before the first arena. Returns an address near which the
/// kernel places mappings.
pub(crate) fn establish() -> Option<usize> {
    let bytes = kernel::map(MAP_BYTES, Protection::Read).ok()?;
    // SAFETY: The range was mapped just now. Without the advice core dumps are only larger.
    let _ = unsafe { kernel::advise(bytes, MAP_BYTES, Advice::DontDump) };
    MAP.publish(MAP_BYTES - 1, bytes.as_ptr());
    // Makes the compiler keep both fields together, in one cache line.
    core::hint::black_box(&MAP);
    Some(bytes.as_ptr().addr())
}

/// Whether there is a map, so that memory without a code is not masu's.
pub(crate) fn is_established() -> bool {
    MAP.read().0 != 0
}

fn byte_at(address: usize) -> Option<NonNull<u8>> {
    let (mask, bytes) = MAP.read();
    if mask == 0 {
        return None;
    }
    // SAFETY: The map covers every address of the program.
    NonNull::new(unsafe { bytes.add((address >> SLICE_SHIFT) & mask) })
}

/// Whether two addresses' bytes are made writable together.
pub(crate) fn is_one_unit(address: usize, other: usize) -> bool {
    const UNIT_SHIFT: u32 = OPENED_BYTES.ilog2() + SLICE_SHIFT;
    address >> UNIT_SHIFT == other >> UNIT_SHIFT
}

/// Makes the bytes of an arena's addresses writable; whether that worked (it does where there is no map). `shares_unit` says
/// whether another arena that still exists shares the unit.
pub(crate) fn open(arena: usize, length: usize, shares_unit: fn(usize) -> bool) -> bool {
    let Some(first) = byte_at(arena) else { return true };
    // By the kernel's largest pages from the start of the map, so that its page size need not be known.
    let skipped = (arena >> SLICE_SHIFT) & (OPENED_BYTES - 1);
    let bytes = (length.div_ceil(SLICE_BYTES) + skipped).next_multiple_of(OPENED_BYTES);
    // SAFETY: Rounding down stays inside the map.
    let first = unsafe { first.sub(skipped) };
    // SAFETY: The range lies inside the map, which is only ever opened.
    let refusal = match unsafe { kernel::protect(first, bytes, Protection::ReadWrite) } {
        Ok(()) => return true,
        Err(refusal) => refusal,
    };
    // A sandbox refuses the call itself. Then the bytes are open already, or were written only for arenas that are gone.
    // SAFETY: An arena lies in one unit as a whole; the bytes of one that is gone are zero.
    refusal != Errno::NOMEM
        && (shares_unit(arena) || unsafe { kernel::commit(first, bytes) }.is_ok())
}

/// Writes the code of `slices` slices from `address` on, which lie in an arena that was opened.
pub(crate) fn set(address: usize, slices: usize, code: u8) {
    debug_assert!(slices * SLICE_BYTES <= ARENA_BYTES);
    let Some(first) = byte_at(address) else { return };
    // SAFETY: The byte is the arena's and writable, and no live block leads to it.
    unsafe { first.write(code << 1) };
    if slices > 1 {
        // SAFETY: As above; an arena's bytes are contiguous.
        unsafe { first.add(1).write_bytes(code << 1, slices - 1) };
    }
}
