//! Counted caches: those whose thread's requests are counted, for a heap profile or for the choice of guarded blocks.
//!
//! Relies on the profile to say whether one is taken, on the guards for how many blocks they want; what follows
//! holds for both. No fast path has a test for it: while one is taken, every request of
//! a thread takes a slow path. The start of a profile has the tables from sizes to stacks of all threads lead
//! nowhere, so each notices at its next request by C's family; frees of that stay as they are, for the class map says
//! which blocks are sampled. Rust's layouts lead to their stacks by numbers that are part of the program. So where there
//! are any, the thread's slot leads to [`COUNTING`]: stacks that all threads share, empty and full at once, with the
//! thread's cache *behind* them. The hard idea is that the cache itself stays as it is: the slow path counts the request down
//! and then does what C's fast paths do.
//!
//! Only its own thread changes its slot, when it takes a slow path for another reason. Until then its frees by layout
//! may put sampled blocks into its stacks. When it notices, these are looked through once ([`ThreadCache::notice_profile`]), and what
//! it sent on before was looked through on the way (`shard::sampled::are_sampled`). A sampled block that comes home is
//! taken out of the profile there (`shard::flush`).

use core::ptr;

use super::{ThreadCache, all};
use crate::blocks::slot::{CAN_COUNT, Inert, State};
use crate::blocks::{shard, slot};
use crate::diagnostics::sampling::chance;
use crate::diagnostics::{guards, sampling};
use crate::memory::arena::code_of;
use crate::memory::class::{Class, SAMPLED};
use crate::platform::kernel;
use crate::platform::sync::{AtomicBool, Cell, Ordering};
use crate::settings;

/// The stack of code 0, foreign memory: always empty, always full.
const NOTHING: usize = 0;

/// What a thread counts.
pub(super) struct Countdown {
    /// Bytes up to the next sample, that one included; 0 at first.
    left: Cell<usize>,
    /// Requests up to the next that is guarded, that one included; 0 at first.
    requests: Cell<usize>,
    random: Cell<u64>,
    /// Inside a sample: what is allocated there is not sampled.
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

/// Whether requests are counted now, for whatever.
#[inline(always)]
pub(crate) fn are_counted() -> bool {
    sampling::is_running() || guards::are_on()
}

/// What a request that did not pass is to be.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hit {
    /// In the heap profile.
    pub(crate) is_sampled: bool,
    /// Guarded, with this random number.
    pub(crate) guarded: Option<u64>,
}

/// What the slots of threads lead to while a profile is taken, if they allocate by layouts.
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

/// Has this thread's requests and frees take slow paths, which find `cache`.
fn stand_before(cache: &'static ThreadCache) {
    if CAN_COUNT {
        slot::set_behind(&COUNTING.stacks, cache);
    }
}

impl ThreadCache {
    /// Has allocations of this cache's thread counted from here on. The caller, of any thread, holds
    /// the lock of all threads.
    pub(crate) fn begin_counting(&self) {
        for offset in &self.stacks.offsets {
            // ORDERING: Relaxed, as where they are read.
            offset.store(NOTHING, Ordering::Relaxed);
        }
        // ORDERING: Relaxed: before it is seen, the slow path takes from the stacks as well.
        self.stacks.counts.store(true, Ordering::Relaxed);
    }

    /// Ends [`ThreadCache::begin_counting`]. Its own thread calls this and holds the lock of all threads.
    pub(crate) fn end_counting(&'static self) {
        slot::set(&self.stacks);
        self.session.set(0);
        for (step, offset) in self.stacks.offsets.iter().enumerate() {
            // ORDERING: Relaxed, as above.
            offset.store(self.own_offset(step), Ordering::Relaxed);
        }
        // ORDERING: As above.
        self.stacks.counts.store(false, Ordering::Relaxed);
    }

    /// A block for `size` bytes, at most [`crate::memory::class::TABLE_LIMIT`], counted; null where the request may be one to sample,
    /// where there is no block, or where a profile began or ended.
    #[inline(always)]
    pub(crate) fn pop_counted(&self, size: usize) -> *mut u8 {
        let (left, requests) = (self.countdown.left.get(), self.countdown.requests.get());
        if size >= left || requests <= 1 || !self.has_noticed() {
            return ptr::null_mut();
        }
        let block = self.stacks.stack_at(self.own_offset((size + 15) >> 4)).pop();
        if !block.is_null() {
            self.countdown.left.set(left - size);
            self.countdown.requests.set(requests - 1);
        }
        block
    }

    /// Counts a request of `bytes`; whether it is neither to be sampled nor guarded. If not, [`ThreadCache::hit`]
    /// is next.
    #[inline(always)]
    pub(crate) fn passes_request(&self, bytes: usize) -> bool {
        let requests = self.countdown.requests.get();
        if requests <= 1 || !self.passes(bytes) {
            return false;
        }
        self.countdown.requests.set(requests - 1);
        true
    }

