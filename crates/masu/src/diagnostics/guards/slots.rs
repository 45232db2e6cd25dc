//! Slots: the places of guarded blocks, what is known of each, and in which order they are used again.
//!
//! Relies on an arena that the ranges never see, and on a mapping for the records, apart from both. A slot is one slice,
//! or two where OS pages are of 64 KiB; its first OS page is never opened, so whatever is opened lies between two that
//! are not. The records are atomic words, for the handler of a fault reads them while other threads write.

use core::ptr::{self, NonNull};

use super::Request;
use crate::memory::arena::Arena;
use crate::memory::class::{CLASSES, MIN_ALIGN, SAMPLED};
use crate::memory::map;
use crate::memory::slice::{ARENA_BYTES, Kind, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Protection};
use crate::platform::sync::{AtomicPtr, AtomicUsize, Lock, Ordering};
use crate::settings;

/// The most calls that are kept of one stack, the innermost ones.
pub(super) const FRAMES_MAX: usize = 59;
/// Slots where nothing else is asked for.
const SLOTS: usize = 256;
/// Bytes of the stack that the report is written on; without optimisation it takes a third.
const STACK_BYTES: usize = 64 << 10;
/// The slots take no more than this share of the addresses that there may be.
const SHARE: usize = 16;
/// So many bytes on either side of a block, in the OS pages that are opened for it, hold a pattern.
const PATTERN_BYTES: usize = 128;
/// What stands there: no zero, for strings end in one, and no letter.
const PATTERN: u8 = 0xb5;

/// What a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum State {
    /// It never held a block.
    Unused = 0,
    /// A thread is about to hand it out, or to free it.
    Changing = 1,
    Live = 2,
    Freed = 3,
}

/// Who did something, and by which calls.
#[repr(C)]
struct Deed {
    thread: AtomicUsize,
    count: AtomicUsize,
    frames: [AtomicUsize; FRAMES_MAX],
}

/// What is known of a slot. Zero bytes are one that was never used.
#[repr(C)]
struct Record {
    state: AtomicUsize,
    /// The block, and as many bytes of it as the program may use.
    address: AtomicUsize,
    size: AtomicUsize,
    /// The OS pages that are opened for it.
    opened: AtomicUsize,
    opened_bytes: AtomicUsize,
    /// The index of its class, and flags.
    kind: AtomicUsize,
    allocated: Deed,
    freed: Deed,
}

const CLASS: usize = 0xff;
const EXACT: usize = 1 << 8;
const SAMPLE: usize = 1 << 9;

/// All slots.
pub(crate) struct Pool {
    /// The first slot's address, and the bytes of each.
    first: usize,
    stride: usize,
    os_page: usize,
    records: &'static [Record],
    /// The numbers of slots that hold no block, in a ring: [`RING`].
    ring: &'static [AtomicUsize],
    /// Where the stack ends that the report is written on.
    stack: *mut u8,
    made: AtomicUsize,
    made_of: [AtomicUsize; CLASSES],
    freed_of: [AtomicUsize; CLASSES],
}

// SAFETY: Of the stack, the pool only says where it is.
unsafe impl Sync for Pool {}

/// Null until guards are first on; made once, under the lock of all threads.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// Which part of the pool's ring holds free slots: the oldest, and how many.
static RING: Lock<[usize; 2], false> = Lock::new([0; 2]);

/// A slot.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pool: &'static Pool,
    index: usize,
}

/// The OS pages for a block, and how it lies in them.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Bytes from the slot's start.
    offset: usize,
    bytes: usize,
    size: usize,
    align: usize,
}

/// What an atomic word holds. Relaxed: a record is published by its state, and by the block that it is about.
fn get(word: &AtomicUsize) -> usize {
    // ORDERING: Relaxed, as said.
    word.load(Ordering::Relaxed)
}

fn set(word: &AtomicUsize, value: usize) {
    // ORDERING: Relaxed, as above.
    word.store(value, Ordering::Relaxed);
}

fn add(word: &AtomicUsize) {
    // ORDERING: Relaxed: a count.
    word.fetch_add(1, Ordering::Relaxed);
}

impl Deed {
    fn note(&self, thread: usize, frames: &[usize]) {
        set(&self.thread, thread);
        set(&self.count, frames.len().min(FRAMES_MAX));
        self.frames.iter().zip(frames).for_each(|(word, frame)| set(word, *frame));
    }
}

