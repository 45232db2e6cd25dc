//! Masu with a planted bug: the oracle must find each bug.
//!
//! It relies on one walker's sequence being the same in every run, so this cannot fail by chance. A
//! bug shows at every twentieth call, because real ones are rare too.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::finding::Finding;
use crate::malloc::{Malloc, Masu};
use crate::plain;

/// A planted bug.
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
    /// Live blocks whose usable size was read.
    sized: BTreeSet<usize>,
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

    /// A live block of `malloc` whose usable size is at least `usable`.
    fn victim(&self, usable: usize) -> Option<*mut u8> {
        let state = self.state.lock().expect("no thread panicked");
        let blocks =
            state.live.iter().map(|&address| std::ptr::with_exposed_provenance_mut(address));
        // SAFETY: The blocks are live.
        blocks.into_iter().find(|&block| unsafe { Masu.usable_size(block) } >= usable)
    }

    fn add(&self, block: *mut u8) -> *mut u8 {
        self.state.lock().expect("no thread panicked").live.insert(block.expose_provenance());
        block
    }

    fn remove(&self, block: *mut u8) {
        let mut state = self.state.lock().expect("no thread panicked");
        state.live.remove(&block.addr());
        state.sized.remove(&block.addr());
    }
}

// Every call passes on its caller's conditions; bugs write into live blocks only.
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
        if block.is_null() { block } else { self.add(block) }
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
        self.remove(block);
        if kept > 0 && self.shows(Bug::ReallocLosesTheLastByte) {
            unsafe { *new.add(kept - 1) ^= 1 };
        }
        self.add(new)
    }

    unsafe fn free(&self, block: *mut u8) {
        self.remove(block);
        unsafe { Masu.free(block) };
        if self.shows(Bug::FreeWritesIntoAnotherBlock)
            && let Some(other) = self.victim(8)
        {
            unsafe { other.cast::<usize>().write_unaligned(block.addr()) };
        }
    }

    unsafe fn usable_size(&self, block: *mut u8) -> usize {
        let usable = unsafe { Masu.usable_size(block) };
        let first = self.state.lock().expect("no thread panicked").sized.insert(block.addr());
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
}

#[test]
fn every_planted_bug_is_found() {
    let found = |bug| {
        let planted = Box::leak(Box::new(Planted::new(bug)));
        plain::walk(planted, 1, 200_000, 32 << 20, 1).expect_err("the bug was not found")
    };
    macro_rules! found_as {
        ($($bug:ident => $finding:ident,)*) => {$({
            let finding = found(Bug::$bug);
            assert!(matches!(finding, Finding::$finding { .. }), "{:?}: {finding:x?}", Bug::$bug);
        })*};
    }
    found_as! {
        HandsABlockOutTwice => Overlap,
        RefusesWhatIsPossible => Refused,
        GrantsWhatIsImpossible => Impossible,
        ReallocLosesTheLastByte => ResizeLost,
        FailedReallocSpoilsTheBlock => ContentsLost,
        CallocLeavesOneByte => NotZero,
        AlignmentIsForgotten => Misaligned,
        UsableSizeGrows => UsableChanged,
        UsableSizeIsTooSmall => UsableTooSmall,
        FreeWritesIntoAnotherBlock => ContentsLost,
        TrimDropsALivePage => ContentsLost,
    }
}
