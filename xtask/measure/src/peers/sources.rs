//! The peers' sources: packages of cargo's registry, unpacked by cargo into a folder of our own.
//!
//! It relies on `cargo vendor`, so that checksums, mirrors and offline work are cargo's business. The packages
//! are never built as crates: only the C and C++ files they carry are used.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::table::Peer;
use xtask::commands;

/// Unpacks the packages of `peers` below `folder`; returns where they lie.
pub(super) fn fetch(folder: &Path, peers: &[Peer]) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    fs::write(folder.join("Cargo.toml"), manifest(peers))?;
    fs::write(folder.join("lib.rs"), "")?;
    let vendor = ["vendor", "--quiet", "--versioned-dirs", "vendor"];
    commands::output(&mut commands::cargo(folder, &vendor))?;
    Ok(folder.join("vendor"))
}

/// A package that depends on nothing but those of `peers`, each at its exact version.
pub(super) fn manifest(peers: &[Peer]) -> String {
    let mut lines: Vec<String> = peers
        .iter()
        .map(|peer| format!("{} = \"={}\"\n", peer.package, peer.package_version))
        .collect();
    lines.sort();
    lines.dedup();
    format!(
        "[package]\nname = \"peers\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lib]\npath = \"lib.rs\"\n\n\
         [dependencies]\n{}\n[workspace]\n",
        lines.concat()
    )
}

/// The folder of the peer's package in `vendor`, once its witness says the version that is expected.
pub(super) fn of(peer: &Peer, vendor: &Path) -> Result<PathBuf> {
    let exact = format!("{}-{}", peer.package, peer.package_version);
    let is_ours = |name: &str| {
        name.strip_prefix(&exact).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
    };
    let entries = fs::read_dir(vendor).with_context(|| format!("reading {}", vendor.display()))?;
    let found = entries.flatten().find(|entry| is_ours(&entry.file_name().to_string_lossy()));
    let folder = found.with_context(|| format!("cargo unpacked no package {exact}"))?.path();
    let (file, wanted) = &peer.witness;
    let text = fs::read_to_string(folder.join(file))
        .with_context(|| format!("reading {file} of {exact}"))?;
    if !text.contains(wanted.as_str()) {
        bail!(
            "{exact} does not carry {} {}: its {file} says no `{}`; correct xtask/measure/src/peers/peers.toml",
            peer.name,
            peer.version,
            wanted.trim()
        );
    }
    Ok(folder)
}

/// The source files that `script` names in quotes, except those that only serve Rust programs.
pub(super) fn listed(script: &str) -> Vec<&str> {
    let mut files: Vec<&str> = script
        .split('"')
        .filter(|word| word.starts_with("c_src/") && !word.contains("_bridge."))
        .filter(|word| {
            let kind = Path::new(word).extension();
            kind.is_some_and(|kind| kind == "cc" || kind == "S")
        })
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}
