//! Scratch: a fresh folder for every run, so that no run finds the files of the one before.
//!
//! All runs have it at one path. It lies in the temporary folder (`TMPDIR`), readable by this user only. Neither
//! copying nor removing follows a link, and nothing is removed from a folder that something is mounted in.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Doing;
use crate::execute::alone;
use crate::{Error, Stop, kernel};

/// The contents of the folder in which a run starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scratch {
    /// There is none: runs start in the lab's own folder.
    #[default]
    None,
    Empty,
    CopyOf(PathBuf),
}

/// The place of the folder; it is removed with all its contents when this is dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    root: PathBuf,
    path: PathBuf,
    source: Option<PathBuf>,
}

impl ScratchFolder {
    /// Makes the place, still without the folder in it; none where no folder is asked for. The source of a copy must be
    /// a folder that does not hold the temporary folder.
    pub fn create(scratch: &Scratch) -> Result<Option<ScratchFolder>, Error> {
        let source = match scratch {
            Scratch::None => return Ok(None),
            Scratch::Empty => None,
            Scratch::CopyOf(path) => Some(examine(path)?),
        };
        let temporary = temporary()?;
        if let Some(source) = source.as_ref().filter(|source| temporary.starts_with(source)) {
            return Err(Error::Scratch {
                path: source.clone(),
                reason: format!(
                    "copies of it would lie in itself, in {}; name a smaller folder, or set TMPDIR \
                     to a place outside",
                    temporary.display()
                ),
            });
        }
        let root = new_folder("scratch")?;
        Ok(Some(ScratchFolder { path: root.join("run"), root, source }))
    }

