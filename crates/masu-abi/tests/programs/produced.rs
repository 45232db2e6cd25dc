//! The files of a run: names, kinds, permissions and contents, to compare with another run's.
//!
//! Times and inode numbers are not compared, because they differ between any two runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The files under a folder, by their path in it.
#[derive(Debug, Default)]
pub(crate) struct Produced(BTreeMap<PathBuf, Kind>);

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Folder {
        mode: u32,
    },
    File {
        mode: u32,
        contents: Vec<u8>,
    },
    Link {
        target: PathBuf,
    },
    /// A socket, a pipe, a device.
    Special,
}

impl Produced {
    /// Reads everything under `folder` but what one of `ignored` names: a path in the folder, with
    /// all below it.
    pub(crate) fn read(folder: &Path, ignored: &[&str]) -> io::Result<Produced> {
        let mut produced = Produced::default();
        produced.read_below(folder, Path::new(""), ignored)?;
        Ok(produced)
    }

    fn read_below(&mut self, root: &Path, below: &Path, ignored: &[&str]) -> io::Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let path = below.join(entry?.file_name());
            if ignored.iter().any(|ignored| path == Path::new(ignored)) {
                continue;
            }
            let at = root.join(&path);
            let meta = fs::symlink_metadata(&at)?;
            let mode = meta.permissions().mode();
            let kind = if meta.is_dir() {
                self.read_below(root, &path, ignored)?;
                Kind::Folder { mode }
            } else if meta.is_symlink() {
                Kind::Link { target: fs::read_link(&at)? }
            } else if meta.is_file() {
                Kind::File { mode, contents: fs::read(&at)? }
            } else {
                Kind::Special
            };
            self.0.insert(path, kind);
        }
        Ok(())
    }

    /// Whether a file of that name is there and holds something.
    pub(crate) fn has(&self, path: &str) -> bool {
        match self.0.get(Path::new(path)) {
            Some(Kind::File { contents, .. }) => !contents.is_empty(),
            _ => false,
        }
    }

    /// In what the other differs, a sentence a file.
    pub(crate) fn differences(&self, other: &Produced) -> Vec<String> {
        let paths: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        paths
            .into_iter()
            .filter_map(|path| {
                let difference = match (self.0.get(path), other.0.get(path)) {
                    (Some(one), Some(two)) => difference(one, two)?,
                    (Some(_), None) => "is missing".to_owned(),
                    (None, _) => "is there as well".to_owned(),
                };
                Some(format!("{}: {difference}", path.display()))
            })
            .collect()
    }
}

fn difference(one: &Kind, two: &Kind) -> Option<String> {
    match (one, two) {
        (one, two) if one == two => None,
        (Kind::File { contents: one, .. }, Kind::File { contents: two, .. }) if one != two => {
            let byte = one.iter().zip(two).take_while(|(one, two)| one == two).count();
            Some(format!("differs from byte {byte} on ({} and {} bytes)", one.len(), two.len()))
        }
        _ => Some("has another kind, permission or target".to_owned()),
    }
}
