//! The door to the C library: thread exit, fork, `errno`, the environment, process exit, loaded objects.
//!
//! Relies on POSIX threads, of glibc or musl. The compiler also calls `memset` and `memcpy`, without this door.

#[cfg_attr(not(target_env = "gnu"), path = "libc/find_object_musl.rs")]
mod find_object;
#[cfg_attr(not(target_env = "gnu"), path = "libc/pin_musl.rs")]
mod pin;
pub(crate) mod signals;
#[cfg_attr(not(target_env = "gnu"), path = "libc/streams_musl.rs")]
mod streams;
#[cfg(target_env = "gnu")]
mod weak;

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};

pub(crate) use find_object::load_finder;
pub(crate) use pin::pin;
pub(crate) use streams::{forget_streams, hold_streams, let_go_streams};

use crate::platform::atomics::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

type Destructor = unsafe extern "C" fn(*mut c_void);
type ForkHandler = extern "C" fn();

#[cfg_attr(target_env = "gnu", link(name = "c"))]
unsafe extern "C" {
    #[link_name = "abort"]
    safe fn c_abort() -> !;
    safe fn __errno_location() -> *mut c_int;
    safe fn getauxval(kind: c_ulong) -> c_ulong;
    static environ: *const *const c_char;
    safe fn __cxa_atexit(
        call: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        library: *const c_void,
    ) -> c_int;
    fn dl_iterate_phdr(
        call: unsafe extern "C" fn(*const ObjectInfo, usize, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
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
    // SAFETY: The C library returns the address of this thread's own variable.
    unsafe { *place = errno };
}

/// The list of environment variables; null where the C library does not have it yet, or the program has cleared it.
pub(crate) fn environment() -> *const *const c_char {
    let place = (&raw const environ).cast_mut().cast();
    // SAFETY: The C library's variable is aligned and lives forever; other threads may write it, as they may an atomic.
    let list: &AtomicPtr<*const c_char> = unsafe { AtomicPtr::from_ptr(place) };
    // ORDERING: Relaxed, because the C library publishes nothing with it: programs set their environment before they
    // have threads, or lock it themselves.
    list.load(Ordering::Relaxed)
}

/// Whether this program has more rights than the user who started it (`AT_SECURE` of `getauxval(3)`).
pub(crate) fn is_secure() -> bool {
    const AT_SECURE: c_ulong = 23;
    getauxval(AT_SECURE) != 0
}

/// The random bytes that the kernel gave the program at its start (`AT_RANDOM` of `getauxval(3)`); zeros where there are
/// none.
#[cfg(feature = "secure")]
pub(crate) fn random_at_start() -> [u64; 2] {
    const AT_RANDOM: c_ulong = 25;
    let place: *const [u8; 16] = core::ptr::with_exposed_provenance(getauxval(AT_RANDOM) as usize);
    // SAFETY: It is null or leads to 16 bytes that stay.
    let bytes = unsafe { place.as_ref() }.copied().unwrap_or_default();
    // SAFETY: Any bytes are valid numbers, and the sizes agree.
    unsafe { core::mem::transmute(bytes) }
}

/// Registers `call` to run at `exit`, after all that is registered later; returns whether it was registered.
pub(crate) fn at_exit(call: extern "C" fn(*mut c_void)) -> bool {
    __cxa_atexit(call, core::ptr::null_mut(), core::ptr::null()) == 0
}

/// A loaded object as `dl_iterate_phdr(3)` reports it: the part of `struct dl_phdr_info` that is used.
#[repr(C)]
struct ObjectInfo {
    address: usize,
    name: *const c_char,
    headers: *const Segment,
    count: u16,
}

/// The longer structure of glibc and musl.
#[repr(C)]
struct CountedObjectInfo {
    object: ObjectInfo,
    /// Objects loaded and unloaded so far.
    loaded: u64,
    unloaded: u64,
}

/// A program header of ELF.
#[repr(C)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    _flags: u32,
    _offset: u64,
    /// Relative to the object's address.
    pub(crate) address: usize,
    _physical_address: u64,
    _file_length: u64,
    /// Bytes in memory.
    pub(crate) length: usize,
    _align: u64,
}

impl Segment {
    pub(crate) const LOADED: u32 = 1;
    pub(crate) const UNWIND_TABLES: u32 = 0x6474_e550;
}

/// A loaded program or library.
pub(crate) struct Object<'a> {
    /// The base of its own addresses.
    pub(crate) address: usize,
    name: *const c_char,
    segments: &'a [Segment],
    /// The number of objects that the process has loaded or unloaded so far; `None` where the C library does not say.
    pub(crate) changes: Option<u64>,
}

impl Object<'_> {
    pub(crate) fn segments(&self) -> &[Segment] {
        self.segments
    }

    /// The file that the object was loaded from; for the program, the path it was started with (`AT_EXECFN` of
    /// `getauxval(3)`).
    pub(crate) fn name(&self) -> &CStr {
        const AT_EXECFN: c_ulong = 31;
        let started = core::ptr::with_exposed_provenance(getauxval(AT_EXECFN) as usize);
        let [own, started] = [self.name, started].map(|name: *const c_char| {
            // SAFETY: It is null or a string that stays while the object is loaded.
            if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } }
        });
        if own.is_empty() { started } else { own }
    }
}

