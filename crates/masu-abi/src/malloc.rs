//! The malloc family of C: names and argument rules of C23, POSIX and glibc over `masu::c`.
//!
//! It relies on `masu::c` to set `errno` to `ENOMEM` where it returns null and to keep it in `free`.
//! The hard idea: `malloc` and `free` inline the allocator's fast path and must stay leaf functions,
//! because every call pays for each instruction here.

use core::ffi::c_int;
use core::ptr;

use alloc_core::c;

use crate::libc::{self, EINVAL, ENOMEM};
use crate::{count, glibc, sized};

/// C's alignment of every block, `alignof(max_align_t)`.
pub(crate) const C_ALIGN: usize = 16;

/// `malloc(3)`: a block of `size` bytes, aligned to 16; null and `ENOMEM` where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut u8 {
    count::request(size);
    c::malloc(size)
}

/// `free(3)`: null is nothing to free; `errno` is kept (POSIX 2024).
///
/// # Safety
///
/// - `block` is null or a block of this family, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut u8) {
    // SAFETY: The caller's condition is the same.
    unsafe { c::free(block) }
}

/// `calloc(3)`: `count` × `size` zero bytes; null and `ENOMEM` where the product overflows.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    count::request(count.saturating_mul(size));
    c::calloc(count, size)
}

/// `realloc(3)`, with glibc's choice for a size of 0: the block is freed and null returned.
///
/// # Safety
///
/// - As [`free`]; a block that could not be changed is still the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    if size == 0 && !block.is_null() {
        // SAFETY: The caller's condition is the same.
        unsafe { c::free(block) };
        return ptr::null_mut();
    }
    count::request(size);
    // SAFETY: The caller's condition is the same.
    unsafe { c::realloc(block, size) }
}

/// `reallocarray(3)`: as [`realloc`] to `count` × `size` bytes; null and `ENOMEM` where the product
/// overflows.
///
/// # Safety
///
/// - As [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(block: *mut u8, count: usize, size: usize) -> *mut u8 {
    // SAFETY: The caller's condition is the same. No block is so long where the product overflows.
    unsafe { realloc(block, count.saturating_mul(size)) }
}

/// `aligned_alloc(3)` of C23: the size need not be a multiple of the alignment; null and `EINVAL`
/// where the alignment is not a power of two (as glibc 2.38).
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut u8 {
    count::request(size);
    if !align.is_power_of_two() {
        libc::set_errno(EINVAL);
        return ptr::null_mut();
    }
    aligned(align, size)
}

/// Allocates at any power of two; C promises 16 at least, whatever was requested.
///
/// Not inlined: the aligning functions are many and rarely called.
#[inline(never)]
pub(crate) fn aligned(align: usize, size: usize) -> *mut u8 {
    if align <= C_ALIGN { c::malloc(size) } else { c::aligned_alloc(align, size) }
}

/// `posix_memalign(3)`: 0, or `EINVAL` or `ENOMEM`, which leave `*result` as it was. Without memory it
/// sets `errno` to `ENOMEM` too, as glibc does, because programs read it.
///
/// # Safety
///
/// - `result` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(result: *mut *mut u8, align: usize, size: usize) -> c_int {
    count::request(size);
    if !align.is_power_of_two() || align < size_of::<*mut u8>() {
        return EINVAL;
    }
    let block = aligned(align, size);
    if block.is_null() {
        return ENOMEM;
    }
    // SAFETY: The caller's condition.
    unsafe { *result = block };
    0
}

/// `memalign(3)` as in glibc: an alignment that is not a power of two is rounded up to a power of two; null and
/// `EINVAL` where that overflows.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut u8 {
    count::request(size);
    match align.checked_next_power_of_two() {
        Some(align) => aligned(align, size),
        None => {
            libc::set_errno(EINVAL);
            ptr::null_mut()
        }
    }
}

/// `valloc(3)`: a block aligned to the OS page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut u8 {
    count::request(size);
    aligned(libc::page_size(), size)
}

/// `pvalloc(3)`: whole OS pages, at least one; null and `ENOMEM` where rounding up overflows.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut u8 {
    count::request(size);
    let page_size = libc::page_size();
    // No block is so long where rounding up overflows.
    aligned(page_size, size.max(1).checked_next_multiple_of(page_size).unwrap_or(usize::MAX))
}

/// `cfree(3)`, which glibc still has for old binaries: [`free`].
///
/// # Safety
///
/// - As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(block: *mut u8) {
    // SAFETY: The caller's condition is the same.
    unsafe { c::free(block) }
}

/// `free_sized` of C23: [`free`]. Only the hardened build checks the size, because programs pass wrong sizes.
///
/// # Safety
///
/// - As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut u8, size: usize) {
    // SAFETY: The caller's condition is the same.
    unsafe { sized::free(block, Some(size), 1) }
}

/// `free_aligned_sized` of C23: [`free`], and see [`free_sized`].
///
/// # Safety
///
/// - As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut u8, align: usize, size: usize) {
    // SAFETY: The caller's condition is the same.
    unsafe { sized::free(block, Some(size), align) }
}

/// `malloc_usable_size(3)`: the bytes of a block that may be used, the same all its life; 0 for
/// null.
///
/// # Safety
///
/// - `block` is null or a block of this family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut u8) -> usize {
    // SAFETY: The caller's condition is the same.
    unsafe { c::usable_size(block) }
}

/// `malloc_trim(3)`: returns memory to the system but for about `pad` free bytes; 1 where any was
/// returned, else 0.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.trim")]
pub extern "C" fn malloc_trim(pad: usize) -> c_int {
    c_int::from(c::trim(pad))
}

/// `mallopt(3)`: 1 for every parameter that glibc has, 0 for others; `glibc/table.rs` gives the effect
/// of each.
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(parameter: c_int, value: c_int) -> c_int {
    glibc::set(parameter, value)
}

/// glibc's second names of its functions; programs that wrap `malloc` call them.
macro_rules! second_names {
    ($($name:ident = $of:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("A second name of [`", stringify!($of), "`].")]
        ///
        /// # Safety
        ///
        /// - As the first name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
            #[allow(unused_unsafe, reason = "some of the first names are safe, some are not")]
            // SAFETY: The caller's condition is the same.
            unsafe { $of($($argument),*) }
        }
    )*};
}

second_names! {
    __libc_malloc = malloc(size: usize) -> *mut u8;
    __libc_free = free(block: *mut u8);
    __libc_calloc = calloc(count: usize, size: usize) -> *mut u8;
    __libc_realloc = realloc(block: *mut u8, size: usize) -> *mut u8;
    __libc_memalign = memalign(align: usize, size: usize) -> *mut u8;
    __libc_valloc = valloc(size: usize) -> *mut u8;
    __libc_pvalloc = pvalloc(size: usize) -> *mut u8;
    __libc_mallopt = mallopt(parameter: c_int, value: c_int) -> c_int;
    __posix_memalign = posix_memalign(result: *mut *mut u8, align: usize, size: usize) -> c_int;
}