    /// What is to become of a request that did not pass; draws how many go by until the next.
    #[cold]
    #[inline(never)]
    pub(crate) fn hit(&'static self, bytes: usize) -> Hit {
        if self.countdown.is_sampling.get() {
            return Hit::default();
        }
        if !self.has_noticed() {
            self.begin_session();
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

    /// A guarded block, in whose making none is sampled or guarded; 0 where there is none.
    pub(crate) fn take_guarded(&self, request: guards::Request, random: u64) -> usize {
        self.countdown.is_sampling.set(true);
        let block = guards::take(request, random);
        self.countdown.is_sampling.set(false);
        block
    }

    /// Counts bytes that are allocated; whether none of them is to be sampled. If not,
    /// [`ThreadCache::is_hit`] is next.
    #[inline(always)]
    pub(crate) fn passes(&self, bytes: usize) -> bool {
        let left = self.countdown.left.get();
        if bytes >= left || !self.has_noticed() {
            return false;
        }
        self.countdown.left.set(left - bytes);
        true
    }

    /// Whether one of these bytes, which did not pass, is sampled indeed; draws how many go by until
    /// the next.
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

    /// Begins to count for the profile that is being taken, if one is; else ends counting.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.profile.counted_begin_session")]
    fn begin_session(&'static self) {
        // The session first: a profile that starts behind it is noticed at the next look.
        let session = sampling::session();
        let current = sampling::current();
        if current.is_none() && !guards::are_on() {
            return all::end_counting(self);
        }
        let session = current.map_or(session, |(_, session)| session);
        // Any start will do, as long as no two threads draw the same, nor two processes.
        let (process, place) = (kernel::file::process(), ptr::from_ref(self).addr());
        self.countdown.random.set((process << 32 ^ place) as u64 ^ u64::from(session) << 48);
        self.session.set(session);
        // From this interval and no other look: where a profile stops and another one starts in between, there may be none for
        // a moment, and without a draw this thread would sample nothing of the new one.
        let left = current.map_or(usize::MAX, |(interval, _)| self.draw_from(interval));
        self.countdown.left.set(left);
        let draw = |rate| guards::blocks_to_guard(self.random(), rate);
        self.countdown.requests.set(guards::rate().map_or(usize::MAX, draw));
        if settings::layouts_are_used() {
            stand_before(self);
        }
        self.send_sampled_home();
    }

    /// Has this cache's thread count if a profile is taken: threads that begin with this cache, started a profile, or free
    /// by layout, see each of its blocks.
    #[inline]
    pub(crate) fn notice_profile(&'static self) {
        if self.stacks.counts() && are_counted() {
            self.notice_profile_slow();
        }
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.profile.counted_notice_profile_slow")]
    fn notice_profile_slow(&'static self) {
        if !self.has_noticed() {
            self.begin_session();
        } else if settings::layouts_are_used() && !slot::get().stands_before_a_cache() {
            // Layouts may be in use since, or the thread began with a cache that had counted.
            stand_before(self);
            self.send_sampled_home();
        }
    }

    /// Sends home the sampled blocks that were freed by layout while this thread had not noticed.
    fn send_sampled_home(&'static self) {
        for class in self.opened() {
            self.take_mark_away(class);
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

    /// Draws again at the next chance: a forked child's samples are not to be its parent's.
    pub(crate) fn forget_draw(&self) {
        self.session.set(0);
        self.countdown.left.set(0);
        self.countdown.requests.set(0);
    }

    /// A block of `class`, whatever stands before the stacks. Null only for want of memory.
    #[inline(always)]
    pub(crate) fn pop_behind(&'static self, class: Class) -> *mut u8 {
        let block = self.stack(class).pop();
        if block.is_null() { self.pop_slow(class) } else { block }
    }

    /// How many bytes go by until the next hit, that one included; `None` where no profile is taken.
    fn draw(&self) -> Option<usize> {
        sampling::current().map(|(interval, _)| self.draw_from(interval))
    }

    /// The same where the interval is known.
    fn draw_from(&self, interval: usize) -> usize {
        chance::bytes_to_hit(self.random(), interval)
    }

    fn random(&self) -> u64 {
        let (state, random) = chance::next_random(self.countdown.random.get());
        self.countdown.random.set(state);
        random
    }

    /// Notes the sampled block at `address`; what that allocates itself is not sampled.
    pub(crate) fn sample(&self, address: usize, bytes: usize) {
        self.countdown.is_sampling.set(true);
        sampling::add(address, bytes);
        self.countdown.is_sampling.set(false);
    }
}
