//! What every test of the library needs: the release `libmasu.so`, C and C++ programs, and running
//! them under it.
//!
//! It relies on cargo (which builds the library into the workspace's own target folder, wherever
//! that is) and on `cc` and `c++`. The hard idea: the tests judge the very file that users preload,
//! with the release profile's inlining and tail calls, so it is built by a nested cargo and never
//! linked into the tests.
//!
//! This is the one `mod.rs` of the house: cargo would take `tests/library.rs` for a test program.
#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The path of the release `libmasu.so`, built if it is not up to date.
///
/// # Panics
///
/// If it cannot be built.
pub(crate) fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| build("libmasu.so", &[], &[]))
}

/// The path of the release `libmasu.a`.
pub(crate) fn static_path() -> PathBuf {
    path().with_extension("a")
}

/// Builds the package for release with more arguments and variables; returns the path of the file
/// called `name` among those that cargo says it made.
pub(crate) fn build(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "masu-abi"])
        .arg("--message-format=json-render-diagnostics")
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(built.status.success(), "cargo failed:\n{}", String::from_utf8_lossy(&built.stderr));
    // Paths stand as strings in the messages; one without a quote or a backslash reads as it is.
    let messages = String::from_utf8(built.stdout).expect("cargo's messages are UTF-8");
    let file = messages
        .split('"')
        .map(Path::new)
        .find(|path| path.is_absolute() && path.file_name() == Some(OsStr::new(name)));
    file.unwrap_or_else(|| panic!("cargo made no {name}:\n{messages}")).to_owned()
}

/// Compiles `tests/c/SOURCE` (C or C++ by its extension) with more arguments; returns the program
/// or library, named after the source and `kind`.
///
/// # Panics
///
/// If there is no compiler or it finds an error.
pub(crate) fn compile(source: &str, kind: &str, arguments: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let compiler = if source.ends_with(".cpp") { "c++" } else { "cc" };
    compile_with(compiler, &folder.join(source), kind, arguments)
}

/// As [`compile`], with a compiler of the caller's choice.
pub(crate) fn compile_with(
    compiler: &str,
    source: &Path,
    kind: &str,
    arguments: &[&str],
) -> PathBuf {
    let stem = source.file_name().and_then(OsStr::to_str).expect("sources have plain names");
    let result = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{stem}.{kind}"));
    // Another test may compile or run the same program now: write aside, then rename.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // ORDERING: Relaxed, for the number need only be different each time.
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let aside = result.with_extension(format!("{}-{number}", std::process::id()));
    // Without builtins the compiler may not drop or merge the very calls that are tested.
    let compiled = Command::new(compiler)
        .args([
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Wno-alloc-size-larger-than",
            "-Wno-deprecated-declarations",
        ])
        .args(["-fno-builtin", "-D_GNU_SOURCE", "-pthread"])
        .arg(source)
        .arg("-o")
        .arg(&aside)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("these tests need the compiler `{compiler}`: {error}"));
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{compiler} {}:\n{errors}", source.display());
    std::fs::rename(&aside, &result).expect("the target folder is writable");
    result
}

/// A command that runs under the library.
pub(crate) fn preloaded(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", path());
    command
}

/// Runs the command; returns what it printed on standard output.
///
/// # Panics
///
/// If it does not succeed, with all that it printed.
pub(crate) fn succeeds(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let printed = printed(&output);
    assert!(output.status.success(), "{command:?}: {}\n{printed}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// All that a program printed, to show beside a failure.
pub(crate) fn printed(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}
