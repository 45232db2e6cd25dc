//! The malloc family with C's meaning, for `masu-abi` and for tests: sizes, alignment and failure as C23 and POSIX
//! define them, with `errno` set to `ENOMEM` where a function returns null.
//!
//! Relies on the front. It adds `errno`, and calls another malloc for pointers that are not masu's.

pub mod heap;

use core::ffi::c_int;
use core::ptr::{self, NonNull};

pub use crate::platform::environment::Environment;
pub use crate::statistics::Statistics;

use crate::memory::class::MIN_ALIGN;
use crate::platform::fault::{self, Fault};
use crate::platform::libc;
use crate::platform::sync::{AtomicPtr, Ordering};
use crate::requests::front::FreedBy;
use crate::requests::{front, reclaim};
use crate::threads::cache::all;
use crate::threads::thread;
use crate::{settings, statistics};

const ENOMEM: c_int = 12;

/// Registers the handlers of `fork` and of thread exit, which the first allocation does otherwise. For a library that
/// replaces the C library's malloc, before the program runs.
///
/// ```
/// masu::c::prepare();
/// assert!(!masu::c::malloc(1).is_null());
/// ```
pub fn prepare() {
    thread::prepare();
}

/// The functions for pointers that masu did not hand out.
///
/// ```
/// use masu::c::{Foreign, set_foreign};
///
/// unsafe extern "C" fn free(_: *mut u8) {}
/// unsafe extern "C" fn realloc(_: *mut u8, _: usize) -> *mut u8 {
///     std::ptr::null_mut()
/// }
/// unsafe extern "C" fn usable_size(_: *mut u8) -> usize {
///     0
/// }
/// // Blocks of another malloc stay where they are.
/// static LEFT_ALONE: Foreign = Foreign { free, realloc, usable_size };
/// set_foreign(&LEFT_ALONE);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// Frees the block.
    pub free: unsafe extern "C" fn(*mut u8),
    /// Changes the size of the block, as `realloc`.
    pub realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    /// The block's usable size in bytes, as `malloc_usable_size`.
    pub usable_size: unsafe extern "C" fn(*mut u8) -> usize,
}

static FOREIGN: AtomicPtr<Foreign> = AtomicPtr::new(ptr::null_mut());

/// Sets the functions for pointers that masu did not hand out. Without them a foreign pointer ends the program with a
/// message.
///
/// ```
/// # use masu::c::Foreign;
/// # unsafe extern "C" fn free(_: *mut u8) {}
/// # unsafe extern "C" fn realloc(_: *mut u8, _: usize) -> *mut u8 {
/// #     std::ptr::null_mut()
/// # }
/// # unsafe extern "C" fn usable_size(_: *mut u8) -> usize {
/// #     0
/// # }
/// static OTHER: Foreign = Foreign { free, realloc, usable_size };
/// masu::c::set_foreign(&OTHER);
/// ```
pub fn set_foreign(foreign: &'static Foreign) {
    // ORDERING: Release publishes the structure behind the reference; it pairs with the Acquire below.
    FOREIGN.store(ptr::from_ref(foreign).cast_mut(), Ordering::Release);
}

/// The number of forks between the first process and this one. A thread that noted another number noted it in another
/// process, and the thread may be missing in this one.
///
/// ```
/// assert_eq!(masu::c::generation(), masu::c::generation());
/// ```
#[must_use]
pub fn generation() -> usize {
    all::generation()
}

#[cold]
#[inline(never)]
fn foreign() -> &'static Foreign {
    // ORDERING: Acquire, as above.
    let foreign = FOREIGN.load(Ordering::Acquire);
    // SAFETY: `set_foreign` took a `'static` reference.
    match unsafe { foreign.as_ref() } {
        Some(foreign) => foreign,
        None => fault::stop(Fault::ForeignPointer),
    }
}

/// Sets `errno` where there is no block.
#[inline(always)]
fn or_errno(block: *mut u8) -> *mut u8 {
    if block.is_null() { retry(usize::MAX, &ptr::null_mut) } else { block }
}

