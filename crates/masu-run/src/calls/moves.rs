//! Requests for memory: the number of times memory came and went, and the bytes that went.
//!
//! It relies on the arguments of the calls, and on the places of their callers. The hard part is to recognize a storm:
//! every program asks for memory while it grows; a storm gives memory back and asks for it again. So a mapping that
//! goes counts only where such a mapping came: files and stacks go as well.

use std::collections::HashMap;

use serde::Serialize;

use super::Pid;
use crate::kernel::calls::MemoryRequest;

/// The number of times that memory came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Moves {
    pub break_ups: u64,
    pub break_downs: u64,
    /// Writable mappings without a file, thread stacks not among them.
    pub maps: u64,
    /// Writable mappings without a file that were given back.
    pub unmaps: u64,
    /// Times that contents were given back and the addresses kept (`madvise`).
    pub purges: u64,
    /// Times that contents were offered, for the kernel to take when it needs memory (`MADV_FREE`).
    pub offers: u64,
    /// Times that reserved addresses became memory (`mprotect`).
    pub grows: u64,
    /// Bytes that came, by the break, mappings and `mprotect`.
    pub asked_bytes: u64,
    /// Bytes that went by all but offers.
    pub returned_bytes: u64,
    /// The part of all this that the program did itself, and not its malloc or its C library.
    pub own: OwnMoves,
}

/// Memory that came and went by calls of the program's own, on which no malloc has a hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OwnMoves {
    pub maps: u64,
    pub unmaps: u64,
    pub purges: u64,
    pub asked_bytes: u64,
    pub returned_bytes: u64,
}

impl Moves {
    /// Times that the break went up and down again.
    pub fn break_pairs(&self) -> u64 {
        self.break_ups.min(self.break_downs)
    }

    /// Times that a mapping came and went.
    pub fn map_pairs(&self) -> u64 {
        self.maps.min(self.unmaps)
    }

    /// The most bytes that the malloc asked for: it can touch no more memory than this.
    pub fn asked_by_malloc_bytes(&self) -> u64 {
        self.asked_bytes.saturating_sub(self.own.asked_bytes)
    }

    /// True if most of the memory that went, and came again, did so by the program's own calls.
    pub fn are_own(&self) -> bool {
        let own = self.own.unmaps + self.own.purges;
        let all = self.break_pairs() + self.unmaps + self.purges;
        2 * own > all && 2 * self.own.returned_bytes > self.returned_bytes
    }

    pub(super) fn add(&mut self, other: &Moves, times: u64) {
        let bytes = |sum: &mut u64, more: u64| grow(sum, more.saturating_mul(times));
        self.break_ups += times * other.break_ups;
        self.break_downs += times * other.break_downs;
        self.maps += times * other.maps;
        self.unmaps += times * other.unmaps;
        self.purges += times * other.purges;
        self.offers += times * other.offers;
        self.grows += times * other.grows;
        bytes(&mut self.asked_bytes, other.asked_bytes);
        bytes(&mut self.returned_bytes, other.returned_bytes);
        let (own, more) = (&mut self.own, &other.own);
        own.maps += times * more.maps;
        own.unmaps += times * more.unmaps;
        own.purges += times * more.purges;
        bytes(&mut own.asked_bytes, more.asked_bytes);
        bytes(&mut own.returned_bytes, more.returned_bytes);
    }
}

