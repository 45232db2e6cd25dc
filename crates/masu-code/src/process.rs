//! The process around the arena: symbols, thread-local storage, the program's own text.
//!
//! Relies on the dynamic linker, through the `libc` crate. No function says whether a thread-local variable is at the
//! same distance from every thread's pointer (*static* storage), so a second thread is started to compare.

use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;

use crate::kernel;

/// The address of a symbol of the process, as `dlsym` finds it for the program.
pub(crate) fn symbol(name: &[u8]) -> Option<usize> {
    let name = CString::new(name).ok()?;
    look_up(&name)
}

/// The same for a C string.
fn look_up(name: &CStr) -> Option<usize> {
    symbol_of(libc::RTLD_DEFAULT as usize, name)
}

/// The address of a function that linkers put into each program (`libc_nonshared.a`).
pub(crate) fn static_symbol(name: &[u8]) -> Option<usize> {
    Some(match name {
        b"__stack_chk_fail_local" => return symbol(b"__stack_chk_fail"),
        // In the C library itself since glibc 2.33.
        b"stat" => libc::stat as *const () as usize,
        b"lstat" => libc::lstat as *const () as usize,
        b"fstat" => libc::fstat as *const () as usize,
        b"fstatat" => libc::fstatat as *const () as usize,
        b"mknod" => libc::mknod as *const () as usize,
        b"mknodat" => libc::mknodat as *const () as usize,
        _ => return None,
    })
}

/// An address inside the C library.
pub(crate) fn library() -> usize {
    libc::strlen as *const () as usize
}

/// Loads a library with its own symbols only; an error is the dynamic linker's message.
pub(crate) fn open_library(path: &CStr) -> Result<usize, String> {
    // SAFETY: The path is a C string; the caller vouches for the library's initializers.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if !handle.is_null() {
        return Ok(handle as usize);
    }
    // SAFETY: The call takes nothing.
    let said = unsafe { libc::dlerror() };
    if said.is_null() {
        return Err("it cannot be loaded".to_owned());
    }
    // SAFETY: A C string of this thread's, valid until its next error.
    Err(unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned())
}

pub(crate) fn symbol_of(library: usize, name: &CStr) -> Option<usize> {
    // SAFETY: The handle is of a loaded library, the name a C string.
    let address = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) };
    (!address.is_null()).then_some(address as usize)
}

/// Unloads a library; its owner no longer uses it.
pub(crate) fn close_library(library: usize) {
    // SAFETY: The handle is of a loaded library, and given back once.
    unsafe { libc::dlclose(library as *mut c_void) };
}

/// Flushes the C library's streams.
pub(crate) fn flush_streams() {
    // SAFETY: A null stream stands for all of them.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// A thread-local variable of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadLocal {
    /// The module's number, and the variable's place in it.
    pub(crate) module: u64,
    pub(crate) offset: u64,
    /// The variable's distance from the thread pointer, where that is the same in every thread.
    pub(crate) from_pointer: Option<i64>,
}

impl ThreadLocal {
    /// A variable at another distance in each thread.
    pub(crate) fn on_demand(module: u64, offset: usize) -> ThreadLocal {
        ThreadLocal { module, offset: offset as u64, from_pointer: None }
    }
}

/// Finds a thread-local variable that some module of the process exports; says whether two threads could be compared.
pub(crate) fn thread_local(name: &[u8]) -> Option<(ThreadLocal, bool)> {
    let name = CString::new(name).ok()?;
    let distance = |name: &CStr| {
        let address = look_up(name)?;
        Some((address, address.wrapping_sub(kernel::thread_pointer()).cast_signed() as i64))
    };
    let (address, here) = distance(&name)?;
    let mut search = Search { address, found: None };
    // SAFETY: The callback gets the arguments that it expects, and both end before the search does.
    unsafe { libc::dl_iterate_phdr(Some(find_module), (&raw mut search).cast::<c_void>()) };
    let (module, offset) = search.found?;
    // Blocks made on demand come from malloc, so their distance differs between threads.
    let elsewhere =
        std::thread::Builder::new().spawn(move || distance(&name).map(|(_, there)| there));
    let there = elsewhere.ok().and_then(|thread| thread.join().ok()).flatten();
    let from_pointer = (there == Some(here)).then_some(here);
    Some((ThreadLocal { module, offset, from_pointer }, there.is_some()))
}

struct Search {
    address: usize,
    found: Option<(u64, u64)>,
}

