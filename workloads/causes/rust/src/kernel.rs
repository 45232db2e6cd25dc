//! The causes' own requests to the kernel and to the C library.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

unsafe extern "C" {
    fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    fn mallopt(parameter: c_int, value: c_int) -> c_int;
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const MADV_HUGEPAGE: c_int = 14;
const M_ARENA_MAX: c_int = -8;
const RTLD_NOW: c_int = 2;

/// A function of one of the libraries.
pub type Step = extern "C" fn(u64) -> u64;

/// Asks for huge pages; nothing happens if the kernel has none, or no memory for them.
pub fn advise_huge_pages(start: NonNull<u8>, bytes: usize) {
    // SAFETY: The advice changes no contents of any memory.
    unsafe { madvise(start.as_ptr().cast(), bytes, MADV_HUGEPAGE) };
}

/// Has the same effect as MALLOC_ARENA_MAX=1.
pub fn one_arena() {
    // SAFETY: The call takes no pointers.
    unsafe { mallopt(M_ARENA_MAX, 1) };
}

/// The function `step` of the library at `path`, which is never closed.
///
/// # Panics
///
/// Panics if there is no such library or it has no such function.
pub fn load(path: &Path) -> Step {
    let name = CString::new(path.as_os_str().as_bytes()).expect("arguments hold no null bytes");
    let step: &CStr = c"step";
    // SAFETY: Both names end in a null byte; the libraries have no initializers.
    let function = unsafe {
        let library = dlopen(name.as_ptr(), RTLD_NOW);
        assert!(!library.is_null(), "cannot load {}", path.display());
        dlsym(library, step.as_ptr())
    };
    assert!(!function.is_null(), "{} has no `step`", path.display());
    // SAFETY: `step.c` says that the function has this type.
    unsafe { std::mem::transmute::<*mut c_void, Step>(function) }
}

/// The most memory that was resident at once; 0 if that is unknown.
pub fn peak_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