fn grow(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The memory of each process, as far as its calls tell.
#[derive(Debug, Default)]
pub(super) struct Books {
    known: HashMap<Pid, Book>,
    /// True if some calls were not seen.
    has_gaps: bool,
}

#[derive(Debug, Default)]
struct Book {
    /// The place of the break, as far as it was moved.
    break_at: Option<u64>,
    /// True if all calls of the program were seen since it began.
    is_whole: bool,
    /// Bytes of mappings without a file that came and have not gone.
    mapped_bytes: u64,
    /// Mappings of another kind, by their size.
    others: HashMap<u64, u64>,
    /// The sizes of threads' stacks that are addresses so far.
    stacks: Vec<u64>,
}

/// The most sizes of a process's other mappings that are kept apart; all are forgotten when there are more.
const SIZES_MAX: usize = 4096;

/// The most bytes of a thread's stack that stay a guard, as glibc makes it.
const GUARD_MOST: u64 = 64 << 10;

impl Books {
    /// The effect of a request of `process`; `is_own` if the program itself made it.
    pub(super) fn note(&mut self, process: Pid, request: MemoryRequest, is_own: bool) -> Moves {
        let has_gaps = self.has_gaps;
        let book = self.known.entry(process).or_default();
        let mut changed = Moves::default();
        match request {
            MemoryRequest::Break(address) => match book.break_at.replace(address) {
                Some(before) if address < before => {
                    changed.break_downs = 1;
                    changed.returned_bytes = before - address;
                }
                Some(before) if address == before => {}
                None if has_gaps => {}
                before => {
                    changed.break_ups = 1;
                    changed.asked_bytes = before.map_or(0, |before| address - before);
                }
            },
            MemoryRequest::Map(bytes) => {
                changed.maps = 1;
                changed.asked_bytes = bytes;
                grow(&mut book.mapped_bytes, bytes);
            }
            MemoryRequest::MapOther(bytes) => book.map_other(bytes),
            MemoryRequest::ReserveStack(bytes) => {
                book.map_other(bytes);
                if book.stacks.len() == SIZES_MAX {
                    book.stacks.clear();
                }
                book.stacks.push(bytes);
            }
            MemoryRequest::Unmap(bytes) => {
                let bytes = book.unmapped(bytes);
                changed.unmaps = u64::from(bytes > 0);
                changed.returned_bytes = bytes;
            }
            MemoryRequest::Resize(before, after) => {
                changed.asked_bytes = after.saturating_sub(before);
                grow(&mut book.mapped_bytes, changed.asked_bytes);
            }
            MemoryRequest::Purge(bytes) => {
                changed.purges = 1;
                changed.returned_bytes = bytes;
            }
            MemoryRequest::Offer => changed.offers = 1,
            MemoryRequest::Grow(bytes) => {
                changed.grows = 1;
                // A stack is hardly touched, and no malloc's.
                if !book.is_stack(bytes) {
                    changed.asked_bytes = bytes;
                    grow(&mut book.mapped_bytes, bytes);
                }
            }
            MemoryRequest::Other => {}
        }
        if is_own {
            changed.own = OwnMoves {
                maps: changed.maps,
                unmaps: changed.unmaps,
                purges: changed.purges,
                asked_bytes: changed.asked_bytes,
                returned_bytes: changed.returned_bytes,
            };
        }
        changed
    }

    /// Notes that calls of a process were not seen: its figures no longer hold.
    pub(super) fn lose_track(&mut self, process: Pid) {
        self.known.remove(&process);
        self.has_gaps = true;
    }

    /// Notes that the process runs another program now, all of whose calls will be seen.
    pub(super) fn begin(&mut self, process: Pid) {
        self.known.insert(process, Book { is_whole: true, ..Book::default() });
    }

    pub(super) fn forget(&mut self, process: Pid) {
        self.known.remove(&process);
    }
}

impl Book {
    fn map_other(&mut self, bytes: u64) {
        if self.others.len() == SIZES_MAX {
            self.others.clear();
        }
        *self.others.entry(bytes).or_default() += 1;
    }

    /// Whether the addresses that become memory are those of a thread's stack, which becomes memory once.
    fn is_stack(&mut self, bytes: u64) -> bool {
        let guarded = bytes..=bytes.saturating_add(GUARD_MOST);
        let at = self.stacks.iter().position(|stack| guarded.contains(stack));
        at.map(|at| self.stacks.swap_remove(at)).is_some()
    }

    /// The number of bytes that go that are of mappings without a file.
    fn unmapped(&mut self, bytes: u64) -> u64 {
        if let Some(others) = self.others.get_mut(&bytes).filter(|others| **others > 0) {
            *others -= 1;
            return 0;
        }
        // The memory that a process had before it was seen is unknown, and so is the memory that a child has from its
        // parent.
        if !self.is_whole {
            return bytes;
        }
        let gone = bytes.min(self.mapped_bytes);
        self.mapped_bytes -= gone;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryRequest::{
        Break, Grow, Map, MapOther, Offer, Other, Purge, ReserveStack, Resize, Unmap,
    };
    use super::*;

    /// The effect of these requests of a process that was seen since its program began.
    fn noted(requests: &[(MemoryRequest, bool)]) -> Moves {
        let (mut books, mut moves) = (Books::default(), Moves::default());
        books.begin(1);
        for (request, is_own) in requests {
            moves.add(&books.note(1, *request, *is_own), 1);
        }
        moves
    }

    #[test]
    fn a_break_goes_up_and_down_for_each_process_by_itself() {
        let (mut books, mut moves) = (Books::default(), Moves::default());
        for (process, address) in [(1, 100), (1, 300), (2, 200), (1, 250), (1, 250), (1, 300)] {
            moves.add(&books.note(process, Break(address), false), 1);
        }
        assert_eq!((moves.break_ups, moves.break_downs, moves.returned_bytes), (4, 1, 50));
        assert_eq!((moves.break_pairs(), moves.map_pairs()), (1, 0));
        // Another program's break begins at any address.
        books.begin(1);
        moves.add(&books.note(1, Break(10), false), 1);
        assert_eq!((moves.break_ups, moves.break_downs), (5, 1));
    }

    #[test]
    fn what_goes_is_added_up_whatever_its_size_is_said_to_be() {
        let (mut books, mut moves) = (Books::default(), Moves::default());
        for request in [Map(4096), Unmap(u64::MAX), Unmap(1), Purge(4096), Offer, Grow(0), Other] {
            moves.add(&books.note(1, request, false), 1);
        }
        let expected = Moves {
            maps: 1,
            unmaps: 2,
            purges: 1,
            offers: 1,
            grows: 1,
            asked_bytes: 4096,
            returned_bytes: u64::MAX,
            ..Moves::default()
        };
        assert_eq!(moves, expected);
        assert_eq!(moves.map_pairs(), 1);
    }

    #[test]
    fn files_and_stacks_that_go_are_neither_counted_nor_added_up() {
        let moves = noted(&[
            (MapOther(10_000), true),
            (MapOther(10_000), true),
            (Unmap(10_000), true),
            (Map(8192), false),
            (Unmap(10_000), true),
            (Unmap(8192), false),
            // These bytes came before the program was seen, or came as addresses alone.
            (Unmap(1 << 20), false),
        ]);
        assert_eq!((moves.maps, moves.unmaps, moves.returned_bytes), (1, 1, 8192));
        assert_eq!(moves.own, OwnMoves::default());
    }

    #[test]
    fn stacks_of_threads_are_no_memory_that_a_malloc_asked_for() {
        let stack = |size| [(ReserveStack(size + 4096), false), (Grow(size), false)];
        let arena = [(Grow(8 << 20), false), (Grow(135_168), false)];
        let requests = [[stack(8 << 20); 16].concat(), vec![(Map(100 << 20), false)], arena.into()];
        let moves = noted(&requests.concat());
        assert_eq!((moves.grows, moves.maps), (18, 1));
        assert_eq!(moves.asked_by_malloc_bytes(), (108 << 20) + 135_168);
        let gone = noted(&[&stack(8 << 20)[..], &[(Unmap((8 << 20) + 4096), false)]].concat());
        assert_eq!((gone.unmaps, gone.returned_bytes), (0, 0));
    }

    #[test]
    fn after_a_gap_a_request_stands_for_many_and_a_first_break_for_none() {
        let (mut books, mut moves) = (Books::default(), Moves::default());
        books.begin(1);
        moves.add(&books.note(1, Break(100), false), 1);
        books.lose_track(1);
        for request in [
            Break(900),
            Break(800),
            Break(900),
            // After the gap no mapping of this size is known, and none can be expected to be.
            Unmap(4096),
        ] {
            moves.add(&books.note(1, request, false), 10);
        }
        assert_eq!((moves.break_ups, moves.break_downs, moves.unmaps), (11, 10, 10));
        assert_eq!(moves.returned_bytes, 1_000 + 40_960);
    }

    #[test]
    fn a_mapping_that_grew_goes_with_all_it_has() {
        let moves =
            noted(&[(Map(4096), false), (Resize(4096, 12_288), false), (Unmap(12_288), false)]);
        assert_eq!((moves.unmaps, moves.asked_bytes, moves.returned_bytes), (1, 12_288, 12_288));
    }

    #[test]
    fn what_the_program_maps_itself_is_distinguished_from_what_its_malloc_maps() {
        let one = |is_own| [(Map(4096), is_own), (Unmap(4096), is_own)];
        let own = noted(&[one(true), one(true), one(false)].concat());
        assert_eq!((own.map_pairs(), own.own.unmaps, own.own.returned_bytes), (3, 2, 8192));
        assert_eq!(own.asked_by_malloc_bytes(), 4096);
        assert!(own.are_own());
        assert!(!noted(&[one(true), one(false), one(false)].concat()).are_own());
    }
}
