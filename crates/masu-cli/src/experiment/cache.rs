//! The folder in which experiments build programs and keep inputs.
//!
//! The folder is removed as a whole, so masu uses only folders that it made itself; a file inside marks them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::embedded;

/// The file that marks the folder as masu's; backups leave such folders out.
const TAG: &str = "CACHEDIR.TAG";

/// The text of that file: the signature of <https://bford.info/cachedir/>, and the folder's owner.
const TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
                    # What `masu experiment` built and made; `masu experiment --clean` removes it.\n";

/// The part of the text that marks the folder as masu's.
const MARK: &str = "masu experiment --clean";

/// The unit in which the kernel reports the disk usage of a file.
const BLOCK_BYTES: u64 = 512;

pub(super) struct Cache(PathBuf);

impl Cache {
    /// The folder that was named, or the one in the user's cache.
    pub(super) fn at(named: Option<&Path>) -> Result<Self> {
        let usual = || Some(embedded::cache_folder()?.join("experiments"));
        match named.map(Path::to_owned).or_else(usual) {
            Some(folder) => Ok(Self(std::path::absolute(&folder).unwrap_or(folder))),
            None => bail!("neither HOME nor XDG_CACHE_HOME is set; name a folder with --cache"),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    pub(super) fn make(&self) -> Result<()> {
        let folder = self.0.display();
        fs::create_dir_all(&self.0).with_context(|| format!("making {folder}"))?;
        if self.is_ours() {
            return Ok(());
        }
        let mut entries = fs::read_dir(&self.0).with_context(|| format!("reading {folder}"))?;
        if entries.next().is_some() {
            bail!("{folder} holds other things; name an empty folder, or a new one, with --cache");
        }
        let tag = self.0.join(TAG);
        let written = fs::write(&tag, TEXT);
        if written.is_err() {
            // A full disk leaves an empty file, which would make the folder look like somebody else's.
            let _ = fs::remove_file(tag);
        }
        written.with_context(|| format!("writing into {folder}"))
    }

    /// Removes the folder and returns its size in bytes; none if it does not exist.
    pub(super) fn remove(&self) -> Result<Option<f64>> {
        match fs::symlink_metadata(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            _ if !self.is_ours() => bail!(
                "{} is left as it is: `masu experiment` did not make it (it has no {TAG} of its own)",
                self.0.display()
            ),
            _ => {}
        }
        let size = self.size();
        fs::remove_dir_all(&self.0).with_context(|| format!("removing {}", self.0.display()))?;
        Ok(Some(size))
    }

    fn is_ours(&self) -> bool {
        fs::read_to_string(self.0.join(TAG)).is_ok_and(|text| text.contains(MARK))
    }

    /// The disk usage of the folder, in bytes.
    pub(super) fn size(&self) -> f64 {
        size(&self.0) as f64
    }
}

/// The disk usage of the files below `folder` in bytes, which is far less than their length where files have holes.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    };
    entries.map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_masu_made_is_filled_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(Some(&place.path().join("new"))).unwrap();
        assert_eq!(cache.remove().unwrap(), None);
        cache.make().unwrap();
        let built = fs::File::create(cache.folder().join("built")).unwrap();
        built.set_len(1 << 40).unwrap();
        // A full disk must not empty the tag of a folder that is in use.
        let tag = cache.folder().join(TAG);
        fs::write(&tag, format!("{TEXT}# mine")).unwrap();
        cache.make().unwrap();
        assert!(fs::read_to_string(&tag).unwrap().ends_with("# mine"));
        assert!(cache.remove().unwrap().unwrap() < 1e9, "a hole takes no room");
        assert!(!cache.folder().exists());

        let other = place.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("thesis.tex"), "years").unwrap();
        let cache = Cache::at(Some(&other)).unwrap();
        assert!(cache.make().unwrap_err().to_string().contains("holds other things"));
        assert!(cache.remove().unwrap_err().to_string().contains("left as it is"));
        assert!(other.join("thesis.tex").exists());
    }
}
