//! The initial files of a guest, as the kernel unpacks them: a `cpio` archive in the format `newc`.
//!
//! It relies on the kernel's `Documentation/driver-api/early-userspace/buffer-format.rst` for the format. The
//! program and what it needs lie at the paths that they have here, so that a program which knows paths of its own
//! finds them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// What is to run in a guest.
pub(super) struct Task {
    /// By its whole path.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    /// `NAME=VALUE`.
    pub(super) variables: Vec<String>,
    pub(super) folder: PathBuf,
    /// Files that the program needs beside itself and those among its arguments, by their whole paths.
    pub(super) files: Vec<PathBuf>,
    /// Empty folders, likewise.
    pub(super) folders: Vec<PathBuf>,
}

/// Where Debian's cross packages have the C library of aarch64, and what of it programs in C and C++ load.
const SYSTEM: &str = "/usr/aarch64-linux-gnu/lib";
const LIBRARIES: [&str; 8] = [
    "ld-linux-aarch64.so.1",
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
];

impl Task {
    /// The archive in which `init` is the first process.
    pub(super) fn archive(&self, init: &Path) -> Result<Vec<u8>> {
        let mut archive = Archive::default();
        for folder in ["/dev", "/proc", "/sys", "/tmp"] {
            archive.folder(Path::new(folder));
        }
        self.folders.iter().chain([&self.folder]).for_each(|folder| archive.folder(folder));
        for name in ["/init", "/bin/true"] {
            archive.copy(init, Path::new(name))?;
        }
        let texts =
            |texts: &[String]| texts.iter().map(|text| format!("{text}\0")).collect::<String>();
        archive.file(Path::new("/boot/program"), self.program.as_os_str().as_bytes());
        archive.file(Path::new("/boot/arguments"), texts(&self.arguments).as_bytes());
        archive.file(Path::new("/boot/variables"), texts(&self.variables).as_bytes());
        archive.file(Path::new("/boot/folder"), self.folder.as_os_str().as_bytes());
        let named = self.arguments.iter().map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute() && path.is_file());
        let mut needs_system = false;
        let files = named.chain(self.files.iter().cloned()).chain([self.program.clone()]);
        for path in files.collect::<BTreeSet<_>>() {
            let bytes = archive.copy(&path, &path)?;
            needs_system |= is_dynamic(&bytes);
        }
        if needs_system {
            for name in LIBRARIES {
                archive.copy(&Path::new(SYSTEM).join(name), &Path::new("/lib").join(name))?;
            }
        }
        Ok(archive.end())
    }
}

/// Whether a program or library asks for aarch64's C library: the name of the dynamic linker, or of the library.
fn is_dynamic(bytes: &[u8]) -> bool {
    let holds = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    holds(b"/lib/ld-linux-aarch64.so.1\0") || holds(b"\0libc.so.6\0")
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<PathBuf>,
    entries: u32,
}

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    fn folder(&mut self, path: &Path) {
        for folder in path.ancestors().collect::<Vec<_>>().into_iter().rev().skip(1) {
            if self.folders.insert(folder.to_path_buf()) {
                self.entry(folder.as_os_str(), FOLDER, &[]);
            }
        }
    }

    fn file(&mut self, path: &Path, contents: &[u8]) {
        if let Some(folder) = path.parent() {
            self.folder(folder);
        }
        self.entry(path.as_os_str(), PROGRAM, contents);
    }

    fn copy(&mut self, from: &Path, to: &Path) -> Result<Vec<u8>> {
        let contents =
            fs::read(from).with_context(|| format!("the guest needs {}", from.display()))?;
        self.file(to, &contents);
        Ok(contents)
    }

    fn entry(&mut self, path: &OsStr, mode: u32, contents: &[u8]) {
        let path = path.as_bytes();
        let name = path.strip_prefix(b"/").unwrap_or(path);
        self.entries += 1;
        let links = 1 + u32::from(mode == FOLDER);
        let length = contents.len() as u32;
        let name_length = name.len() as u32 + 1;
        // Inode, mode, user, group, links, time; length; the device's and the file's own numbers; the name's length; no
        // checksum.
        let fields = [self.entries, mode, 0, 0, links, 0, length, 0, 0, 0, 0, name_length, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry(OsStr::new("TRAILER!!!"), 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_what_lies_in_them_and_once() {
        let mut archive = Archive::default();
        archive.file(Path::new("/a/b/one"), b"12345");
        archive.file(Path::new("/a/two"), b"");
        let bytes = archive.end();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        let names: Vec<&str> = text.split("070701").skip(1).map(|entry| &entry[104..]).collect();
        let names: Vec<_> = names.iter().map(|name| name.split('\0').next().unwrap()).collect();
        assert_eq!(names, ["a", "a/b", "a/b/one", "a/two", "TRAILER!!!"]);
        let is_padded = text.contains(concat!("a/b/one", "\0\0\0", "12345", "\0\0\0", "070701"));
        assert!(is_padded, "{text:?}");
    }

    #[test]
    fn a_static_program_needs_no_library() {
        assert!(is_dynamic(b"..\0/lib/ld-linux-aarch64.so.1\0"));
        assert!(!is_dynamic(b"a static program that names libc.so.6 somewhere"));
    }
}
