//! Counted caches: those whose thread's allocations are counted for a heap profile.
//!
//! Relies on the profile to say whether one is taken. `malloc` has no test for it and counts nothing: where it looks are
//! *dealt* blocks, of which it was known when they were put there that none will be sampled. When they are
//! used up, the slow path counts the next ones, a batch at once, and deals them from the true stack. That is as good as
//! counting each, for bytes are sampled by chance alone: each class may have a countdown of its own, and how many
//! of its blocks go by until the next hit is drawn beforehand. Freed blocks go to the true stack: were they dealt
//! again at once, a block that is allocated and freed in turns would never be counted.
//!
//! For C's family the table from sizes to stacks leads to the dealt blocks, and frees stay as they are. Rust's
//! layouts lead to their stacks by numbers that are part of the program, so where there are any, the
//! true stacks are *hidden*: they lie elsewhere, and what is seen in their place has the dealt blocks and is full.
//! Their frees go elsewhere again (`cache/freed.rs`). The hard idea is who may do
//! that: tables change from any thread, but stacks are their own thread's, which changes them when it counts for the first time.

use core::cell::Cell;
use core::ptr;

use super::depth::REFILL_BYTES_LAST;
use super::freed::Trays;
use super::{Shared, Stack, ThreadCache};
use crate::class::{CLASSES, Class, FIRST, HOMED_FIRST, TABLE_LIMIT};
use crate::profile::chance;
use crate::sync::{AtomicPtr, Ordering};
use crate::{kernel, metadata, options, profile, slot, thread};

/// The stack of code 0, foreign memory: always empty, always full.
const NOTHING: usize = 0;
/// The classes that are dealt: those that a table knows.
pub(super) const DEALT: usize = Class::of_size(TABLE_LIMIT).index() - FIRST + 1;
/// The most blocks of a class that are dealt at once, or lie on a tray; and no more bytes than a refill.
const DEALT_MAX: usize = 127;
/// Where the array of each class begins among those of dealt stacks, or of trays, in words, and where the last one ends:
/// a zero, and room for so many blocks.
static STARTS: [u16; DEALT + 1] = starts();
/// Words of all these arrays.
pub(super) const PLACES: usize = starts()[DEALT] as usize;
/// Fewer blocks or bytes of them than this are few.
const FEW: usize = 8;
const FEW_BYTES: usize = 2 << 10;

/// What a thread counts.
pub(super) struct Countdown {
    /// Bytes up to the next sample, that one included, of what is counted one by one; 0 at first.
    left: Cell<usize>,
    random: Cell<u64>,
    /// The profile this was drawn for; 0 for none.
    session: Cell<u32>,
    /// Inside a sample: what is allocated there is not sampled.
    is_sampling: Cell<bool>,
    /// The stacks without a home while others are seen in their place.
    // Its thread hides and reveals them; whoever counts blocks from outside looks here too.
    hidden: Shared<[Stack; CLASSES]>,
    /// The dealt blocks; null before there are any.
    dealt: Shared<Dealt>,
    /// Where frees by layout go while stacks are hidden; null before they were for the first time.
    trays: AtomicPtr<Trays>,
}

/// Blocks of each class that need not be counted any more.
#[repr(C)]
struct Dealt {
    /// The stacks, where none are hidden.
    stacks: [Stack; DEALT],
    /// The arrays of the stacks, wherever these are.
    arrays: [Cell<usize>; PLACES],
    /// Bytes up to the next sample of each class, that one included, from the first block on that is not dealt
    /// yet; 0 before it was drawn.
    lefts: [Cell<usize>; DEALT],
}

/// How many blocks of `class` are dealt at most, or lie on a tray.
#[inline(always)]
pub(super) const fn room(class: Class) -> usize {
    let room = class.block_index(REFILL_BYTES_LAST);
    if room < DEALT_MAX { room } else { DEALT_MAX }
}