/// # Safety
///
/// - `info` comes from `dl_iterate_phdr`, and `data` is a [`Search`].
unsafe extern "C" fn find_module(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: The function's conditions.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
    // SAFETY: The module's headers are mapped as long as the module.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let start = info.dlpi_tls_data as usize;
    let Some(header) = headers.iter().find(|header| header.p_type == libc::PT_TLS) else {
        return 0;
    };
    let size = usize::try_from(header.p_memsz).unwrap_or(0);
    if start != 0 && (start..start.saturating_add(size)).contains(&search.address) {
        search.found = Some((info.dlpi_tls_modid as u64, (search.address - start) as u64));
        return 1;
    }
    0
}

/// The addresses that the program itself takes, the first module of the dynamic linker's list.
pub(crate) fn program() -> Range<usize> {
    let mut range = 0..0;
    // SAFETY: The callback gets the arguments that it expects.
    unsafe { libc::dl_iterate_phdr(Some(take_first), (&raw mut range).cast::<c_void>()) };
    if range.is_empty() {
        let here = program as fn() -> Range<usize> as usize;
        here..here + 1
    } else {
        range
    }
}

/// # Safety
///
/// - `info` comes from `dl_iterate_phdr`, and `data` is a range.
unsafe extern "C" fn take_first(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: The function's conditions.
    let (info, range) = unsafe { (&*info, &mut *data.cast::<Range<usize>>()) };
    // SAFETY: The module's headers are mapped as long as the module.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let at = |address: u64| (info.dlpi_addr as usize).wrapping_add(address as usize);
    let starts = loads.clone().map(|header| at(header.p_vaddr));
    let ends = loads.map(|header| at(header.p_vaddr.wrapping_add(header.p_memsz)));
    if let (Some(start), Some(end)) = (starts.min(), ends.max()) {
        *range = start..end;
    }
    1
}

/// Calls a function of an object's `.init_array`, as the dynamic linker would.
///
/// # Safety
///
/// - The address is a function without arguments, or a function that ignores them.
pub(crate) unsafe fn call(address: usize) {
    // SAFETY: The caller's condition.
    let function: extern "C" fn(c_int, *const *const i8, *const *const i8) =
        unsafe { std::mem::transmute(address) };
    function(0, [std::ptr::null()].as_ptr(), [std::ptr::null()].as_ptr());
}

/// Calls a function of the C library that not every version has.
pub(crate) fn call_library(name: &CStr, arguments: [usize; 4]) -> c_int {
    let Some(address) = look_up(name) else { return -1 };
    type Function = extern "C" fn(usize, usize, usize, usize) -> c_int;
    // SAFETY: Callers name functions of at most four pointers that return an int.
    let function = unsafe { std::mem::transmute::<usize, Function>(address) };
    let [one, two, three, four] = arguments;
    function(one, two, three, four)
}

/// Calls `end` with `value` when this thread ends, after the destructors of its thread-local variables.
pub(crate) fn at_thread_end(end: unsafe extern "C" fn(*mut c_void), value: *mut c_void) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: There is room for the key.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0).then_some(key)
    });
    // Without a key or memory for it, the thread's blocks stay for good.
    if let Some(key) = key {
        // SAFETY: The key was made above.
        unsafe { libc::pthread_setspecific(key, value) };
    }
}

/// Registers functions of this library to run around each `fork`. The C library forgets them when this library is
/// unloaded.
pub(crate) fn at_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    // SAFETY: The functions take nothing. Without memory to register them, a fork runs without them.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

/// Calls a function that chooses another function, as the dynamic linker does (IFUNC).
///
/// # Safety
///
/// - The address is a function that takes the arguments of the CPU's ABI, and returns an address.
pub(crate) unsafe fn choose(address: usize) -> usize {
    // Such functions of x86-64 take nothing. Those of aarch64 take `AT_HWCAP` with a bit that says more follows, and
    // `__ifunc_arg_t`.
    // SAFETY: The calls take a number.
    let [first, second] =
        [libc::AT_HWCAP, libc::AT_HWCAP2].map(|of| unsafe { libc::getauxval(of) });
    let more = [size_of::<[u64; 3]>() as u64, first, second];
    // SAFETY: The caller's condition.
    let choose: extern "C" fn(u64, *const u64) -> usize = unsafe { std::mem::transmute(address) };
    choose(first | 1 << 62, more.as_ptr())
}

/// Runs the destructors that loaded C++ code registered under this handle.
///
/// # Safety
///
/// - The code of these destructors is still loaded.
pub(crate) unsafe fn finalize(handle: usize) {
    call_library(c"__cxa_finalize", [handle, 0, 0, 0]);
}
