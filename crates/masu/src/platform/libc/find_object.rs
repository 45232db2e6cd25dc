//! Finding one loaded object without the dynamic linker's lock: `_dl_find_object` of glibc 2.35.
//!
//! Relies on `dlsym` for that function, so that programs need no newer glibc, and static programs lack nothing. It is
//! used only where the lock is lost, although it would always work: only `dl_iterate_phdr` says whether objects have
//! changed since, which makes samples cheap.

use core::ffi::{c_char, c_int, c_void};
use core::{mem, ptr};

use super::weak::weak_function;
use crate::platform::atomics::{AtomicPtr, Ordering};

/// `struct dl_find_object`.
#[repr(C)]
struct Found {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    map: *mut c_void,
    tables: *mut c_void,
    reserved: [u64; 7],
}

type Find = unsafe extern "C" fn(address: *mut c_void, found: *mut Found) -> c_int;
type Symbol = unsafe extern "C" fn(handle: *mut c_void, name: *const c_char) -> *mut c_void;
type Error = unsafe extern "C" fn() -> *mut c_char;

/// The function; null where there is none or `load_finder` did not run.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Finds the address of the function. The dynamic linker may allocate in this call.
#[cold]
#[inline(never)]
pub(crate) fn load_finder() {
    let (symbol, error): (usize, usize) = (weak_function!("dlsym"), weak_function!("dlerror"));
    // SAFETY: The address is 0 (no such function) or the C library's `dlsym`.
    let symbol: Option<Symbol> = unsafe { mem::transmute(symbol) };
    // SAFETY: The same for `dlerror`.
    let error: Option<Error> = unsafe { mem::transmute(error) };
    let Some(symbol) = symbol else { return };
    // SAFETY: A null handle stands for all loaded objects (`RTLD_DEFAULT`).
    let find = unsafe { symbol(ptr::null_mut(), c"_dl_find_object".as_ptr()) };
    if find.is_null()
        && let Some(error) = error
    {
        // SAFETY: It clears this thread's error, which the program would otherwise see.
        unsafe { error() };
    }
    // ORDERING: Relaxed: the function was loaded before this program began.
    FIND.store(find, Ordering::Relaxed);
}

/// Whether [`find_object`] can find objects.
pub(super) fn has_finder() -> bool {
    // ORDERING: Relaxed, as above.
    !FIND.load(Ordering::Relaxed).is_null()
}

/// Start and end of the object that holds `address`, and the start of its unwind tables' contents.
#[inline(never)]
pub(super) fn find_object(address: usize) -> Option<[usize; 3]> {
    // ORDERING: Relaxed, as above.
    let find = FIND.load(Ordering::Relaxed);
    // SAFETY: It is null (none) or the address of glibc's `_dl_find_object`.
    let find: Option<Find> = unsafe { mem::transmute(find) };
    let mut found = Found {
        flags: 0,
        start: ptr::null_mut(),
        end: ptr::null_mut(),
        map: ptr::null_mut(),
        tables: ptr::null_mut(),
        reserved: [0; 7],
    };
    // SAFETY: It takes any address, and writes one structure.
    let status = unsafe { find?(ptr::with_exposed_provenance_mut(address), &mut found) };
    let places = [found.start, found.end, found.tables].map(|place| place.addr());
    (status == 0 && places[2] != 0).then_some(places)
}
