//! The bytes that calls ask to write.
//!
//! It relies on the memory of the stopped thread for calls that gather from several places. Sizes are the requested
//! ones: the number of bytes that the kernel took is known only when the call is over, and a stop there would double
//! the price of counting.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Call, Pid};

/// The size of a write that a thread has stopped at; none for another call, or where the size is not known.
pub(super) fn requested(pid: Pid, call: Call, arguments: [u64; 6]) -> Option<u64> {
    match call {
        Call::Write | Call::Pwrite64 | Call::Sendto => Some(arguments[2]),
        Call::Writev | Call::Pwritev | Call::Pwritev2 => gathered(pid, arguments),
        _ => None,
    }
}

/// The bytes of a call whose second argument leads to pairs of an address and a length, and whose third argument is the
/// number of pairs; none where they cannot be read.
pub(super) fn gathered(pid: Pid, arguments: [u64; 6]) -> Option<u64> {
    const PAIR: usize = 16;
    /// The most pairs that the kernel takes (`UIO_MAXIOV`).
    const PAIRS_MAX: u64 = 1024;
    let [_, pairs_at, count, ..] = arguments;
    let count = usize::try_from(count.min(PAIRS_MAX)).ok()?;
    let mut pairs = vec![0; count * PAIR];
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut pairs, pairs_at).ok()?;
    let lengths = pairs.as_chunks::<8>().0.iter().skip(1).step_by(2);
    Some(lengths.fold(0, |sum, length| sum.saturating_add(u64::from_ne_bytes(*length))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gathered_is_read_from_the_caller() {
        let own = i32::try_from(std::process::id()).unwrap();
        let pairs: [u64; 4] = [0, 7, 0, 35];
        let at = (&raw const pairs).addr() as u64;
        let size = |call, arguments| requested(own, call, arguments);
        for call in [Call::Writev, Call::Pwritev, Call::Pwritev2] {
            assert_eq!(size(call, [1, at, 2, 0, 0, 0]), Some(42));
            assert_eq!(size(call, [1, 0, 2, 0, 0, 0]), None);
        }
        for call in [Call::Write, Call::Pwrite64, Call::Sendto] {
            assert_eq!(size(call, [1, at, 2, 0, 0, 0]), Some(2));
        }
        assert_eq!(size(Call::Brk, [1, at, 2, 0, 0, 0]), None);
    }
}
