//! The entry table: addresses that threads call through and that can be replaced at the same time.
//!
//! Relies on the quiescent states of [`crate::quiescence`]: the old target of an entry is freed only when no thread can still
//! be about to enter it. An entry is also a symbol. Objects loaded later that refer to its name call a stub that jumps
//! through the entry, so they follow a replacement too.

use super::{Arena, Handle, Shared, find};
use crate::error::Error;
use crate::memory::Region;
use crate::state::{Definition, EntryState, Owner, State};
use crate::sync::{Arc, AtomicUsize, Ordering};

/// An entry of the table. Copies of it are the same entry.
#[derive(Clone)]
pub struct Entry {
    slot: usize,
    name: Arc<str>,
    shared: Arc<Shared>,
}

impl Arena {
    /// Makes an entry that leads to a symbol of an object.
    ///
    /// Objects that are loaded later may call the entry by `name`. An entry lasts as long as the arena.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`], [`Error::NoSymbol`]; [`Error::Entry`] where the name is taken by an
    /// entry or a published symbol; [`Error::Full`].
    pub fn entry(&self, name: &str, object: Handle, symbol: &str) -> Result<Entry, Error> {
        let mut state = self.shared.lock();
        let address = find(&state, object, symbol)?;
        let slot = new_slot(&mut state, name, address)?;
        let target = Some((object.0, symbol.as_bytes().into()));
        state.entries.insert(name.to_owned(), EntryState { slot, target });
        lead(&mut state, object.0, 1);
        Ok(Entry { slot, name: name.into(), shared: Arc::clone(&self.shared) })
    }

    /// Makes an entry that leads to a function of the program's own, such as its interpreter.
    ///
    /// # Errors
    ///
    /// [`Error::Entry`] where the name is taken; [`Error::Full`].
    pub fn entry_at(&self, name: &str, address: *const std::ffi::c_void) -> Result<Entry, Error> {
        let mut state = self.shared.lock();
        let slot = new_slot(&mut state, name, address as usize)?;
        state.entries.insert(name.to_owned(), EntryState { slot, target: None });
        Ok(Entry { slot, name: name.into(), shared: Arc::clone(&self.shared) })
    }
}

fn new_slot(state: &mut State, name: &str, address: usize) -> Result<usize, Error> {
    super::refuse_fork(state)?;
    if state.published.contains_key(name.as_bytes()) {
        let why = "the name is taken, by an entry or by a symbol of a loaded object";
        return Err(Error::Entry { name: name.to_owned(), why });
    }
    let slot = state.take(Region::Data, 8, 8)?.start;
    at(slot, |entry| {
        // ORDERING: Relaxed, because no other thread has the entry yet; the lock publishes it.
        entry.store(address, Ordering::Relaxed);
    });
    let owner = Owner::Entry;
    let definition = Definition { address: slot, module: None, size: 8, owner, is_weak: false };
    state.published.insert(name.as_bytes().into(), definition);
    Ok(slot)
}

/// Adds `by` to the number of entries that lead to an object.
fn lead(state: &mut State, object: u64, by: i32) {
    if let Some(loaded) = state.objects.get_mut(&object) {
        loaded.entries = loaded.entries.wrapping_add_signed(by);
    }
}

fn at<T>(slot: usize, with: impl FnOnce(&AtomicUsize) -> T) -> T {
    // SAFETY: Slots are 8 aligned bytes of the arena's writable data, taken for an entry and never
    // given back while the arena is there.
    with(unsafe { &*(slot as *const AtomicUsize) })
}

/// Points an entry to another address: all calls from now on go there.
pub(super) fn replace(
    state: &mut State,
    name: &str,
    address: usize,
    target: Option<(u64, Box<[u8]>)>,
) {
    if let Some((object, _)) = &target {
        let object = *object;
        lead(state, object, 1);
    }
    let Some(entry) = state.entries.get_mut(name) else { return };
    at(entry.slot, |entry| {
        // ORDERING: Release publishes the code that was written before; it pairs with the Acquire of `Entry::address`,
        // and in loaded code with the jump that depends on the address that was read.
        entry.store(address, Ordering::Release);
    });
    if let Some((before, _)) = std::mem::replace(&mut entry.target, target) {
        lead(state, before, -1);
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Entry({:?} -> {:p})", self.name, self.address())
    }
}

impl Entry {
    /// The address that calls go to now.
    #[inline]
    pub fn address(&self) -> *const std::ffi::c_void {
        // ORDERING: Acquire pairs with the Release of `replace`.
        at(self.slot, |entry| entry.load(Ordering::Acquire)) as *const std::ffi::c_void
    }

    /// The function that calls go to now.
    ///
    /// # Safety
    ///
    /// - `F` is a function pointer, and the type of the entry's target.
    /// - This thread has a [`crate::Reader`], or no target of the entry is ever unloaded. The
    ///   pointer is not used after the thread's next quiescent state.
    #[inline]
    pub unsafe fn get<F: Copy>(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<usize>(), "F is a function pointer") };
        let address = self.address();
        // SAFETY: The sizes are the same, and by the caller's condition so are the types.
        unsafe { std::mem::transmute_copy::<*const std::ffi::c_void, F>(&address) }
    }

    /// The address of the memory that holds the entry's target, for a JIT that emits the load itself.
    pub fn slot(&self) -> *const *const std::ffi::c_void {
        self.slot as *const *const std::ffi::c_void
    }

    /// The entry's name, by which objects call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Points the entry to a symbol of another object, at once for all threads.
    ///
    /// The old target stays until it is unloaded and all readers were quiescent.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`], [`Error::NoSymbol`], [`Error::Forked`].
    pub fn replace(&self, object: Handle, symbol: &str) -> Result<(), Error> {
        let mut state = self.shared.lock();
        super::refuse_fork(&state)?;
        let address = find(&state, object, symbol)?;
        let target = Some((object.0, symbol.as_bytes().into()));
        replace(&mut state, &self.name, address, target);
        Ok(())
    }

    /// Points the entry to a function of the program's own.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`].
    pub fn replace_at(&self, address: *const std::ffi::c_void) -> Result<(), Error> {
        let mut state = self.shared.lock();
        super::refuse_fork(&state)?;
        replace(&mut state, &self.name, address as usize, None);
        Ok(())
    }
}
