//! Files, for the counting build alone.
//!
//! It relies on functions that work before the C library has started.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};

unsafe extern "C" {
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn lseek(descriptor: c_int, offset: i64, from: c_int) -> i64;
    fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        descriptor: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn close(descriptor: c_int) -> c_int;
}

/// Maps the first `length` bytes of the file at `path`, shared and writable; `None` where there is no such file, or the
/// file is shorter or not writable. `errno` is kept.
pub(crate) fn map_shared(path: &CStr, length: usize) -> Option<NonNull<u8>> {
    const O_RDWR: c_int = 2;
    const O_NOCTTY: c_int = 0o400;
    const O_CLOEXEC: c_int = 0o2_000_000;
    let errno = super::errno();
    // SAFETY: The path is a string; without O_CREAT there is no further argument.
    let descriptor = unsafe { open(path.as_ptr(), O_RDWR | O_NOCTTY | O_CLOEXEC) };
    let mapped = if descriptor < 0 { None } else { map_open(descriptor, length) };
    if descriptor >= 0 {
        // SAFETY: The descriptor was opened above and is used no more; mappings outlive it.
        unsafe { close(descriptor) };
    }
    super::set_errno(errno);
    mapped
}

fn map_open(descriptor: c_int, length: usize) -> Option<NonNull<u8>> {
    const SEEK_END: c_int = 2;
    const PROT_READ_WRITE: c_int = 3;
    const MAP_SHARED: c_int = 1;
    // SAFETY: The call takes numbers only.
    let end = unsafe { lseek(descriptor, 0, SEEK_END) };
    // A mapping beyond the file's end succeeds, but touching it kills the program.
    if usize::try_from(end).is_ok_and(|end| end >= length) {
        // SAFETY: A new mapping that replaces nothing changes no memory in use.
        let start =
            unsafe { mmap(ptr::null_mut(), length, PROT_READ_WRITE, MAP_SHARED, descriptor, 0) };
        const MAP_FAILED: usize = usize::MAX;
        return NonNull::new(start.cast::<u8>())
            .filter(|start| start.as_ptr().addr() != MAP_FAILED);
    }
    None
}
