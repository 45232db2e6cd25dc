//! Random calls of ranges, and options that change in between, against a model that owns intervals.
//!
//! It relies on the fields of its parent. After each few calls, every slice that was ever handed out is in one live run or in
//! one free run, the counts are the sums of those, and live runs have what was written to them. At the end all memory merges.
//! `MASU_SEED=N` repeats a run, `MASU_OPERATIONS=N` makes it longer or shorter.

extern crate std;

use std::boxed::Box;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, println};

use super::held::Held;
use super::*;
use crate::memory::arena;
use crate::platform::alone::{self, run_alone};
use crate::settings;

/// Operations of each round.
const OPERATIONS: usize = 20_000;
/// The most slices that are live at once in each round.
const LIVE_MAX: [usize; 3] = [1_000, 6_000, 20_000];
/// Operations between two looks at everything.
const CHECKED_EVERY: usize = 16;

const OPTIONS: [(&str, &[usize]); 5] = [
    ("retain", &[0, 8 << 20, 1 << 40]),
    ("purge_delay_ms", &[0, 1, 1_000_000]),
    ("retain_min", &[0, 8 << 20, 1 << 30]),
    ("huge_pages", &[0, 1]),
    ("memory_limit", &[64 << 20, 1 << 30]),
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    /// A length of a run, mostly short.
    fn slices(&mut self, kind: Kind, most: usize) -> usize {
        let end = match (kind, self.below(200)) {
            (Kind::Page, _) => 8,
            // A gibibyte, which is an arena of its own.
            (_, 0) if most > 16_384 => return 16_300 + self.below(1_000),
            (_, 1..4) => 15_000,
            (_, 4..30) => 400,
            (_, 30..110) => 64,
            _ => 4,
        };
        1 + self.below(end.min(most))
    }
}

/// A live run.
#[derive(Clone, Copy)]
struct Live {
    first: &'static Slice,
    slices: usize,
    kind: Kind,
}

impl Live {
    /// Words of the run, by slice, of which a long one has few.
    fn words(self) -> impl Iterator<Item = (usize, *mut u64)> {
        let all = (0..self.slices).step_by((self.slices / 64).max(1)).chain([self.slices - 1]);
        all.map(move |at| (at, self.first.start().as_ptr().wrapping_add(at * SLICE_BYTES).cast()))
    }

    fn mark(self) -> u64 {
        self.first.address() as u64 | 0x5a5a
    }

    fn write(self) {
        // SAFETY: The run is live, and the test's alone.
        self.words().for_each(|(_, word)| unsafe { word.write(self.mark()) });
    }

    /// Checks the contents of the first `slices` slices.
    fn check(self, slices: usize) {
        for (at, word) in self.words().filter(|(at, _)| *at < slices) {
            // SAFETY: As above.
            assert_eq!(unsafe { word.read() }, self.mark(), "slice {at} of {}", self.slices);
        }
    }

    fn is_zero(self) -> bool {
        // SAFETY: The run is live or free, and the test's alone.
        self.words().all(|(_, word)| unsafe { word.read() } == 0)
    }
}

struct Model<'a> {
    random: Random,
    ranges: Held<'a>,
    live: BTreeMap<usize, Live>,
    live_max: usize,
    /// The share of calls that take a run, of those that take or free one, in percent. It holds for a while, as the next.
    takes: usize,
    /// Large blocks of this length, or one slice more, alone.
    only: Option<usize>,
    /// Whether an option was changed, so that more may stay.
    has_switched: bool,
}

