//! The files of profiles that the environment requested, `PREFIX.PID.N.pb`, and requests for a profile by another
//! process.
//!
//! Relies on the kernel door's files. A forked child has another PID, so its files are its own. The hard idea is the
//! request, without a thread that waits or a signal that would kill an unaware program: a user with the right to write beside
//! the profile creates `PREFIX.PID.ask`, and the program checks for that file at each sample.

use core::ffi::CStr;

use crate::platform::kernel::file;
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

/// The path of profile files; none at first.
pub(super) struct Destination {
    /// The prefix as an absolute path.
    prefix: [u8; FOLDER_MAX + 1 + PREFIX_MAX],
    prefix_length: usize,
    next: usize,
    /// The process of which a thread checks for a request now, or 0. Not a flag: a forked child does not have that thread.
    checking: usize,
}

/// A name, a copy that needs no lock. Long for a thread's smallest stack, so no function makes two.
pub(super) struct Name {
    bytes: [u8; ROOM],
    length: usize,
}

impl Name {
    pub(super) fn none() -> Name {
        Name { bytes: [0; ROOM], length: 0 }
    }

    #[inline(never)]
    fn set(&mut self, first: &[u8], second: &[u8]) {
        let bytes = first.iter().chain(second).chain(&[0]);
        self.bytes.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.length = first.len() + second.len();
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(super) fn as_path(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Destination {
    pub(super) const fn none() -> Destination {
        let prefix = [0; FOLDER_MAX + 1 + PREFIX_MAX];
        Destination { prefix, prefix_length: 0, next: 0, checking: 0 }
    }

    /// Sets the prefix; returns whether it is usable.
    pub(super) fn set(&mut self, prefix: &[u8]) -> bool {
        if prefix.is_empty() || prefix.len() > PREFIX_MAX {
            return false;
        }
        let mut start = 0;
        if prefix[0] != b'/' {
            // The program may change its folder later.
            let Ok(length) = file::current_folder(&mut self.prefix[..FOLDER_MAX]) else {
                return false;
            };
            self.prefix[length] = b'/';
            start = length + 1;
        }
        self.prefix_length = start + prefix.len();
        self.prefix[start..self.prefix_length].copy_from_slice(prefix);
        true
    }

    /// Sets `name` to the folder of the files, unless that is the root; returns whether it did.
    pub(super) fn name_folder(&self, name: &mut Name) -> bool {
        let prefix = &self.prefix[..self.prefix_length];
        let slash = prefix.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        name.set(&prefix[..slash], b"");
        slash > 0
    }

    fn name(&self, name: &mut Name, ending: &Line) {
        name.set(&self.prefix[..self.prefix_length], ending.as_bytes());
    }

    /// Sets `name` to that of this process's next file, which may exist.
    #[inline(never)]
    pub(super) fn name_next(&mut self, name: &mut Name) {
        let mut ending = Line::new();
        ending.text(".").number(file::process()).text(".").number(self.next).text(".pb");
        self.next += 1;
        self.name(name, &ending);
    }

    /// Sets `name` to that of the file with which another process requests a profile.
    #[inline(never)]
    pub(super) fn name_request(&self, name: &mut Name) {
        self.name(name, Line::new().text(".").number(file::process()).text(".ask"));
    }

    /// Whether this thread is to check for a request; [`Destination::end_check`] is next. One thread does at a time: others
    /// need not wait for the file system too.
    pub(super) fn begin_check(&mut self) -> bool {
        let process = file::process();
        let begins = self.prefix_length > 0 && self.checking != process;
        if begins {
            self.checking = process;
        }
        begins
    }

    pub(super) fn end_check(&mut self) {
        self.checking = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_checks_for_a_request() {
        let mut destination = Destination::none();
        assert!(!destination.begin_check(), "no file is asked for");
        assert!(destination.set(b"/tmp/heap"));
        assert!(destination.begin_check() && !destination.begin_check());
        destination.end_check();
        assert!(destination.begin_check());
        // As in a forked child.
        destination.checking += 1;
        assert!(destination.begin_check());
    }
}
