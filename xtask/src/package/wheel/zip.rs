//! A zip archive, as much of the format as a wheel needs: files of less than 4 GiB, deflated.
//!
//! It relies on PKWARE's APPNOTE (sections 4.3.7, 4.3.12, 4.3.16) for the records and on flate2 for the contents. Times
//! are the first that the format has, so that the same files make the same archive.

use std::io::Write;

use anyhow::{Context, Result};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// A file's mode.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    Program,
    File,
}

/// An archive while it is written.
pub(super) struct Archive {
    bytes: Vec<u8>,
    /// What stands at its end of each file.
    directory: Vec<u8>,
    files: u16,
}

const FILE_SIGNATURE: u32 = 0x0403_4b50;
const ENTRY_SIGNATURE: u32 = 0x0201_4b50;
const END_SIGNATURE: u32 = 0x0605_4b50;
/// The version of the format that a reader must know for deflated files, times ten.
const VERSION_NEEDED: u16 = 20;
/// Made on Unix, so that modes count.
const MADE_BY: u16 = 3 << 8 | VERSION_NEEDED;
const DEFLATED: u16 = 8;
/// 1 January 1980.
const FIRST_DAY: u16 = 1 << 5 | 1;
/// A regular file, as `stat` has it.
const REGULAR: u32 = 0o100_000;

impl Archive {
    pub(super) fn new() -> Archive {
        Archive { bytes: Vec::new(), directory: Vec::new(), files: 0 }
    }

    /// Adds a file.
    ///
    /// # Errors
    ///
    /// When it or the archive is too large for the format.
    pub(super) fn add(&mut self, name: &str, contents: &[u8], mode: Mode) -> Result<()> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(contents)?;
        let deflated = encoder.finish()?;
        let mut crc = Crc::new();
        crc.update(contents);
        let at = small(self.bytes.len())?;
        // What both records have: version, flags, method, time, day, checksum, sizes, lengths of name and extras.
        let mut shared = Vec::new();
        for field in [VERSION_NEEDED, 0, DEFLATED, 0, FIRST_DAY] {
            shared.extend(field.to_le_bytes());
        }
        for field in [crc.sum(), small(deflated.len())?, small(contents.len())?] {
            shared.extend(field.to_le_bytes());
        }
        let length = u16::try_from(name.len()).context("a name is too long for an archive")?;
        for field in [length, 0] {
            shared.extend(field.to_le_bytes());
        }
        self.bytes.extend(FILE_SIGNATURE.to_le_bytes());
        self.bytes.extend(&shared);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(deflated);
        self.directory.extend(ENTRY_SIGNATURE.to_le_bytes());
        self.directory.extend(MADE_BY.to_le_bytes());
        self.directory.extend(&shared);
        // Length of a comment, number of the disk, kind of contents.
        for field in [0_u16, 0, 0] {
            self.directory.extend(field.to_le_bytes());
        }
        let permissions = match mode {
            Mode::Program => 0o755,
            Mode::File => 0o644,
        };
        self.directory.extend(((REGULAR | permissions) << 16).to_le_bytes());
        self.directory.extend(at.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.files += 1;
        Ok(())
    }

    /// The archive's bytes.
    ///
    /// # Errors
    ///
    /// When it is too large for the format.
    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        let (at, length) = (small(self.bytes.len())?, small(self.directory.len())?);
        self.bytes.append(&mut self.directory);
        self.bytes.extend(END_SIGNATURE.to_le_bytes());
        // Numbers of this disk and the directory's, entries on it and in all.
        for field in [0, 0, self.files, self.files] {
            self.bytes.extend(field.to_le_bytes());
        }
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(at.to_le_bytes());
        // Length of a comment.
        self.bytes.extend(0_u16.to_le_bytes());
        Ok(self.bytes)
    }
}

fn small(size: usize) -> Result<u32> {
    u32::try_from(size).context("a wheel of 4 GiB and more needs another form of archive")
}
