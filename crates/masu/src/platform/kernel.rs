//! The kernel door: the only place in this crate that names a system call.
//!
//! Relies on atomics alone: calls use the CPU's own instruction, so `errno` of the C library stays as it is, and no
//! library stands between the allocator and the kernel. Callers see [`Errno`], addresses and lengths. This door has
//! nothing for threads and signals, and files only for a profile (`platform/kernel/file.rs`) and for the statistics
//! page.

#[cfg(not(all(test, loom)))]
#[cfg_attr(target_arch = "aarch64", path = "kernel/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "kernel/x86_64.rs")]
mod arch;
#[cfg(all(test, loom))]
#[path = "../../tests/models/system.rs"]
mod arch;

mod advised;
#[cfg(feature = "secure")]
pub(crate) mod entropy;
pub(crate) mod file;
mod locks;
mod purge_batch;
#[cfg(debug_assertions)]
mod refusals;
mod shared;

use crate::platform::atomics::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::ptr::{self, NonNull};

pub(crate) use advised::advised;
#[cfg(test)]
pub(crate) use advised::advised_here;
use arch::number;
pub(crate) use arch::thread_pointer;
#[cfg(all(test, loom))]
pub(crate) use arch::{begin, is_mapped, message};
pub(crate) use purge_batch::{Span, allow_purge_batches, batches_purges, drop_contents};
#[cfg(debug_assertions)]
pub(crate) use refusals::refuse_calls;
pub(crate) use shared::{Clock, SharedFile, nanoseconds, process_number, share, thread_number};

/// An error number as the kernel returns it (`errno(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    /// Out of memory, or of address space, or of mappings.
    pub(crate) const NOMEM: Errno = Errno(12);
    /// No such call, or not for this memory.
    const INVALID: Errno = Errno(22);
    /// Something is mapped there already.
    pub(crate) const EXIST: Errno = Errno(17);
    /// A file longer than this process may make.
    const TOO_BIG: Errno = Errno(27);
    /// More locked memory than this process may have, `mlock(2)`.
    pub(crate) const AGAIN: Errno = Errno(11);
}

/// The permitted uses of a range's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Addresses only: reserved, not committed.
    None = 0,
    /// Readable; memory that was never written reads as zero and is not resident.
    Read = 1,
    /// Readable and writable.
    ReadWrite = 3,
}

/// Advice on a range, `madvise(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Drop the contents: the range reads as zero afterwards and is not resident.
    DontNeed = 4,
    /// Back the range with huge pages where possible.
    HugePage = 14,
    /// Never back the range with huge pages.
    NoHugePage = 15,
    /// Leave the range out of core dumps.
    DontDump = 16,
    /// A forked child finds zeros there. From Linux 4.14 on.
    WipeOnFork = 18,
}

const MAP_PRIVATE_ANONYMOUS: usize = 0x22;
const MAP_FIXED: usize = 0x10;
const MAP_NORESERVE: usize = 0x4000;
const MAP_FIXED_NOREPLACE: usize = 0x10_0000;

/// Counts a lock, shared between threads, that this thread has taken or is about to release.
#[inline(always)]
pub(crate) fn note_lock(takes: bool) {
    if cfg!(debug_assertions) {
        locks::note(takes);
    }
}

/// Whether this thread holds no shared lock, as far as a debug build knows. Other builds do not count.
pub(crate) fn no_lock_is_held() -> bool {
    !cfg!(debug_assertions) || locks::held_by_this_thread() == 0
}

/// Refuses the next call for memory, if a test wants that.
#[inline(always)]
fn refuse() -> Result<(), Errno> {
    #[cfg(debug_assertions)]
    if refusals::is_next() {
        return Err(Errno::NOMEM);
    }
    Ok(())
}

fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) {
        Err(Errno(-result as i32))
    } else {
        Ok(result.cast_unsigned())
    }
}

/// Maps `length` bytes of zero memory anywhere. Not reserved against overcommit.
///
/// # Errors
///
/// The errors of `mmap(2)`; `ENOMEM` for want of memory, address space or mappings.
pub(crate) fn map(length: usize, protection: Protection) -> Result<NonNull<u8>, Errno> {
    map_near(0, length, protection, 0)
}

