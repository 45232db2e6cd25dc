//! The atomics door of the models: its atomics and cells are as long as the real ones, and loom's atomics and cells
//! stand behind them.
//!
//! Relies on loom for the meaning of each access. The allocator lays its structures out to the byte and has most of
//! them in statics or in memory that it maps, where loom's own types cannot be. So a value here is only a *place*: it
//! holds the first value of the atomic, and a table leads from its address to one of loom's atomics. The hard idea is
//! that this makes each execution begin as a program does: the places were never written, so forgetting the table
//! forgets all values that the last execution stored. Values that locks guard are written in place; they are put back
//! from a copy.
//!
//! loom requires an atomic to be made before any thread that uses it, but any thread may be the first to use a static.
//! So the atomics are made beforehand, all of them 0, and each stores the difference from the first value.

extern crate std;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use loom::sync::atomic as modelled;
pub(crate) use loom::sync::atomic::{Ordering, fence};

/// The atomics and the cells that a model's first execution may use.
const FIRST: [usize; 2] = [4000, 8000];

/// Room for an execution of a model in which no execution so far used more than `most`. An execution may use many more
/// than the execution before: it is the first in which a thread takes a longer path.
fn room(most: usize) -> usize {
    most + most / 2 + 500
}

/// The state of loom in this execution.
#[derive(Default)]
struct Table {
    // loom's own types are indices into the execution that made them: dropping them later has no use.
    atomics: Vec<ManuallyDrop<modelled::AtomicUsize>>,
    cells: Vec<ManuallyDrop<loom::cell::UnsafeCell<()>>>,
    /// By address: the index of the atomic, and the first value.
    atomic_at: HashMap<usize, (usize, usize)>,
    cell_at: HashMap<usize, usize>,
    /// The most atomics and cells that any execution used.
    most: [usize; 2],
    weakened: Option<Ordering>,
}

std::thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
}

/// The contents of statics before anything was written there, in any execution of any model.
static COPIES: Mutex<BTreeMap<usize, Vec<u8>>> = Mutex::new(BTreeMap::new());

fn copies() -> MutexGuard<'static, BTreeMap<usize, Vec<u8>>> {
    COPIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins an execution: all statics are as at the start of a program. With `weakened`, this ordering is Relaxed.
pub(crate) fn begin(weakened: Option<Ordering>) {
    TABLE.with_borrow_mut(|table| {
        table.weakened = weakened;
        let used = [table.atomic_at.len(), table.cell_at.len()];
        table.most = std::array::from_fn(|kind| table.most[kind].max(used[kind]));
        let [atomics, cells] = if table.atomics.is_empty() { FIRST } else { table.most.map(room) };
        table.atomic_at.clear();
        table.cell_at.clear();
        table.atomics.clear();
        table.cells.clear();
        let atomic = || ManuallyDrop::new(modelled::AtomicUsize::new(0));
        table.atomics.extend((0..atomics).map(|_| atomic()));
        let cell = || ManuallyDrop::new(loom::cell::UnsafeCell::new(()));
        table.cells.extend((0..cells).map(|_| cell()));
    });
    for (address, bytes) in copies().iter() {
        let place = ptr::with_exposed_provenance_mut::<u8>(*address);
        // SAFETY: The place is a static's value, of this length, and no thread of the last execution is left.
        unsafe { place.copy_from(bytes.as_ptr(), bytes.len()) };
    }
}

/// loom's atomic for the place at `address`, and the value that it began with.
fn atomic_at(address: usize, first: usize) -> (&'static modelled::AtomicUsize, usize) {
    TABLE.with_borrow_mut(|table| {
        let count = table.atomic_at.len();
        let (index, first) = *table.atomic_at.entry(address).or_insert((count, first));
        let atomic: *const modelled::AtomicUsize = &*table.atomics[index];
        // SAFETY: The list stays as it is until the next execution begins, and then no thread has this reference.
        (unsafe { &*atomic }, first)
    })
}

/// loom's cell for the place at `address`.
fn cell_at(address: usize) -> &'static loom::cell::UnsafeCell<()> {
    TABLE.with_borrow_mut(|table| {
        let count = table.cell_at.len();
        let index = *table.cell_at.entry(address).or_insert(count);
        let cell: *const loom::cell::UnsafeCell<()> = &*table.cells[index];
        // SAFETY: As above.
        unsafe { &*cell }
    })
}

/// Reads the memory at `address`: loom notices where another thread's write is not ordered before.
pub(crate) fn reads(address: usize) {
    cell_at(address).with(|_| ());
}

/// Writes the memory at `address`: loom notices where another thread's access is not ordered before.
pub(crate) fn writes(address: usize) {
    cell_at(address).with_mut(|_| ());
}

/// Writes all places in a range that were read or written: after this no thread may touch the range.
pub(crate) fn writes_all(range: Range<usize>) {
    let touched: Vec<usize> = TABLE.with_borrow(|table| {
        table.cell_at.keys().copied().filter(|address| range.contains(address)).collect()
    });
    touched.into_iter().for_each(writes);
}

fn ordering(asked: Ordering) -> Ordering {
    match TABLE.with_borrow(|table| table.weakened) {
        Some(weakened) if weakened == asked => Ordering::Relaxed,
        _ => asked,
    }
}

/// A value that fits an atomic.
pub(crate) trait Word: Copy {
    fn word(self) -> usize;
    fn of(word: usize) -> Self;
}

