//! The door to the C library and the dynamic linker: everything this crate calls outside itself.
//!
//! It relies on functions that both glibc 2.17 and musl have. The hard idea: a function that a program may lack (a
//! function of the dynamic linker in a static program, or of the C++ runtime in a C program) is a *weak* reference,
//! whose address is 0 where no library defines it. Stable Rust has no weak references, so `weak!` reads the address
//! from the global offset table in assembly.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::{mem, ptr};

#[cfg(feature = "count")]
mod file;

pub(crate) mod weak;

#[cfg(feature = "count")]
pub(crate) use file::map_shared;
pub(crate) use weak::weak;
use weak::weak_function;

/// `errno(3)`: no file or option of that name.
pub(crate) const ENOENT: c_int = 2;
/// `errno(3)`: no memory.
pub(crate) const ENOMEM: c_int = 12;
/// `errno(3)`: no such function.
#[cfg(target_env = "gnu")]
pub(crate) const ENOSYS: c_int = 38;
/// `errno(3)`: not permitted.
pub(crate) const EPERM: c_int = 1;
/// `errno(3)`: in use.
pub(crate) const EBUSY: c_int = 16;
/// `errno(3)`: there is no data.
pub(crate) const ENODATA: c_int = 61;
/// `errno(3)`: an argument that makes no sense.
pub(crate) const EINVAL: c_int = 22;

/// C's `FILE`; only its library knows its contents.
#[repr(C)]
pub struct File {
    _private: [u8; 0],
}

// With glibc the library is named, so that references carry glibc's symbol versions. With musl the library is not
// named: a program has exactly one C library, and the linker of a glibc system would find the wrong one.
#[cfg_attr(target_env = "gnu", link(name = "c"))]
unsafe extern "C" {
    safe fn __errno_location() -> *mut c_int;
    safe fn sysconf(name: c_int) -> c_long;
    safe fn abort() -> !;
    fn write(descriptor: c_int, bytes: *const c_void, length: usize) -> isize;
    pub(crate) fn fprintf(stream: *mut File, format: *const c_char, ...) -> c_int;
    static stderr: *mut File;
}

pub(crate) fn errno() -> c_int {
    // SAFETY: The C library returns the address of this thread's own variable.
    unsafe { *__errno_location() }
}

pub(crate) fn set_errno(value: c_int) {
    // SAFETY: The C library returns the address of this thread's own variable.
    unsafe { *__errno_location() = value };
}

/// An address that differs from the address of every other live thread.
pub(crate) fn thread_address() -> usize {
    __errno_location().addr()
}

/// The size of an OS page in bytes: 4, 16 or 64 KiB, known only at run time.
pub(crate) fn page_size() -> usize {
    const SC_PAGESIZE: c_int = 30;
    // POSIX has no error for this name. 64 KiB would be right on every system.
    usize::try_from(sysconf(SC_PAGESIZE)).unwrap_or(64 << 10)
}

pub(crate) fn error_stream() -> *mut File {
    // SAFETY: The C library set it before the program ran; a program that assigns to it must not
    // do so while other threads print.
    unsafe { stderr }
}

/// Writes a message to standard error, as far as possible.
pub(crate) fn warn(message: &CStr) {
    // SAFETY: The kernel only reads the message.
    let _ = unsafe { write(2, message.as_ptr().cast(), message.count_bytes()) };
}

/// Writes all of `bytes` to a file; 0 or an error number, and `errno` is kept.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics")]
pub(crate) fn write_all(descriptor: c_int, mut bytes: &[u8]) -> c_int {
    const EINTR: c_int = 4;
    let before = errno();
    let mut failed = 0;
    while !bytes.is_empty() && failed == 0 {
        // SAFETY: The kernel only reads the bytes.
        let written = unsafe { write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(_) if errno() == EINTR => {}
            Err(_) => failed = errno(),
        }
    }
    set_errno(before);
    failed
}

type AtExit = extern "C" fn(*mut c_void);

/// Registers `handler` to run when the program ends, after all handlers registered later; returns whether that
/// succeeded, which takes a dynamic linker. The C library's function is searched for, not linked, because a linked
/// function costs every program at its start.
pub(crate) fn at_exit(handler: AtExit) -> bool {
    type Register = unsafe extern "C" fn(AtExit, *mut c_void, *mut c_void) -> c_int;
    let found = next_symbol(c"__cxa_atexit");
    // SAFETY: The address is null (no such function) or the address of the C library's `__cxa_atexit`.
    let register: Option<Register> = unsafe { mem::transmute(found) };
    // SAFETY: The handler stays, for this library is never unloaded.
    register
        .is_some_and(|register| unsafe { register(handler, ptr::null_mut(), ptr::null_mut()) } == 0)
}

/// Ends the program with a message on standard error.
pub(crate) fn die(message: &CStr) -> ! {
    warn(message);
    abort()
}

type DlSym = unsafe extern "C" fn(handle: *mut c_void, name: *const c_char) -> *mut c_void;
type DlOpen = unsafe extern "C" fn(name: *const c_char, flags: c_int) -> *mut c_void;

pub(crate) fn has_dynamic_linker() -> bool {
    weak_function!("dlsym") != 0
}

/// The address of `symbol` in the libraries that come after this one in the program's search order
/// (`RTLD_NEXT`); null where there is none.
#[inline(never)]
pub(crate) fn next_symbol(symbol: &CStr) -> *mut c_void {
    let rtld_next = ptr::without_provenance_mut(usize::MAX);
    let found = symbol_in(rtld_next, symbol);
    // The dynamic linker takes its caller's return address as the library that asks. A tail call would pass on the
    // return address of another library.
    core::hint::black_box(found)
}

/// The C library's `dlopen`; null in a static program, unless it was linked with `-Wl,-u,___dlopen`.
#[cfg(target_env = "gnu")]
pub(crate) fn next_dlopen() -> *mut c_void {
    if has_dynamic_linker() {
        return next_symbol(c"dlopen");
    }
    // The name in `libc.a`, beside the one that masu defines.
    ptr::without_provenance_mut(weak!("___dlopen"))
}

/// The address of `symbol` in `library` if the program has loaded the library; null if not.
///
/// This finds the C++ runtime of a plug-in too, which the program's own search order leaves out.
pub(crate) fn symbol_of(library: &CStr, symbol: &CStr) -> *mut c_void {
    const RTLD_LAZY: c_int = 1;
    const RTLD_NOLOAD: c_int = 4;
    let address: usize = weak_function!("dlopen");
    // SAFETY: The address is 0 (no such function) or the address of the C library's `dlopen`.
    let open: Option<DlOpen> = unsafe { mem::transmute(address) };
    let Some(open) = open else {
        return ptr::null_mut();
    };
    // SAFETY: Nothing is loaded, so no constructor runs; the name ends in a zero byte.
    let handle = unsafe { open(library.as_ptr(), RTLD_LAZY | RTLD_NOLOAD) };
    if handle.is_null() { ptr::null_mut() } else { symbol_in(handle, symbol) }
}

#[inline(always)]
fn symbol_in(handle: *mut c_void, symbol: &CStr) -> *mut c_void {
    let address: usize = weak_function!("dlsym");
    // SAFETY: The address is 0 (no such function) or the address of the C library's `dlsym`.
    let find: Option<DlSym> = unsafe { mem::transmute(address) };
    match find {
        // SAFETY: The handle is a pseudo-handle or was opened; the name ends in a zero byte.
        Some(find) => unsafe { find(handle, symbol.as_ptr()) },
        None => ptr::null_mut(),
    }
}