/// Maps `length` bytes of zero memory at exactly `address`.
///
/// # Errors
///
/// `EEXIST` where something is mapped there already, or what `mmap(2)` returns.
pub(crate) fn map_at(
    address: usize,
    length: usize,
    protection: Protection,
) -> Result<NonNull<u8>, Errno> {
    let mapped = map_near(address, length, protection, MAP_FIXED_NOREPLACE)?;
    if mapped.as_ptr().addr() == address {
        return Ok(mapped);
    }
    // Kernels before 4.17 take the address as a hint.
    // SAFETY: The range was mapped just now and nothing else knows of it.
    let _ = unsafe { unmap_unused(mapped, length) };
    Err(Errno::EXIST)
}

fn map_near(
    address: usize,
    length: usize,
    protection: Protection,
    flags: usize,
) -> Result<NonNull<u8>, Errno> {
    refuse()?;
    let flags = MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE | flags;
    // SAFETY: A new mapping that replaces none changes no memory in use. With `MAP_FIXED` the caller owns the range.
    let result = unsafe {
        arch::call6(number::MMAP, address, length, protection as usize, flags, usize::MAX, 0)
    };
    let address = check(result).map_err(note_refusal)?;
    NonNull::new(ptr::with_exposed_provenance_mut(address)).ok_or(Errno::NOMEM)
}

/// Prints a message once where the error is not about a lack of memory. Otherwise a program in a sandbox that forbids
/// the calls would only see allocations fail.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.refused.kernel_note_refusal")]
fn note_refusal(refusal: Errno) -> Errno {
    static SAID: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed: only the message depends on it.
    let is_usual = matches!(refusal, Errno::NOMEM | Errno::EXIST | Errno::AGAIN);
    if !is_usual && !SAID.swap(true, Ordering::Relaxed) {
        write_error(
            b"masu: the kernel refuses to map memory (mmap and mprotect): a sandbox's filter?\n",
        );
    }
    refusal
}

/// Unmaps a range: the kernel may give its addresses to anyone afterwards.
///
/// Where the kernel refuses (the limit on mappings), the range stays mapped, without its contents, and is lost.
///
/// # Safety
///
/// - The range was mapped by this door and nothing refers to it any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, length: usize) {
    debug_assert!(no_lock_is_held(), "this may take long");
    // SAFETY: The caller's condition.
    if unsafe { unmap_unused(start, length) }.is_err() {
        // SAFETY: As above, and nothing needs the contents.
        let _ = unsafe { advise(start, length, Advice::DontNeed) };
    }
}

/// Unmaps a range that was never used, which is fast for any length.
///
/// # Errors
///
/// The errors of `munmap(2)`: the range is still mapped then.
///
/// # Safety
///
/// - As [`unmap`].
pub(crate) unsafe fn unmap_unused(start: NonNull<u8>, length: usize) -> Result<(), Errno> {
    refuse()?;
    // SAFETY: The caller owns the range.
    let result = unsafe { arch::call6(number::MUNMAP, start.as_ptr().addr(), length, 0, 0, 0, 0) };
    check(result).map(drop)
}

/// Makes a reserved range that was never used readable and writable.
///
/// # Errors
///
/// `ENOMEM` where the kernel has no memory or mapping left for the change.
///
/// # Safety
///
/// - The range was mapped by this door and nobody ever wrote to it.
pub(crate) unsafe fn commit(start: NonNull<u8>, length: usize) -> Result<(), Errno> {
    // SAFETY: The caller's condition.
    match unsafe { protect(start, length, Protection::ReadWrite) } {
        // SAFETY: As above.
        Err(refusal) if refusal != Errno::NOMEM => unsafe { replace(start, length) },
        outcome => outcome,
    }
}

/// Replaces a mapping with a zero one that is readable and writable: for [`commit`] where a sandbox refuses `mprotect`.
///
/// # Errors
///
/// `ENOMEM` where the kernel has no memory or mapping left for the change.
///
/// # Safety
///
/// - The range was mapped by this door and nothing needs its contents.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.refused.kernel_replace")]
pub(crate) unsafe fn replace(start: NonNull<u8>, length: usize) -> Result<(), Errno> {
    map_near(start.as_ptr().addr(), length, Protection::ReadWrite, MAP_FIXED).map(drop)
}

