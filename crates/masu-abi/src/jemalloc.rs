//! jemalloc's own functions over `masu::c`, for programs that call them beside `malloc`, as BIND's `named` does.
//!
//! It relies on `malloc.rs`. Without these functions the blocks of such a program would stay with the jemalloc that it is
//! linked with. Flags that choose an arena or a thread cache have no meaning here and are ignored. `mallctl` and its
//! kin are jemalloc's alone, and are left to it.

use core::ffi::c_int;
use core::ptr;

use alloc_core::c;

use crate::malloc::{self, C_ALIGN};
use crate::{count, sized};

/// The bits of the flags that hold the alignment's logarithm, `MALLOCX_LG_ALIGN`.
const LOG_ALIGN: c_int = 0x3f;
/// The flag for zeroed bytes, `MALLOCX_ZERO`.
const ZERO: c_int = 0x40;

const fn align_of(flags: c_int) -> usize {
    1 << (flags & LOG_ALIGN)
}

/// Zeroes a block from its byte `from` to its usable end: where a block grows later, jemalloc promises zeros behind the old
/// usable size alone.
///
/// # Safety
///
/// - `block` is a block of the caller's, which uses none of these bytes.
unsafe fn zero_from(block: *mut u8, from: usize) {
    // SAFETY: The caller's condition.
    let end = unsafe { c::usable_size(block) };
    if from < end {
        // SAFETY: The block is that long, and nothing uses these bytes.
        unsafe { block.add(from).write_bytes(0, end - from) };
    }
}

/// A block of `size` bytes as `flags` say; null and `ENOMEM` where there is none.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.jemalloc")]
pub extern "C" fn mallocx(size: usize, flags: c_int) -> *mut u8 {
    count::request(size);
    let align = align_of(flags);
    let zeroed = flags & ZERO != 0;
    let (block, zeros) = if zeroed && align <= C_ALIGN {
        (c::calloc(1, size), size)
    } else {
        (malloc::aligned(align, size), 0)
    };
    if zeroed && !block.is_null() {
        // SAFETY: The block is nobody else's yet.
        unsafe { zero_from(block, zeros) };
    }
    block
}

/// Changes the size of a block, and moves it if it must; zeroes the bytes beyond its old usable size if `flags` say so.
/// Null and `ENOMEM` where there is no memory: the old block is then intact.
///
/// # Safety
///
/// - `block` is a block of this library; after success it is not used any more.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.jemalloc")]
pub unsafe extern "C" fn rallocx(block: *mut u8, size: usize, flags: c_int) -> *mut u8 {
    count::request(size);
    let align = align_of(flags);
    // SAFETY: The caller's condition.
    let old = unsafe { c::usable_size(block) };
    let new = if align <= C_ALIGN {
        // SAFETY: The caller's condition.
        unsafe { c::realloc(block, size) }
    } else {
        let new = malloc::aligned(align, size);
        if !new.is_null() {
            // SAFETY: Both blocks are that long, and differ; the old one is the caller's to free.
            unsafe {
                ptr::copy_nonoverlapping(block, new, old.min(size));
                c::free(block);
            }
        }
        new
    };
    if flags & ZERO != 0 && !new.is_null() {
        // SAFETY: The block is the caller's, which has not used bytes that the old one lacked.
        unsafe { zero_from(new, old) };
    }
    new
}

/// The usable size of a block: none changes its size where it lies.
///
/// # Safety
///
/// - `block` is a block of this library.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.jemalloc")]
pub unsafe extern "C" fn xallocx(
    block: *mut u8,
    _size: usize,
    _extra: usize,
    _flags: c_int,
) -> usize {
    // SAFETY: The caller's condition.
    unsafe { c::usable_size(block) }
}

/// The usable size of a block, as `malloc_usable_size`.
///
/// # Safety
///
/// - `block` is a block of this library.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.jemalloc")]
pub unsafe extern "C" fn sallocx(block: *mut u8, _flags: c_int) -> usize {
    // SAFETY: The caller's condition.
    unsafe { c::usable_size(block) }
}

/// Frees a block.
///
/// # Safety
///
/// - `block` is a block of this library, and is not used afterwards.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.jemalloc")]
pub unsafe extern "C" fn dallocx(block: *mut u8, _flags: c_int) {
    // SAFETY: The caller's condition.
    unsafe { c::free(block) }
}

/// Frees a block of `size` bytes; see [`free_sized`](malloc::free_sized).
///
/// # Safety
///
/// - `block` is a block of this library, and is not used afterwards.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.jemalloc")]
pub unsafe extern "C" fn sdallocx(block: *mut u8, size: usize, flags: c_int) {
    // SAFETY: The caller's condition.
    unsafe { sized::free(block, Some(size), align_of(flags)) }
}

/// The bytes that `mallocx` would give at least; 0 where it would give none for any state of the memory.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.jemalloc")]
pub extern "C" fn nallocx(size: usize, flags: c_int) -> usize {
    // COUPLING: the bounds of every block of masu's, in `ranges/large.rs`.
    let fits = size <= 1 << 47 && align_of(flags) <= 512 << 20;
    if fits { size } else { 0 }
}
