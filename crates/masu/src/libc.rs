//! The door to the C library: thread exit, fork, `errno`, the environment, abort. Nothing else of it
//! is used.
//!
//! Relies on a POSIX threads library, glibc or musl. Memory functions are the compiler's own
//! business (`memset`, `memcpy`).

use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

use crate::sync::{AtomicPtr, Ordering};

type Destructor = unsafe extern "C" fn(*mut c_void);
type ForkHandler = extern "C" fn();

#[cfg_attr(target_env = "gnu", link(name = "c"))]
unsafe extern "C" {
    #[link_name = "abort"]
    safe fn c_abort() -> !;
    safe fn __errno_location() -> *mut c_int;
    safe fn getauxval(kind: c_ulong) -> c_ulong;
    static environ: *const *const c_char;
    safe fn pthread_self() -> usize;
    safe fn pthread_key_create(key: &mut c_uint, destructor: Option<Destructor>) -> c_int;
    safe fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    #[cfg(target_env = "gnu")]
    safe fn __register_atfork(
        prepare: ForkHandler,
        parent: ForkHandler,
        child: ForkHandler,
        library: *const c_void,
    ) -> c_int;
    #[cfg(not(target_env = "gnu"))]
    safe fn pthread_atfork(prepare: ForkHandler, parent: ForkHandler, child: ForkHandler) -> c_int;
}

/// Ends the program with `SIGABRT`.
pub(crate) fn abort() -> ! {
    c_abort()
}

/// Sets this thread's `errno`.
pub(crate) fn set_errno(errno: c_int) {
    let place = __errno_location();
    // SAFETY: The C library returns a place of this thread's own.
    unsafe { *place = errno };
}

/// The list of environment variables; null where the C library does not know it yet, or where the
/// program has cleared it.
pub(crate) fn environment() -> *const *const c_char {
    let place = (&raw const environ).cast_mut().cast();
    // SAFETY: The C library's variable is aligned and lives for ever; other threads may write to
    // it, as to an atomic.
    let list: &AtomicPtr<*const c_char> = unsafe { AtomicPtr::from_ptr(place) };
    // ORDERING: Relaxed, for the C library publishes nothing with it: programs set their
    // environment before they have threads, or lock it among themselves.
    list.load(Ordering::Relaxed)
}

/// Whether this program has more rights than whoever started it (`AT_SECURE` of `getauxval(3)`).
pub(crate) fn is_secure() -> bool {
    const AT_SECURE: c_ulong = 23;
    getauxval(AT_SECURE) != 0
}

/// A number for this thread, not 0; its copy in a forked child has the same.
pub(crate) fn this_thread() -> usize {
    pthread_self()
}

/// A place for one value a thread, with a destructor called at the thread's end.
#[derive(Clone, Copy)]
pub(crate) struct Key(c_uint);

impl Key {
    /// A new key; `None` where the process has no more of them.
    pub(crate) fn new(destructor: Destructor) -> Option<Key> {
        let mut key = 0;
        (pthread_key_create(&mut key, Some(destructor)) == 0).then_some(Key(key))
    }

    /// Sets this thread's value; only one that is not null is handed to the destructor.
    pub(crate) fn set(self, value: *const c_void) {
        // Fails only for want of memory; the thread's blocks then stay in its cache for ever.
        let _ = pthread_setspecific(self.0, value);
    }
}

/// Has `prepare` called before each `fork`, and `after` behind it in parent and child.
pub(crate) fn at_fork(prepare: ForkHandler, after: ForkHandler) {
    // Fails only for want of memory; children of threaded programs may then wait for ever, as
    // POSIX warns them.
    #[cfg(target_env = "gnu")]
    let _ = __register_atfork(prepare, after, after, core::ptr::null());
    #[cfg(not(target_env = "gnu"))]
    let _ = pthread_atfork(prepare, after, after);
}
