//! Scratch: a fresh folder for every run, so that no run finds what the one before left.
//!
//! All runs have it at one path. It lies in the temporary folder (`TMPDIR`), readable by this user only. Neither
//! copying nor removing follows a link, and nothing is removed from a folder that something is mounted in.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, FileTimes, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::Doing;
use crate::{Error, Stop, kernel};

/// What the folder a run starts in holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scratch {
    /// There is none: runs start in the lab's own folder.
    #[default]
    None,
    /// Nothing.
    Empty,
    /// A copy of this folder.
    CopyOf(PathBuf),
}

/// The place of the folder, removed with all that is in it when this is dropped.
#[derive(Debug)]
pub struct ScratchFolder {
    root: PathBuf,
    path: PathBuf,
    source: Option<PathBuf>,
}

impl ScratchFolder {
    /// Makes the place, still without the folder in it; none where no folder is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Scratch`] when what is to be copied is no folder, or holds the temporary folder;
    /// [`Error::System`] when the temporary folder cannot be written.
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

    /// Where the folder is during every run: an absolute path, the same each time.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder again, whatever was there before.
    ///
    /// # Errors
    ///
    /// [`Error::Scratch`] when something cannot be copied or removed, for instance because the disk
    /// is full; what was copied so far is removed. [`Error::Stopped`] for a stop in that time.
    pub fn fresh(&self, stop: &Stop) -> Result<(), Error> {
        self.remove()?;
        let made = match &self.source {
            None => make(&self.path, 0o700).map_err(|error| self.wrong(&self.path, &error)),
            Some(source) => copy_folder(source, &self.path, stop)
                .map_err(|(path, error)| self.wrong(&path, &error)),
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
    ///
    /// # Errors
    ///
    /// [`Error::Scratch`] when something in it cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        remove(&self.path).map_err(|error| {
            let mut reason = format!("what a run left cannot be removed: {error}");
            if error.kind() == ErrorKind::PermissionDenied {
                reason += "; perhaps it belongs to another user: remove it by hand";
            }
            Error::Scratch { path: self.path.clone(), reason }
        })
    }

    fn wrong(&self, path: &Path, error: &io::Error) -> Error {
        let mut reason = format!("copying {}: {error}", path.display());
        if self.source.is_none() {
            reason = error.to_string();
        }
        if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
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
        // Nobody is left to tell; `remove` has said so already if it could not.
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

/// A new folder in the temporary folder that only this user can enter, named after `kind`: an absolute path without
/// links. Names are of one length, for a longer one would move a program's memory.
pub(crate) fn new_folder(kind: &str) -> Result<PathBuf, Error> {
    let place = temporary()?;
    let folder = tempfile::Builder::new().prefix(&format!("masu-{kind}-")).tempdir_in(&place);
    Ok(folder.doing(|| format!("creating a folder in {}", place.display()))?.keep())
}

fn temporary() -> Result<PathBuf, Error> {
    let temporary = std::env::temp_dir();
    fs::canonicalize(&temporary)
        .doing(|| format!("looking up the temporary folder {}", temporary.display()))
}

fn make(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)
}

type NotCopied = (PathBuf, io::Error);

/// Copies a folder with what is in it: contents, links as links, permissions and times, and owners
/// where this user may give files away. Sockets, pipes and devices are left out: a copy of one is
/// connected to nothing. Ends early, without an error, for a stop.
fn copy_folder(from: &Path, to: &Path, stop: &Stop) -> Result<(), NotCopied> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    let metadata = fs::symlink_metadata(from).map_err(at(from))?;
    make(to, 0o700).map_err(at(from))?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        if stop.requested() {
            return Ok(());
        }
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(at(&from))?;
        if kind.is_dir() {
            copy_folder(&from, &to, stop)?;
        } else if kind.is_symlink() {
            copy_link(&from, &to).map_err(at(&from))?;
        } else if kind.is_file() {
            copy_file(&from, &to).map_err(at(&from))?;
        } else {
            debug_assert!(
                kind.is_fifo()
                    || kind.is_socket()
                    || kind.is_block_device()
                    || kind.is_char_device()
            );
        }
    }
    // Last, because a folder may be read-only and its time changes with what is put into it.
    dress(to, &metadata).map_err(at(from))
}

fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    let metadata = fs::symlink_metadata(from)?;
    if may_give_away() {
        std::os::unix::fs::lchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    // Counted in units of 512 bytes on every file system.
    if metadata.blocks() * 512 < metadata.len() {
        copy_with_holes(from, to)?;
    } else {
        fs::copy(from, to)?;
    }
    dress(to, &metadata)
}

/// Copies only what takes room: the files of some databases have holes larger than the disk.
fn copy_with_holes(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut copy = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    let mut at = 0;
    while let Some(data) = kernel::next_data(source.as_fd(), at)? {
        source.seek(SeekFrom::Start(data.start))?;
        copy.seek(SeekFrom::Start(data.start))?;
        io::copy(&mut (&source).take(data.end - data.start), &mut copy)?;
        at = data.end;
    }
    copy.set_len(source.metadata()?.len())
}

/// Gives the copy at `path` the times, the owner and the permissions of the original.
fn dress(path: &Path, original: &Metadata) -> io::Result<()> {
    if may_give_away() {
        std::os::unix::fs::lchown(path, Some(original.uid()), Some(original.gid()))?;
    }
    // Before the permissions, which may forbid to open it.
    let times =
        FileTimes::new().set_accessed(original.accessed()?).set_modified(original.modified()?);
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o600))?;
    File::open(path)?.set_times(times)?;
    fs::set_permissions(path, original.permissions())
}

fn may_give_away() -> bool {
    kernel::effective_ids().0 == 0
}

/// Removes what is at `path`, an absolute path without links, folders that may not be written
/// included; links in it are removed and not followed. That nothing is there is no error.
///
/// # Errors
///
/// What the system says, and [`ErrorKind::ResourceBusy`] when something is mounted at `path` or
/// below: then nothing is removed at all, for it would be taken from where it really lies.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
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
    // What cannot be changed is reported by the removal that follows.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path());
    }
}

#[cfg(test)]
mod tests;
