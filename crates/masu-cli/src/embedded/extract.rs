//! Lays the carried library into the first fit folder, so that a half-written or swapped file is never used.
//!
//! A file is written under another name and renamed; one already there is used only if it is ours and holds the same
//! bytes.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use rustix::fs::OFlags;

use super::place;

/// All may read the library, for a program may become another user.
const MODE: u32 = 0o644;

/// Returns the path of a file called `name` that holds `content`, in the first fit of `folders`.
pub(super) fn extract(content: &[u8], name: &str, folders: &[PathBuf]) -> Result<PathBuf> {
    let mut refusals = String::new();
    for folder in folders {
        let laid = place::prepare(folder).and_then(|folder| {
            lay(content, name, &folder).map_err(|error| format!("cannot be written: {error}"))
        });
        match laid {
            Ok(path) => return Ok(path),
            Err(why) => refusals.push_str(&format!("\n  {}: {why}", folder.display())),
        }
    }
    Err(anyhow!(
        "no folder is fit to hold libmasu.so:{refusals}\n\
         Set XDG_CACHE_HOME to a folder of yours that programs may be run from."
    ))
}

/// Puts the file into a folder that is fit, unless it already lies there.
fn lay(content: &[u8], name: &str, folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(name);
    if holds(&path, content) {
        return Ok(path);
    }
    // The process id would not do: containers that share a home number their processes alike.
    let passing = folder.join(format!(".{name}.{:016x}", RandomState::new().hash_one(name)));
    let written = write_new(&passing, content).and_then(|()| fs::rename(&passing, &path));
    if let Err(error) = written {
        let _ = fs::remove_file(&passing);
        return Err(error);
    }
    Ok(path)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(MODE))
}

/// True if `path` is a regular file of ours with exactly these bytes, which all may read.
fn holds(path: &Path, content: &[u8]) -> bool {
    let read = || -> io::Result<bool> {
        // Without O_NONBLOCK a FIFO would stop us here for ever.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file =
            OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        if !is_ours(&file.metadata()?, content.len()) {
            return Ok(false);
        }
        let mut found = Vec::with_capacity(content.len());
        file.take(content.len() as u64 + 1).read_to_end(&mut found)?;
        Ok(found == content)
    };
    read().unwrap_or(false)
}

fn is_ours(metadata: &Metadata, length: usize) -> bool {
    metadata.is_file()
        && metadata.len() == length as u64
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o777 == MODE
}

#[cfg(test)]
mod tests;
