//! Masu with a bug planted on purpose, one a test: the oracle must find each.
//!
//! It relies on one worker's sequence being the same in every run, so these tests cannot fail by
//! chance. Each bug shows only now and then, as real ones do.

use std::alloc::Layout;
use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::finding::Finding;
use crate::malloc::{Malloc, Masu};
use crate::plan::{HISTORY, Plan};
use crate::worker::run;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    HandsABlockOutTwice,
    RefusesWhatIsPossible,
    GrantsWhatIsImpossible,
    ReallocLosesTheLastByte,
    FailedReallocSpoilsTheBlock,
    CallocLeavesOneByte,
    AlignmentIsForgotten,
    UsableSizeGrows,
    UsableSizeIsTooSmall,
    FreeWritesIntoAnotherBlock,
    TrimDropsALivePage,
}

/// Masu with a bug.
struct Planted {
    bug: Bug,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: usize,
    /// Live blocks of `malloc`, by address.
    live: BTreeSet<usize>,
    /// Live blocks whose usable size was asked for.
    asked: BTreeSet<usize>,
}

impl Planted {
    fn new(bug: Bug) -> Planted {
        Planted { bug, state: Mutex::default() }
    }

    /// Whether `bug` is the planted one and shows at this call.
    fn shows(&self, bug: Bug) -> bool {
        let mut state = self.state.lock().expect("no thread panicked");
        state.calls += usize::from(self.bug == bug);
        self.bug == bug && state.calls.is_multiple_of(20)
    }

    /// Some live block of `malloc` whose usable size is at least `usable`.
    fn victim(&self, usable: usize) -> Option<*mut u8> {
        let state = self.state.lock().expect("no thread panicked");
        let blocks =
            state.live.iter().map(|&address| std::ptr::with_exposed_provenance_mut(address));
        // SAFETY: The blocks are live.
        blocks.into_iter().find(|&block| unsafe { Masu.usable_size(block) } >= usable)
    }

    fn born(&self, block: *mut u8) -> *mut u8 {
        self.state.lock().expect("no thread panicked").live.insert(block.expose_provenance());
        block
    }

    fn died(&self, block: *mut u8) {
        let mut state = self.state.lock().expect("no thread panicked");
        state.live.remove(&block.addr());
        state.asked.remove(&block.addr());
    }
}

// Every call passes on the conditions that the caller has met; the bugs write only into blocks that
// are live.
#[expect(clippy::undocumented_unsafe_blocks, reason = "said once, above")]
impl Malloc for Planted {
    fn malloc(&self, size: usize) -> *mut u8 {
        if size > 1 << 46 && self.shows(Bug::GrantsWhatIsImpossible) {
            return Masu.malloc(16);
        }
        if self.shows(Bug::RefusesWhatIsPossible) {
            return std::ptr::null_mut();
        }
        if self.shows(Bug::HandsABlockOutTwice)
            && let Some(block) = self.victim(size)
        {
            return block;
        }
        let block = Masu.malloc(size);
        if block.is_null() { block } else { self.born(block) }
    }

    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        let block = Masu.calloc(count, size);
        if !block.is_null() && count * size > 0 && self.shows(Bug::CallocLeavesOneByte) {
            unsafe { block.add(count * size - 1).write(0xa5) };
        }
        block
    }

    fn aligned_alloc(&self, align: usize, size: usize) -> *mut u8 {
        let align = if self.shows(Bug::AlignmentIsForgotten) { 16 } else { align };
        Masu.aligned_alloc(align, size)
    }

    unsafe fn realloc(&self, block: *mut u8, size: usize) -> *mut u8 {
        let kept = size.min(unsafe { Masu.usable_size(block) });
        let new = unsafe { Masu.realloc(block, size) };
        if new.is_null() {
            if kept > 0 && self.shows(Bug::FailedReallocSpoilsTheBlock) {
                unsafe { *block ^= 1 };
            }
            return new;
        }
        self.died(block);
        if kept > 0 && self.shows(Bug::ReallocLosesTheLastByte) {
            unsafe { *new.add(kept - 1) ^= 1 };
        }
        self.born(new)
    }

    unsafe fn free(&self, block: *mut u8) {
        self.died(block);
        unsafe { Masu.free(block) };
        if self.shows(Bug::FreeWritesIntoAnotherBlock)
            && let Some(other) = self.victim(8)
        {
            unsafe { other.cast::<usize>().write_unaligned(block.addr()) };
        }
    }

    unsafe fn usable_size(&self, block: *mut u8) -> usize {
        let usable = unsafe { Masu.usable_size(block) };
        let first = self.state.lock().expect("no thread panicked").asked.insert(block.addr());
        if !first && self.shows(Bug::UsableSizeGrows) {
            return usable + 8;
        }
        if first && self.shows(Bug::UsableSizeIsTooSmall) {
            return usable / 2;
        }
        usable
    }

    fn trim(&self, pad: usize) {
        Masu.trim(pad);
        if self.bug == Bug::TrimDropsALivePage
            && let Some(block) = self.victim(96 << 10)
        {
            unsafe { block.add(48 << 10).write_bytes(0, 4 << 10) };
        }
    }

    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { Masu.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unsafe { Masu.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { Masu.dealloc(block, layout) }
    }

    unsafe fn resize(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { Masu.resize(block, layout, size) }
    }
}

/// What the oracle finds in masu with this bug.
fn found(bug: Bug) -> Finding {
    let plan = Plan { workers: 1, phases: HISTORY, operations: 200_000, live_bytes: 32 << 20 };
    let (finding, _) = run(&Planted::new(bug), &plan, 1).expect_err("the bug was not found");
    finding
}

#[test]
fn a_block_handed_out_twice_is_found() {
    assert!(matches!(found(Bug::HandsABlockOutTwice), Finding::Overlap { .. }));
}

#[test]
fn a_refusal_of_a_possible_request_is_found() {
    assert!(matches!(found(Bug::RefusesWhatIsPossible), Finding::Refused { .. }));
}

#[test]
fn a_block_for_an_impossible_request_is_found() {
    assert!(matches!(found(Bug::GrantsWhatIsImpossible), Finding::Impossible { .. }));
}

#[test]
fn a_byte_lost_by_realloc_is_found() {
    assert!(matches!(found(Bug::ReallocLosesTheLastByte), Finding::ResizeLost { .. }));
}

#[test]
fn a_block_spoilt_by_a_failed_realloc_is_found() {
    assert!(matches!(found(Bug::FailedReallocSpoilsTheBlock), Finding::ContentsLost { .. }));
}

#[test]
fn one_byte_that_calloc_left_is_found() {
    assert!(matches!(found(Bug::CallocLeavesOneByte), Finding::NotZero { .. }));
}

#[test]
fn a_forgotten_alignment_is_found() {
    assert!(matches!(found(Bug::AlignmentIsForgotten), Finding::Misaligned { .. }));
}

#[test]
fn a_usable_size_that_changes_is_found() {
    assert!(matches!(found(Bug::UsableSizeGrows), Finding::UsableChanged { .. }));
}

#[test]
fn a_usable_size_under_the_size_asked_for_is_found() {
    assert!(matches!(found(Bug::UsableSizeIsTooSmall), Finding::UsableTooSmall { .. }));
}

#[test]
fn a_link_written_into_a_live_block_is_found() {
    assert!(matches!(found(Bug::FreeWritesIntoAnotherBlock), Finding::ContentsLost { .. }));
}

#[test]
fn a_live_page_dropped_by_trim_is_found() {
    assert!(matches!(found(Bug::TrimDropsALivePage), Finding::ContentsLost { .. }));
}