    /// The path of the folder during every run: absolute, and the same each time.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder again, whatever was there before. When something cannot be copied, for instance because the
    /// disk is full, the part copied so far is removed.
    pub fn fresh(&self, stop: &Stop) -> Result<(), Error> {
        self.remove()?;
        let made = match &self.source {
            None => DirBuilder::new().mode(0o700).create(&self.path).map(|()| None),
            Some(source) => copy_folder(source, &self.path, stop),
        };
        let made = match made.map_err(|error| error.to_string()) {
            Ok(None) => Ok(()),
            Ok(Some(reason)) | Err(reason) => Err(self.wrong(reason)),
        };
        // The caller wants this reason, not that of a removal that may fail as well.
        made.inspect_err(|_| drop(self.remove()))?;
        if stop.requested() {
            self.remove()?;
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Removes the folder, if it is there.
    pub fn remove(&self) -> Result<(), Error> {
        remove(&self.path).map_err(|error| {
            let mut reason = format!("what a run left cannot be removed: {error}");
            if error.kind() == ErrorKind::PermissionDenied {
                reason += "; perhaps it belongs to another user: remove it by hand";
            }
            Error::Scratch { path: self.path.clone(), reason }
        })
    }

    fn wrong(&self, mut reason: String) -> Error {
        if ["No space left", "quota exceeded"].iter().any(|words| reason.contains(words)) {
            let place = self.root.parent().unwrap_or(&self.root).display();
            reason = format!(
                "{reason}; the folder of each run lies in {place}: make room there, or set TMPDIR \
                 to a place that has it. What was copied is removed again"
            );
        }
        Error::Scratch { path: self.source.clone().unwrap_or_else(|| self.path.clone()), reason }
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // No caller is left to report to; `remove` has reported its failure already.
        let _ = remove(&self.root);
    }
}

fn examine(path: &Path) -> Result<PathBuf, Error> {
    let wrong = |reason: String| Error::Scratch { path: path.to_owned(), reason };
    let absolute =
        fs::canonicalize(path).map_err(|error| wrong(format!("{error}; check the path")))?;
    if !absolute.is_dir() {
        return Err(wrong("this is no folder; name the folder that runs get a copy of".to_owned()));
    }
    Ok(absolute)
}

/// A new folder that only this user can enter, without links. Names have one length: a longer one moves memory.
pub fn new_folder(kind: &str) -> Result<PathBuf, Error> {
    let place = temporary()?;
    let folder = tempfile::Builder::new().prefix(&format!("masu-{kind}-")).tempdir_in(&place);
    Ok(folder.doing(|| format!("creating a folder in {}", place.display()))?.keep())
}

fn temporary() -> Result<PathBuf, Error> {
    let temporary = std::env::temp_dir();
    let path = fs::canonicalize(&temporary)
        .doing(|| format!("looking up the temporary folder {}", temporary.display()))?;
    named_in_text(path)
}

/// The path, which a placeholder in a command may stand for.
fn named_in_text(path: PathBuf) -> Result<PathBuf, Error> {
    if path.to_str().is_some() {
        return Ok(path);
    }
    let reason = "its name is no UTF-8; set TMPDIR to another folder".to_owned();
    Err(Error::Scratch { path, reason })
}

/// Bytes of complaints that are read in a row.
const MOST_HEARD: u64 = 1 << 20;
/// Bytes of complaints that are kept, for the first of them.
const MOST_KEPT: usize = 64 << 10;

/// Copies a folder with its contents, by `cp`: contents with their holes, links as links, permissions, times, and
/// owners where this user may give files away. Returns the first complaint; none where a stop ended it early.
fn copy_folder(from: &Path, to: &Path, stop: &Stop) -> io::Result<Option<String>> {
    // The code that reaps the children of a run must not reap this one.
    let _alone = alone();
    let mut cp = Command::new("cp");
    cp.args(["-a", "--"]).arg(from).arg(to).env("LC_ALL", "C");
    // A file for its complaints would have no room where the copy has none.
    let (mut complaints, to_complain) = io::pipe()?;
    kernel::make_roomy_and_nonblocking(complaints.as_fd())?;
    cp.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to_complain).process_group(0);
    let mut said = Vec::new();
    // A child that `cp` leaves, where it is a wrapper, may keep the pipe open, and write on.
    let mut hear = || {
        // An error says that there is no more for now.
        let _ = complaints.by_ref().take(MOST_HEARD).read_to_end(&mut said);
        said.truncate(MOST_KEPT);
    };
    let status = stop.wait_while(&mut cp.spawn()?, &mut hear)?;
    hear();
    let Some(status) = status else { return Ok(None) };
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().next().map_or_else(|| format!("cp: {status}"), str::to_owned);
    Ok((!status.success()).then_some(first))
}

/// Removes the file or folder at `path`, an absolute path without links; links in it are not followed. It is no error
/// if nothing is there.
pub fn remove(path: &Path) -> io::Result<()> {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    if let Some(mounted) = mounted_below(&mounts, path) {
        let mounted = mounted.display();
        let reason = format!("something is mounted at {mounted}: unmount it (umount {mounted})");
        return Err(io::Error::new(ErrorKind::ResourceBusy, reason));
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            open_up(path);
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The first place of those in `mounts` (the lines of proc_pid_mountinfo(5)) at `path` or below.
fn mounted_below(mounts: &[u8], path: &Path) -> Option<PathBuf> {
    let places = mounts.split(|&byte| byte == b'\n').filter_map(|line| {
        let place = line.split(|&byte| byte == b' ').nth(4)?;
        Some(PathBuf::from(OsString::from_vec(without_octal(place))))
    });
    places.into_iter().find(|place| place.starts_with(path))
}

/// `text` with the bytes that the kernel wrote as a backslash and three octal digits: white space
/// and the backslash itself.
fn without_octal(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let digits = behind.first_chunk::<3>().filter(|_| *first == b'\\');
        let byte = digits
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[3..] } else { behind };
    }
    plain
}

/// Lets this user change every folder below `path` too, as far as they are this user's.
fn open_up(path: &Path) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    if !metadata.is_dir() {
        return;
    }
    let mode = metadata.permissions().mode() | 0o700;
    // The removal that follows reports a folder that could not be changed.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}

#[cfg(test)]
mod tests;