macro_rules! words {
    ($($number:ty)*) => {$(
        impl Word for $number {
            fn word(self) -> usize {
                self as usize
            }
            fn of(word: usize) -> $number {
                word as $number
            }
        }
    )*};
}

words!(u8 u32 usize);

impl Word for bool {
    fn word(self) -> usize {
        usize::from(self)
    }
    fn of(word: usize) -> bool {
        word != 0
    }
}

impl<T> Word for *mut T {
    fn word(self) -> usize {
        self.expose_provenance()
    }
    fn of(word: usize) -> *mut T {
        ptr::with_exposed_provenance_mut(word)
    }
}

/// A place for an atomic.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Atomic<T>(std::cell::UnsafeCell<T>);

// SAFETY: The place itself is only read, except by `get_mut`.
unsafe impl<T> Sync for Atomic<T> {}

pub(crate) type AtomicBool = Atomic<bool>;
pub(crate) type AtomicU8 = Atomic<u8>;
pub(crate) type AtomicU32 = Atomic<u32>;
pub(crate) type AtomicUsize = Atomic<usize>;
pub(crate) type AtomicPtr<T> = Atomic<*mut T>;

impl<T> Atomic<T> {
    pub(crate) const fn new(value: T) -> Atomic<T> {
        Atomic(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.get()
    }

    /// The place, before any thread shares it.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        let address = self.0.get().addr();
        assert!(TABLE.with_borrow(|table| !table.atomic_at.contains_key(&address)));
        self.0.get_mut()
    }

    pub(crate) unsafe fn from_ptr<'a>(place: *mut T) -> &'a Atomic<T> {
        // SAFETY: The caller's condition.
        unsafe { &*place.cast() }
    }
}

impl<T: Word> Atomic<T> {
    fn modelled(&self) -> (&'static modelled::AtomicUsize, usize) {
        // SAFETY: No thread writes the place while it is shared.
        atomic_at(self.0.get().expose_provenance(), unsafe { self.0.get().read() }.word())
    }

    pub(crate) fn load(&self, order: Ordering) -> T {
        let (atomic, first) = self.modelled();
        T::of(atomic.load(ordering(order)) ^ first)
    }

    pub(crate) fn store(&self, value: T, order: Ordering) {
        let (atomic, first) = self.modelled();
        atomic.store(value.word() ^ first, ordering(order));
    }

    pub(crate) fn swap(&self, value: T, order: Ordering) -> T {
        let (atomic, first) = self.modelled();
        T::of(atomic.swap(value.word() ^ first, ordering(order)) ^ first)
    }

    pub(crate) fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T> {
        let (atomic, first) = self.modelled();
        let (current, new) = (current.word() ^ first, new.word() ^ first);
        let result = atomic.compare_exchange(current, new, ordering(success), ordering(failure));
        result.map(|old| T::of(old ^ first)).map_err(|old| T::of(old ^ first))
    }

    fn change(&self, order: Ordering, change: impl Fn(usize) -> usize) -> T {
        let (atomic, first) = self.modelled();
        let change = |word| Some(change(word ^ first) ^ first);
        // A loop of loads and exchanges that loom knows to end.
        let old = atomic.fetch_update(ordering(order), Ordering::Relaxed, change);
        T::of(old.unwrap_or_else(|old| old) ^ first)
    }

    pub(crate) fn fetch_add(&self, more: T, order: Ordering) -> T {
        self.change(order, |word| T::of(word.wrapping_add(more.word())).word())
    }

    pub(crate) fn fetch_sub(&self, less: T, order: Ordering) -> T {
        self.change(order, |word| T::of(word.wrapping_sub(less.word())).word())
    }

    pub(crate) fn fetch_or(&self, bits: T, order: Ordering) -> T {
        self.change(order, |word| word | bits.word())
    }

    pub(crate) fn fetch_and(&self, bits: T, order: Ordering) -> T {
        self.change(order, |word| word & bits.word())
    }
}

/// A cell whose accesses loom compares with the order of events.
#[repr(transparent)]
pub(crate) struct Cell<T>(std::cell::Cell<T>);

impl<T> Cell<T> {
    pub(crate) const fn new(value: T) -> Cell<T> {
        Cell(std::cell::Cell::new(value))
    }

    pub(crate) fn get(&self) -> T
    where
        T: Copy,
    {
        reads(ptr::from_ref(self).addr());
        self.0.get()
    }

    pub(crate) fn set(&self, value: T) {
        writes(ptr::from_ref(self).addr());
        self.0.set(value);
    }

    pub(crate) fn replace(&self, value: T) -> T {
        writes(ptr::from_ref(self).addr());
        self.0.replace(value)
    }

    pub(crate) fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }
}

/// A value that a lock guards: no two accesses are at the same time.
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> *mut T {
        let place = self.0.get();
        let address = place.expose_provenance();
        writes(address);
        if !crate::platform::kernel::is_mapped(address) {
            copies().entry(address).or_insert_with(|| {
                let bytes: *const u8 = place.cast();
                // SAFETY: The value is that long, and this thread is the only one that touches it.
                unsafe { std::slice::from_raw_parts(bytes, size_of::<T>()) }.to_vec()
            });
        }
        place
    }
}

/// Moves no cache line here.
///
/// # Safety
///
/// - As for the function that this one replaces.
pub(crate) unsafe fn own_line<T>(_number: &Cell<T>) {}
