//! Adopting masu takes a dependency, and no C compiler.
//!
//! It relies on the cargo that runs the tests and fetches nothing. The program is always built for release, so the test
//! exists only in a debug build on glibc.
#![cfg(all(debug_assertions, target_env = "gnu"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of three lines, with masu as its allocator or without.
fn make(name: &str, masu: bool) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("src")).expect("a folder for the program");
    let path = env!("CARGO_MANIFEST_DIR");
    let dependency = if masu { format!("masu = {{ path = {path:?} }}\n") } else { String::new() };
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{dependency}\n[profile.release]\nstrip = true\n\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).expect("a manifest");
    let global = if masu {
        "#[global_allocator]\nstatic GLOBAL: masu::Masu = masu::Masu::new();\n"
    } else {
        ""
    };
    let source = format!("{global}fn main() {{\n    println!(\"hello\");\n}}\n");
    fs::write(folder.join("src/main.rs"), source).expect("a source");
    folder
}

/// Builds a program with `false` for every C compiler, runs it, and returns its bytes.
fn program_of(folder: &Path, name: &str) -> Vec<u8> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--offline", "--quiet", "--target-dir"]);
    cargo.arg(folder.join("target")).current_dir(folder);
    for compiler in ["CC", "CXX", "HOST_CC", "TARGET_CC"] {
        cargo.env(compiler, "false");
    }
    for flags in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_INCREMENTAL"]
    {
        cargo.env_remove(flags);
    }
    let built = cargo.output().expect("cargo starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let program = folder.join("target/release").join(name);
    let run = Command::new(&program).output().expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&run.stdout), "hello\n");
    fs::read(program).expect("the program")
}

#[test]
fn masu_needs_no_c_compiler_and_adds_less_than_125_kilobytes() {
    let with = program_of(&make("with-masu", true), "with-masu");
    let without = program_of(&make("without-masu", false), "without-masu").len();
    let added = with.len().saturating_sub(without);
    println!("{added} bytes added, to {without}");
    assert!(added <= 125_000, "masu adds {added} bytes to a stripped program of {without}");
    // A place that may panic has its file's name in the program.
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
    let may_panic = with.windows(sources.len()).any(|bytes| bytes == sources.as_bytes());
    assert!(!may_panic, "a call of masu may panic");
}
