//! System calls: mappings, their names, instruction caches, the thread pointer; and the C library's blocks.
//!
//! Relies on the `libc` crate for the calls and on nothing of this crate. No function here accepts a protection that is
//! both writable and executable, so no caller can make such a page.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Duration;

/// The access of a mapping. No value is both writable and executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Nothing,
    Read,
    Write,
    Execute,
}

impl Access {
    fn protection(self) -> libc::c_int {
        match self {
            Access::Nothing => libc::PROT_NONE,
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
            Access::Execute => libc::PROT_READ | libc::PROT_EXEC,
        }
    }
}

/// Opens no file through a link: others may write to `/tmp`, too.
pub(crate) const NO_LINK: i32 = libc::O_NOFOLLOW;

/// The size of an OS page in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: `sysconf` has no conditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

fn checked(address: *mut libc::c_void) -> io::Result<usize> {
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address as usize) }
}

/// Reserves `size` bytes of addresses at exactly `hint`, or anywhere without a hint.
pub(crate) fn reserve(hint: Option<usize>, size: usize) -> io::Result<usize> {
    let fixed = if hint.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    let wanted = hint.unwrap_or(0);
    // SAFETY: A new mapping replaces none: NOREPLACE, or no fixed address.
    let address =
        unsafe { libc::mmap(wanted as *mut libc::c_void, size, libc::PROT_NONE, flags, -1, 0) };
    let address = checked(address)?;
    if hint.is_some_and(|hint| hint != address) {
        // A kernel before 4.17 takes the address for a hint only.
        unmap(address, size);
        return Err(io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(address)
}

/// Maps private memory of zeros over a part of a reservation.
///
/// # Safety
///
/// - The addresses are the caller's, and their contents are not used.
pub(crate) unsafe fn map_private(address: usize, size: usize, access: Access) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: The caller's condition.
    let mapped = unsafe {
        libc::mmap(address as *mut libc::c_void, size, access.protection(), flags, -1, 0)
    };
    checked(mapped).map(drop)
}

/// Maps a part of a file, shared: at `address`, over the caller's reservation, or anywhere.
///
/// # Safety
///
/// - The addresses, where given, are the caller's, and their contents are not used.
pub(crate) unsafe fn map_file(
    address: Option<usize>,
    size: usize,
    access: Access,
    file: &File,
    offset: usize,
) -> io::Result<usize> {
    let flags = libc::MAP_SHARED | if address.is_some() { libc::MAP_FIXED } else { 0 };
    let wanted = address.unwrap_or(0) as *mut libc::c_void;
    let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: The caller's condition.
    let mapped =
        unsafe { libc::mmap(wanted, size, access.protection(), flags, file.as_raw_fd(), offset) };
    checked(mapped)
}

/// Changes the access of a mapping.
///
/// # Safety
///
/// - The addresses are the caller's, and no thread uses them in a way that is now forbidden.
pub(crate) unsafe fn protect(address: usize, size: usize, access: Access) -> io::Result<()> {
    // SAFETY: The caller's condition.
    let done = unsafe { libc::mprotect(address as *mut libc::c_void, size, access.protection()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives back a mapping's page table entries. A shared file keeps its contents; private memory loses them.
///
/// # Safety
///
/// - The addresses are the caller's; the contents of private memory are no longer needed.
pub(crate) unsafe fn drop_pages(address: usize, size: usize) {
    // SAFETY: The caller's condition. A failure leaves the pages, which costs memory only.
    unsafe { libc::madvise(address as *mut libc::c_void, size, libc::MADV_DONTNEED) };
}

/// Gives the file's pages under a shared mapping back to the kernel; they read as zeros.
///
/// # Safety
///
/// - The addresses are the caller's, and the contents are no longer needed.
pub(crate) unsafe fn punch(address: usize, size: usize) {
    // SAFETY: The caller's condition. A failure leaves the pages, which costs memory only.
    unsafe { libc::madvise(address as *mut libc::c_void, size, libc::MADV_REMOVE) };
}

/// Ends a mapping of the caller's.
pub(crate) fn unmap(address: usize, size: usize) {
    // SAFETY: Only owners of a mapping call this, when no thread can use it any more.
    unsafe { libc::munmap(address as *mut libc::c_void, size) };
}

/// A file of `size` zeros in memory, to be mapped more than once.
pub(crate) fn memory_file(name: &CStr, size: usize) -> io::Result<File> {
    // Kernels from 6.3 on want a flag for files that will be executed; older kernels refuse the flag.
    const MFD_EXEC: libc::c_uint = 0x10;
    let create = |flags| {
        // SAFETY: The name is a C string.
        unsafe { libc::memfd_create(name.as_ptr(), flags) }
    };
    let mut file = create(libc::MFD_CLOEXEC | MFD_EXEC);
    if file < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        file = create(libc::MFD_CLOEXEC);
    }
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: The descriptor is new and has no other owner.
    let file = unsafe { File::from_raw_fd(file) };
    let size = size as u64;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: There is room for the limit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if limit.rlim_cur < size {
        // The kernel would end the process (SIGXFSZ).
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    file.set_len(size)?;
    Ok(file)
}

/// Shared memory of zeros without a name, to be mapped more than once by [`map_again`].
pub(crate) fn map_shared(size: usize) -> io::Result<usize> {
    let (protection, flags) = (Access::Write.protection(), libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: A new mapping anywhere replaces none.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
    checked(mapped)
}

/// Maps shared memory a second time, at `address`, for another use.
///
/// # Safety
///
/// - The addresses from `address` on are the caller's and hold nothing.
pub(crate) unsafe fn map_again(
    shared: usize,
    size: usize,
    address: usize,
    access: Access,
) -> io::Result<()> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let (from, to) = (shared as *mut libc::c_void, address as *mut libc::c_void);
    // SAFETY: The caller's condition; for an old size of 0 the kernel makes a second mapping.
    checked(unsafe { libc::mremap(from, 0, size, flags, to) })?;
    // SAFETY: Nothing uses the new mapping yet.
    unsafe { protect(address, size, access) }
}

/// Names private memory in `/proc/PID/maps`, where the kernel can.
pub(crate) fn name(address: usize, size: usize, name: &'static CStr) {
    const PR_SET_VMA: libc::c_int = 0x53_56_4d_41;
    const PR_SET_VMA_ANON_NAME: libc::c_ulong = 0;
    // SAFETY: The call reads a C string and changes nothing but a name.
    unsafe { libc::prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, address, size, name.as_ptr()) };
}

/// A mapping that `perf` recognizes a jitdump by: one page of the file, executable, never run.
pub(crate) fn map_marker(file: &File) -> io::Result<usize> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
    // SAFETY: A new mapping anywhere replaces none.
    let mapped = unsafe {
        libc::mmap(std::ptr::null_mut(), page_size(), protection, flags, file.as_raw_fd(), 0)
    };
    checked(mapped)
}

/// The monotonic clock, which `perf record -k mono` uses too.
pub(crate) fn monotonic() -> Duration {
    clock(libc::CLOCK_MONOTONIC)
}

/// The time since this process began, rounded up.
pub(crate) fn age() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in parentheses, may hold anything. The start is the twentieth field behind it.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    // SAFETY: `sysconf` has no conditions.
    let a_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let start = Duration::from_millis((ticks * 1000).checked_div(a_second)?);
    clock(libc::CLOCK_BOOTTIME).checked_sub(start)
}

fn clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: The call fills a struct of ours.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether a debugger holds this process.
pub(crate) fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

const MEMBARRIER_SYNC_CORE: libc::c_int = 1 << 5;
const MEMBARRIER_REGISTER_SYNC_CORE: libc::c_int = 1 << 6;

/// Asks the kernel for [`make_executable`]'s barrier, once a process.
pub(crate) fn register_for_new_code() {
    // SAFETY: The call has no memory of ours; kernels without it refuse.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_REGISTER_SYNC_CORE, 0, 0) };
}

/// Makes every CPU that runs a thread of this process fetch newly written code again.
///
/// x86 keeps its instruction caches right by itself, but a core may hold decoded instructions that
/// were at these addresses before; the barrier makes it forget them.
pub(crate) fn synchronize_cores() {
    // SAFETY: The call has no memory of ours; kernels without it refuse.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_SYNC_CORE, 0, 0) };
}

/// Writes `size` new bytes of code through to where instructions are fetched from: written at
/// `written`, to be executed at `executed`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn make_executable(_written: usize, _executed: usize, _size: usize) {}

/// Writes `size` new bytes of code through to where instructions are fetched from: written at
/// `written`, to be executed at `executed`.
#[cfg(target_arch = "aarch64")]
pub(crate) fn make_executable(written: usize, executed: usize, size: usize) {
    let sizes: u64;
    // SAFETY: Reads the sizes of cache lines, which the kernel allows.
    unsafe { std::arch::asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack)) };
    let (data, code) = (4_usize << ((sizes >> 16) & 15), 4_usize << (sizes & 15));
    for line in (written & !(data - 1)..written + size).step_by(data) {
        // SAFETY: The address is mapped; writing a line back changes no contents.
        unsafe { std::arch::asm!("dc cvau, {}", in(reg) line, options(nostack)) };
    }
    // SAFETY: A barrier.
    unsafe { std::arch::asm!("dsb ish", options(nostack)) };
    for line in (executed & !(code - 1)..executed + size).step_by(code) {
        // SAFETY: The address is mapped; dropping a line of instructions changes no contents.
        unsafe { std::arch::asm!("ic ivau, {}", in(reg) line, options(nostack)) };
    }
    // SAFETY: Barriers.
    unsafe { std::arch::asm!("dsb ish", "isb", options(nostack)) };
}

/// The address that this thread's static storage is counted from.
#[cfg(target_arch = "x86_64")]
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: The ABI keeps the thread pointer's own address at its beginning.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(readonly, nostack)) };
    pointer
}

/// The address that this thread's static storage is counted from.
#[cfg(target_arch = "aarch64")]
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: Reads a register.
    unsafe { std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack)) };
    pointer
}
/// A block of the C library's: 0 where it has no memory.
pub(crate) fn malloc(size: usize) -> usize {
    // SAFETY: Any size may be requested.
    unsafe { libc::malloc(size) as usize }
}

/// Frees a block of the C library's.
///
/// # Safety
///
/// The block came from the C library's `malloc` and is freed once.
pub(crate) unsafe fn free(block: usize) {
    // SAFETY: The caller's condition.
    unsafe { libc::free(block as *mut libc::c_void) };
}
