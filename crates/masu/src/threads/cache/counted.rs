//! Counted caches: their threads' requests are counted, for a heap profile or to choose guarded blocks.
//!
//! Relies on the profile for its interval, and on the guards for their rate; what follows holds for both. No fast path
//! tests for counting: while a profile is taken, every request takes a slow path. For C's family, the start of a
//! profile clears the tables from sizes to stacks in all threads, so each thread notices at its next request; its frees
//! need not change, because the class map says which blocks are sampled. Rust's layouts select their stacks by
//! constants in the program's code. So in a program with layouts, the thread's slot is set to [`COUNTING`]: stacks
//! shared by all threads that are empty and full at once and *hide* the thread's cache. The hard idea is that the cache
//! itself stays as it is: the slow path counts the request down, then does what C's fast paths do.
//!
//! Only a thread itself changes its slot, when it takes a slow path for another reason. Until then, its frees by layout
//! may put sampled blocks onto its stacks. When it notices the profile, it searches them once
//! ([`ThreadCache::notice_profile`]); blocks that it sent on before were checked on the way
//! (`shard::sampled::are_sampled`). A sampled block that reaches its page is removed from the profile there
//! (`shard::flush`).

use core::ptr;

use super::{ThreadCache, all};
use crate::blocks::slot::{CAN_COUNT, Inert, Stack, State};
use crate::blocks::{shard, slot};
use crate::diagnostics::sampling::probability;
use crate::diagnostics::{guards, sampling};
use crate::memory::arena::code_of;
use crate::memory::class::{Class, SAMPLED};
use crate::platform::kernel;
use crate::platform::sync::{AtomicBool, Cell, Ordering};
use crate::settings;

/// The stack of code 0, foreign memory: always empty and always full.
const NOTHING: usize = 0;

/// A thread's counters.
pub(super) struct Countdown {
    /// Bytes up to and including the next sampled one; 0 at first.
    left: Cell<usize>,
    /// Requests up to and including the next guarded one; 0 at first.
    requests: Cell<usize>,
    random: Cell<u64>,
    /// Whether a sample is being taken: its own allocations are not sampled.
    is_sampling: Cell<bool>,
}

impl Countdown {
    pub(super) const fn new() -> Countdown {
        Countdown {
            left: Cell::new(0),
            requests: Cell::new(0),
            random: Cell::new(0),
            is_sampling: Cell::new(false),
        }
    }
}

/// Whether requests are counted now, for a profile or for guards.
#[inline(always)]
pub(crate) fn are_counted() -> bool {
    sampling::is_running() || guards::are_on()
}

/// The choice for a request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hit {
    /// It is added to the heap profile.
    pub(crate) is_sampled: bool,
    /// It is guarded; the random number places its block.
    pub(crate) guarded: Option<u64>,
}

/// The stacks in the slots of threads that count and allocate by layouts.
#[unsafe(link_section = ".data.rel.ro.masu_counting")]
static COUNTING: Inert = Inert::counting();

impl Inert {
    const fn counting() -> Inert {
        let mut inert = Inert::new();
        inert.stacks.state = State::Counting;
        inert.stacks.counts = AtomicBool::new(true);
        inert
    }
}

/// Has all of this thread's requests and frees take slow paths, which find `cache`.
fn hide_cache(cache: &'static ThreadCache) {
    if CAN_COUNT {
        slot::set_hiding(&COUNTING.stacks, cache);
    }
}

impl ThreadCache {
    /// Has requests of this cache's thread counted from now on. The caller, of any thread, holds the lock of all
    /// threads.
    pub(crate) fn begin_counting(&self) {
        for offset in &self.stacks.offsets {
            // ORDERING: Relaxed, as where the offsets are read.
            offset.store(NOTHING, Ordering::Relaxed);
        }
        // ORDERING: Relaxed: until the thread sees it, its slow path takes blocks from the stacks as usual.
        self.stacks.counts.store(true, Ordering::Relaxed);
    }

    /// Ends [`ThreadCache::begin_counting`]. Called by the cache's thread with the lock of all threads.
    pub(crate) fn end_counting(&'static self) {
        slot::set(&self.stacks);
        for (step, offset) in self.stacks.offsets.iter().enumerate() {
            let code = usize::from(Class::of_size(step * 16).laned().code_in(self.shard.0));
            // ORDERING: Relaxed, as above.
            offset.store(code * size_of::<Stack>(), Ordering::Relaxed);
        }
        // ORDERING: As above.
        self.stacks.counts.store(false, Ordering::Relaxed);
    }

    /// A block for `size` bytes, at most [`crate::memory::class::TABLE_LIMIT`], counted; null where the request may be
    /// chosen, there is no block, or a profile began or ended.
    #[inline(always)]
    pub(crate) fn pop_counted(&self, size: usize) -> *mut u8 {
        let (left, requests) = (self.countdown.left.get(), self.countdown.requests.get());
        if size >= left || requests <= 1 || !self.has_noticed() {
            return ptr::null_mut();
        }
        let block = self.stack(Class::of_size(size).laned()).pop();
        if !block.is_null() {
            self.countdown.left.set(left - size);
            self.countdown.requests.set(requests - 1);
        }
        block
    }

    /// Counts a request of `bytes`; whether it is not chosen. If it may be, [`ThreadCache::hit`] is next.
    #[inline(always)]
    pub(crate) fn passes_request(&self, bytes: usize) -> bool {
        let requests = self.countdown.requests.get();
        if requests <= 1 || !self.passes(bytes) {
            return false;
        }
        self.countdown.requests.set(requests - 1);
        true
    }

