//! Dropping the contents of many ranges with one call.
//!
//! Relies on its parent. Each `madvise` of a program with threads interrupts every CPU that runs one and waits until it has
//! flushed the range from its TLB: 32 calls took 350 µs beside one other thread, and 34 µs as one `process_madvise`. Recent
//! kernels allow that call for the caller's own process (seen on 6.18). Where a kernel or a filter refuses it, the ranges go
//! one by one. A program with one thread gains little and never makes the call: many sandboxes forbid it, and some kill the
//! process.

use core::ptr::{self, NonNull};

use super::{Advice, Errno, advised, arch, check, discard, no_lock_is_held, number, refuse};
use crate::platform::atomics::{AtomicUsize, Ordering};

/// A range of addresses, as the kernel takes it (`struct iovec`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: *mut u8,
    length: usize,
}

impl Span {
    pub(crate) const NONE: Span = Span { start: ptr::null_mut(), length: 0 };

    pub(crate) const fn new(start: NonNull<u8>, length: usize) -> Span {
        Span { start: start.as_ptr(), length }
    }
}

/// Whether the call may be made, and whether it is known to work.
static KNOWN: AtomicUsize = AtomicUsize::new(UNASKED);
/// There is one thread only.
const UNASKED: usize = 0;
const UNKNOWN: usize = 1;
const DONE: usize = 2;
const REFUSED: usize = 3;

/// Allows the call from now on: there is a second thread.
pub(crate) fn allow_purge_batches() {
    // ORDERING: Relaxed in this file: no other memory depends on the value, and a thread that misses it finds the same one.
    let _ = KNOWN.compare_exchange(UNASKED, UNKNOWN, Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether many ranges are known to take one call.
#[inline]
pub(crate) fn batches_purges() -> bool {
    known() == DONE
}

fn known() -> usize {
    // ORDERING: As above.
    KNOWN.load(Ordering::Relaxed)
}

fn note(known: usize) {
    // ORDERING: As above.
    KNOWN.store(known, Ordering::Relaxed);
}

/// Drops the contents of ranges; whether all of them read as zero now.
///
/// # Safety
///
/// - Each range was mapped by this door, and nothing needs its contents any more.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.kernel_drop_contents")]
pub(crate) unsafe fn drop_contents(spans: &[Span]) -> bool {
    // SAFETY: The caller's condition.
    if spans.len() > 1 && matches!(known(), UNKNOWN | DONE) && unsafe { drop_batch(spans) } {
        return true;
    }
    let mut all = true;
    for span in spans {
        if let Some(start) = NonNull::new(span.start) {
            // SAFETY: As above.
            all &= unsafe { discard(start, span.length) };
        }
    }
    all
}

/// The same with one call.
///
/// # Safety
///
/// - As [`drop_contents`].
unsafe fn drop_batch(spans: &[Span]) -> bool {
    /// This process, without a file (`PIDFD_SELF_THREAD`).
    const THIS_PROCESS: usize = (-10_000_isize).cast_unsigned();
    debug_assert!(no_lock_is_held(), "this may take long");
    if refuse().is_err() {
        return false;
    }
    let (address, count) = (spans.as_ptr().expose_provenance(), spans.len());
    // SAFETY: The kernel reads the spans and drops the contents of these ranges alone (the caller's condition).
    let result = unsafe {
        let advice = Advice::DontNeed as usize;
        arch::call6(number::PROCESS_MADVISE, THIS_PROCESS, address, count, advice, 0, 0)
    };
    let length = spans.iter().map(|span| span.length).sum();
    match check(result) {
        Ok(bytes) if bytes == length => {
            advised::count(Advice::DontNeed, length, Ok(()));
            note(DONE);
            true
        }
        // One range was refused: locked memory.
        Ok(_) | Err(Errno::INVALID | Errno::NOMEM | Errno::AGAIN) => false,
        // An older kernel, or a filter.
        Err(_) => {
            note(REFUSED);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel::{Protection, map};

    const BYTES: usize = 64 << 10;

    fn written<const N: usize>() -> [Span; N] {
        [(); N].map(|()| {
            let start = map(BYTES, Protection::ReadWrite).expect("memory");
            // SAFETY: The range was mapped just now, and is that long.
            unsafe { start.write_bytes(1, BYTES) };
            Span::new(start, BYTES)
        })
    }

    fn is_zero(span: &Span) -> bool {
        // SAFETY: The range is the test's, and readable.
        unsafe { span.start.read() == 0 && span.start.add(span.length - 1).read() == 0 }
    }

    #[test]
    fn ranges_purged_in_a_batch_read_as_zero_on_any_kernel() {
        allow_purge_batches();
        for known in [UNASKED, UNKNOWN, REFUSED] {
            note(known);
            let spans = written::<3>();
            // SAFETY: Nothing needs the contents.
            assert!(unsafe { drop_contents(&spans) });
            assert!(spans.iter().all(is_zero));
        }
        note(UNKNOWN);
    }
}
