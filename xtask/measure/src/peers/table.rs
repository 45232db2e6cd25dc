//! The peers as `peers.toml` has them: packages of cargo's registry that carry a malloc's C or C++ sources whole, and how
//! its authors build it. That file explains each field.

use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) package: String,
    pub(super) package_version: String,
    pub(super) version: String,
    pub(super) witness: (String, String),
    pub(super) file: String,
    pub(super) listing: Option<String>,
    pub(super) steps: Vec<String>,
    pub(super) product: String,
}

/// The folder of hardened builds, below `target/peers`.
pub(super) const HARDENED: &str = "hardened";

pub(super) static PEERS: LazyLock<Vec<Peer>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        peer: Vec<Peer>,
    }
    let file: File =
        toml::from_str(include_str!("peers.toml")).expect("a test reads the same file");
    file.peer
});

/// CMake's file for the sources that a package lists.
pub(super) const CMAKE_OF_LISTING: &str = include_str!("listing.cmake");
