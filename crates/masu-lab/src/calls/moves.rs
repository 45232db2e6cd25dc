//! What was asked of memory: how often it came and went, and how much went.
//!
//! It relies on the arguments of the calls alone. The hard idea is what makes a storm: not that memory is asked
//! for, which every program does while it grows, but that it is given back and asked for again.

use std::collections::HashMap;

use serde::Serialize;

use super::Pid;
use crate::kernel::calls::MemoryRequest;

/// How often memory came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Moves {
    /// Times that `brk` moved the break up.
    pub break_ups: u64,
    /// Times that it moved it down.
    pub break_downs: u64,
    /// Writable mappings without a file, thread stacks not among them.
    pub maps: u64,
    /// Mappings given back, whatever they were.
    pub unmaps: u64,
    /// Times that contents were given back and the addresses kept (`madvise`).
    pub purges: u64,
    /// Times that contents were offered, for the kernel to take when it needs memory (`MADV_FREE`).
    pub offers: u64,
    /// Times that reserved addresses became memory (`mprotect`).
    pub grows: u64,
    /// Bytes that went by all but offers.
    pub returned_bytes: u64,
}

impl Moves {
    /// Times that the break went up and down again.
    #[must_use]
    pub fn break_pairs(&self) -> u64 {
        self.break_ups.min(self.break_downs)
    }

    /// Times that a mapping came and went.
    #[must_use]
    pub fn map_pairs(&self) -> u64 {
        self.maps.min(self.unmaps)
    }

    pub(super) fn add(&mut self, other: &Moves) {
        self.break_ups += other.break_ups;
        self.break_downs += other.break_downs;
        self.maps += other.maps;
        self.unmaps += other.unmaps;
        self.purges += other.purges;
        self.offers += other.offers;
        self.grows += other.grows;
        self.returned_bytes = self.returned_bytes.saturating_add(other.returned_bytes);
    }
}

/// Where the break of each process is, as far as it was moved.
#[derive(Debug, Default)]
pub(super) struct Breaks(HashMap<Pid, u64>);

impl Breaks {
    /// Notes a request of `process`.
    pub(super) fn note(&mut self, process: Pid, request: MemoryRequest, moves: &mut Moves) {
        let mut returned = 0;
        match request {
            MemoryRequest::Break(address) => match self.0.insert(process, address) {
                Some(before) if address < before => {
                    moves.break_downs += 1;
                    returned = before - address;
                }
                Some(before) if address == before => {}
                _ => moves.break_ups += 1,
            },
            MemoryRequest::Map => moves.maps += 1,
            MemoryRequest::Unmap(bytes) => {
                moves.unmaps += 1;
                returned = bytes;
            }
            MemoryRequest::Purge(bytes) => {
                moves.purges += 1;
                returned = bytes;
            }
            MemoryRequest::Offer => moves.offers += 1,
            MemoryRequest::Grow => moves.grows += 1,
            MemoryRequest::Other => {}
        }
        moves.returned_bytes = moves.returned_bytes.saturating_add(returned);
    }

    /// The process runs another program now, or has ended.
    pub(super) fn forget(&mut self, process: Pid) {
        self.0.remove(&process);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_break_goes_up_and_down_for_each_process_by_itself() {
        let (mut breaks, mut moves) = (Breaks::default(), Moves::default());
        for (process, address) in [(1, 100), (1, 300), (2, 200), (1, 250), (1, 250), (1, 300)] {
            breaks.note(process, MemoryRequest::Break(address), &mut moves);
        }
        assert_eq!((moves.break_ups, moves.break_downs, moves.returned_bytes), (4, 1, 50));
        assert_eq!((moves.break_pairs(), moves.map_pairs()), (1, 0));
        // Another program starts again, at whatever address.
        breaks.forget(1);
        breaks.note(1, MemoryRequest::Break(10), &mut moves);
        assert_eq!((moves.break_ups, moves.break_downs), (5, 1));
    }

    #[test]
    fn what_goes_is_added_up_whatever_its_size_is_said_to_be() {
        let (mut breaks, mut moves) = (Breaks::default(), Moves::default());
        for request in [
            MemoryRequest::Map,
            MemoryRequest::Unmap(u64::MAX),
            MemoryRequest::Unmap(1),
            MemoryRequest::Purge(4096),
            MemoryRequest::Offer,
            MemoryRequest::Grow,
            MemoryRequest::Other,
        ] {
            breaks.note(1, request, &mut moves);
        }
        let expected = Moves {
            maps: 1,
            unmaps: 2,
            purges: 1,
            offers: 1,
            grows: 1,
            returned_bytes: u64::MAX,
            ..Moves::default()
        };
        assert_eq!(moves, expected);
        assert_eq!(moves.map_pairs(), 1);
    }
}
