//! glibc's reports about its malloc: `mallinfo`, `mallinfo2`, `malloc_stats`, `malloc_info`.
//!
//! It relies on `masu::c::statistics` for the numbers and on the C library's `fprintf` to print them. The hard idea:
//! the structures and the XML are glibc's, read by tools that know glibc's heap (one area that grows, and blocks mapped
//! singly). masu fills the fields that mean the same in masu, and the rest is zero.

use core::ffi::c_int;

use alloc_core::c;

use crate::libc::{self, EINVAL, File};
use crate::masu::statistics::masu_statistics_text_to;

/// glibc's `struct mallinfo2` of sizes, and its `struct mallinfo` of numbers that may be too small for them.
#[repr(C)]
pub struct MallInfo<Number>([Number; 10]);

/// `mallinfo2(3)`: the allocator's numbers now, in bytes and counts.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> MallInfo<usize> {
    let now = c::statistics();
    let in_use = now.live_bytes.saturating_sub(now.large_bytes);
    // COUPLING: the order of the fields in <malloc.h>.
    MallInfo([
        // `arena`: bytes of the heap, in use and free, blocks of their own mapping left out.
        in_use + now.free_bytes,
        // `ordblks`: free ranges, a count.
        0,
        // `smblks`: free small blocks, a count.
        now.cached_blocks,
        // `hblks` and `hblkhd`: blocks of their own mapping, a count, and their bytes.
        now.large_blocks,
        now.large_bytes,
        // `usmblks`: always 0, in glibc too.
        0,
        // `fsmblks`: bytes in free small blocks.
        now.cached_bytes,
        // `uordblks`: bytes in use, blocks of their own mapping left out.
        in_use,
        // `fordblks`: free bytes in the heap.
        now.free_bytes,
        // `keepcost`: the most bytes that `malloc_trim` could return.
        now.free_bytes,
    ])
}

/// `mallinfo(3)`: as [`mallinfo2`], with fields that stop at `INT_MAX` (glibc's wrap around).
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> MallInfo<c_int> {
    MallInfo(mallinfo2().0.map(|number| c_int::try_from(number).unwrap_or(c_int::MAX)))
}

/// A second name of [`mallinfo`].
#[unsafe(no_mangle)]
pub extern "C" fn __libc_mallinfo() -> MallInfo<c_int> {
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