impl Model<'_> {
    fn step(&mut self) {
        if self.random.below(512) == 0 {
            self.takes = [20, 45, 60, 90][self.random.below(4)];
            self.only = [None, None, Some(1 + self.random.below(60))][self.random.below(3)];
        }
        match self.random.below(100) {
            0..76 if self.random.below(100) < self.takes => self.take(),
            0..76 => self.free(),
            76 if self.random.below(8) == 0 => {
                (0..self.random.below(self.live.len() + 1)).for_each(|_| self.free());
            }
            // Runs merge at once for a while after a block grew.
            77..84 if self.only.is_none() => self.grow(),
            84..89 => self.shrink(),
            89..92 => self.ranges.end_call(),
            92 => (0..20).for_each(|_| self.ranges.end_call()),
            93 => self.ranges.trim([0, 1 << 20][self.random.below(2)]),
            94 if self.random.below(4) == 0 => _ = self.ranges.give_up(),
            95 => self.ranges.pass_much_time(),
            96 => self.ranges.merge_all(),
            97 => self.ranges.end_grace(),
            98 => self.switch(),
            _ => {}
        }
    }

    fn take(&mut self) {
        let (kind, slices) = match self.only {
            Some(slices) => (Kind::Large, slices + self.random.below(2)),
            None => {
                let kind = [Kind::Large, Kind::Page][self.random.below(2)];
                (kind, self.random.slices(kind, self.live_max))
            }
        };
        if self.ranges.live_slices + slices > self.live_max {
            return;
        }
        let is_aligned = kind == Kind::Large && self.random.below(6) == 0;
        let align = if is_aligned { SLICE_BYTES << self.random.below(12) } else { 1 };
        let bytes = slices * SLICE_BYTES;
        let filling = match self.random.below(3) {
            0 => Filling::of_new(bytes, false),
            1 => Filling::of_moved(bytes, bytes / 2 + 1),
            _ => Filling::UNKNOWN,
        };
        // A limit refuses some.
        let Some(run) = self.ranges.allocate_for(filling, slices, align, kind) else { return };
        let live = Live { first: run.first, slices, kind };
        assert_eq!(run.first.address() % align.max(SLICE_BYTES), 0);
        assert!(!run.zero || live.is_zero(), "it is said to be zero");
        live.write();
        assert!(self.live.insert(run.first.address(), live).is_none(), "handed out twice");
    }

    /// The address of any live run that `is` selects.
    fn any(&mut self, is: impl Fn(&Live) -> bool) -> Option<usize> {
        let from = self.live.keys().nth(self.random.below(self.live.len().max(1)))?;
        self.live.range(from..).find(|(_, live)| is(live)).map(|(address, _)| *address)
    }

    fn free(&mut self) {
        let Some(live) = self.any(|_| true).and_then(|address| self.live.remove(&address)) else {
            return;
        };
        live.check(live.slices);
        // A page counts what it used; the rest may be resident all the same.
        let dirty = [live.slices * SLICE_BYTES, 0][self.random.below(4) / 3];
        // SAFETY: The run is the test's, which does not use it any more.
        unsafe { self.end(live, dirty) };
        if self.random.below(3) == 0 {
            self.ranges.end_call();
        }
    }

    /// # Safety
    ///
    /// - The run was handed out, and nothing uses it any more.
    unsafe fn end(&mut self, live: Live, dirty: usize) {
        if live.kind == Kind::Large {
            // SAFETY: The caller's condition.
            unsafe { self.ranges.free_large(live.first) };
        } else {
            // SAFETY: As above.
            unsafe { self.ranges.free(live.first, live.slices, dirty) };
        }
    }

    fn grow(&mut self) {
        let Some(address) = self.any(|live| live.kind == Kind::Large) else { return };
        let end = [8, 8, 400][self.random.below(3)];
        let (live, more) = (self.live[&address], 1 + self.random.below(end));
        if self.ranges.grow(live.first, live.slices, live.slices + more) {
            self.ranges.count_large(0, more.cast_signed());
            live.check(live.slices);
            self.resize(Live { slices: live.slices + more, ..live });
        }
    }

    fn shrink(&mut self) {
        let Some(address) = self.any(|live| live.kind == Kind::Large && live.slices > 4) else {
            return;
        };
        let live = self.live[&address];
        let wanted = 1 + self.random.below(live.slices / 2);
        let less = live.slices - wanted;
        live.check(wanted);
        if live.first.arena().is_dedicated() {
            self.ranges.cut_dedicated(live.first, less);
        } else {
            live.first.count.set(wanted as u32);
            self.ranges.count_large(0, -less.cast_signed());
            // SAFETY: The tail lies in the run, and nothing uses it any more.
            unsafe { self.ranges.free(live.first.ahead(wanted), less, less * SLICE_BYTES) };
        }
        self.resize(Live { slices: live.first.count.get() as usize, ..live });
    }

    fn resize(&mut self, live: Live) {
        assert_eq!(live.first.count.get() as usize, live.slices);
        live.write();
        self.live.insert(live.first.address(), live);
    }

    /// Sets an option, or has all as they are by default.
    fn switch(&mut self) {
        let (name, values) = OPTIONS[self.random.below(OPTIONS.len())];
        let value = values[self.random.below(values.len())];
        if self.random.below(3) == 0 {
            return set_none();
        }
        // A limit below what is live is refused.
        self.has_switched |= settings::set(name.as_bytes(), Some(value)).is_ok();
    }

    /// Checks that nothing overlaps, and all counts.
    fn check(&self) {
        let mut sums = Sums::default();
        for arena in arena::all().filter(|it| it.stripe.get() == stripes::STRIPES_MAX as u32) {
            if arena.is_dedicated() {
                let mut live = self.live.values().filter(|it| ptr::eq(it.first.arena(), arena));
                sums.live += live.next().expect("its block").slices;
                assert!(live.next().is_none(), "an arena of one block has two");
            } else {
                self.check_arena(arena, &mut sums);
            }
        }
        let slices = |kind: Option<Kind>| -> usize {
            let runs = self.live.values().filter(|it| kind.is_none_or(|kind| it.kind == kind));
            runs.map(|it| it.slices).sum()
        };
        let ranges = &self.ranges;
        let large_blocks = self.live.values().filter(|it| it.kind == Kind::Large).count();
        assert_eq!((slices(None), sums.live), (ranges.live_slices, ranges.live_slices));
        assert_eq!(slices(Some(Kind::Large)), ranges.large_slices);
        assert_eq!(large_blocks, ranges.large_blocks);
        assert_eq!(sums.dirty_bytes, ranges.dirty_bytes);
        assert_eq!(sums.unmerged, ranges.unmerged.count);
        for lists in [&ranges.dirty, &ranges.clean, &ranges.unmerged.runs] {
            lists.check();
        }
        let [dirty, clean] = [&ranges.dirty, &ranges.clean].map(|lists| lists.iter().count());
        assert_eq!((sums.free, sums.dirty), (dirty + clean, dirty));
        assert!(ranges.away.is_empty());
    }

    /// Checks an arena's runs from its front down to its head.
    fn check_arena(&self, arena: &'static Arena, sums: &mut Sums) {
        let front = arena.committed_end() - arena.committed_front_slices();
        let mut end = arena.address() + front * SLICE_BYTES;
        let (mut runs, mut has_live, mut is_behind_free) = (0, false, false);
        loop {
            // SAFETY: Below the front lie runs, and the head. The front may be the next arena's address.
            let last = unsafe { Slice::at(end - SLICE_BYTES) };
            if !arena.has_handed_out(last) {
                break;
            }
            runs += 1;
            let kind = last.kind.get();
            if !matches!(kind, Kind::Free | Kind::Unmerged) {
                let (address, live) = self.live.range(..end).next_back().expect("a live run");
                assert_eq!(address + live.slices * SLICE_BYTES, end, "a hole or an overlap");
                sums.live += live.slices;
                (has_live, is_behind_free, end) = (true, false, *address);
                continue;
            }
            // SAFETY: The last slice of a free run leads to its first.
            let first = unsafe { last.behind(last.back.get() as usize) };
            let (count, dirty) = (first.count.get() as usize, first.dirty.get() as usize);
            assert_eq!((first.kind.get(), count), (kind, last.back.get() as usize + 1));
            assert!(dirty <= count * SLICE_BYTES);
            assert!(!(kind == Kind::Free && is_behind_free), "free neighbors are not merged");
            sums.dirty_bytes += dirty;
            if kind == Kind::Free {
                sums.free += 1;
                sums.dirty += usize::from(dirty > 0);
                let run = Live { first, slices: count, kind };
                assert!(!first.zero.get() || dirty == 0 && run.is_zero(), "said to be zero");
            } else {
                sums.unmerged += 1;
            }
            (is_behind_free, end) = (kind == Kind::Free, first.address());
        }
        let may_stay = has_live || self.has_switched || self.ranges.is_growing(arena);
        assert!(may_stay || runs > 1, "an arena of nothing but one free run");
    }

    /// Frees everything; all of it merges and goes back.
    fn finish(mut self) {
        set_none();
        self.check();
        while !self.live.is_empty() {
            self.free();
        }
        self.ranges.give_up();
        self.ranges.end_call();
        self.ranges.end_call();
        self.check();
        assert_eq!((self.ranges.live_slices, self.ranges.dirty_bytes), (0, 0));
        let arenas = arena::all().filter(|it| it.stripe.get() == stripes::STRIPES_MAX as u32);
        assert_eq!(arenas.count(), 0, "an arena is left");
    }
}

