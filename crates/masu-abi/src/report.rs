//! glibc's reports about its malloc: `mallinfo`, `mallinfo2`, `malloc_stats`, `malloc_info`.
//!
//! It relies on `masu::c::statistics` for the numbers and on the C library's `fprintf` to print them. The hard idea:
//! the structures and the XML are glibc's, read by tools that know glibc's heap (one area that grows, and blocks mapped
//! singly). masu fills the fields that mean the same in masu, and the rest is zero.

use core::ffi::c_int;

use alloc_core::c;

use crate::libc::{self, EINVAL, File};
use crate::masu::statistics::masu_statistics_text_to;

/// The result of `mallinfo2(3)`; the field names are glibc's, which counts bytes unless noted.
#[repr(C)]
pub struct MallInfo2 {
    /// Bytes of the heap: in use and free, blocks of their own mapping left out.
    arena: usize,
    /// Free ranges, a count.
    ordblks: usize,
    /// Free small blocks, a count.
    smblks: usize,
    /// Blocks of their own mapping, a count.
    hblks: usize,
    /// Bytes in blocks of their own mapping.
    hblkhd: usize,
    /// Always 0, in glibc too.
    usmblks: usize,
    /// Bytes in free small blocks.
    fsmblks: usize,
    /// Bytes in use, blocks of their own mapping left out.
    uordblks: usize,
    /// Free bytes in the heap.
    fordblks: usize,
    /// The most bytes that `malloc_trim` could return.
    keepcost: usize,
}

/// The result of `mallinfo(3)`: as [`MallInfo2`], each field at most `INT_MAX`.
#[repr(C)]
pub struct MallInfo {
    arena: c_int,
    ordblks: c_int,
    smblks: c_int,
    hblks: c_int,
    hblkhd: c_int,
    usmblks: c_int,
    fsmblks: c_int,
    uordblks: c_int,
    fordblks: c_int,
    keepcost: c_int,
}

/// `mallinfo2(3)`: the allocator's numbers now, in bytes and counts.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> MallInfo2 {
    let now = c::statistics();
    let in_use = now.live_bytes.saturating_sub(now.large_bytes);
    MallInfo2 {
        arena: in_use + now.free_bytes,
        ordblks: 0,
        smblks: now.cached_blocks,
        hblks: now.large_blocks,
        hblkhd: now.large_bytes,
        usmblks: 0,
        fsmblks: now.cached_bytes,
        uordblks: in_use,
        fordblks: now.free_bytes,
        keepcost: now.free_bytes,
    }
}

/// `mallinfo(3)`: as [`mallinfo2`], with fields that stop at `INT_MAX` (glibc's wrap around).
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> MallInfo {
    let wide = mallinfo2();
    let narrow = |count: usize| c_int::try_from(count).unwrap_or(c_int::MAX);
    MallInfo {
        arena: narrow(wide.arena),
        ordblks: narrow(wide.ordblks),
        smblks: narrow(wide.smblks),
        hblks: narrow(wide.hblks),
        hblkhd: narrow(wide.hblkhd),
        usmblks: narrow(wide.usmblks),
        fsmblks: narrow(wide.fsmblks),
        uordblks: narrow(wide.uordblks),
        fordblks: narrow(wide.fordblks),
        keepcost: narrow(wide.keepcost),
    }
}

/// A second name of [`mallinfo`].
#[unsafe(no_mangle)]
pub extern "C" fn __libc_mallinfo() -> MallInfo {
    mallinfo()
}

/// `malloc_stats(3)`: prints the allocator's numbers to standard error, in a line and in tables.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    let now = c::statistics();
    let format = c"masu: live %zu bytes (%zu in %zu large blocks), free %zu, committed %zu, \
        reserved %zu\n";
    // SAFETY: The stream is open and the format takes six sizes, which follow.
    unsafe {
        libc::fprintf(
            libc::error_stream(),
            format.as_ptr(),
            now.live_bytes,
            now.large_bytes,
            now.large_blocks,
            now.free_bytes,
            now.committed_bytes,
            now.reserved_bytes,
        );
    }
    // The rest bypasses the stream's buffer; standard error usually has no buffer.
    let _ = masu_statistics_text_to(2);
}

/// `malloc_info(3)`: prints the allocator's numbers as XML, in glibc's elements and an element of masu's for the shards
/// whose pages hold blocks; 0, `EINVAL` if `options` is not 0, or −1 if the stream fails.
///
/// # Safety
///
/// - `stream` is open for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut File) -> c_int {
    if options != 0 {
        return EINVAL;
    }
    let now = c::statistics();
    let format = c"<malloc version=\"1\">\n\
        <total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n\
        <total type=\"rest\" count=\"0\" size=\"%zu\"/>\n\
        <total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n\
        <system type=\"current\" size=\"%zu\"/>\n\
        <system type=\"max\" size=\"%zu\"/>\n\
        <aspace type=\"total\" size=\"%zu\"/>\n\
        <aspace type=\"mprotect\" size=\"%zu\"/>\n\
        <shards count=\"%zu\"/>\n\
        </malloc>\n";
    // SAFETY: The stream is open (the caller's condition) and the format takes ten sizes, which
    // follow.
    let printed = unsafe {
        libc::fprintf(
            stream,
            format.as_ptr(),
            now.cached_blocks,
            now.cached_bytes,
            now.free_bytes - now.cached_bytes.min(now.free_bytes),
            now.large_blocks,
            now.large_bytes,
            now.committed_bytes,
            now.committed_bytes,
            now.reserved_bytes,
            now.committed_bytes,
            now.shards,
        )
    };
    if printed < 0 { -1 } else { 0 }
}

// COUPLING: glibc's `struct mallinfo` and `struct mallinfo2` in <malloc.h>.
const _: () = assert!(size_of::<MallInfo>() == 10 * size_of::<c_int>());
const _: () = assert!(size_of::<MallInfo2>() == 10 * size_of::<usize>());
