//! Stamps: what a built library was made from, so that nothing is built twice and nothing stale stands.
//!
//! The hard part is to leave nothing out: the stamp is the whole entry of the table, the text of every command
//! with it, and the versions of the compilers.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::table::{CMAKE_OF_LISTING, Peer};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Built {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// Everything that determines the result of a build of `peer`.
pub(super) fn describe(peer: &Peer, compilers: &str) -> String {
    let cmake = if peer.listing.is_some() { CMAKE_OF_LISTING } else { "" };
    format!("{peer:#?}\n{cmake}\n{compilers}")
}

/// The compilers' own words on their versions.
pub(super) fn compilers() -> String {
    let says = |compiler: &str| {
        let output = Command::new(compiler).arg("--version").output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().next().unwrap_or("not there").to_owned()
    };
    ["cc", "c++", "clang", "clang++", "clang-19"]
        .map(|one| format!("{one}: {}\n", says(one)))
        .concat()
}

/// What was built of `peer` in `folder`, if its description is the same and nobody touched it since.
pub(super) fn standing(folder: &Path, peer: &Peer, description: &str) -> Option<Built> {
    let stamp = fs::read_to_string(file(folder, peer)).ok()?;
    let (first, rest) = stamp.split_once('\n')?;
    let (bytes, seconds) = first.split_once(' ')?;
    let built = Built { bytes: bytes.parse().ok()?, seconds: seconds.parse().ok()? };
    let library = fs::metadata(folder.join(&peer.file)).ok()?;
    (rest == description && library.len() == built.bytes).then_some(built)
}

/// Notes that `peer` now stands in `folder`.
pub(super) fn put(folder: &Path, peer: &Peer, description: &str, built: Built) -> Result<()> {
    let file = file(folder, peer);
    let stamps = file.parent().unwrap_or(folder);
    fs::create_dir_all(stamps).with_context(|| format!("making {}", stamps.display()))?;
    let text = format!("{} {:.1}\n{description}", built.bytes, built.seconds);
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
}

fn file(folder: &Path, peer: &Peer) -> std::path::PathBuf {
    folder.join("stamps").join(&peer.name)
}