const fn starts() -> [u16; DEALT + 1] {
    let mut starts = [0; DEALT + 1];
    let mut index = 0;
    while index < DEALT {
        if let Some(class) = Class::from_index(FIRST + index) {
            starts[index + 1] = starts[index] + 1 + room(class) as u16;
        }
        index += 1;
    }
    starts
}

/// Where the array of this class begins, of those that are dealt.
#[inline(always)]
pub(super) fn start(class: Class) -> usize {
    debug_assert!(class.index() < FIRST + DEALT);
    // SAFETY: There is one for each class that is dealt.
    usize::from(unsafe { *STARTS.get_unchecked(class.index() - FIRST) })
}

impl Countdown {
    pub(super) const fn new() -> Countdown {
        Countdown {
            left: Cell::new(0),
            random: Cell::new(0),
            session: Cell::new(0),
            is_sampling: Cell::new(false),
            hidden: Shared::new(ptr::null_mut()),
            dealt: Shared::new(ptr::null_mut()),
            trays: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The dealt blocks, if there is a place for them.
    #[inline(always)]
    fn dealt(&self) -> Option<&'static Dealt> {
        if !profile::IS_BUILT_IN {
            return None;
        }
        // SAFETY: It is null or leads to what was made for this cache, for good.
        unsafe { self.dealt.get().as_ref() }
    }

    /// The trays, if there are any yet.
    #[inline(always)]
    pub(super) fn trays(&self) -> Option<&'static Trays> {
        if !profile::IS_BUILT_IN {
            return None;
        }
        // ORDERING: Acquire, as other threads look too; it pairs with the Release in `hide`.
        // SAFETY: It is null or leads to what was made for this cache, for good.
        unsafe { self.trays.load(Ordering::Acquire).as_ref() }
    }

    /// The stacks that are hidden, if any are.
    #[inline(always)]
    fn hidden(&self) -> Option<&'static [Stack; CLASSES]> {
        if !profile::IS_BUILT_IN {
            return None;
        }
        // SAFETY: It is null or leads to stacks in memory that is never unmapped; given back, it is
        // numbers still, of which others make a count that they check.
        unsafe { self.hidden.get().as_ref() }
    }
}

impl Dealt {
    /// The array of this class.
    fn base(&self, class: Class) -> *mut usize {
        self.arrays.as_ptr().wrapping_add(start(class)).cast_mut().cast()
    }
}