/// The block that `allocate` returns for `size` bytes; sets `errno` where there is no block.
#[inline(always)]
fn or_retry(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let block = allocate();
    if block.is_null() { retry(size, &allocate) } else { block }
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.reclaim.c_retry")]
fn retry(size: usize, allocate: &dyn Fn() -> *mut u8) -> *mut u8 {
    let block = reclaim::retry(size, allocate);
    if block.is_null() {
        libc::set_errno(ENOMEM);
    }
    block
}

/// Allocates `size` bytes, aligned to 16; a size of 0 gives a block of its own.
///
/// Null and `ENOMEM` where there is no memory or `size` is over `PTRDIFF_MAX`.
///
/// ```
/// let block = masu::c::malloc(100);
/// assert!(!block.is_null() && block.addr() % 16 == 0);
/// unsafe { masu::c::free(block) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc(size: usize) -> *mut u8 {
    let block = front::cached(size);
    if block.is_null() { malloc_slow(size) } else { block }
}

/// A block for `size` bytes if this thread's cache holds one, else null; leaves `errno` alone. This is the part of
/// [`malloc`] that needs no stack frame, for callers that report failure in another way.
///
/// ```
/// let mut block = masu::c::cached(64);
/// if block.is_null() {
///     block = masu::c::malloc(64);
/// }
/// unsafe { masu::c::free(block) };
/// ```
#[inline(always)]
#[must_use]
pub fn cached(size: usize) -> *mut u8 {
    front::cached(size)
}

#[inline(never)]
fn malloc_slow(size: usize) -> *mut u8 {
    let block = front::cached_counted(size);
    if block.is_null() { malloc_slower(size) } else { block }
}

/// The slow path: nothing is cached, or the request is one to sample.
#[cfg_attr(any(feature = "profile", feature = "guards"), inline(never))]
fn malloc_slower(size: usize) -> *mut u8 {
    or_retry(size, || front::allocate(size))
}

/// Frees a block; null is nothing to free. `errno` is kept.
///
/// ```
/// let block = masu::c::malloc(100);
/// unsafe { masu::c::free(block) };
/// unsafe { masu::c::free(std::ptr::null_mut()) };
/// ```
///
/// # Safety
///
/// - `block` is null, or was handed out by this family or by a malloc that [`set_foreign`] knows,
///   and is not used afterwards.
#[inline(always)]
pub unsafe fn free(block: *mut u8) {
    // SAFETY: The caller's condition.
    if !unsafe { front::free_cached(block) } {
        // SAFETY: As above.
        unsafe { free_slow(block) };
    }
}

/// # Safety
///
/// - As [`free`].
#[cold]
#[inline(never)]
unsafe fn free_slow(block: *mut u8) {
    // SAFETY: The caller's condition, of `free` and of the function for foreign blocks.
    unsafe { front::free(block, |block| (foreign().free)(block)) };
}

/// As [`free`], with the alignment that the caller states, and the size if the caller knows it. Hardened build only: a
/// wrong size or alignment ends the program.
///
/// ```
/// let block = masu::c::aligned_alloc(64, 100);
/// unsafe { masu::c::free_sized(block, Some(100), 64) };
/// ```
///
/// # Safety
///
/// - As [`free`].
#[cfg(feature = "secure")]
#[inline]
pub unsafe fn free_sized(block: *mut u8, size: Option<usize>, align: usize) {
    // SAFETY: The caller's condition.
    unsafe { front::free_sized(block, size, align) };
}

/// Allocates `count` × `size` zero bytes.
///
/// Null and `ENOMEM` as [`malloc`], and where the product overflows.
///
/// ```
/// let block = masu::c::calloc(10, 8);
/// assert_eq!(unsafe { block.add(79).read() }, 0);
/// unsafe { masu::c::free(block) };
/// assert!(masu::c::calloc(usize::MAX, 8).is_null());
/// ```
#[inline]
#[must_use]
pub fn calloc(count: usize, size: usize) -> *mut u8 {
    let Some(bytes) = count.checked_mul(size) else { return or_errno(ptr::null_mut()) };
    let block = front::cached(bytes);
    if block.is_null() {
        return or_retry(bytes, || front::allocate_zeroed(bytes, MIN_ALIGN, FreedBy::Map));
    }
    // SAFETY: The block is at least that long and the caller's.
    unsafe { block.write_bytes(0, bytes) };
    block
}

