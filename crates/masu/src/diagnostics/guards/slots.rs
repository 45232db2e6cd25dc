//! Slots: the places of guarded blocks, a record of each block, and the order of reuse.
//!
//! Relies on an arena that the ranges never see, and on a separate mapping for the records. A slot is one slice, or two
//! where OS pages have 64 KiB; its first OS page is never opened, so opened pages always lie between closed ones. Records
//! are atomic words, because the signal handler reads them while other threads write.

use core::ptr::{self, NonNull};

use super::Request;
use crate::memory::arena::Arena;
use crate::memory::class::{CLASSES, MIN_ALIGN, SAMPLED};
use crate::memory::map;
use crate::memory::slice::{ARENA_BYTES, Kind, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Protection};
use crate::platform::libc::signals;
use crate::platform::sync::{AtomicPtr, AtomicUsize, Lock, Ordering, Visit};
use crate::settings;

/// The most frames kept of a stack, innermost first.
pub(super) const FRAMES_MAX: usize = 59;
/// The default number of slots.
const SLOTS: usize = 256;
/// Bytes of the report's stack. Without optimization a report takes a third of it.
const STACK_BYTES: usize = 64 << 10;
/// The slots take at most one part in this many of the limit on addresses.
const SHARE: usize = 16;
/// This many bytes on either side of a block, within its opened pages, hold a pattern.
const PATTERN_BYTES: usize = 128;
/// The pattern's byte: not zero, which ends strings, and no letter.
const PATTERN: u8 = 0xb5;

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum State {
    /// The slot never held a block, or could not be opened.
    Unused = 0,
    /// A thread is handing its block out or freeing it.
    Changing = 1,
    Live = 2,
    Freed = 3,
}

/// A thread and its stack when it allocated or freed a block.
#[repr(C)]
struct Event {
    thread: AtomicUsize,
    count: AtomicUsize,
    frames: [AtomicUsize; FRAMES_MAX],
}

/// The record of a slot. Zero bytes are a slot that was never used.
#[repr(C)]
struct Record {
    state: AtomicUsize,
    /// The block's address, and its usable size.
    address: AtomicUsize,
    size: AtomicUsize,
    /// The OS pages opened for it.
    opened: AtomicUsize,
    opened_bytes: AtomicUsize,
    /// The index of its class, and flags.
    kind: AtomicUsize,
    allocated: Event,
    freed: Event,
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
    /// Numbers of slots without a block, in a ring: [`RING`].
    ring: &'static [AtomicUsize],
    /// The end of the report's stack.
    stack: *mut u8,
    made: AtomicUsize,
    made_of: [AtomicUsize; CLASSES],
    freed_of: [AtomicUsize; CLASSES],
}

// SAFETY: The pool only stores the stack's address.
unsafe impl Sync for Pool {}

/// Null until guards are first on. Made once, under the lock of all threads.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// The part of the pool's ring that holds free slots.
struct Ring {
    oldest: usize,
    count: usize,
    /// Whether faults are reported: from before the first slot is taken.
    is_watched: bool,
}

static RING: Lock<Ring, false> = Lock::new(Ring { oldest: 0, count: 0, is_watched: false });

#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pool: &'static Pool,
    index: usize,
}

/// The OS pages for a block, and how the block lies in them.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Bytes from the slot's start.
    offset: usize,
    bytes: usize,
    size: usize,
    align: usize,
}