impl Pool {
    /// The pool, if guards were ever on.
    pub(super) fn get() -> Option<&'static Pool> {
        // ORDERING: Acquire pairs with the Release in `make`: what the pool leads to was written.
        let pool = POOL.load(Ordering::Acquire);
        // SAFETY: It is null or was published for good.
        unsafe { pool.as_ref() }
    }

    /// Makes the pool, as long as addresses allow; whether there is one now. Each slice that blocks may lie in is handed to
    /// `admit`.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.guards.slots_make")]
    pub(super) fn make(admit: &impl Fn(&'static Slice)) -> bool {
        let os_page = kernel::page_size();
        let stride = if os_page < SLICE_BYTES { SLICE_BYTES } else { 2 * SLICE_BYTES };
        let most = kernel::address_space_limit() / SHARE / stride;
        let mut slots = settings::guard_slots().unwrap_or(SLOTS).min(most);
        while slots > 0 {
            if let Some(pool) = Pool::of(slots, stride, os_page) {
                pool.slots().for_each(|slot| slot.settle(admit));
                // ORDERING: Release publishes the pool and the slices; it pairs with the Acquire in `get`.
                POOL.store(ptr::from_ref(pool).cast_mut(), Ordering::Release);
                return true;
            }
            slots /= 2;
        }
        false
    }

    fn of(slots: usize, stride: usize, os_page: usize) -> Option<&'static Pool> {
        let (record_bytes, ring_bytes) = (size_of::<Record>(), size_of::<AtomicUsize>());
        let bytes = size_of::<Pool>() + slots * (record_bytes + ring_bytes) + STACK_BYTES;
        let bytes = bytes.next_multiple_of(os_page);
        let place = kernel::map(bytes, Protection::ReadWrite).ok()?;
        // One OS page more stays closed, behind the last slot.
        let slices = slots * (stride / SLICE_BYTES) + 1;
        let Some(first) = Arena::reserve_closed(slices) else {
            // SAFETY: It was mapped just now and nobody knows of it.
            let _ = unsafe { kernel::unmap_unused(place, bytes) };
            return None;
        };
        let records = place.as_ptr().wrapping_add(size_of::<Pool>()).cast::<Record>();
        let ring = records.wrapping_add(slots).cast::<AtomicUsize>();
        let pool = Pool {
            first: first.address(),
            stride,
            os_page,
            // SAFETY: So many fit, the memory is zero, which are valid records, and never unmapped.
            records: unsafe { core::slice::from_raw_parts(records, slots) },
            // SAFETY: As above, and zero is a valid number.
            ring: unsafe { core::slice::from_raw_parts(ring, slots) },
            stack: place.as_ptr().wrapping_add(bytes),
            made: AtomicUsize::new(0),
            made_of: [const { AtomicUsize::new(0) }; CLASSES],
            freed_of: [const { AtomicUsize::new(0) }; CLASSES],
        };
        pool.ring.iter().enumerate().for_each(|(index, word)| set(word, index));
        *RING.lock() = [0, slots];
        let place = place.cast::<Pool>();
        // SAFETY: The mapping begins with room for it, aligned to an OS page.
        unsafe { place.write(pool) };
        // SAFETY: Written just now, and never unmapped.
        Some(unsafe { place.as_ref() })
    }

    pub(super) fn slots(&'static self) -> impl Iterator<Item = Slot> {
        (0..self.records.len()).map(move |index| Slot { pool: self, index })
    }

    /// The slot that holds an address.
    pub(super) fn slot_at(&'static self, address: usize) -> Option<Slot> {
        let index = address.wrapping_sub(self.first) / self.stride;
        // What lies behind the last slot guards its end.
        let end = self.records.len() * self.stride + self.os_page;
        let is_inside = address.wrapping_sub(self.first) < end;
        is_inside.then(|| Slot { pool: self, index: index.min(self.records.len() - 1) })
    }

    /// How a block lies in a slot: in the middle, so that what runs far beyond it meets closed pages too. `None` where
    /// it does not fit.
    pub(super) fn room_for(&self, request: Request) -> Option<Room> {
        let (size, align) = if request.is_exact {
            (request.size.max(1), request.align.max(MIN_ALIGN))
        } else {
            let size = request.class.size();
            (size, 1 << size.trailing_zeros())
        };
        let bytes = size.checked_next_multiple_of(self.os_page)?;
        let step = align.max(self.os_page);
        let middle = self.stride.checked_sub(bytes)? / 2 / step * step;
        let offset = if middle < self.os_page { step } else { middle };
        // A slot is aligned to no more than a slice.
        let fits = offset + bytes <= self.stride && step <= SLICE_BYTES;
        fits.then_some(Room { offset, bytes, size, align })
    }

    /// The slot that has rested longest, if one is free.
    pub(super) fn take_oldest(&'static self) -> Option<Slot> {
        let mut ring = RING.lock();
        let [oldest, count] = *ring;
        if count == 0 {
            return None;
        }
        *ring = [(oldest + 1) % self.ring.len(), count - 1];
        let slot = Slot { pool: self, index: get(&self.ring[oldest]) };
        drop(ring);
        slot.set_state(State::Changing);
        Some(slot)
    }

    /// Where the stack ends that the one report is written on, aligned to an OS page.
    pub(super) fn stack(&self) -> *mut u8 {
        self.stack
    }

    /// Guarded blocks ever handed out.
    pub(super) fn made(&self) -> usize {
        get(&self.made)
    }

    /// Those of them that are in the books of the class with this index: how many live, and how many there ever were.
    pub(super) fn books_of(&self, class_index: usize) -> (usize, usize) {
        // A block is made before it is freed: in this order, never more were freed than made.
        // ORDERING: Acquire pairs with the Release in `begin_to_free`: what is counted freed here is counted made.
        let freed = self.freed_of[class_index].load(Ordering::Acquire);
        let made = get(&self.made_of[class_index]);
        (made - freed, made)
    }
}

