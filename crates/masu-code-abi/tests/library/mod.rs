//! The library for C that the tests check: the very file that programs link.
//!
//! Relies on cargo. Cargo builds no shared library for the tests of its package by itself, so a nested cargo builds it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The folder of `libmasu_code.so`, built if it is not up to date.
pub(crate) fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build).clone()
}

fn build() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "masu-code-abi"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(built.status.success(), "cargo failed:\n{}", String::from_utf8_lossy(&built.stderr));
    // Paths are strings in the messages; a path without a quote or a backslash needs no decoding.
    let messages = String::from_utf8(built.stdout).expect("cargo's messages are UTF-8");
    let mut words = messages.split('"');
    let file = words.find(|word| word.ends_with("/libmasu_code.so"));
    let file = PathBuf::from(file.expect("cargo says that it made libmasu_code.so"));
    file.parent().expect("a file lies in a folder").to_path_buf()
}