/// Loads a word. Relaxed: a record is published by its state, and by the block it describes.
fn get(word: &AtomicUsize) -> usize {
    // ORDERING: Relaxed, as above.
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

impl Event {
    fn note(&self, thread: usize, frames: &[usize]) {
        set(&self.thread, thread);
        set(&self.count, frames.len().min(FRAMES_MAX));
        self.frames.iter().zip(frames).for_each(|(word, frame)| set(word, *frame));
    }
}

impl Pool {
    /// The pool, if guards were ever on.
    pub(super) fn get() -> Option<&'static Pool> {
        // ORDERING: Acquire pairs with the Release in `make`, which publishes the pool.
        let pool = POOL.load(Ordering::Acquire);
        // SAFETY: It is null or was published and is never freed.
        unsafe { pool.as_ref() }
    }

    /// Makes the pool, as large as addresses allow; returns whether there is one now. Calls `admit` with each slice
    /// that blocks may lie in.
    #[cold]
    #[inline(never)]
    pub(super) fn make(admit: &impl Fn(&'static Slice)) -> bool {
        let os_page = kernel::page_size();
        let stride = if os_page < SLICE_BYTES { SLICE_BYTES } else { 2 * SLICE_BYTES };
        let most = kernel::address_space_limit() / SHARE / stride;
        let mut slots = settings::guard_slots().unwrap_or(SLOTS).min(most);
        while slots > 0 {
            if let Some(pool) = Pool::of(slots, stride, os_page) {
                pool.slots().for_each(|slot| slot.init(admit));
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
        // One more OS page behind the last slot stays closed.
        let slices = slots * (stride / SLICE_BYTES) + 1;
        let Some(first) = Arena::reserve_closed(slices) else {
            // SAFETY: It was mapped just now and nothing else knows of it.
            let _ = unsafe { kernel::unmap_unused(place, bytes) };
            return None;
        };
        let records = place.as_ptr().wrapping_add(size_of::<Pool>()).cast::<Record>();
        let ring = records.wrapping_add(slots).cast::<AtomicUsize>();
        let pool = Pool {
            first: first.address(),
            stride,
            os_page,
            // SAFETY: That many records fit; the memory is zero, which are valid records, and is never unmapped.
            records: unsafe { core::slice::from_raw_parts(records, slots) },
            // SAFETY: As above, and zero is a valid number.
            ring: unsafe { core::slice::from_raw_parts(ring, slots) },
            stack: place.as_ptr().wrapping_add(bytes),
            made: AtomicUsize::new(0),
            made_of: [const { AtomicUsize::new(0) }; CLASSES],
            freed_of: [const { AtomicUsize::new(0) }; CLASSES],
        };
        pool.ring.iter().enumerate().for_each(|(index, word)| set(word, index));
        RING.lock().count = slots;
        let place = place.cast::<Pool>();
        // SAFETY: The mapping begins with room for the pool, aligned to an OS page.
        unsafe { place.write(pool) };
        // SAFETY: Written just now, and never unmapped.
        Some(unsafe { place.as_ref() })
    }

    pub(super) fn slots(&'static self) -> impl Iterator<Item = Slot> {
        (0..self.records.len()).map(move |index| Slot { pool: self, index })
    }

    /// The slot that contains an address.
    pub(super) fn slot_at(&'static self, address: usize) -> Option<Slot> {
        let index = address.wrapping_sub(self.first) / self.stride;
        // The page behind the last slot belongs to that slot.
        let end = self.records.len() * self.stride + self.os_page;
        let is_inside = address.wrapping_sub(self.first) < end;
        is_inside.then(|| Slot { pool: self, index: index.min(self.records.len() - 1) })
    }

    /// The place of a block in a slot: in the middle, so that an access far beyond the block meets closed pages too.
    /// `None` where the block does not fit.
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
        // A slot is aligned to a slice only.
        let fits = offset + bytes <= self.stride && step <= SLICE_BYTES;
        fits.then_some(Room { offset, bytes, size, align })
    }

    /// The free slot that was freed longest ago.
    pub(super) fn take_oldest(&'static self) -> Option<Slot> {
        let mut ring = RING.lock();
        if ring.count == 0 {
            return None;
        }
        if !ring.is_watched {
            signals::on_fault(super::handle_fault);
            ring.is_watched = true;
        }
        let slot = Slot { pool: self, index: get(&self.ring[ring.oldest]) };
        ring.oldest = (ring.oldest + 1) % self.ring.len();
        ring.count -= 1;
        drop(ring);
        slot.set_state(State::Changing);
        Some(slot)
    }

    /// The end of the report's stack, aligned to an OS page.
    pub(super) fn stack(&self) -> *mut u8 {
        self.stack
    }

    /// Guarded blocks ever handed out.
    pub(super) fn made(&self) -> usize {
        get(&self.made)
    }

    /// Blocks that the class with this index counts: live ones, and all there ever were.
    pub(super) fn counts_of(&self, class_index: usize) -> (usize, usize) {
        // A block counts as made before it counts as freed; read in this order, `freed` is never more than `made`.
        // ORDERING: Acquire pairs with the Release in `begin_to_free`: blocks in `freed` are in `made` too.
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

    /// Marks the slot's slices as pages of guarded blocks.
    fn init(self, admit: &impl Fn(&'static Slice)) {
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
        // ORDERING: Acquire pairs with the Release in `set_state`: the record is at least as new.
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

    /// The address of the block that is or was last here.
    pub(crate) fn address(&self) -> usize {
        get(&self.record().address)
    }

    pub(crate) fn size(&self) -> usize {
        get(&self.record().size)
    }

    /// Whether the block has its exact requested size, so that no class counts it.
    pub(super) fn is_exact(&self) -> bool {
        get(&self.record().kind) & EXACT != 0
    }

    pub(super) fn class_index(&self) -> usize {
        get(&self.record().kind) & CLASS
    }

    /// Opens OS pages for a block, which is put at their end or start; returns whether the kernel opened them.
    pub(super) fn open(&self, room: Room, is_last: bool) -> bool {
        let opened = self.start() + room.offset;
        // SAFETY: No slot starts at address 0.
        let start = unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(opened)) };
        // SAFETY: The range lies in this slot, which is closed and belongs to this thread.
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
            // SAFETY: These bytes were opened just now, and nothing else uses them.
            unsafe { place.write_bytes(PATTERN, bytes) };
        }
        true
    }

    /// The pattern's places before and behind the block: address and length.
    fn beside(&self) -> [(usize, usize); 2] {
        let record = self.record();
        let (block, end) = (self.address(), self.address() + self.size());
        let before = (block - get(&record.opened)).min(PATTERN_BYTES);
        let behind = (get(&record.opened) + get(&record.opened_bytes) - end).min(PATTERN_BYTES);
        [(block - before, before), (end, behind)]
    }

    /// The nearest address behind the block, else before it, where the pattern was overwritten.
    pub(super) fn first_written(&self) -> Option<usize> {
        let is_written = |address: &usize| {
            let place: *const u8 = ptr::with_exposed_provenance(*address);
            // SAFETY: The page was opened for this block and is not closed yet.
            unsafe { place.read_volatile() != PATTERN }
        };
        let [(before, before_bytes), (behind, behind_bytes)] = self.beside();
        let mut behind = behind..behind + behind_bytes;
        behind.find(is_written).or_else(|| (before..before + before_bytes).rev().find(is_written))
    }

    /// Records the thread and the stack that allocated the block, which becomes live.
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

    /// Records that the block is in the heap profile.
    pub(super) fn note_sampled(&self) {
        let kind = &self.record().kind;
        set(kind, get(kind) | SAMPLE);
    }

    /// Takes the block from the program; false where it is not live.
    pub(super) fn begin_to_free(&self) -> bool {
        let (live, changing) = (State::Live as usize, State::Changing as usize);
        let state = &self.record().state;
        // ORDERING: Acquire pairs with the Release in `set_state`; one of several threads succeeds.
        let is_ours =
            state.compare_exchange(live, changing, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if is_ours && !self.is_exact() {
            // ORDERING: Release: a reader of this count sees the block in `made_of` too.
            self.pool.freed_of[self.class_index()].fetch_add(1, Ordering::Release);
        }
        is_ours
    }

    /// Records the thread and the stack that freed the block; returns whether the block is in the heap profile.
    pub(super) fn note_freed(&self, thread: usize, frames: &[usize]) -> bool {
        let record = self.record();
        record.freed.note(thread, frames);
        get(&record.kind) & SAMPLE != 0
    }

    /// Closes the OS pages of a freed block, and queues the slot for reuse.
    pub(super) fn close(self) {
        let record = self.record();
        let start = ptr::with_exposed_provenance_mut(get(&record.opened));
        let bytes = get(&record.opened_bytes);
        if let Some(start) = NonNull::new(start) {
            // SAFETY: The pages lie in this slot, and the program may not use them any more. If the kernel refuses,
            // uses of the freed block go unnoticed.
            unsafe { kernel::close(start, bytes) };
        }
        self.set_state(State::Freed);
        let mut ring = RING.lock();
        let end = (ring.oldest + ring.count) % self.pool.ring.len();
        set(&self.pool.ring[end], self.index);
        ring.count += 1;
    }

    /// Puts a slot back that could not be opened, as the next to be taken.
    pub(super) fn put_back(self) {
        // There is no block that a report could describe.
        self.set_state(State::Unused);
        let mut ring = RING.lock();
        ring.oldest = (ring.oldest + self.pool.ring.len() - 1) % self.pool.ring.len();
        set(&self.pool.ring[ring.oldest], self.index);
        ring.count += 1;
    }

    /// The thread that allocated the block, and how many frames were written into `frames`.
    pub(super) fn allocated(&self, frames: &mut [usize; FRAMES_MAX]) -> (usize, usize) {
        self.record().allocated.read(frames)
    }

    /// The same for the free; no frames where the block was not freed.
    pub(super) fn freed(&self, frames: &mut [usize; FRAMES_MAX]) -> (usize, usize) {
        self.record().freed.read(frames)
    }
}

impl Event {
    fn read(&self, frames: &mut [usize; FRAMES_MAX]) -> (usize, usize) {
        self.frames.iter().zip(&mut *frames).for_each(|(word, frame)| *frame = get(word));
        (get(&self.thread), get(&self.count).min(FRAMES_MAX))
    }
}

/// Visits this module's lock, for `fork`.
pub(super) fn each_lock(visit: Visit<'_>) {
    visit.see(RING.raw());
}

const _: () = assert!(size_of::<Record>() == 1024 && align_of::<Pool>() <= 4096);
const _: () = assert!(CLASSES <= CLASS && SLOTS * SLICE_BYTES * 2 < ARENA_BYTES);
