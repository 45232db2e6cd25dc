//! Probes of live memory: whether a program uses most of what it was given, or an OS page here and there.
//!
//! Relies on arenas for the advice. A program may allocate many buffers for the worst case, touch little of each and free none.
//! A huge page is resident as a whole from its first touch on, so it does not show how much of it is used. The hard idea:
//! each time live memory is four times what it was, one huge page's length of new memory has small pages. Those that are
//! resident later show how densely memory is used, and the newest probe that was touched decides. Where it is sparse, all new
//! memory has small pages, and each step of growth is a probe, so that dense use is noticed.

use crate::memory::arena::{self, Arena};
use crate::memory::slice::SLICE_BYTES;
use crate::platform::kernel::{Advice, file};
use crate::platform::sync::{AtomicUsize, Ordering};
use crate::settings;

/// With less live memory, in huge pages, there are no probes: each costs the gain of a huge page.
const HUGE_PAGES_MIN: usize = 32;
/// The next probe comes when live memory has grown by this factor.
const GROWTH: usize = 4;
/// Probes that are remembered. As long as none was touched, so many are placed step by step: where many threads begin at once,
/// the first to be touched has the news.
const PROBES: usize = 8;
/// A probe is sparse if at most so many of its OS pages are resident: then small pages take no more time than huge ones.
const SPARSE_MAX: usize = file::RESIDENT_OF / 4;
/// The lowest bit of a probe's address says that it is dense.
const DENSE: usize = 1;
const SPARSE: usize = 2;
const USE: usize = DENSE | SPARSE;

/// The last probes of the process. Read and changed under the lock of growth.
static LAST: Last = Last::new();

/// The use of memory that the probes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// There are no probes, or none was touched.
    Unknown,
    Sparse,
    Dense,
}

struct Last {
    addresses: [AtomicUsize; PROBES],
    /// Probes ever placed.
    placed: AtomicUsize,
    /// Live bytes at the last one.
    live_bytes: AtomicUsize,
    /// Live bytes when probes were looked at last, and in the lowest bits the use that they showed.
    found: AtomicUsize,
}

impl Last {
    const fn new() -> Last {
        Last {
            addresses: [const { AtomicUsize::new(0) }; PROBES],
            placed: AtomicUsize::new(0),
            live_bytes: AtomicUsize::new(0),
            found: AtomicUsize::new(0),
        }
    }

    /// [`Last::look`], or what it found at about so many live bytes. Where the kernel refuses memory, each request comes here.
    fn look_once(&self, live_bytes: usize, resident: fn(usize, usize) -> Option<usize>) -> Use {
        // ORDERING: Relaxed, here and below: the lock of growth is held.
        let found = self.found.load(Ordering::Relaxed);
        if live_bytes.abs_diff(found & !USE) < arena::huge_page_bytes() {
            return match found & USE {
                SPARSE => Use::Sparse,
                DENSE => Use::Dense,
                _ => Use::Unknown,
            };
        }
        let found = self.look(resident);
        let bits = match found {
            Use::Unknown => 0,
            Use::Sparse => SPARSE,
            Use::Dense => DENSE,
        };
        // ORDERING: As above. Live bytes are whole slices.
        self.found.store(live_bytes | bits, Ordering::Relaxed);
        found
    }

    /// The use that the newest touched probe shows; `resident` is the kernel's.
    fn look(&self, resident: fn(usize, usize) -> Option<usize>) -> Use {
        // ORDERING: Relaxed, as above.
        let placed = self.placed.load(Ordering::Relaxed);
        for age in 1..=placed.min(PROBES) {
            let last = &self.addresses[(placed - age) % PROBES];
            // ORDERING: As above.
            let address = last.load(Ordering::Relaxed);
            if address & DENSE != 0 {
                return Use::Dense;
            }
            match resident(address, SPARSE_MAX + 1) {
                // One that was unmapped, or not touched yet, shows nothing.
                None | Some(0) => {}
                Some(1..=SPARSE_MAX) => return Use::Sparse,
                Some(_) => {
                    // ORDERING: As above.
                    last.store(address | DENSE, Ordering::Relaxed);
                    return Use::Dense;
                }
            }
        }
        Use::Unknown
    }

    /// Whether a probe is due at so many live bytes, where memory is not sparse.
    fn is_due(&self, live_bytes: usize, use_so_far: Use, huge_page: usize) -> bool {
        // ORDERING: As above, in both.
        let placed = self.placed.load(Ordering::Relaxed);
        let least =
            (self.live_bytes.load(Ordering::Relaxed) * GROWTH).max(HUGE_PAGES_MIN * huge_page);
        live_bytes >= least || (use_so_far == Use::Unknown && (1..PROBES).contains(&placed))
    }

    fn add(&self, address: usize, live_bytes: usize) {
        // ORDERING: As above, in all.
        let placed = self.placed.load(Ordering::Relaxed);
        self.addresses[placed % PROBES].store(address, Ordering::Relaxed);
        self.placed.store(placed + 1, Ordering::Relaxed);
        self.live_bytes.store(live_bytes, Ordering::Relaxed);
    }
}

