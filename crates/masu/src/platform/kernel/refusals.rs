//! Calls for memory that are refused as if the kernel had none, in debug builds, for tests.
//!
//! Relies on the door's functions to ask before each call. The calls that are refused follow from their number alone, so that
//! a test of one thread repeats.

use crate::platform::atomics::{AtomicUsize, Ordering};

/// One call in this many is refused on average; 0 for none.
static RATE: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Refuses one call for memory in `rate` from now on; 0 ends it.
pub(crate) fn refuse_calls(rate: usize) {
    // ORDERING: Relaxed in this file: no other memory depends on the values.
    RATE.store(rate, Ordering::Relaxed);
}

/// Whether the next call is refused.
pub(super) fn is_next() -> bool {
    // ORDERING: As above.
    let rate = RATE.load(Ordering::Relaxed);
    if rate == 0 {
        return false;
    }
    // ORDERING: As above.
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    (call.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(rate)
}