/// Changes the size of a block; the contents up to the smaller size are kept. Null allocates.
/// A `size` of 0 gives a smallest block (`masu-abi` decides what C's `realloc(p, 0)` does).
///
/// Null and `ENOMEM` on failure: the old block is then intact.
///
/// ```
/// let block = masu::c::calloc(1, 10);
/// let block = unsafe { masu::c::realloc(block, 1000) };
/// assert_eq!(unsafe { block.read() }, 0);
/// unsafe { masu::c::free(block) };
/// ```
///
/// # Safety
///
/// - As [`free`]; after success the old pointer is not used any more.
#[inline]
pub unsafe fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    let Some(old) = NonNull::new(block) else { return malloc(size) };
    // SAFETY: The caller's condition.
    match unsafe { front::resize(old, size) } {
        Ok(new) if new.is_null() => {
            // SAFETY: The caller's condition: the block is intact.
            retry(size, &|| unsafe { front::resize(old, size) }.unwrap_or(ptr::null_mut()))
        }
        Ok(new) => new,
        // SAFETY: The caller's condition.
        Err(front::Foreign) => unsafe { (foreign().realloc)(block, size) },
    }
}

/// Allocates `size` bytes aligned to `align`, a power of two (0 counts as 1).
///
/// Null and `ENOMEM` as [`malloc`], and where `align` is over 512 MiB.
///
/// ```
/// let block = masu::c::aligned_alloc(4096, 100);
/// assert_eq!(block.addr() % 4096, 0);
/// unsafe { masu::c::free(block) };
/// ```
#[inline]
#[must_use]
pub fn aligned_alloc(align: usize, size: usize) -> *mut u8 {
    or_retry(size, || front::allocate_aligned(size, align.max(1), FreedBy::Map))
}

/// The number of bytes of a block that may be used; 0 for null. Constant for the block's life.
///
/// ```
/// let block = masu::c::malloc(100);
/// assert!(unsafe { masu::c::usable_size(block) } >= 100);
/// unsafe { masu::c::free(block) };
/// ```
///
/// # Safety
///
/// - As [`free`], except that the block may be used afterwards.
#[inline]
#[must_use]
pub unsafe fn usable_size(block: *mut u8) -> usize {
    let Some(ours) = NonNull::new(block) else { return 0 };
    // SAFETY: The caller's condition.
    match unsafe { front::usable_size(ours) } {
        Ok(size) => size,
        // SAFETY: The caller's condition.
        Err(front::Foreign) => unsafe { (foreign().usable_size)(block) },
    }
}

/// Purges free memory down to about `pad` bytes; returns whether anything was purged.
///
/// ```
/// unsafe { masu::c::free(masu::c::malloc(64 << 20)) };
/// let is_smaller = masu::c::trim(0);
/// # let _ = is_smaller;
/// ```
pub fn trim(pad: usize) -> bool {
    reclaim::trim(pad)
}

/// Reads the options in `environment`, unless they were read before. Otherwise they are read as soon as the C library
/// has the environment.
///
/// ```
/// if let Some(environment) = masu::c::Environment::current() {
///     masu::c::read_options(&environment);
/// }
/// ```
pub fn read_options(environment: &Environment) {
    thread::read_variables(environment);
}

/// Sets the option `name` to `value`, unless it was set as an option of masu: for settings of the malloc that masu
/// replaces.
///
/// ```
/// masu::options::set("retain", Some(1 << 20))?;
/// masu::c::suggest("retain", 64 << 20);
/// assert_eq!(masu::options::get("retain")?, Some(1 << 20));
/// # Ok::<(), masu::options::Refusal>(())
/// ```
pub fn suggest(name: &str, value: usize) {
    settings::suggest(name, value);
}

/// The statistics of the process now.
///
/// ```
/// let block = masu::c::malloc(1000);
/// assert!(masu::c::statistics().live_bytes >= 1000);
/// unsafe { masu::c::free(block) };
/// ```
#[must_use]
pub fn statistics() -> Statistics {
    statistics::now()
}