    /// The choice for a request that did not pass; draws the next ones.
    #[cold]
    #[inline(never)]
    pub(crate) fn hit(&'static self, bytes: usize) -> Hit {
        if self.countdown.is_sampling.get() {
            return Hit::default();
        }
        let is_sampled = !self.passes(bytes) && self.is_hit(bytes);
        let requests = self.countdown.requests.get();
        if requests > 1 {
            self.countdown.requests.set(requests - 1);
            return Hit { is_sampled, guarded: None };
        }
        let guarded = guards::rate().map(|rate| {
            self.countdown.requests.set(guards::blocks_to_guard(self.random(), rate));
            self.random()
        });
        Hit { is_sampled, guarded }
    }

    /// Makes a guarded block, whose own allocations are not sampled or guarded; 0 where there is none.
    pub(crate) fn take_guarded(&self, request: guards::Request, random: u64) -> usize {
        self.countdown.is_sampling.set(true);
        let block = guards::take(request, random);
        self.countdown.is_sampling.set(false);
        block
    }

    /// Counts allocated bytes; whether none of them is sampled. If one may be, [`ThreadCache::is_hit`] is next.
    #[inline(always)]
    pub(crate) fn passes(&self, bytes: usize) -> bool {
        let left = self.countdown.left.get();
        if bytes >= left || !self.has_noticed() {
            return false;
        }
        self.countdown.left.set(left - bytes);
        true
    }

    /// Whether one of these bytes, which did not pass, is sampled; draws the next one.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_hit(&'static self, bytes: usize) -> bool {
        if self.countdown.is_sampling.get() {
            return false;
        }
        if !self.has_noticed() {
            self.begin_session();
            if self.passes(bytes) {
                return false;
            }
        }
        let Some(left) = self.draw() else { return false };
        self.countdown.left.set(left);
        true
    }

    /// Starts counting for the present profile or guards; ends counting where there are none.
    #[cold]
    #[inline(never)]
    fn begin_session(&'static self) {
        // Read the session first: a later start of a profile changes it, and is noticed at the next request.
        let session = sampling::session();
        let current = sampling::current();
        if current.is_none() && !guards::are_on() {
            return all::end_counting(self);
        }
        let session = current.map_or(session, |(_, session)| session);
        // Any seed will do, as long as no two threads and no two processes share one.
        let (process, place) = (kernel::file::process(), ptr::from_ref(self).addr());
        self.countdown.random.set((process << 32 ^ place) as u64 ^ u64::from(session) << 48);
        self.session.set(session);
        // Uses the interval read above: between a stop and a start another read might find none, and without a draw
        // this thread would sample nothing of the new profile.
        let left = current.map_or(usize::MAX, |(interval, _)| self.draw_from(interval));
        self.countdown.left.set(left);
        let draw = |rate| guards::blocks_to_guard(self.random(), rate);
        self.countdown.requests.set(guards::rate().map_or(usize::MAX, draw));
        if settings::layouts_are_used() {
            hide_cache(self);
        }
        self.return_sampled();
    }

    /// Has this cache's thread count, if a profile is taken. Called where a thread starts with this cache, starts a
    /// profile, or frees by layout.
    #[inline]
    pub(crate) fn notice_profile(&'static self) {
        if self.stacks.counts() && are_counted() {
            self.notice_profile_slow();
        }
    }

    #[cold]
    #[inline(never)]
    fn notice_profile_slow(&'static self) {
        if !self.has_noticed() {
            self.begin_session();
        } else if settings::layouts_are_used() && !slot::get().hides_cache() {
            // Layouts have been used since, or the thread began with a cache that already counted.
            hide_cache(self);
            self.return_sampled();
        }
    }

    /// Returns sampled blocks to their pages that were freed by layout before this thread noticed the profile.
    fn return_sampled(&'static self) {
        for class in self.opened() {
            self.remove_mark(class);
            let (base, count) = (self.depth(class).base(), self.count(class));
            // SAFETY: The stack holds so many entries above the zero.
            let entries = unsafe { core::slice::from_raw_parts_mut(base.wrapping_add(1), count) };
            let mut left = 0;
            for index in 0..count {
                let block = entries[index];
                if code_of(block) == SAMPLED {
                    let _ = shard::flush_one(class, block);
                } else {
                    entries[left] = block;
                    left += 1;
                }
            }
            self.stack(class).top.set(base.wrapping_add(left));
        }
    }

    /// A block of `class` from the hidden stacks. Null only without memory.
    #[inline(always)]
    pub(crate) fn pop_hidden(&'static self, class: Class) -> *mut u8 {
        let block = self.stack(class).pop();
        if block.is_null() { self.pop_slow(class) } else { block }
    }

    /// Bytes up to and including the next hit; `None` where no profile is taken.
    fn draw(&self) -> Option<usize> {
        sampling::current().map(|(interval, _)| self.draw_from(interval))
    }

    /// The same for a given interval.
    fn draw_from(&self, interval: usize) -> usize {
        probability::bytes_to_hit(self.random(), interval)
    }

    fn random(&self) -> u64 {
        let (state, random) = probability::next_random(self.countdown.random.get());
        self.countdown.random.set(state);
        random
    }

    /// Adds the block at `address` to the profile; its own allocations are not sampled.
    pub(crate) fn sample(&self, address: usize, bytes: usize) {
        self.countdown.is_sampling.set(true);
        sampling::add(address, bytes);
        self.countdown.is_sampling.set(false);
    }
}
