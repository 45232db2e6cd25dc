//! Mappings of this process's own.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

use super::checked;

/// Memory of this process, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: The memory belongs to this value and not to a thread.
unsafe impl Send for Mapping {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// OS pages, even where the kernel gives huge pages to every program.
    Small,
    /// Huge pages, where the kernel allows.
    Huge,
}

impl Mapping {
    /// Maps `bytes` of new memory.
    pub(crate) fn new(bytes: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Mapping::with(bytes, flags, -1)
    }

    /// Maps `bytes` of a file, or of new memory where `flags` say so, readable and writable.
    pub(super) fn with(bytes: usize, flags: libc::c_int, file: RawFd) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: A new mapping at an address of the kernel's choice takes nothing from anyone.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Mapping { start, bytes })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Asks for pages of this kind where nothing is touched yet.
    pub(crate) fn ask_for(&self, pages: Pages) -> io::Result<()> {
        let advice = match pages {
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: The range is this mapping's own; the advice changes no content.
        let result = unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) };
        checked(result).map(drop)
    }

    /// Writes to the byte at `offset`, which must lie within.
    pub(crate) fn touch(&self, offset: usize) {
        assert!(offset < self.bytes, "{offset} lies behind the mapping's {} bytes", self.bytes);
        // SAFETY: The byte lies in the mapping, as was just checked, and nobody else knows of it.
        unsafe { self.start.add(offset).write_volatile(1) };
    }

    /// The first offset from which the address is a multiple of `bytes`, a power of two.
    pub(crate) fn aligned_offset(&self, bytes: usize) -> usize {
        self.start.as_ptr().addr().wrapping_neg() & (bytes - 1)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: The mapping is ours, and what points into it goes with this value's owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
