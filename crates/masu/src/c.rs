//! The malloc family with C's meaning, for `masu-abi` and for tests: what C23 and POSIX say of
//! sizes, alignment and failure, `errno` set to `ENOMEM` where they return null.
//!
//! TEMPORARY: a bump pointer, until the real allocator stands under the same signatures.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::kernel::{self, Protection};

static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Counts of bytes, as the `mallinfo2` family reports them.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes in blocks handed out, rounded to their size classes.
    pub live_bytes: usize,
    /// Bytes of large blocks (over 32 KiB) among them, and how many they are.
    pub large_bytes: usize,
    /// Large blocks handed out.
    pub large_blocks: usize,
    /// Bytes free inside pages, caches and free ranges, backed by memory.
    pub free_bytes: usize,
    /// Bytes readable and writable: what the kernel may have to back.
    pub committed_bytes: usize,
    /// Bytes of addresses reserved.
    pub reserved_bytes: usize,
}

/// What to do with a pointer that masu did not hand out.
#[derive(Clone, Copy)]
pub struct Foreign {
    /// Frees it.
    pub free: unsafe extern "C" fn(*mut u8),
    /// Changes its size, as `realloc`.
    pub realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    /// Its usable size in bytes, as `malloc_usable_size`.
    pub usable_size: unsafe extern "C" fn(*mut u8) -> usize,
}

/// Allocates `size` bytes, aligned to 16; a size of 0 gives a block of its own.
///
/// Null and `ENOMEM` where there is no memory or `size` is over `PTRDIFF_MAX`.
#[inline(always)]
#[must_use]
pub fn malloc(size: usize) -> *mut u8 {
    bump(size, 16)
}

fn bump(size: usize, align: usize) -> *mut u8 {
    if size > isize::MAX as usize - align - 64 {
        return ptr::null_mut();
    }
    let size = (size + 15) & !15;
    let n = size + align + 16;
    loop {
        let p = NEXT.fetch_add(n, Ordering::SeqCst);
        if p != 0 && p + n <= END.load(Ordering::SeqCst) {
            let q = (p + 16 + align - 1) & !(align - 1);
            unsafe { *(ptr::with_exposed_provenance_mut::<usize>(q - 16)) = size };
            return ptr::with_exposed_provenance_mut(q);
        }
        let len = (n + 4096).max(1 << 30) & !4095;
        let Ok(m) = kernel::map(len, Protection::ReadWrite) else { return ptr::null_mut() };
        END.store(m.as_ptr().addr() + len, Ordering::SeqCst);
        NEXT.store(m.as_ptr().expose_provenance(), Ordering::SeqCst);
    }
}

/// Frees a block; null is nothing to free. `errno` is kept.
///
/// # Safety
///
/// - `block` is null, or was handed out by this family or by a malloc that [`set_foreign`] knows,
///   and is not used afterwards.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    let _ = block;
}

/// Allocates `count` × `size` zero bytes.
///
/// Null and `ENOMEM` as [`malloc`], and where the product overflows.
#[inline(always)]
#[must_use]
pub fn calloc(count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        Some(n) => bump(n, 16),
        None => ptr::null_mut(),
    }
}

/// Changes the size of a block; the contents up to the smaller size are kept. Null allocates.
/// A `size` of 0 gives a smallest block (`masu-abi` decides what C's `realloc(p, 0)` does).
///
/// Null and `ENOMEM` on failure: the old block is then intact.
///
/// # Safety
///
/// - As [`free`]; after success the old pointer is not used any more.
#[inline]
pub unsafe fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    let new = malloc(size);
    if !block.is_null() && !new.is_null() {
        unsafe { ptr::copy_nonoverlapping(block, new, size.min(usable_size(block))) };
    }
    new
}

/// Allocates `size` bytes aligned to `align`, a power of two (0 counts as 1).
///
/// Null and `ENOMEM` as [`malloc`].
#[inline]
#[must_use]
pub fn aligned_alloc(align: usize, size: usize) -> *mut u8 {
    bump(size, align.max(16))
}

/// How many bytes of a block may be used; 0 for null. Constant for the block's life.
///
/// # Safety
///
/// - As [`free`], except that the block may be used afterwards.
#[inline]
#[must_use]
pub unsafe fn usable_size(block: *mut u8) -> usize {
    if block.is_null() {
        return 0;
    }
    unsafe { *block.sub(16).cast::<usize>() }
}

/// Returns to the system what is free, down to about `pad` bytes; whether anything was returned.
pub fn trim(pad: usize) -> bool {
    let _ = pad;
    false
}

/// Counts of bytes now.
#[must_use]
pub fn statistics() -> Statistics {
    Statistics::default()
}

/// Says what to do with pointers that masu did not hand out; without it, they end the program with
/// a message.
pub fn set_foreign(foreign: Foreign) {
    let _ = foreign;
    let _ = NonNull::<u8>::dangling();
}
