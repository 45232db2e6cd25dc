//! The arena: open, load, look up, unload.
//!
//! Relies on [`crate::link`] for loading and [`crate::state`] for the books, behind one lock. Code of others
//! (initializers, destructors) runs while the lock is not held, so that it may load and unload itself.

mod call;
mod compact;
mod entry;
mod fork;
mod generated;
mod load;
mod report;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use std::any::Any;
use std::ffi::c_void;
use std::ops::{Deref, Range};
use std::panic::RefUnwindSafe;

use crate::error::Error;
use crate::exit::{self, Home};
use crate::memory::{self, Region};
use crate::options::{Options, Resolver};
use crate::perf::Perf;
use crate::process;
use crate::quiescence::{Reader, Readers};
use crate::state::{Loaded, State};
use crate::sync::{Arc, Mutex, MutexGuard, hold};

pub use entry::Entry;
pub use generated::{InPlace, Memory};
pub use report::{Report, Usage};

/// A loaded object, by its number. No other object gets the number, even after the object is unloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub(crate) u64);

/// For interfaces of other languages, which keep the number.
impl From<Handle> for u64 {
    fn from(handle: Handle) -> u64 {
        handle.0
    }
}

/// Any number can become a handle. A number that belongs to no object gives [`Error::NoObject`] wherever it is used.
impl From<u64> for Handle {
    fn from(number: u64) -> Handle {
        Handle(number)
    }
}

/// Shared by all handles of an arena.
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) readers: Arc<Readers>,
    tools: crate::options::Tools,
    keep: bool,
    resolver: Option<Resolver>,
}

// A panic of the resolver, which is called without the lock, leaves all as it was.
impl RefUnwindSafe for Shared {}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Only the books' own assertions panic under the lock, before they change anything.
        hold(&self.state)
    }
}

/// A range of memory that objects are loaded into.
///
/// ```no_run
/// use masu_code::{Arena, Options, Source};
///
/// # fn main() -> Result<(), masu_code::Error> {
/// let arena = Arena::open(Options::default())?;
/// // SAFETY: The object's initializers, if it has any, are ours.
/// let object = unsafe { arena.load(Source::file("square.o")?)? };
/// // SAFETY: `square.c` defines `int square(int)`.
/// let square = unsafe { arena.function::<extern "C" fn(i32) -> i32>(object, "square")? };
/// assert_eq!(square(7), 49);
/// # Ok(())
/// # }
/// ```
///
/// Threads may share an arena. Its memory is freed when the arena and everything that it handed out are dropped; the
/// destructors of loaded objects run then.
#[derive(Clone)]
pub struct Arena {
    pub(crate) shared: Arc<Shared>,
}

/// A function of a loaded object, called like one; the object stays while this exists.
pub struct Function<F> {
    function: F,
    _pin: Arc<()>,
    _arena: Arc<Shared>,
}

impl<F> Deref for Function<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.function
    }
}

impl<F> std::fmt::Debug for Function<F> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Function")
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Arena({:?})", self.report())
    }
}

impl Arena {
    /// Reserves the range.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] and [`Error::Kernel`]. Both say which option or call the machine refused.
    pub fn open(options: Options) -> Result<Arena, Error> {
        let range = memory::Range::open(&options)?;
        let Options { tools, keep, resolver, .. } = options;
        let perf = Perf::open(tools.perf_map, tools.jitdump.as_deref())
            .map_err(|error| Error::kernel("cannot open perf's file", error))?;
        crate::kernel::register_for_new_code();
        fork::prepare();
        let addresses = range.bytes(Region::Text).start..range.bytes(Region::Data).end;
        let state = Mutex::new(State::new(range, perf));
        let readers = Readers::new();
        let shared = Arc::new(Shared { state, readers, tools, keep, resolver });
        let home: Arc<dyn Home> = Arc::clone(&shared) as _;
        exit::add(addresses, Arc::downgrade(&home));
        Ok(Arena { shared })
    }

    /// Registers this thread as one that runs loaded code.
    ///
    /// Code is freed only when all registered threads have been quiescent, so each thread that calls through an
    /// [`Entry`] needs a reader. Without readers, unloaded objects are freed at once.
    pub fn reader(&self) -> Reader {
        Reader::register(&self.shared.readers, Box::new(Arc::clone(&self.shared)))
    }

    /// The address of a symbol of an object.
    ///
    /// The address is valid until the object is unloaded. After this call the object does not move.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`], [`Error::NoSymbol`].
    pub fn symbol(&self, object: Handle, name: &str) -> Result<*const c_void, Error> {
        let mut state = self.shared.lock();
        let address = find(&state, object, name)?;
        if let Some(loaded) = state.objects.get_mut(&object.0) {
            loaded.escaped = true;
        }
        Ok(address as *const c_void)
    }

    /// The address of a symbol that any object published; `None` where no object did.
    pub fn find(&self, name: &str) -> Option<*const c_void> {
        let mut state = self.shared.lock();
        let definition = *state.published.get(name.as_bytes())?;
        if definition.module.is_some() {
            return None;
        }
        let crate::state::Owner::Object(number) = definition.owner else { return None };
        state.objects.get_mut(&number)?.escaped = true;
        Some(definition.address as *const c_void)
    }