/// The use of memory at so many live bytes. The caller holds the lock of growth, and no other.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.probes_look")]
pub(super) fn look(live_bytes: usize) -> Use {
    LAST.look_once(live_bytes, file::resident)
}

/// Gives new memory of an arena, from slice `from` to slice `end`, small pages where memory is used sparsely, and else a probe
/// if one is due; returns whether there is one more. The caller holds the lock of growth, and no other.
#[inline]
pub(super) fn place(
    arena: &Arena,
    from: usize,
    end: usize,
    live_bytes: usize,
    use_so_far: Use,
) -> bool {
    let huge_page = arena::huge_page_bytes();
    let sparse = use_so_far == Use::Sparse;
    // Where huge pages are off, or the program says when they begin, there are no probes, and so memory is not sparse.
    let are_wanted = || settings::huge_pages() && settings::huge_pages_from().is_none();
    if !(sparse || LAST.is_due(live_bytes, use_so_far, huge_page) && are_wanted()) {
        return false;
    }
    let probe = probe_in(from, end, huge_page / SLICE_BYTES);
    if let Some((first, _)) = probe {
        LAST.add(arena.address() + first * SLICE_BYTES, live_bytes);
    }
    if let Some((from, end)) = if sparse { Some((from, end)) } else { probe } {
        arena.advise(from, end, Advice::NoHugePage);
    }
    probe.is_some()
}

/// The first whole huge page of `unit` slices between two slices. A part of one would show nothing, and cost the huge page.
fn probe_in(from: usize, end: usize, unit: usize) -> Option<(usize, usize)> {
    let first = from.next_multiple_of(unit);
    (first + unit <= end).then_some((first, first + unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENSELY: usize = 0x100;

    /// By address: not mapped, not touched, hardly touched, touched as a whole.
    fn resident(address: usize, most: usize) -> Option<usize> {
        match address {
            0x10 => None,
            0x20 => Some(0),
            0x30 => Some(SPARSE_MAX),
            DENSELY => Some(most),
            _ => panic!("{address} is no probe"),
        }
    }

    #[test]
    fn the_newest_probe_that_was_touched_decides() {
        let last = Last::new();
        let look = || last.look(resident);
        assert_eq!(look(), Use::Unknown);
        last.add(0x30, 0);
        assert_eq!(look(), Use::Sparse);
        last.add(0x20, 0);
        last.add(0x10, 0);
        assert_eq!(look(), Use::Sparse, "neither shows anything");
        last.add(DENSELY, 0);
        assert_eq!(look(), Use::Dense);
        assert_eq!(last.look(|_, _| panic!("it is known")), Use::Dense);
        last.add(0x30, 0);
        assert_eq!(look(), Use::Sparse);
    }

    #[test]
    fn probes_are_looked_at_again_when_memory_has_grown() {
        const LIVE: usize = 1 << 40;
        let last = Last::new();
        last.add(0x30, 0);
        assert_eq!(last.look_once(LIVE, resident), Use::Sparse);
        last.add(DENSELY, 0);
        let again = |live_bytes| last.look_once(live_bytes, resident);
        assert_eq!([LIVE, LIVE + SLICE_BYTES, LIVE - SLICE_BYTES].map(again), [Use::Sparse; 3]);
        let more = LIVE + arena::huge_page_bytes();
        assert_eq!([more, LIVE].map(again), [Use::Dense; 2]);
    }

    #[test]
    fn a_step_without_a_whole_huge_page_has_no_probe() {
        // A step of 256 MiB, which is the longest, and huge pages of 512 MiB, as with OS pages of 64 KiB.
        assert_eq!(probe_in(6144, 10240, 8192), None);
        assert_eq!(probe_in(32, 64, 32), Some((32, 64)));
        assert_eq!(probe_in(33, 95, 32), None);
        assert_eq!(probe_in(33, 200, 32), Some((64, 96)));
    }

    #[test]
    fn probes_are_placed_as_memory_grows_and_until_one_is_touched() {
        const PAGE: usize = 2 << 20;
        let last = Last::new();
        assert!(!last.is_due(HUGE_PAGES_MIN * PAGE - 1, Use::Unknown, PAGE));
        assert!(last.is_due(HUGE_PAGES_MIN * PAGE, Use::Unknown, PAGE));
        last.add(0x20, 100 * PAGE);
        assert!(!last.is_due(GROWTH * 100 * PAGE - 1, Use::Dense, PAGE));
        assert!(last.is_due(GROWTH * 100 * PAGE, Use::Dense, PAGE));
        for _ in 1..PROBES {
            assert!(last.is_due(100 * PAGE, Use::Unknown, PAGE));
            last.add(0x20, 100 * PAGE);
        }
        assert!(!last.is_due(100 * PAGE, Use::Unknown, PAGE));
    }
}