impl Slot {
    fn record(&self) -> &'static Record {
        &self.pool.records[self.index]
    }

    fn start(&self) -> usize {
        self.pool.first + self.index * self.pool.stride
    }

    /// Makes its slices pages whose blocks are guarded.
    fn settle(self, admit: &impl Fn(&'static Slice)) {
        for distance in 0..self.pool.stride / SLICE_BYTES {
            // SAFETY: The pool's slices lie within the first GiB of their arena, which is never released.
            let slice = unsafe { Slice::at(self.start() + distance * SLICE_BYTES) };
            slice.back.set(distance as u32);
            slice.code.set(SAMPLED);
            admit(slice);
            slice.kind.set(Kind::Page);
        }
        map::set(self.start(), self.pool.stride / SLICE_BYTES, SAMPLED);
    }

    pub(crate) fn state(&self) -> State {
        // ORDERING: Acquire pairs with the Release in `set_state`: the record is as of then, or later.
        match self.record().state.load(Ordering::Acquire) {
            0 => State::Unused,
            2 => State::Live,
            3 => State::Freed,
            _ => State::Changing,
        }
    }

    fn set_state(&self, state: State) {
        // ORDERING: Release publishes the record.
        self.record().state.store(state as usize, Ordering::Release);
    }

    /// The block that lies here or lay here last.
    pub(crate) fn address(&self) -> usize {
        get(&self.record().address)
    }

    pub(crate) fn size(&self) -> usize {
        get(&self.record().size)
    }

    /// Whether the block is in the books of no class, for it is as long as was asked for.
    pub(super) fn is_exact(&self) -> bool {
        get(&self.record().kind) & EXACT != 0
    }

    pub(super) fn class_index(&self) -> usize {
        get(&self.record().kind) & CLASS
    }

    /// Opens OS pages for a block and puts it at their end, or their start; whether the kernel did.
    pub(super) fn open(&self, room: Room, is_last: bool) -> bool {
        let opened = self.start() + room.offset;
        // SAFETY: No slot starts at address 0.
        let start = unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(opened)) };
        // SAFETY: The range lies in this slot, which is closed and this thread's.
        if unsafe { kernel::protect(start, room.bytes, Protection::ReadWrite) }.is_err() {
            return false;
        }
        let last = (opened + room.bytes - room.size) & !(room.align - 1);
        let record = self.record();
        set(&record.address, if is_last { last } else { opened });
        set(&record.size, room.size);
        set(&record.opened, opened);
        set(&record.opened_bytes, room.bytes);
        for (start, bytes) in self.beside() {
            let place: *mut u8 = ptr::with_exposed_provenance_mut(start);
            // SAFETY: So many bytes there were opened just now, and are nobody's.
            unsafe { place.write_bytes(PATTERN, bytes) };
        }
        true
    }

    /// Where the pattern stands, before the block and behind it: address and bytes.
    fn beside(&self) -> [(usize, usize); 2] {
        let record = self.record();
        let (block, end) = (self.address(), self.address() + self.size());
        let before = (block - get(&record.opened)).min(PATTERN_BYTES);
        let behind = (get(&record.opened) + get(&record.opened_bytes) - end).min(PATTERN_BYTES);
        [(block - before, before), (end, behind)]
    }

    /// The address nearest behind the block, or before it, at which the pattern is not as it was.
    pub(super) fn first_written(&self) -> Option<usize> {
        let is_written = |address: &usize| {
            let place: *const u8 = ptr::with_exposed_provenance(*address);
            // SAFETY: It was opened for this block, which is not closed yet.
            unsafe { place.read_volatile() != PATTERN }
        };
        let [(before, before_bytes), (behind, behind_bytes)] = self.beside();
        let mut behind = behind..behind + behind_bytes;
        behind.find(is_written).or_else(|| (before..before + before_bytes).rev().find(is_written))
    }

    /// Notes who asked for the block, which is live from here on.
    pub(super) fn note_allocated(&self, request: Request, thread: usize, frames: &[usize]) {
        let record = self.record();
        let class = request.class.page_index();
        set(&record.kind, class | if request.is_exact { EXACT } else { 0 });
        record.allocated.note(thread, frames);
        set(&record.freed.count, 0);
        add(&self.pool.made);
        if !request.is_exact {
            add(&self.pool.made_of[class]);
        }
        self.set_state(State::Live);
    }

    /// Notes that the block is in the heap profile.
    pub(super) fn note_sampled(&self) {
        let kind = &self.record().kind;
        set(kind, get(kind) | SAMPLE);
    }

    /// Takes the block from the program; false where it is not live.
    pub(super) fn begin_to_free(&self) -> bool {
        let (live, changing) = (State::Live as usize, State::Changing as usize);
        let state = &self.record().state;
        // ORDERING: Acquire pairs with the Release in `set_state`; of two threads one goes on.
        let is_ours =
            state.compare_exchange(live, changing, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if is_ours && !self.is_exact() {
            // ORDERING: Release: a reader of this count sees that the block was counted as made.
            self.pool.freed_of[self.class_index()].fetch_add(1, Ordering::Release);
        }
        is_ours
    }

    /// Notes who freed the block; whether it is in the heap profile.
    pub(super) fn note_freed(&self, thread: usize, frames: &[usize]) -> bool {
        let record = self.record();
        record.freed.note(thread, frames);
        get(&record.kind) & SAMPLE != 0
    }

    /// Closes the OS pages of a block that was freed, and has the slot rest.
    pub(super) fn close(self) {
        let record = self.record();
        let start = ptr::with_exposed_provenance_mut(get(&record.opened));
        let bytes = get(&record.opened_bytes);
        if let Some(start) = NonNull::new(start) {
            // SAFETY: They lie in this slot, and nobody may use them any more. Refused, what is freed here can be used.
            unsafe { kernel::close(start, bytes) };
        }
        self.set_state(State::Freed);
        let mut ring = RING.lock();
        let [oldest, count] = *ring;
        let end = (oldest + count) % self.pool.ring.len();
        set(&self.pool.ring[end], self.index);
        *ring = [oldest, count + 1];
    }

    /// Puts a slot back that could not be opened, to be the next one.
    pub(super) fn put_back(self) {
        // Whatever it was before, there is no block that a report could be about.
        self.set_state(State::Unused);
        let mut ring = RING.lock();
        let [oldest, count] = *ring;
        let before = (oldest + self.pool.ring.len() - 1) % self.pool.ring.len();
        set(&self.pool.ring[before], self.index);
        *ring = [before, count + 1];
    }

    /// Who asked for the block: the thread, and how many calls are written into `frames`.
    pub(super) fn allocated(&self, frames: &mut [usize; FRAMES_MAX]) -> (usize, usize) {
        self.record().allocated.read(frames)
    }

    /// Who freed the block, likewise; no calls where it was not freed.
    pub(super) fn freed(&self, frames: &mut [usize; FRAMES_MAX]) -> (usize, usize) {
        self.record().freed.read(frames)
    }
}

impl Deed {
    fn read(&self, frames: &mut [usize; FRAMES_MAX]) -> (usize, usize) {
        self.frames.iter().zip(&mut *frames).for_each(|(word, frame)| *frame = get(word));
        (get(&self.thread), get(&self.count).min(FRAMES_MAX))
    }
}

/// Holds the lock of this room across `fork`.
pub(super) fn hold_for_fork() {
    RING.hold();
}

/// Ends [`hold_for_fork`].
///
/// # Safety
///
/// - This thread, or the one it was forked from, called `hold_for_fork`.
pub(super) unsafe fn let_go_after_fork() {
    // SAFETY: The caller's condition.
    unsafe { RING.let_go() };
}

const _: () = assert!(size_of::<Record>() == 1024 && align_of::<Pool>() <= 4096);
const _: () = assert!(CLASSES <= CLASS && SLOTS * SLICE_BYTES * 2 < ARENA_BYTES);
