//! Files for a heap profile: a new one to write, the kernel's to read; and the kernel's page map.
//!
//! Relies on its parent module for the calls. A file system may take any time for each of them, or never answer, so no lock
//! that threads with nothing in common wait for is held.

use core::cell::Cell;
use core::ffi::CStr;

use super::arch::{self, number};
pub(crate) use super::process_number as process;
use super::shared::call;
use super::{Errno, check, file_size_limit, no_lock_is_held, page_size};

const AT_FDCWD: usize = (-100_isize).cast_unsigned();
const O_WRONLY: usize = 1;
const O_CREAT: usize = 0o100;
const O_EXCL: usize = 0o200;
const O_NOCTTY: usize = 0o400;
const O_CLOEXEC: usize = 0o2_000_000;
/// For the last component of the path. The only flag here whose number depends on the CPU.
const O_NOFOLLOW: usize = if cfg!(target_arch = "aarch64") { 0o100_000 } else { 0o400_000 };
/// Readable and writable by the owner alone.
const PRIVATE: usize = 0o600;

/// An open file, closed when dropped.
pub(crate) struct File {
    descriptor: usize,
    /// Bytes that may still be written: beyond `RLIMIT_FSIZE` a signal ends the program.
    room: Cell<usize>,
}

impl File {
    /// Creates a file that only its owner can read and opens it for writing. Fails where there is one already, or a
    /// symbolic link, even a dangling one.
    ///
    /// # Errors
    ///
    /// The errors of `open(2)`: `EEXIST` where the name exists.
    pub(crate) fn create_private(path: &CStr) -> Result<File, Errno> {
        File::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// The errors of `open(2)`.
    pub(crate) fn open_to_read(path: &CStr) -> Result<File, Errno> {
        File::open(path, 0)
    }

    fn open(path: &CStr, flags: usize) -> Result<File, Errno> {
        debug_assert!(no_lock_is_held(), "this may take long");
        let (path, flags) = (path.as_ptr().expose_provenance(), flags | O_NOCTTY | O_CLOEXEC);
        // SAFETY: The kernel only reads the path, which is a string.
        let result = unsafe { arch::call6(number::OPENAT, AT_FDCWD, path, flags, PRIVATE, 0, 0) };
        let room = Cell::new(file_size_limit());
        check(result).map(|descriptor| File { descriptor, room })
    }

    /// Reads into `bytes`; returns how many, 0 at the end.
    ///
    /// # Errors
    ///
    /// The errors of `read(2)`.
    pub(crate) fn read(&self, bytes: &mut [u8]) -> Result<usize, Errno> {
        let place = bytes.as_mut_ptr().expose_provenance();
        call(number::READ, [self.descriptor, place, bytes.len()])
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    ///
    /// The errors of `write(2)`; `EFBIG` where a limit on file sizes forbids it.
    pub(crate) fn write(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        const EINTR: Errno = Errno(4);
        /// More interruptions of one write come from no signals, and would block the caller forever.
        const INTERRUPTIONS_MAX: u32 = 1000;
        let mut interruptions = 0;
        debug_assert!(no_lock_is_held(), "this may take long");
        let room = self.room.get().checked_sub(bytes.len()).ok_or(Errno::TOO_BIG)?;
        self.room.set(room);
        while !bytes.is_empty() {
            let place = bytes.as_ptr().expose_provenance();
            match call(number::WRITE, [self.descriptor, place, bytes.len()]) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(EINTR) if interruptions < INTERRUPTIONS_MAX => interruptions += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = call(number::CLOSE, [self.descriptor, 0, 0]);
    }
}

/// OS pages looked at by [`resident`].
pub(crate) const RESIDENT_OF: usize = 512;

/// The number of resident OS pages among the first [`RESIDENT_OF`] from `address` on, an OS page's start, but about `most` where
/// there are more. `None` where the kernel does not say. Not `mincore`: sandboxes that kill a process for calls that they do not
/// know, as systemd's `@system-service` does, know those of files.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.file_resident")]
pub(crate) fn resident(address: usize, most: usize) -> Option<usize> {
    /// Present, or swapped out.
    const USED: u64 = 0b11 << 62;
    let path = c"/proc/self/pagemap".as_ptr().expose_provenance();
    let map = call(number::OPENAT, [AT_FDCWD, path, O_CLOEXEC]).ok()?;
    let (mut resident, mut looked_at) = (0, 0);
    let mut numbers = [0_u64; 64];
    let (place, bytes) = (numbers.as_mut_ptr().expose_provenance(), size_of_val(&numbers));
    while looked_at < RESIDENT_OF && resident < most {
        let offset = ((address >> page_size().trailing_zeros()) + looked_at) * size_of::<u64>();
        // SAFETY: The kernel writes at most so many bytes there, and any value is a valid number.
        let read = unsafe { arch::call6(number::PREAD64, map, place, bytes, offset, 0, 0) };
        if check(read) != Ok(bytes) {
            break;
        }
        // With an end to it, for short code.
        resident += numbers.iter().filter(|number| **number & USED != 0).take(most).count();
        looked_at += numbers.len();
    }
    let _ = call(number::CLOSE, [map, 0, 0]);
    (looked_at > 0).then_some(resident)
}

/// Whether the path exists.
pub(crate) fn exists(path: &CStr) -> bool {
    debug_assert!(no_lock_is_held(), "this may take long");
    call(number::FACCESSAT, [AT_FDCWD, path.as_ptr().expose_provenance(), 0]).is_ok()
}

/// Removes a file.
pub(crate) fn remove(path: &CStr) {
    debug_assert!(no_lock_is_held(), "this may take long");
    let _ = call(number::UNLINKAT, [AT_FDCWD, path.as_ptr().expose_provenance(), 0]);
}

/// Writes the current folder's path and a zero byte into `bytes`; returns the path's length in bytes.
///
/// # Errors
///
/// The errors of `getcwd(2)`: `ERANGE` where there is too little room.
pub(crate) fn current_folder(bytes: &mut [u8]) -> Result<usize, Errno> {
    let place = bytes.as_mut_ptr().expose_provenance();
    call(number::GETCWD, [place, bytes.len(), 0]).map(|length| length.saturating_sub(1))
}
