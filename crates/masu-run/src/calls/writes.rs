//! Bytes written, by the size of each call.
//!
//! It relies on the memory of the stopped thread for calls that gather from several places. Sizes are the requested
//! ones: the number of bytes that the kernel took is known only when the call is over, and a stop there would double
//! the price of counting.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::Serialize;

use super::{Call, Pid};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Writes {
    /// The number of calls whose size was seen.
    pub calls: u64,
    pub bytes: u64,
    /// The number of calls of each size: place 0 counts those of no bytes, place *n* counts those of 2^(*n* − 1) bytes
    /// and more up to the next place; the last place counts all that are larger.
    pub by_size: [u64; Writes::SIZES],
}

impl Writes {
    /// Places of sizes; the last one begins at 1 MiB.
    pub const SIZES: usize = 22;

    /// The number of calls that asked to write less than `bytes`, a power of two.
    pub fn below(&self, bytes: u64) -> u64 {
        self.by_size[..place(bytes)].iter().sum()
    }

    /// Notes a call that a thread has stopped at, if its size is known, and returns the size.
    pub(super) fn note(&mut self, pid: Pid, call: Call, arguments: [u64; 6]) -> Option<u64> {
        let bytes = match call {
            Call::Write | Call::Pwrite64 | Call::Sendto => arguments[2],
            Call::Writev | Call::Pwritev | Call::Pwritev2 => gathered(pid, arguments)?,
            _ => return None,
        };
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_size[place(bytes)] += 1;
        Some(bytes)
    }

    pub(super) fn add(&mut self, other: &Writes, times: u64) {
        self.calls += times * other.calls;
        self.bytes = self.bytes.saturating_add(other.bytes.saturating_mul(times));
        for (own, more) in self.by_size.iter_mut().zip(other.by_size) {
            *own += times * more;
        }
    }
}

/// The place of a size among [`Writes::by_size`].
fn place(bytes: u64) -> usize {
    (u64::BITS - bytes.leading_zeros()).min(Writes::SIZES as u32 - 1) as usize
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
    fn sizes_have_their_places() {
        let mut writes = Writes::default();
        for bytes in [0, 1, 100, 512, 1 << 20, u64::MAX] {
            assert_eq!(writes.note(0, Call::Write, [1, 0, bytes, 0, 0, 0]), Some(bytes));
        }
        assert_eq!(writes.note(0, Call::Brk, [0; 6]), None);
        assert_eq!((writes.calls, writes.bytes), (6, u64::MAX));
        assert_eq!((writes.below(1), writes.below(2), writes.below(512)), (1, 2, 3));
        assert_eq!(writes.by_size[Writes::SIZES - 1], 2);
        let mut both = writes;
        both.add(&writes, 1);
        assert_eq!((both.calls, both.below(512)), (12, 6));
    }

    #[test]
    fn what_is_gathered_is_read_from_the_caller() {
        let own = i32::try_from(std::process::id()).unwrap();
        let pairs: [u64; 4] = [0, 7, 0, 35];
        let at = (&raw const pairs).addr() as u64;
        assert_eq!(gathered(own, [1, at, 2, 0, 0, 0]), Some(42));
        assert_eq!(gathered(own, [1, 0, 2, 0, 0, 0]), None);
    }
}
