//! The library for C that the tests are about: the very file that programs link.
//!
//! Relies on cargo, which builds no shared library for the tests of its package by itself, and is asked to.

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
    // Paths stand as strings in the messages; one without a quote or a backslash reads as it is.
    let messages = String::from_utf8(built.stdout).expect("cargo's messages are UTF-8");
    let mut words = messages.split('"');
    let file = words.find(|word| word.ends_with("/libmasu_code.so"));
    let file = PathBuf::from(file.expect("cargo says that it made libmasu_code.so"));
    file.parent().expect("a file lies in a folder").to_path_buf()
}
