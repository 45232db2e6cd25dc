//! Owners of first-class heaps: their pages and large blocks, separate from all others.
//!
//! Relies on pages and on the ranges, as shards do; caches take a heap's blocks from here and return them. One lock
//! guards an owner's memory. The hard idea: an owner outlives its heap. It is never unmapped, only reused for another
//! heap, and each heap has a *number* that is never reused. So any thread with cached blocks of a heap can check at any
//! time whether the heap still exists: a different number means that the blocks went with the heap, and nothing is left
//! to do. That lets a heap be destroyed without notifying the threads that used it.

mod holdings;
mod mixed;

use core::ptr;

use crate::blocks::slot;
use crate::diagnostics::stale;
use crate::memory::class::Class;
use crate::memory::metadata;
use crate::memory::ranges::{Filling, large};
use crate::memory::slice::{Kind, Slice};
use crate::platform::fault::{self, Fault};
use crate::platform::sync::{AtomicPtr, AtomicUsize, Cell, Guard, Lock, Ordering, RawLock, Visit};
pub(crate) use holdings::Counts;
use holdings::Holdings;
use mixed::PARTS;

/// The owner of a heap's memory.
#[repr(C, align(64))]
pub(crate) struct Owner {
    /// The heap's number; 0 while there is no heap. Changes under the lock of `holdings`, read by any thread.
    number: AtomicUsize,
    /// The class index of each part of the heap's mixed slice. Constant while a block of the part is in use, so that
    /// `free` reads it without a lock; changes under the lock of `holdings`.
    codes: [Cell<u8>; PARTS],
    /// Not `SHARED`: only threads that use the same heap wait for it.
    holdings: Lock<Holdings, false>,
    /// The next of all owners. Constant once the owner is in the list.
    next: Cell<Option<&'static Owner>>,
    /// The next of the owners without a heap. Guarded by the list's lock.
    next_unused: Cell<Option<&'static Owner>>,
}

// SAFETY: A part's code is read by threads that have a block of the part, and changes under a lock while none has.
// `next` is written before any other thread has the owner, `next_unused` is touched only under the list's lock; the
// rest is atomic or behind a lock.
unsafe impl Sync for Owner {}

struct All {
    unused: Option<&'static Owner>,
    /// The number of the newest heap.
    newest: usize,
}

static ALL: Lock<All> = Lock::new(All { unused: None, newest: 0 });
/// The newest owner, which leads to all. Changes under the list's lock, and read without: `fork` goes on without a lock
/// that interrupted code holds.
static FIRST: AtomicPtr<Owner> = AtomicPtr::new(ptr::null_mut());

impl All {
    fn next_number(&mut self) -> usize {
        self.newest += 1;
        self.newest
    }
}

/// All owners, with a heap and without: those that were in the list when this was called.
fn owners() -> impl Iterator<Item = &'static Owner> {
    // ORDERING: Acquire pairs with the Release in `create`: an owner in the list has its `next` and its lock.
    let first = FIRST.load(Ordering::Acquire);
    // SAFETY: Null, or an owner, and owners are never unmapped.
    core::iter::successors(unsafe { first.as_ref() }, |owner| owner.next.get())
}

