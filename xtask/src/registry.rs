//! The crates of others: their versions in a lock file, and the folders into which cargo unpacked them.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::files;

/// Cargo's folder for what belongs to no workspace.
pub fn cargo_home() -> Result<PathBuf> {
    home("CARGO_HOME", ".cargo")
}

/// The folder that `variable` names, else this one of the user's.
pub fn home(variable: &str, otherwise: &str) -> Result<PathBuf> {
    let set = std::env::var_os(variable).map(PathBuf::from);
    let found = set.or_else(|| Some(std::env::home_dir()?.join(otherwise)));
    found.with_context(|| format!("neither {variable} nor HOME is set"))
}

/// The version of a package in a lock file.
pub fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

/// The folder into which cargo unpacked a crate when it built it.
pub fn source(package: &str, version: &str) -> Result<PathBuf> {
    let sources = cargo_home()?.join("registry/src");
    let name = format!("{package}-{version}");
    let mut folders = files::list(&sources)?.into_iter().map(|registry| registry.join(&name));
    let found = folders.find(|folder| folder.is_dir());
    found.with_context(|| format!("no {name} in {}", sources.display()))
}