/// Drops a range's contents and makes it inaccessible, until [`protect`] opens it.
///
/// # Safety
///
/// - The range was mapped by this door and nothing needs its contents.
pub(crate) unsafe fn close(start: NonNull<u8>, length: usize) {
    if map_near(start.as_ptr().addr(), length, Protection::None, MAP_FIXED).is_err() {
        // SAFETY: The caller's condition. If this is refused too, the range stays as it is; so does it below.
        let _ = unsafe { advise(start, length, Advice::DontNeed) };
        // SAFETY: As above.
        let _ = unsafe { protect(start, length, Protection::None) };
    }
}

/// Changes how a range may be accessed.
///
/// # Errors
///
/// `ENOMEM` where the kernel has no memory or mapping left for the change.
///
/// # Safety
///
/// - The range was mapped by this door, and no reference into it outlives the access it needs.
pub(crate) unsafe fn protect(
    start: NonNull<u8>,
    length: usize,
    protection: Protection,
) -> Result<(), Errno> {
    refuse()?;
    let address = start.as_ptr().addr();
    // SAFETY: The caller owns the range.
    let result =
        unsafe { arch::call6(number::MPROTECT, address, length, protection as usize, 0, 0, 0) };
    check(result).map(drop)
}

/// Advises the kernel on a range.
///
/// # Errors
///
/// The errors of `madvise(2)`; the contents are then unchanged or unknown.
///
/// # Safety
///
/// - The range was mapped by this door.
/// - With [`Advice::DontNeed`], nothing needs its contents any more.
pub(crate) unsafe fn advise(
    start: NonNull<u8>,
    length: usize,
    advice: Advice,
) -> Result<(), Errno> {
    debug_assert!(advice != Advice::DontNeed || no_lock_is_held(), "this may take long");
    let address = start.as_ptr().addr();
    // SAFETY: The caller owns the range and has given up its contents where they are dropped.
    let call =
        || unsafe { arch::call6(number::MADVISE, address, length, advice as usize, 0, 0, 0) };
    let done = refuse().and_then(|()| check(call()).map(drop));
    advised::count(advice, length, done);
    done
}

/// Drops the contents of a range; whether it reads as zero now. Contents that are not dropped stay as they were: the
/// hardened build knows of free blocks that they are zero.
///
/// The first success of `madvise` is checked: qemu-user before 7.1 and some sandboxes do nothing and report success.
///
/// # Safety
///
/// - The range is readable and writable, was mapped by this door, and nothing uses its contents at the same time.
#[inline(never)]
pub(crate) unsafe fn discard(start: NonNull<u8>, length: usize) -> bool {
    const UNKNOWN: usize = 0;
    const KEPT: usize = 1;
    const BROKEN: usize = 2;
    static PROMISE: AtomicUsize = AtomicUsize::new(UNKNOWN);
    // ORDERING: Relaxed on both accesses: no other memory depends on the value, and a thread that does not see it finds
    // the same one.
    let promise = PROMISE.load(Ordering::Relaxed);
    if promise != UNKNOWN {
        // SAFETY: The caller's condition.
        return unsafe { advise(start, length, Advice::DontNeed) }.is_ok() && promise == KEPT;
    }
    // SAFETY: As above.
    let is_zero = unsafe { discard_and_look(start, length) };
    if let Ok(is_zero) = is_zero {
        // ORDERING: As above.
        PROMISE.store(if is_zero { KEPT } else { BROKEN }, Ordering::Relaxed);
    }
    is_zero == Ok(true)
}

/// [`discard`] that looks whether the contents are gone after the kernel's success.
///
/// # Errors
///
/// The errors of `madvise(2)`.
///
/// # Safety
///
/// - As [`discard`].
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.kernel_discard_and_look")]
unsafe fn discard_and_look(start: NonNull<u8>, length: usize) -> Result<bool, Errno> {
    let word = start.cast::<usize>();
    // SAFETY: The range is readable, and any value is a valid number; the same holds below.
    let before = unsafe { word.read_volatile() };
    // SAFETY: The range is writable and nothing uses its contents; the same holds below.
    unsafe { word.write_volatile(usize::MAX) };
    // SAFETY: The caller's condition.
    let done = unsafe { advise(start, length, Advice::DontNeed) };
    // SAFETY: As above.
    let is_zero = unsafe { word.read_volatile() } == 0;
    if !is_zero {
        // SAFETY: As above.
        unsafe { word.write_volatile(before) };
    }
    done.map(|()| is_zero)
}