impl Owner {
    /// An owner for a new heap; `None` without memory. The calling thread must be registered, because this takes locks
    /// that `fork` must be able to take.
    #[cold]
    #[inline(never)]
    pub(crate) fn create() -> Option<&'static Owner> {
        let mut all = ALL.lock();
        // A thread that looks at the number may hold the lock; in a child that thread does not exist.
        let owner = match all.unused.filter(|unused| unused.raw().is_free()) {
            Some(unused) => {
                all.unused = unused.next_unused.take();
                unused
            }
            None => {
                let owner: &'static Owner = metadata::forever(Owner {
                    number: AtomicUsize::new(0),
                    codes: [const { Cell::new(0) }; PARTS],
                    holdings: Lock::new(Holdings::new()),
                    next: Cell::new(None),
                    next_unused: Cell::new(None),
                })?;
                owner.next.set(owners().next());
                // ORDERING: Release pairs with the Acquire in `owners`.
                FIRST.store(ptr::from_ref(owner).cast_mut(), Ordering::Release);
                owner
            }
        };
        // Under the lock of all: `fork` does not see an owner that has no number yet.
        let number = all.next_number();
        owner.set_number(&owner.holdings.lock(), number);
        Some(owner)
    }

    /// Destroys the heap and frees all its memory, even what is in use.
    ///
    /// # Safety
    ///
    /// - Nothing uses the heap or any of its blocks any more.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn destroy(&'static self) {
        let mut holdings = self.holdings();
        self.set_number(&holdings, 0);
        // SAFETY: The caller's condition.
        unsafe { holdings.release_all() };
        drop(holdings);
        let mut all = ALL.lock();
        self.next_unused.set(all.unused);
        all.unused = Some(self);
    }

    /// Frees all memory of the heap, which stays.
    ///
    /// # Safety
    ///
    /// - Nothing uses any of the heap's blocks any more.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn clear(&'static self) {
        let number = ALL.lock().next_number();
        let mut holdings = self.holdings();
        self.set_number(&holdings, number);
        // SAFETY: The caller's condition.
        unsafe { holdings.release_all() };
    }

    /// The heap's number; 0 where it was destroyed.
    #[inline(always)]
    pub(crate) fn number(&self) -> usize {
        // ORDERING: Relaxed: a thread that uses a heap has synchronized with its maker, and a thread that asks for a
        // heap that may be gone asks again under the lock.
        self.number.load(Ordering::Relaxed)
    }

    fn set_number(&self, _held: &Guard<'_, Holdings, false>, number: usize) {
        // ORDERING: Relaxed, as above; the lock orders it with the owner's memory.
        self.number.store(number, Ordering::Relaxed);
    }

    /// Makes a slice belong to this heap.
    fn take_in(&'static self, slice: &Slice) {
        slice.set_belongs(ptr::from_ref(self).cast(), self.number());
    }

    /// Whether a slice of a heap belongs to this one.
    fn owns(&self, slice: &Slice) -> bool {
        ptr::eq(slice.belongs.owner.get().cast(), self)
    }

    /// The heap's memory, which the caller changes. Ends the program where the heap was destroyed.
    #[inline(never)]
    fn holdings(&self) -> Guard<'_, Holdings, false> {
        let holdings = self.holdings.lock();
        if self.number() == 0 {
            fault::stop(Fault::HeapGone);
        }
        stale::mark();
        holdings
    }

    /// Takes up to `blocks.len()` free blocks into the *end* of `blocks`, lowest address last. Returns how many; 0 only
    /// without memory.
    #[inline(never)]
    pub(crate) fn take(&'static self, class: Class, blocks: &mut [usize]) -> usize {
        self.holdings().take(self, class, blocks)
    }

    /// Returns blocks to their pages.
    #[inline(never)]
    pub(crate) fn put(&'static self, class: Class, blocks: &[usize]) {
        self.holdings().put(self, class, blocks);
    }

    /// Returns blocks of the heap `number`, unless it was destroyed.
    #[inline(never)]
    pub(crate) fn put_if(&'static self, number: usize, class: Class, blocks: &[usize]) {
        let mut holdings = self.holdings.lock();
        if self.number() == number {
            holdings.put(self, class, blocks);
        }
    }

    /// Allocates a large block of whole slices. Null without memory, and where size or alignment exceed
    /// [`large::slices_if_possible`].
    #[cold]
    #[inline(never)]
    pub(crate) fn allocate_large(
        &'static self,
        size: usize,
        align: usize,
        filling: Filling,
        zeroed: bool,
    ) -> *mut u8 {
        let Some(slices) = large::slices_if_possible(size, align) else { return ptr::null_mut() };
        let run = self.holdings().allocate_large(self, slices, align, filling);
        let Some(run) = run else { return ptr::null_mut() };
        large::zeroed_if(zeroed, run, size)
    }

    /// Frees the large block that starts with this slice.
    ///
    /// # Safety
    ///
    /// - Nothing uses it any more.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn free_large(&'static self, first: &'static Slice) {
        let mut holdings = self.holdings();
        if first.kind.get() != Kind::HeapLarge || !self.owns(first) {
            fault::stop(Fault::FreedTwice);
        }
        // SAFETY: The block is this owner's, and the caller's condition.
        unsafe { holdings.free_large(first) };
    }

    /// Resizes a large block in place, if possible; whether it did.
    ///
    /// # Safety
    ///
    /// - It starts with this slice and is a block of this heap, of which only the first `size` bytes are used.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn resize_large(&'static self, first: &'static Slice, size: usize) -> bool {
        let slices = || first.count.get().cast_signed() as isize;
        let mut holdings = self.holdings();
        let before = slices();
        // SAFETY: The caller's condition.
        let done = unsafe { large::resize(first, size, slot::parked()) };
        holdings.count_large(0, slices() - before);
        done
    }

    /// The lock without what it guards.
    pub(crate) fn raw(&self) -> &RawLock {
        self.holdings.raw()
    }

    /// The counts of the heap's memory; caches hold some of the blocks.
    pub(crate) fn counts(&self) -> Counts {
        self.holdings.lock().counts
    }
}

/// The owner of a slice that belongs to a heap.
#[inline(always)]
pub(crate) fn owner_of(slice: &'static Slice) -> &'static Owner {
    // SAFETY: A heap's slices lead to its owner, and owners are never unmapped.
    unsafe { &*slice.belongs.owner.get().cast() }
}

/// The number of heaps, and the counts of their memory.
#[inline(never)]
pub(crate) fn all_counts() -> (usize, Counts) {
    let mut sum = (0, Counts::NONE);
    for owner in owners().filter(|owner| owner.number() != 0) {
        sum.0 += 1;
        sum.1.add(&owner.counts());
    }
    sum
}

/// Releases the empty pages that heaps kept, and purges what is free inside the others if `purges`.
#[inline(never)]
pub(crate) fn trim(purges: bool) {
    let heaps = owners().filter(|owner| owner.number() != 0);
    heaps.for_each(|owner| owner.holdings.lock().trim(purges));
}

/// Checks the memory of all heaps. No other thread uses masu.
#[cfg(debug_assertions)]
pub(crate) fn audit() {
    let heaps = owners().filter(|owner| owner.number() != 0);
    heaps.for_each(|owner| owner.holdings.lock().audit(owner));
}

#[cfg(debug_assertions)]
impl Owner {
    /// Checks that a block of `class`, which a cache has, was taken from here.
    pub(crate) fn audit_taken(&'static self, class: Class, block: usize) {
        self.holdings.lock().audit_taken(self, class, block);
    }
}

/// Visits the lock of the list of heaps, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    visit.see(ALL.raw());
}

/// Visits the locks of what heaps own, for `fork`, after a visit of [`each_lock`]. An owner that another thread makes
/// where that lock could not be had may be missed: in the child its lock is then as it was. An owner without a heap is
/// visited only while its lock is held, by `fork` too if the heap went while that waited.
pub(crate) fn each_lock_of_heaps(visit: Visit<'_>) {
    let used = owners().filter(|owner| owner.number() != 0 || !owner.raw().is_free());
    used.for_each(|owner| visit.see(owner.raw()));
}
