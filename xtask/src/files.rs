//! Files and folders, with the path in every error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::commands;

pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file, and makes the folder that it lies in.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, contents))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a folder, and removes what was in it.
pub fn empty_folder(folder: &Path) -> Result<()> {
    let removed = if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) };
    removed
        .and_then(|()| fs::create_dir_all(folder))
        .with_context(|| format!("cannot empty {}", folder.display()))
}

/// The files and folders in a folder, in order.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}

/// The files and folders below a folder whose names are like `pattern`, from there, in order.
pub fn below(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let mut find = Command::new("find");
    let found = commands::output(find.arg(folder).args(["-name", pattern, "-printf", "%P\n"]))?;
    let mut found: Vec<PathBuf> = found.lines().map(PathBuf::from).collect();
    found.sort();
    Ok(found)
}
