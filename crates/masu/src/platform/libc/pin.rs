//! Pins a library that carries masu: the first slow request asks the dynamic linker never to unload it, because threads,
//! `fork` and late frees call its code until the process ends.
//!
//! Relies on glibc, where `dlclose` unloads; musl's does nothing. The functions are weak references to their oldest
//! versions, so that static programs lack nothing and every glibc will do. The hard idea: a program with masu linked in
//! must not pay for a call of the dynamic linker, and the kernel says where the program's headers are.

use core::ffi::{c_char, c_int, c_ulong, c_void};
use core::mem;

use super::getauxval;
use super::weak::{own_headers, weak_function};
use crate::platform::atomics::{AtomicUsize, Ordering};

/// `Dl_info` of `dladdr(3)`.
#[repr(C)]
struct Place {
    file: *const c_char,
    base: *const c_void,
    symbol: *const c_char,
    address: *const c_void,
}

type DlAddr = unsafe extern "C" fn(address: *const c_void, place: *mut Place) -> c_int;
type DlOpen = unsafe extern "C" fn(name: *const c_char, flags: c_int) -> *mut c_void;

/// The number of times that pinning may still be tried; 0 once the library is pinned. A thread does not wait for
/// another thread that pins: it pins too, because the other thread may fail, or be missing in a forked child.
static TRIES_LEFT: AtomicUsize = AtomicUsize::new(8);

/// Pins the library that holds this code.
#[inline]
pub(crate) fn pin() {
    // ORDERING: Relaxed: a thread that sees the success of another thread late pins twice, which does no harm.
    let left = TRIES_LEFT.load(Ordering::Relaxed);
    if left > 0 {
        pin_slow(left);
    }
}

#[cold]
#[inline(never)]
fn pin_slow(left: usize) {
    // Counted first, because the dynamic linker may allocate in the call.
    // ORDERING: Relaxed, as in `pin`; the same below.
    TRIES_LEFT.store(left - 1, Ordering::Relaxed);
    if is_pinned() {
        // ORDERING: As above.
        TRIES_LEFT.store(0, Ordering::Relaxed);
    }
}

/// Pins the library; returns whether it is pinned, or cannot be pinned at all.
fn is_pinned() -> bool {
    if is_in_program() {
        return true;
    }
    let (address, open): (usize, usize) = (weak_function!("dladdr"), weak_function!("dlopen"));
    // SAFETY: The address is 0 (no such function) or the C library's `dladdr`.
    let address: Option<DlAddr> = unsafe { mem::transmute(address) };
    // SAFETY: The same for `dlopen`.
    let open: Option<DlOpen> = unsafe { mem::transmute(open) };
    let (Some(address), Some(open)) = (address, open) else { return true };
    let mut place = Place {
        file: core::ptr::null(),
        base: core::ptr::null(),
        symbol: core::ptr::null(),
        address: core::ptr::null(),
    };
    // SAFETY: The address lies in this library, and the function writes one structure.
    let is_known = unsafe { address((&raw const TRIES_LEFT).cast(), &mut place) } != 0;
    if !is_known || place.file.is_null() {
        return true;
    }
    const RTLD_LAZY: c_int = 1;
    const RTLD_NOLOAD: c_int = 4;
    const RTLD_NODELETE: c_int = 0x1000;
    // SAFETY: Nothing new is loaded, so no constructor runs; the dynamic linker copies the name. The handle is never
    // closed.
    let handle = unsafe { open(place.file, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) };
    !handle.is_null()
}

/// Whether this code lies in the program and not in a library.
fn is_in_program() -> bool {
    const AT_PHDR: c_ulong = 3;
    const HEADERS_BYTES_MAX: usize = 64 << 10;
    let headers = own_headers!();
    let table = getauxval(AT_PHDR) as usize;
    headers != 0 && table.wrapping_sub(headers) < HEADERS_BYTES_MAX
}