/// The limit on this process's address space in bytes (`RLIMIT_AS`); `usize::MAX` where there is
/// none.
pub(crate) fn address_space_limit() -> usize {
    const RLIMIT_AS: usize = 9;
    limit(RLIMIT_AS)
}

/// The limit on the memory that this process may lock, in bytes (`RLIMIT_MEMLOCK`).
pub(crate) fn locked_memory_limit() -> usize {
    const RLIMIT_MEMLOCK: usize = 8;
    limit(RLIMIT_MEMLOCK)
}

/// The limit on the length of files that this process makes, in bytes (`RLIMIT_FSIZE`).
fn file_size_limit() -> usize {
    const RLIMIT_FSIZE: usize = 1;
    limit(RLIMIT_FSIZE)
}

/// The limit on a resource of this process (`getrlimit(2)`); `usize::MAX` where there is none.
fn limit(resource: usize) -> usize {
    let mut limits = [usize::MAX; 2];
    let address = limits.as_mut_ptr().expose_provenance();
    // SAFETY: The kernel writes two words into `limits`.
    let _ = unsafe { arch::call6(number::PRLIMIT64, 0, resource, 0, address, 0, 0) };
    limits[0]
}

/// An address from which on nothing is mapped for `length` bytes now, chosen by the kernel; `None` where there is none.
#[cold]
#[inline(never)]
pub(crate) fn free_address(length: usize) -> Option<usize> {
    let start = map(length, Protection::None).ok()?;
    // SAFETY: The mapping was made just now and nothing else knows of it.
    let _ = unsafe { unmap_unused(start, length) };
    Some(start.as_ptr().addr())
}

/// Sleeps while `word` holds `expected`, until [`wake_one`], a signal, or spuriously.
///
/// The sleep ends after a second at the latest: a filter may refuse [`wake_one`].
pub(crate) fn wait_while(word: &AtomicU32, expected: u32) {
    static SECONDS_AND_NANOSECONDS: [i64; 2] = [1, 0];
    wait_within(&SECONDS_AND_NANOSECONDS, word, expected);
}

/// The same for a millisecond at most.
pub(crate) fn wait_briefly(word: &AtomicU32, expected: u32) {
    static SECONDS_AND_NANOSECONDS: [i64; 2] = [0, 1_000_000];
    wait_within(&SECONDS_AND_NANOSECONDS, word, expected);
}

fn wait_within(limit: &'static [i64; 2], word: &AtomicU32, expected: u32) {
    const FUTEX_WAIT_PRIVATE: usize = 128;
    let address = word.as_ptr().addr();
    let limit = ptr::from_ref(limit).expose_provenance();
    // SAFETY: The kernel only reads the word, which the reference keeps alive, and the time.
    let _ = unsafe {
        arch::call6(number::FUTEX, address, FUTEX_WAIT_PRIVATE, expected as usize, limit, 0, 0)
    };
}

/// Wakes one thread that sleeps on `word`.
pub(crate) fn wake_one(word: &AtomicU32) {
    const FUTEX_WAKE_PRIVATE: usize = 129;
    let address = word.as_ptr().addr();
    // SAFETY: Waking changes no memory.
    let _ = unsafe { arch::call6(number::FUTEX, address, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0) };
}

/// The number of CPUs that this thread may run on, at least 1.
#[cold]
#[inline(never)]
pub(crate) fn cpu_count() -> usize {
    let mut mask = [0_u64; 128];
    let (size, address) = (size_of_val(&mask), mask.as_mut_ptr().expose_provenance());
    // SAFETY: The kernel writes at most `size` bytes into `mask`.
    let result = unsafe { arch::call6(number::SCHED_GETAFFINITY, 0, size, address, 0, 0, 0) };
    match check(result) {
        Ok(_) => mask.iter().map(|word| word.count_ones() as usize).sum::<usize>().max(1),
        Err(_) => 1,
    }
}