    /// A function of an object, as a handle that keeps the object.
    ///
    /// # Safety
    ///
    /// - `F` is a function pointer, and the type of the function that the symbol names.
    /// - A copy of the pointer is not used after the handle was dropped.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`], [`Error::NoSymbol`].
    pub unsafe fn function<F: Copy>(
        &self,
        object: Handle,
        name: &str,
    ) -> Result<Function<F>, Error> {
        const { assert!(size_of::<F>() == size_of::<usize>(), "F is a function pointer") };
        let mut state = self.shared.lock();
        let address = find(&state, object, name)?;
        let pin = state.objects.get_mut(&object.0).ok_or(Error::NoObject)?.pin();
        // SAFETY: The sizes are the same, and by the caller's condition so are the types.
        let function = unsafe { std::mem::transmute_copy::<usize, F>(&address) };
        Ok(Function { function, _pin: pin, _arena: Arc::clone(&self.shared) })
    }

    /// Unloads an object: later objects are not linked to it, and it is freed as soon as no entry, no [`Function`] and
    /// no other object leads to it and all readers were quiescent.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`], also for an object that was unloaded before; [`Error::Forked`].
    pub fn unload(&self, object: Handle) -> Result<(), Error> {
        self.unload_all(&[object])
    }

    /// Unloads objects together, or none of them. Objects that nothing else leads to are freed together; the
    /// destructors of the last loaded object run first.
    ///
    /// Use this for objects that hold pointers to each other, which the arena cannot know, such as tests that
    /// registered with a library.
    ///
    /// # Errors
    ///
    /// As for [`Arena::unload`]; all objects then stay loaded.
    pub fn unload_all(&self, objects: &[Handle]) -> Result<(), Error> {
        {
            let mut state = self.shared.lock();
            refuse_fork(&state)?;
            let mut wanted: Vec<u64> = objects.iter().map(|object| object.0).collect();
            wanted.sort_unstable();
            let is_live =
                |number: &u64| state.objects.get(number).is_some_and(|loaded| loaded.is_live);
            let is_twice = wanted.windows(2).any(|pair| pair[0] == pair[1]);
            if is_twice || !wanted.iter().all(is_live) {
                return Err(Error::NoObject);
            }
            for number in wanted {
                state.unpublish(number);
                state.end(number);
            }
        }
        self.collect();
        Ok(())
    }

    /// Frees the objects that can be freed; returns their number. Loading and unloading do this too, so only a program
    /// that does neither for a long time needs to call it.
    pub fn collect(&self) -> usize {
        let mut count = 0;
        loop {
            let (passed, range) = {
                let mut state = self.shared.lock();
                if state.waiting == 0 || !state.range.is_ours() {
                    return count;
                }
                state.retire(&self.shared.readers);
                (state.take_passed(&self.shared.readers), state.range.all())
            };
            if passed.is_empty() {
                return count;
            }
            count += passed.len();
            // As at a program's end: the object that was initialized last goes first.
            for loaded in passed.iter().rev() {
                // SAFETY: The object is still in memory, and nothing else leads to it.
                unsafe { run_destructors(loaded, &range) };
            }
            self.shared.lock().reclaim(passed);
        }
    }

    /// The number of objects that were unloaded and are not yet freed.
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting
    }
}

/// Runs the destructors of an object that was taken out of the books of the arena at these addresses.
///
/// # Safety
///
/// - The object is in memory, and its initializers ran.
unsafe fn run_destructors(loaded: &Loaded, arena: &Range<usize>) {
    let more = loaded.taken.more();
    // Its array of destructors is in its read-only data, so that no other object has this key.
    let key = if more.handle != 0 { more.handle } else { loaded.taken.sealed.start };
    exit::ending(arena, key, || {
        if more.handle != 0 {
            // SAFETY: The caller's condition.
            unsafe { process::finalize(key) };
        }
        for &address in more.fini.iter().rev() {
            // SAFETY: `.fini_array` holds functions without arguments.
            unsafe { process::call(address) };
        }
        if !more.fini.is_empty() {
            // Destructors may have registered further functions, as those of a library may.
            // SAFETY: As above.
            unsafe { process::finalize(key) };
        }
    });
}

pub(crate) fn refuse_fork(state: &State) -> Result<(), Error> {
    if state.range.is_ours() { Ok(()) } else { Err(Error::Forked) }
}

/// The address of a symbol of a live object.
pub(crate) fn find(state: &State, object: Handle, name: &str) -> Result<usize, Error> {
    let loaded = state.objects.get(&object.0).filter(|loaded| loaded.is_live);
    let loaded = loaded.ok_or(Error::NoObject)?;
    let found = loaded.symbols.get(name.as_bytes());
    found.ok_or_else(|| Error::NoSymbol {
        object: loaded.symbols.object().to_owned(),
        symbol: name.to_owned(),
    })
}

impl Home for Shared {
    fn note(&self, address: usize) -> Option<(usize, Arc<()>)> {
        let mut state = self.lock();
        let has = |loaded: &&mut Box<Loaded>| {
            loaded.taken.text.contains(&address) || loaded.taken.data.contains(&address)
        };
        let loaded = state.objects.values_mut().find(has)?;
        loaded.escaped = true;
        let start = loaded.taken.text.start;
        let handle = &mut loaded.taken.more_mut().handle;
        if *handle == 0 {
            *handle = start;
        }
        Some((*handle, loaded.pin()))
    }

    unsafe fn hold(&self) -> Box<dyn Any> {
        // SAFETY: The caller's condition.
        unsafe { self.hold_all() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let objects = std::mem::take(&mut state.objects);
        if state.range.is_ours() {
            let range = state.range.all();
            for loaded in objects.values().rev() {
                // SAFETY: The memory is freed only below, and nothing leads into it any more.
                unsafe { run_destructors(loaded, &range) };
            }
        }
        let tables: Vec<_> = objects.values().flat_map(|loaded| loaded.tables()).collect();
        state.frames.remove(&tables);
    }
}