/// The sums of a walk through all arenas.
#[derive(Default)]
struct Sums {
    live: usize,
    free: usize,
    dirty: usize,
    dirty_bytes: usize,
    unmerged: usize,
}

fn set_none() {
    for (name, _) in OPTIONS {
        settings::set(name.as_bytes(), None).expect("every option has a default");
    }
}

fn number(name: &str) -> Option<usize> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn random_calls_and_options_lose_no_slice() {
    run_alone!();
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.subsec_nanos());
    let seed = number("MASU_SEED").unwrap_or_else(|| clock() as usize);
    let operations = number("MASU_OPERATIONS").unwrap_or(OPERATIONS);
    println!("MASU_SEED={seed} MASU_OPERATIONS={operations}");
    for (round, live_max) in LIVE_MAX.into_iter().enumerate() {
        let shared: &'static SharedRanges = Box::leak(Box::new(SharedRanges::new()));
        let random = Random((seed * LIVE_MAX.len() + round) as u64);
        let ranges = shared.lock();
        let live = BTreeMap::new();
        let (takes, only, has_switched) = (60, None, false);
        let mut model = Model { random, ranges, live, live_max, takes, only, has_switched };
        for operation in 0..operations {
            model.step();
            if operation % CHECKED_EVERY == 0 {
                model.check();
            }
        }
        model.finish();
    }
}
