//! The files that the rules check: those that git tracks, and those that it would track if they were added.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::source::Source;

pub(super) struct File {
    /// From the workspace's root.
    pub(super) path: PathBuf,
    pub(super) contents: String,
}

pub(super) struct Tree {
    pub(super) root: PathBuf,
    pub(super) files: Vec<File>,
    /// The Rust files among them, taken apart.
    pub(super) sources: Vec<Source>,
}

impl Tree {
    /// Reads the workspace at `root`; files that are not UTF-8 text are left out.
    pub(super) fn read(root: &Path) -> Result<Tree> {
        let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let output = Command::new("git")
            .args(listing)
            .current_dir(root)
            .output()
            .context("git did not start: tidy asks it which files belong to the workspace")?;
        if !output.status.success() {
            bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        let mut files = Vec::new();
        for name in names.split_terminator('\0') {
            // The target of a link is checked at its own place.
            let is_file = root.join(name).symlink_metadata().is_ok_and(|entry| entry.is_file());
            let Some(bytes) = is_file.then(|| std::fs::read(root.join(name))) else { continue };
            let bytes = bytes.with_context(|| format!("cannot read {name}"))?;
            if let Ok(contents) = String::from_utf8(bytes) {
                files.push(File { path: PathBuf::from(name), contents });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(Tree::new(root, files))
    }

    fn new(root: &Path, files: Vec<File>) -> Tree {
        let is_rust = |file: &&File| file.path.extension().is_some_and(|end| end == "rs");
        let sources = files
            .iter()
            .filter(is_rust)
            .map(|file| Source::new(&file.path, &file.contents))
            .collect();
        Tree { root: root.to_path_buf(), files, sources }
    }

    /// A tree of planted files, to show that a rule fails.
    #[cfg(test)]
    pub(super) fn planted(files: &[(&str, &str)]) -> Tree {
        let file = |&(path, contents): &(&str, &str)| File {
            path: PathBuf::from(path),
            contents: contents.to_owned(),
        };
        Tree::new(Path::new("/planted"), files.iter().map(file).collect())
    }
}
