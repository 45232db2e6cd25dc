//! Memory that other processes may read, with the process's number and a clock for the readers.
//!
//! Relies on a file in memory (`memfd_create(2)`): processes with the right to do so find it under `/proc/PID/fd`, and
//! it goes with the process. The hard idea is how others could harm this process through the file: shortening it under
//! a mapping would kill a process that touches the mapping. So the length is sealed, and so is writing by others, where
//! the kernel has that seal.

use core::ffi::CStr;
use core::ptr::{self, NonNull};

use super::arch::{self, number};
use super::{Errno, check, file_size_limit};

/// A file in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedFile {
    pub(crate) descriptor: usize,
    /// Device and inode, which identify the file.
    pub(crate) identity: [usize; 2],
}

/// The file gets a descriptor from here on, because programs expect the lowest free ones.
const DESCRIPTOR_MIN: usize = 960;

/// Maps a new file called `name` of `length` zero bytes, which only this process may write.
///
/// # Errors
///
/// The errors of the calls; `EFBIG` where a limit on file sizes forbids it.
#[inline(never)]
pub(crate) fn share(name: &CStr, length: usize) -> Result<(NonNull<u8>, SharedFile), Errno> {
    const CLOSE_ON_EXEC: usize = 1;
    const ALLOW_SEALING: usize = 2;
    /// No program, and never one: from Linux 6.3 on, and a must where `vm.memfd_noexec` is 2.
    const NO_EXEC: usize = 8;
    // Beyond the limit a signal ends the program.
    if file_size_limit() < length {
        return Err(Errno::TOO_BIG);
    }
    let create = |flags| {
        let flags = flags | CLOSE_ON_EXEC | ALLOW_SEALING;
        call(number::MEMFD_CREATE, [name.as_ptr().expose_provenance(), flags, 0])
    };
    let descriptor = create(NO_EXEC).or_else(|_| create(0))?;
    match map_shared(descriptor, length) {
        Ok(start) => {
            seal(descriptor);
            let descriptor = moved_high(descriptor);
            Ok((start, SharedFile { descriptor, identity: identity(descriptor) }))
        }
        Err(errno) => {
            let _ = call(number::CLOSE, [descriptor, 0, 0]);
            Err(errno)
        }
    }
}

#[inline(never)]
fn map_shared(descriptor: usize, length: usize) -> Result<NonNull<u8>, Errno> {
    const MAP_SHARED: usize = 1;
    const READ_WRITE: usize = 3;
    call(number::FTRUNCATE, [descriptor, length, 0])?;
    // SAFETY: A new mapping that replaces nothing changes no memory that anyone uses.
    let result =
        unsafe { arch::call6(number::MMAP, 0, length, READ_WRITE, MAP_SHARED, descriptor, 0) };
    NonNull::new(ptr::with_exposed_provenance_mut(check(result)?)).ok_or(Errno::NOMEM)
}

impl SharedFile {
    /// Closes the descriptor, unless the program has closed it and may have reused its number.
    #[inline(never)]
    pub(crate) fn close(self) {
        if self.identity != NO_IDENTITY && identity(self.descriptor) == self.identity {
            let _ = call(number::CLOSE, [self.descriptor, 0, 0]);
        }
    }
}

/// A system call that touches only memory that its arguments lead to, which is valid.
#[inline(never)]
pub(super) fn call(number: usize, [a, b, c]: [usize; 3]) -> Result<usize, Errno> {
    // SAFETY: The calls of files read a name or bytes, write into the caller's buffer, or change a file that only its
    // module knows.
    check(unsafe { arch::call6(number, a, b, c, 0, 0, 0) })
}

/// Seals the file's length, and writing by others.
fn seal(descriptor: usize) {
    const ADD_SEALS: usize = 1033;
    const LENGTH_AND_SEALS: usize = 1 | 2 | 4;
    /// From Linux 5.1 on.
    const FUTURE_WRITE: usize = 16;
    if call(number::FCNTL, [descriptor, ADD_SEALS, LENGTH_AND_SEALS | FUTURE_WRITE]).is_err() {
        let _ = call(number::FCNTL, [descriptor, ADD_SEALS, LENGTH_AND_SEALS]);
    }
}

/// Duplicates the file to a high descriptor; returns the old one where there is none free.
fn moved_high(descriptor: usize) -> usize {
    const DUPLICATE_CLOSE_ON_EXEC: usize = 1030;
    match call(number::FCNTL, [descriptor, DUPLICATE_CLOSE_ON_EXEC, DESCRIPTOR_MIN]) {
        Ok(high) => {
            let _ = call(number::CLOSE, [descriptor, 0, 0]);
            high
        }
        Err(_) => descriptor,
    }
}

const NO_IDENTITY: [usize; 2] = [0; 2];

/// Device and inode of an open file; zeros where there is none.
#[inline(never)]
fn identity(descriptor: usize) -> [usize; 2] {
    // Longer than the kernel's structure, which begins with these two words on every 64-bit CPU.
    let mut status = [0_usize; 32];
    let place = status.as_mut_ptr().expose_provenance();
    match call(number::FSTAT, [descriptor, place, 0]) {
        Ok(_) => [status[0], status[1]],
        Err(_) => NO_IDENTITY,
    }
}

/// This process's number (PID) in its own namespace.
pub(crate) fn process_number() -> usize {
    call(number::GETPID, [0; 3]).unwrap_or_default()
}

/// This thread's number (TID).
pub(crate) fn thread_number() -> usize {
    call(number::GETTID, [0; 3]).unwrap_or_default()
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// `CLOCK_MONOTONIC`.
    Exact = 1,
    /// `CLOCK_MONOTONIC_COARSE`: a few milliseconds behind, and cheaper.
    Coarse = 6,
}

/// Nanoseconds since a fixed moment, the same for all processes; 0 where there is no clock.
#[inline(never)]
pub(crate) fn nanoseconds(clock: Clock) -> usize {
    let mut time = [0_usize; 2];
    let place = time.as_mut_ptr().expose_provenance();
    let _ = call(number::CLOCK_GETTIME, [clock as usize, place, 0]);
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}
