//! `cargo xtask cranelift`: the code arena's memory for `cranelift-jit`, with its tests and with those of that crate.
//!
//! It relies on `crates/masu-code/cranelift`, which is outside the workspace, and on the source that cargo fetched: the
//! crate's own tests are compiled from there, against a builder whose modules have the arena's memory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::commands;

const FOLDER: &str = "crates/masu-code/cranelift";

pub(crate) fn run(root: &Path) -> Result<()> {
    let target = commands::target_folder()?.join("cranelift");
    let cargo = |words: &[&str]| {
        let mut cargo = commands::cargo(&root.join(FOLDER), words);
        cargo.env("CARGO_TARGET_DIR", &target);
        cargo
    };
    commands::step("format", || commands::run(&mut cargo(&["fmt", "--check"])))?;
    let lints = ["clippy", "--all-targets", "--locked", "--", "-D", "warnings"];
    commands::step("clippy", || commands::run(&mut cargo(&lints)))?;
    let words = ["metadata", "--format-version", "1", "--locked"];
    let source = source_of_jit(&commands::output(&mut cargo(&words))?)
        .context("cargo knows no source of cranelift-jit")?;
    commands::step("tests", || {
        let mut tests = cargo(&["test", "--locked", "--features", "stock-tests"]);
        commands::run(tests.env("CRANELIFT_JIT", &source))
    })
}

/// The folder of the crate, by the path of its manifest in cargo's metadata.
fn source_of_jit(metadata: &str) -> Option<PathBuf> {
    let paths = metadata.split("\"manifest_path\":\"").skip(1);
    let folders = paths.filter_map(|rest| rest.split_once("/Cargo.toml\"")).map(|(path, _)| path);
    let mut folders = folders.map(Path::new);
    let is_jit = |path: &&Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"cranelift-jit-"))
    };
    folders.find(is_jit).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_where_the_manifest_is() {
        let metadata = r#"{"packages":[{"manifest_path":"/a/cranelift-0.1.0/Cargo.toml"},
            {"name":"cranelift-jit","manifest_path":"/a/cranelift-jit-0.1.0/Cargo.toml","edition":"2024"}]}"#;
        assert_eq!(source_of_jit(metadata), Some(PathBuf::from("/a/cranelift-jit-0.1.0")));
        assert_eq!(source_of_jit("{}"), None);
    }
}
