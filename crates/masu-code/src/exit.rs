//! Functions that loaded code registers for its end: replacements for the C library's `atexit` family, which record the
//! caller.
//!
//! Relies on the C library's lists (`__cxa_atexit` and its like), whose entries carry a *handle*. A linker puts these
//! functions into each program and library (`libc_nonshared.a`), so that the handle is the caller's. Here the handle
//! belongs to the object that holds the noted function, because that object must not be unloaded before.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ops::Range;

use crate::process;
use crate::storage;
use crate::sync;
use crate::sync::{Arc, Mutex, Weak};

/// An object with an entry in the C library's lists.
pub(crate) struct Noted {
    /// The object's key in these lists.
    handle: usize,
    /// Keeps the object and its arena.
    _stays: (Arc<()>, Arc<dyn Home>),
}

/// An arena, as the C library's functions see it.
pub(crate) trait Home: Send + Sync {
    /// Notes that the object at an address is in the C library's lists; returns its handle, and a pin that keeps the
    /// object.
    fn note(&self, address: usize) -> Option<(usize, Arc<()>)>;

    /// Takes the arena's locks, while the process forks.
    ///
    /// # Safety
    ///
    /// - The locks are released before the arena is dropped.
    unsafe fn hold(&self) -> Box<dyn Any>;
}

struct Arenas(Vec<(Range<usize>, Weak<dyn Home>)>);

static ARENAS: Mutex<Arenas> = Mutex::new(Arenas(Vec::new()));

/// Registers the code range of an arena.
pub(crate) fn add(range: Range<usize>, home: Weak<dyn Home>) {
    let mut arenas = sync::hold(&ARENAS);
    arenas.0.retain(|(_, home)| home.strong_count() > 0);
    arenas.0.push((range, home));
}

/// The lock of the list of arenas, and the arenas.
type Held = (Box<dyn Any>, Vec<Arc<dyn Home>>);

/// The arenas, with the lock of their list, if no thread has it.
pub(crate) fn try_hold() -> Option<Held> {
    let list = sync::try_hold(&ARENAS)?;
    let arenas = list.0.iter().filter_map(|(_, home)| home.upgrade()).collect();
    Some((Box::new(list), arenas))
}

/// The object at an address, if an arena has it.
fn noted(address: usize) -> Option<Noted> {
    let home = {
        let arenas = sync::hold(&ARENAS);
        let mut holding = arenas.0.iter().filter(|(range, _)| range.contains(&address));
        holding.find_map(|(_, home)| home.upgrade())?
    };
    let (handle, pin) = home.note(address)?;
    Some(Noted { handle, _stays: (pin, home) })
}

thread_local! {
    /// The first and last address of an arena, and the key of the object of it whose destructors this thread runs.
    static ENDING: Cell<[usize; 3]> = const { Cell::new([0; 3]) };
}

/// Runs the destructors of an object that is found by its addresses no more. The functions of the arena that they
/// register get the object's key.
pub(crate) fn ending(arena: &Range<usize>, key: usize, destructors: impl FnOnce()) {
    let before = ENDING.replace([arena.start, arena.end, key]);
    destructors();
    ENDING.set(before);
}

fn handle(address: usize) -> usize {
    noted(address).map_or_else(
        || {
            let [start, end, key] = ENDING.get();
            if (start..end).contains(&address) { key } else { 0 }
        },
        |noted| noted.handle,
    )
}

extern "C" fn at_exit(function: usize) -> c_int {
    process::call_library(c"__cxa_atexit", [function, 0, handle(function), 0])
}

extern "C" fn at_quick_exit(function: usize) -> c_int {
    process::call_library(c"__cxa_at_quick_exit", [function, handle(function), 0, 0])
}

extern "C" fn at_fork(prepare: usize, parent: usize, child: usize) -> c_int {
    let handle = [prepare, parent, child].into_iter().map(handle).find(|&handle| handle != 0);
    process::call_library(c"__register_atfork", [prepare, parent, child, handle.unwrap_or(0)])
}

/// A destructor of a thread's variable, and the objects of its code and of the variable.
struct AtThreadEnd {
    destructor: extern "C" fn(*mut c_void),
    variable: *mut c_void,
    _objects: [Option<Noted>; 2],
}

extern "C" fn at_thread_end(
    destructor: extern "C" fn(*mut c_void),
    variable: *mut c_void,
    object: usize,
) -> c_int {
    /// The address that stands for this library.
    static HERE: u8 = 0;
    let objects = [destructor as usize, object].map(noted);
    let noted = Box::new(AtThreadEnd { destructor, variable, _objects: objects });
    let arguments =
        [end as *const () as usize, Box::into_raw(noted) as usize, &raw const HERE as usize, 0];
    process::call_library(c"__cxa_thread_atexit_impl", arguments)
}

extern "C" fn end(noted: *mut AtThreadEnd) {
    // SAFETY: The value came from a box, and this function is called with it once.
    let noted = unsafe { Box::from_raw(noted) };
    (noted.destructor)(noted.variable);
}

/// The arena's replacement for a function of the process.
pub(crate) fn instead_of(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"__tls_get_addr" => storage::address as *const () as usize,
        b"atexit" => at_exit as *const () as usize,
        b"at_quick_exit" => at_quick_exit as *const () as usize,
        b"pthread_atfork" | b"__pthread_atfork" => at_fork as *const () as usize,
        b"__cxa_thread_atexit" | b"__cxa_thread_atexit_impl" => at_thread_end as *const () as usize,
        _ => return None,
    })
}
