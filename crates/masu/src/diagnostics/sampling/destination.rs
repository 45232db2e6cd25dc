//! The files of profiles that the environment requested, `PREFIX.PID.N.pb`, and requests for a profile by another
//! process.
//!
//! Relies on the kernel door's files. A forked child has another PID, so its files are its own. The hard idea is the
//! request, without a thread that waits or a signal that would kill an unaware program: a user with the right to write beside
//! the profile creates `PREFIX.PID.ask`, and the program checks for that file at each sample.

use core::ffi::CStr;

use crate::platform::kernel::Errno;
use crate::platform::kernel::file::{self, File};
use crate::settings::line::Line;

/// Room for a folder's path, a prefix and an ending.
const ROOM: usize = 2560;
/// The longest prefix in bytes.
const PREFIX_MAX: usize = 1000;
/// Room for the current folder.
const FOLDER_MAX: usize = 1400;
const _: () = {
    // Room for the longest ending and its zero.
    let ending_max = 64;
    assert!(FOLDER_MAX + 1 + PREFIX_MAX + ending_max <= ROOM);
};

/// The most existing files that are skipped.
const TRIES: usize = 1000;

/// The path of profile files; none at first.
pub(super) struct Destination {
    /// The prefix as an absolute path, then the ending used last.
    name: [u8; ROOM],
    prefix_length: usize,
    length: usize,
    next: usize,
}

impl Destination {
    pub(super) const fn none() -> Destination {
        Destination { name: [0; ROOM], prefix_length: 0, length: 0, next: 0 }
    }

    /// Sets the prefix; returns whether it is usable.
    pub(super) fn set(&mut self, prefix: &[u8]) -> bool {
        if prefix.is_empty() || prefix.len() > PREFIX_MAX {
            return false;
        }
        let mut start = 0;
        if prefix[0] != b'/' {
            // The program may change its folder later.
            let Ok(length) = file::current_folder(&mut self.name[..FOLDER_MAX]) else {
                return false;
            };
            self.name[length] = b'/';
            start = length + 1;
        }
        self.prefix_length = start + prefix.len();
        self.name[start..self.prefix_length].copy_from_slice(prefix);
        true
    }

    /// The folder of the files, if it does not exist.
    pub(super) fn missing_folder(&mut self) -> Option<&[u8]> {
        let prefix = &self.name[..self.prefix_length];
        let length = prefix.iter().rposition(|byte| *byte == b'/').filter(|slash| *slash > 0)?;
        self.name[length] = 0;
        let folder = CStr::from_bytes_until_nul(&self.name).unwrap_or_default();
        let is_missing = !file::exists(folder);
        self.name[length] = b'/';
        is_missing.then_some(&self.name[..length])
    }

    /// The name used last.
    pub(super) fn last_name(&self) -> &[u8] {
        &self.name[..self.length]
    }

    /// The prefix with an ending and a zero.
    #[inline(never)]
    fn name_with(&mut self, ending: &Line) -> &CStr {
        let ending = ending.as_bytes();
        self.length = self.prefix_length + ending.len();
        self.name[self.prefix_length..self.length].copy_from_slice(ending);
        self.name[self.length] = 0;
        CStr::from_bytes_until_nul(&self.name).unwrap_or_default()
    }

    /// Creates this process's next file.
    pub(super) fn next_file(&mut self) -> Result<File, Errno> {
        let mut result = Err(Errno::EXIST);
        for _ in 0..TRIES {
            let mut ending = Line::new();
            ending.text(".").number(file::process()).text(".").number(self.next).text(".pb");
            self.next += 1;
            result = File::create_private(self.name_with(&ending));
            if !matches!(result, Err(Errno::EXIST)) {
                break;
            }
        }
        result
    }

    fn request_name(&mut self) -> &CStr {
        self.name_with(Line::new().text(".").number(file::process()).text(".ask"))
    }

    /// Whether another process has requested a profile.
    pub(super) fn is_requested(&mut self) -> bool {
        self.prefix_length > 0 && file::exists(self.request_name())
    }

    /// Removes the request.
    pub(super) fn end_request(&mut self) {
        file::remove(self.request_name());
    }
}