/// The number of threads inside `dl_iterate_phdr` for masu now.
static WALKERS: AtomicUsize = AtomicUsize::new(0);
/// Whether a thread may have been inside the dynamic linker, holding its lock, when the process forked: the C library
/// never releases that lock in the child.
static LOCK_IS_LOST: AtomicBool = AtomicBool::new(false);

/// Calls `visit` with every loaded object until it returns false; with none in a forked child where the lock may be held
/// forever. Holds the dynamic linker's lock, which is recursive.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.libc_for_each_object")]
pub(crate) fn for_each_object(visit: &mut dyn FnMut(&Object<'_>) -> bool) {
    // ORDERING: Relaxed: the value changes before a child has a second thread.
    if LOCK_IS_LOST.load(Ordering::Relaxed) {
        return;
    }
    let mut visit = visit;
    let argument: *mut &mut dyn FnMut(&Object<'_>) -> bool = &raw mut visit;
    // ORDERING: Relaxed; the fence orders it before the lock is taken, and the Release below after. A child is a copy of
    // memory as it is at some moment: if the lock is held in it, this count is not zero.
    WALKERS.fetch_add(1, Ordering::Relaxed);
    fence(Ordering::Release);
    // SAFETY: `visit_object` takes exactly this argument, which outlives the call.
    let _ = unsafe { dl_iterate_phdr(visit_object, argument.cast()) };
    // ORDERING: Release, as above.
    WALKERS.fetch_sub(1, Ordering::Release);
}

/// In a forked child: accounts for the parent's other threads, which do not exist here, if it had any. Threads that threw
/// an exception or loaded a library held the same lock without being counted.
pub(crate) fn forget_walkers(had_others: bool) {
    // ORDERING: Relaxed in this function: there is one thread.
    let walked = WALKERS.swap(0, Ordering::Relaxed) != 0;
    if walked || had_others && find_object::has_finder() {
        LOCK_IS_LOST.store(true, Ordering::Relaxed);
    }
}

/// Start and end of the object that holds `address`, and the start of its unwind tables' contents. Only in a forked child
/// where [`for_each_object`] visits none; `None` elsewhere.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.libc_object_without_lock")]
pub(crate) fn object_without_lock(address: usize) -> Option<[usize; 3]> {
    // ORDERING: Relaxed, as above.
    if LOCK_IS_LOST.load(Ordering::Relaxed) { find_object::find_object(address) } else { None }
}

/// The number of objects loaded or unloaded so far; `None` where the C library does not say.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.libc_object_changes")]
pub(crate) fn object_changes() -> Option<u64> {
    let mut changes = None;
    for_each_object(&mut |object| {
        changes = object.changes;
        // Every object carries the same count.
        false
    });
    changes
}

/// # Safety
///
/// - Called by `dl_iterate_phdr(3)` with the argument of [`for_each_object`].
#[unsafe(link_section = ".text.masu_cold.profile.libc_visit_object")]
unsafe extern "C" fn visit_object(
    info: *const ObjectInfo,
    length: usize,
    argument: *mut c_void,
) -> c_int {
    let argument = argument.cast::<&mut dyn FnMut(&Object<'_>) -> bool>();
    // SAFETY: It is the argument of `for_each_object`, which waits for this call.
    let visit = unsafe { &mut *argument };
    let changes = (length >= size_of::<CountedObjectInfo>()).then(|| {
        // SAFETY: The C library passes a valid structure of that length.
        let counted = unsafe { &*info.cast::<CountedObjectInfo>() };
        counted.loaded.wrapping_add(counted.unloaded)
    });
    // SAFETY: As above.
    let info = unsafe { &*info };
    let segments = if info.headers.is_null() {
        &[]
    } else {
        // SAFETY: An object's headers are mapped and constant, and there are `count` of them.
        unsafe { core::slice::from_raw_parts(info.headers, usize::from(info.count)) }
    };
    c_int::from(!visit(&Object { address: info.address, name: info.name, segments, changes }))
}

/// A thread-specific value, with a destructor that runs at the thread's end.
#[derive(Clone, Copy)]
pub(crate) struct Key(c_uint);

impl Key {
    /// A new key; `None` where the process has no more.
    pub(crate) fn new(destructor: Destructor) -> Option<Key> {
        let mut key = 0;
        (pthread_key_create(&mut key, Some(destructor)) == 0).then_some(Key(key))
    }

    /// Sets this thread's value; the destructor runs only for a value that is not null.
    pub(crate) fn set(self, value: *const c_void) {
        // Fails only without memory; the thread's blocks then stay in its cache forever.
        let _ = pthread_setspecific(self.0, value);
    }
}

/// Registers handlers of `fork`: `prepare` runs before it, `parent` after it in the parent, `child` in the child.
pub(crate) fn at_fork(prepare: ForkHandler, parent: ForkHandler, child: ForkHandler) {
    // Fails only without memory; children of threaded programs may then deadlock, as POSIX warns.
    #[cfg(target_env = "gnu")]
    let _ = __register_atfork(prepare, parent, child, core::ptr::null());
    #[cfg(not(target_env = "gnu"))]
    let _ = pthread_atfork(prepare, parent, child);
}