impl super::Stacks {
    /// Whether allocations are counted.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        // ORDERING: Relaxed: whoever sees it late counts a few blocks less.
        profile::IS_BUILT_IN && self.counts.load(Ordering::Relaxed)
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
        // ORDERING: Relaxed: before it is seen, the slow path takes from the true stacks as well.
        self.stacks.counts.store(true, Ordering::Relaxed);
    }

    /// Ends [`ThreadCache::begin_counting`]. Its own thread calls this, holds the lock of all threads, and has taken
    /// back what was dealt.
    pub(crate) fn end_counting(&'static self) {
        self.reveal();
        self.countdown.session.set(0);
        for (step, offset) in self.stacks.offsets.iter().enumerate() {
            let class = Class::of_size(step * 16).homed();
            let own = usize::from(class.code_in(self.shard.0)) * size_of::<Stack>();
            // ORDERING: Relaxed, as above.
            offset.store(own, Ordering::Relaxed);
        }
        // ORDERING: Relaxed, as above.
        self.stacks.counts.store(false, Ordering::Relaxed);
    }

    /// Counts bytes that are allocated; whether none of them is to be sampled. If not,
    /// [`ThreadCache::is_hit`] is next.
    #[inline(always)]
    pub(crate) fn passes(&self, bytes: usize) -> bool {
        let left = self.countdown.left.get();
        if bytes >= left || self.countdown.session.get() != profile::session() {
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
        if self.countdown.session.get() != profile::session() {
            self.begin_session();
            if self.passes(bytes) {
                return false;
            }
        }
        let Some(left) = self.draw() else { return false };
        self.countdown.left.set(left);
        true
    }

    /// A block of `class` for `size` bytes, counted; `None` where it is to be sampled. Null only for want of memory.
    #[inline(always)]
    pub(crate) fn pop_counted(
        &'static self,
        class: Class,
        size: usize,
        by_layout: bool,
    ) -> Option<*mut u8> {
        let index = class.page_index() - FIRST;
        if index < DEALT
            && by_layout == self.hides()
            && self.countdown.session.get() == profile::session()
            && let Some(dealt) = self.countdown.dealt()
        {
            return self.pop_dealt(dealt, class, index, size);
        }
        if self.passes(size) || !self.is_hit(size) { Some(self.pop_true(class)) } else { None }
    }

    /// The same of the class with this place among those that are dealt.
    fn pop_dealt(
        &'static self,
        dealt: &Dealt,
        class: Class,
        index: usize,
        size: usize,
    ) -> Option<*mut u8> {
        let stack = self.dealt_stack(dealt, index);
        // Whoever resizes or aligns did not look there.
        let block = stack.pop();
        if !block.is_null() {
            return Some(block);
        }
        if self.countdown.is_sampling.get() {
            return Some(self.pop_true(class));
        }
        let (place, bytes) = (&dealt.lefts[index], class.size());
        if place.get() == 0 {
            place.set(self.draw().unwrap_or(usize::MAX));
        }
        let left = place.get();
        if left <= bytes {
            // The block is hit; whether where it is asked for is another matter. What lies behind is drawn anew.
            place.set(0);
            return if left <= size { None } else { Some(self.pop_true(class)) };
        }
        let count = self.deal(class, stack, (left - 1) / bytes);
        place.set(left - count.max(1) * bytes);
        Some(if count > 0 { stack.pop() } else { self.pop_true(class) })
    }

    /// Moves blocks from the top of a class's true stack, where those from its tray go first, to its dealt one, which is
    /// empty: at most `most`, and as many as a refill may fetch. Where there are few, some are fetched too, for each turn
    /// costs as much as some dozen blocks. Returns how many.
    fn deal(&'static self, class: Class, dealt: &Stack, most: usize) -> usize {
        let most = most.min(room(class));
        if let Some(trays) = self.trays_in_use() {
            self.clear_tray(trays, class);
        }
        let mut have = self.count_above_mark(class);
        if have < FEW && have < most && (have + 1) * class.size() < FEW_BYTES {
            self.take_mark_away(class);
            self.fetch_more(class);
            have = self.count(class);
        }
        let (stack, base, count) = (self.stack(class), dealt.limit.get(), have.min(most));
        let rest = stack.top.get().wrapping_sub(count);
        if count > 0 {
            // SAFETY: There are so many entries, and places above the zero of the dealt stack's array; the
            // arrays are different ones.
            unsafe { ptr::copy_nonoverlapping(rest.add(1), base.add(1), count) };
            stack.top.set(rest);
            dealt.top.set(base.wrapping_add(count));
        }
        count
    }

    /// Whether true stacks are hidden.
    #[inline(always)]
    fn hides(&self) -> bool {
        self.countdown.hidden().is_some()
    }

    /// The trays, where true stacks are hidden.
    #[inline(always)]
    pub(super) fn trays_in_use(&self) -> Option<&'static Trays> {
        if self.hides() { self.countdown.trays() } else { None }
    }

    /// The stack that has the dealt blocks of the class with this place among those that are dealt.
    fn dealt_stack<'a>(&'a self, dealt: &'a Dealt, index: usize) -> &'a Stack {
        if self.hides() { &self.stacks.stacks[FIRST + index] } else { &dealt.stacks[index] }
    }

    /// Puts what was dealt, and what lies on trays, back into the true stacks.
    pub(crate) fn take_back(&'static self) {
        if let Some(dealt) = self.countdown.dealt() {
            self.take_back_slow(dealt);
        }
        if self.trays_in_use().is_some() {
            self.clear_trays();
        }
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.profile")]
    fn take_back_slow(&'static self, dealt: &Dealt) {
        for (index, class) in Class::all().take(DEALT).enumerate() {
            // What the class map says counts where layouts do not.
            let class = if self.hides() { class } else { class.homed() };
            let stack = self.dealt_stack(dealt, index);
            loop {
                let block = stack.pop();
                if block.is_null() {
                    break;
                }
                if !self.stack(class).push(block) {
                    self.push_slow(class, block);
                }
            }
        }
    }

    /// How many blocks of `class` are dealt or lie on a tray, as another thread sees them.
    pub(super) fn dealt_blocks(&self, class: Class) -> usize {
        let index = class.page_index() - FIRST;
        let Some(dealt) = self.countdown.dealt().filter(|_| index < DEALT) else { return 0 };
        let top = self.dealt_stack(dealt, index).top.get().addr();
        let count = top.wrapping_sub(dealt.base(class).addr()) / size_of::<usize>();
        self.blocks_on_tray(class) + if count <= room(class) { count } else { 0 }
    }

    /// Begins to count for the profile that is being taken, if one is; else ends counting.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.profile")]
    fn begin_session(&'static self) {
        let Some((_, session)) = profile::current() else { return thread::end_counting(self) };
        // Any start will do, as long as no two threads draw the same, nor two processes.
        let (process, place) = (kernel::file::process(), ptr::from_ref(self).addr());
        self.countdown.random.set((process << 32 ^ place) as u64 ^ u64::from(session) << 48);
        self.take_back();
        self.hide();
        self.open_dealt();
        self.countdown.session.set(session);
        if let Some(dealt) = self.countdown.dealt() {
            dealt.lefts.iter().for_each(|left| left.set(0));
        }
        self.countdown.left.set(self.draw().unwrap_or(0));
    }

    /// Has a thread that begins with this cache, or started a profile, see each of its blocks.
    pub(crate) fn notice_profile(&'static self) {
        if self.stacks.counts()
            && profile::is_running()
            && self.countdown.session.get() != profile::session()
        {
            self.begin_session();
        } else if self.stacks.counts() && profile::is_running() && !self.hides() {
            // Layouts may be in use since.
            self.take_back();
            self.hide();
            self.open_dealt();
        }
    }

    /// Draws anew at the next chance: a forked child's samples are not to be its parent's.
    pub(crate) fn forget_draw(&self) {
        self.countdown.session.set(0);
    }

    /// A block of `class` from its true stack. Null only for want of memory.
    #[inline(always)]
    pub(crate) fn pop_true(&'static self, class: Class) -> *mut u8 {
        let block = self.stack(class).pop();
        if block.is_null() { self.pop_slow(class) } else { block }
    }

    /// How many bytes go by until the next hit, that one included; `None` where no profile is taken.
    fn draw(&self) -> Option<usize> {
        let (interval, _) = profile::current()?;
        let (state, random) = chance::next_random(self.countdown.random.get());
        self.countdown.random.set(state);
        Some(chance::bytes_to_hit(random, interval))
    }

    /// Notes the sampled block at `address`; what that allocates itself is not sampled.
    pub(crate) fn sample(&self, address: usize, bytes: usize) {
        self.countdown.is_sampling.set(true);
        profile::add(address, bytes);
        self.countdown.is_sampling.set(false);
    }

    /// The first of the true stacks of classes without a home, be they hidden or not.
    #[inline(always)]
    pub(super) fn true_stacks(&self) -> *const Stack {
        let visible = self.stacks.stacks.as_ptr();
        self.countdown.hidden().map_or(visible, |hidden| hidden.as_ptr())
    }

    /// Has fast paths look at the dealt stacks, which are empty. Without memory for these nothing is dealt, and C's
    /// family finds nothing.
    fn open_dealt(&'static self) {
        if let Some(trays) = self.trays_in_use() {
            slot::set_frees(trays.frees());
        }
        let Some(dealt) = self.countdown.dealt().or_else(|| self.make_dealt()) else { return };
        for (index, class) in Class::all().take(DEALT).enumerate() {
            let (stack, base) = (self.dealt_stack(dealt, index), dealt.base(class));
            stack.top.set(base);
            // Nothing is put there by who frees.
            stack.limit.set(base);
        }
        for (step, offset) in self.stacks.offsets.iter().enumerate() {
            let class = Class::of_size(step * 16);
            let place = ptr::from_ref(self.dealt_stack(dealt, class.page_index() - FIRST));
            let distance = place.addr().wrapping_sub(ptr::from_ref(self).addr());
            // Blocks with a home and without are not mixed.
            let is_apart = self.hides() && class.homed() != class;
            // ORDERING: Relaxed, as in `begin_counting`.
            offset.store(if is_apart { NOTHING } else { distance }, Ordering::Relaxed);
        }
    }

    /// A place for dealt blocks; `None` for want of memory.
    fn make_dealt(&self) -> Option<&'static Dealt> {
        const WORDS: usize = size_of::<Dealt>() / size_of::<usize>();
        let words = metadata::words(WORDS)?;
        words.fill(0);
        let place = words.as_mut_ptr().cast::<Dealt>();
        // SAFETY: The words are as many as it needs, and zeros are a valid value.
        let dealt: &'static Dealt = unsafe { &*place };
        for (class, stack) in Class::all().zip(&dealt.stacks) {
            stack.top.set(dealt.base(class));
            stack.limit.set(dealt.base(class));
        }
        self.countdown.dealt.set(place);
        Some(dealt)
    }

    /// Hides the stacks where layouts lead to them. Without memory for that, nothing is counted there.
    fn hide(&self) {
        if self.hides() || !options::layouts_are_used() {
            return;
        }
        const WORDS: usize = size_of::<[Stack; CLASSES]>() / size_of::<usize>();
        let Some(trays) = self.countdown.trays().or_else(Trays::make) else { return };
        // ORDERING: Release: other threads look too, and find zeros or more.
        self.countdown.trays.store(ptr::from_ref(trays).cast_mut(), Ordering::Release);
        let Some(words) = metadata::words(WORDS) else { return };
        let place = words.as_mut_ptr().cast::<[Stack; CLASSES]>();
        // SAFETY: The words are as many as these stacks need, aligned as they are, and nobody else's.
        unsafe { place.write([const { Stack::inert() }; CLASSES]) };
        // SAFETY: Written just now, and never given back: a thread may begin with this cache again.
        let hidden: &'static [Stack; CLASSES] = unsafe { &*place };
        self.countdown.hidden.set(ptr::from_ref(hidden).cast_mut());
        self.swap(hidden);
    }

    /// Puts hidden stacks back.
    fn reveal(&'static self) {
        if let Some(hidden) = self.countdown.hidden() {
            slot::set_frees(self.stacks.frees());
            self.countdown.hidden.set(ptr::null_mut());
            self.swap(hidden);
            let place = ptr::NonNull::from(hidden).cast();
            const WORDS: usize = size_of::<[Stack; CLASSES]>() / size_of::<usize>();
            // SAFETY: The array came from `metadata::words`, which rounds up to this length, and nothing
            // leads to it any more.
            unsafe { metadata::give_back(place, WORDS.next_power_of_two()) };
        }
    }

    /// Exchanges the stacks without a home with others, hidden ones or those that hid them.
    fn swap(&self, others: &[Stack; CLASSES]) {
        for (visible, other) in self.stacks.stacks[..HOMED_FIRST].iter().zip(others) {
            let top = visible.top.replace(other.top.get());
            other.top.set(top);
            other.limit.swap(&visible.limit);
        }
    }
}