/// Writes a message to standard error; errors are ignored.
pub(crate) fn write_error(message: &[u8]) {
    let address = message.as_ptr().expose_provenance();
    // SAFETY: The kernel only reads the message.
    let _ = unsafe { arch::call6(number::WRITE, 2, address, message.len(), 0, 0, 0) };
}

/// Blocks exactly these signals in this thread, one a bit; returns those that were blocked before. All bits if the
/// kernel refuses: two signals are never blocked.
pub(crate) fn replace_blocked_signals(mask: usize) -> usize {
    const SIG_SETMASK: usize = 2;
    let mut before = usize::MAX;
    let [new, old] =
        [&raw const mask, (&raw mut before).cast_const()].map(<*const _>::expose_provenance);
    let length = size_of_val(&mask);
    // SAFETY: The kernel reads one mask and writes the other, each of that length.
    let _ = unsafe { arch::call6(number::RT_SIGPROCMASK, SIG_SETMASK, new, old, length, 0, 0) };
    before
}

/// Whether the word at `address`, and so all of its OS page, is readable now.
///
/// Calls `rt_sigprocmask` with an invalid operation: the kernel refuses, but only after it has read the new mask from
/// the address.
pub(crate) fn is_readable(address: usize) -> bool {
    const NO_WAY: usize = usize::MAX;
    const MASK_BYTES: usize = 8;
    // SAFETY: The kernel only reads, and changes nothing.
    let result =
        unsafe { arch::call6(number::RT_SIGPROCMASK, NO_WAY, address, 0, MASK_BYTES, 0, 0) };
    // `EINVAL` means that the mask was read. A filter's refusal says nothing about the word.
    address != 0 && check(result) == Err(Errno::INVALID)
}

/// The size of an OS page in bytes: 4, 16 or 64 KiB, known only at run time. Most ranges passed to this door are
/// multiples of slices and need not ask.
#[inline(never)]
pub(crate) fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    // ORDERING: Relaxed on both accesses: no other memory depends on the value.
    let known = SIZE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let size = measure_page_size();
    // The first result holds for all threads: a thread that finds no memory to measure with has another one.
    match SIZE.compare_exchange(0, size, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => size,
        Err(known) => known,
    }
}

/// Asks the kernel, because the C library may not have started yet: `madvise` refuses an address that is not a multiple
/// of the page size with `EINVAL`.
fn measure_page_size() -> usize {
    const LARGEST: usize = 64 << 10;
    const NORMAL: usize = 0;
    let Ok(start) = map(2 * LARGEST, Protection::Read) else {
        return LARGEST;
    };
    let aligned = (start.as_ptr().addr() + LARGEST - 1) & !(LARGEST - 1);
    let accepted = |size: &usize| {
        // SAFETY: `MADV_NORMAL` changes nothing here; the range lies inside the mapping above.
        let result =
            unsafe { arch::call6(number::MADVISE, aligned + size, *size, NORMAL, 0, 0, 0) };
        check(result).is_ok()
    };
    let size = [4 << 10, 16 << 10].into_iter().find(accepted).unwrap_or(LARGEST);
    // SAFETY: The mapping was made above and nothing else knows of it.
    let _ = unsafe { unmap_unused(start, 2 * LARGEST) };
    size
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn contents_that_the_kernel_keeps_stay_as_they_were() {
        const BYTES: usize = 64 << 10;
        let start = map(BYTES, Protection::ReadWrite).expect("memory");
        // SAFETY: The range was mapped just now, and is that long; the same holds below.
        unsafe { start.write_bytes(7, BYTES) };
        // SAFETY: The call changes no contents; the same holds for its opposite.
        let refusal = unsafe { ::libc::mlock(start.as_ptr().cast(), BYTES) };
        assert_eq!(refusal, 0, "so much may be locked");
        // SAFETY: Nothing uses the contents.
        assert_eq!(unsafe { discard_and_look(start, BYTES) }, Err(Errno::INVALID));
        // SAFETY: As above.
        let bytes = unsafe { core::slice::from_raw_parts(start.as_ptr(), BYTES) };
        assert!(bytes.iter().all(|byte| *byte == 7));
        // SAFETY: As above.
        assert_eq!(unsafe { ::libc::munlock(start.as_ptr().cast(), BYTES) }, 0);
        // SAFETY: Nothing refers to it any more.
        unsafe { unmap(start, BYTES) };
    }
}
