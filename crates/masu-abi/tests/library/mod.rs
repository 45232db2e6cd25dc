//! Support of the library's tests: the release `libmasu.so`, C and C++ programs, and runs under it.
//!
//! It relies on cargo (which builds the library into the workspace's target folder) and on `cc` and `c++`. The tests
//! check the very file that users preload, with the release profile's inlining and tail calls, so a nested cargo builds
//! it and the tests never link it.
//!
//! `TESTED_TARGET` selects another target, whose programs `qemu-aarch64` runs. Or the command in `TESTED_RUNNER` runs
//! them under a kernel of its own (`cargo xtask boot`). `TESTED_PROFILE=dev` tests the library without optimization:
//! `cargo xtask matrix` sets them.
//!
//! This is the only `mod.rs`: cargo would take `tests/library.rs` for a test program.
#![allow(dead_code, unused_macros, reason = "each test program uses its own part of this")]

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Compilers for programs of another CPU, of C and of C++.
const FOREIGN: [&str; 2] = ["aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++"];
/// The folder of the other CPU's C library.
const FOREIGN_ROOT: &str = "/usr/aarch64-linux-gnu";

/// The tested target, if it is not the tests' own.
fn foreign() -> Option<String> {
    let name = env::var("TESTED_TARGET").ok()?;
    assert_eq!(name, "aarch64-unknown-linux-gnu", "the tests know how to run no other target");
    Some(name)
}

/// A function that makes a file when it is first called.
macro_rules! once {
    ($(#[$about:meta])* $access:vis fn $name:ident() => $made:expr) => {
        $(#[$about])*
        $access fn $name() -> &'static std::path::Path {
            static MADE: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
            MADE.get_or_init(|| $made)
        }
    };
}

once! {
    /// The path of the `libmasu.so` that is tested, built if it is not up to date.
    pub(crate) fn path() => match foreign() {
        None => build("libmasu.so", &[], &[]),
        Some(name) => {
            let linker = ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", FOREIGN[0]);
            build("libmasu.so", &["--target", &name], &[linker])
        }
    }
}

/// The archive beside it, as an argument of the compiler.
pub(crate) fn archive() -> &'static str {
    text(&path().with_extension("a")).to_owned().leak()
}

/// The header for programs in C and C++.
pub(crate) fn header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/masu.h")
}

/// Builds the package for release with more arguments and variables; returns the path of the file
/// called `name` among those that cargo lists.
pub(crate) fn build(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> PathBuf {
    let profile = env::var("TESTED_PROFILE").unwrap_or_else(|_| "release".to_owned());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "masu-abi", "--profile", &profile]).args(arguments);
    made_by(cargo.envs(variables.iter().copied()), |file| file == name)
}

/// Runs cargo; returns the path of the file whose name is `wanted` among those that cargo lists.
pub(crate) fn made_by(cargo: &mut Command, wanted: impl Fn(&str) -> bool) -> PathBuf {
    cargo.arg("--message-format=json-render-diagnostics").current_dir(env!("CARGO_MANIFEST_DIR"));
    let messages = succeeds(cargo);
    // Paths are strings in the messages; a path without a quote or a backslash needs no decoding.
    let mut files = messages.split('"').map(Path::new).filter(|path| path.is_absolute());
    let is_wanted = |path: &&Path| path.file_name().and_then(OsStr::to_str).is_some_and(&wanted);
    files
        .find(is_wanted)
        .unwrap_or_else(|| panic!("{cargo:?} made no file:\n{messages}"))
        .to_owned()
}

/// Compiles `tests/c/SOURCE` (C or C++ by its extension) with more arguments; returns the program
/// or library, named after the source and `kind`.
pub(crate) fn compile(source: &str, kind: &str, arguments: &[&str]) -> PathBuf {
    let compilers = foreign().map_or(["cc", "c++"], |_| FOREIGN);
    let compiler = compilers[usize::from(source.ends_with(".cpp"))];
    compile_with(compiler, &self::source(source), kind, arguments)
}

/// The compiler's arguments for a program that is linked with the library and includes its header.
pub(crate) fn linked() -> [&'static str; 2] {
    [linked_by_name()[0], text(path())]
}

/// The same where the library is named as a user names it, and found in its build folder.
pub(crate) fn linked_by_name() -> [&'static str; 4] {
    let folder = path().parent().expect("a file is in a folder").display();
    let header = header();
    let include = header.parent().expect("a file is in a folder").display();
    [
        format!("-I{include}").leak(),
        format!("-L{folder}").leak(),
        format!("-Wl,-rpath,{folder}").leak(),
        "-lmasu",
    ]
}

/// `fn program()`: a source of `tests/c`, compiled once with these arguments.
macro_rules! program {
    ($source:literal, $arguments:expr) => {
        $crate::library::once! {
            fn program() => $crate::library::compile($source, "program", $arguments)
        }
    };
}

/// One test for each group of a program that only has to succeed. The arguments follow the group.
macro_rules! groups {
    ($program:expr; $($group:ident)*) => {
        $crate::library::groups! { $program, [""; 0]; $($group)* }
    };
    ($program:expr, $arguments:expr; $($group:ident)*) => {$(
        #[test]
        fn $group() {
            let mut command = library::preloaded($program);
            library::succeeds(command.arg(stringify!($group)).args($arguments));
        }
    )*};
}

#[allow(unused_imports, reason = "each test program uses its own part of this")]
pub(crate) use {groups, once, program};

once! {
    /// The program with every kind of request: `tests/c/faulted.c`.
    pub(crate) fn faulted() => compile("faulted.c", "program", &linked())
}

once! {
    /// The hardened build, in a folder of its own, because it has the same name as the plain build.
    pub(crate) fn hardened() => {
        let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/secure");
        build("libmasu.so", &["--features", "secure", "--target-dir", folder], &[])
    }
}

/// The target whose programs bring no C library with them.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";

/// The compiler for [`MUSL`], if this machine has one.
pub(crate) fn musl_compiler() -> Option<&'static str> {
    let found =
        cfg!(target_arch = "x86_64") && Command::new("musl-gcc").arg("--version").output().is_ok();
    if !found {
        eprintln!("not tested: there is no musl-gcc (Debian: musl-tools)");
    }
    found.then_some("musl-gcc")
}

/// The shared library for [`MUSL`]. The Rust target is static by default; a folder of its own keeps the two apart.
pub(crate) fn musl_shared() -> PathBuf {
    let folder = format!("{}/musl-shared", env!("CARGO_TARGET_TMPDIR"));
    let flags = ("RUSTFLAGS", "-C target-feature=-crt-static");
    build("libmasu.so", &["--target", MUSL, "--target-dir", &folder], &[flags])
}

pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the target folder has a plain name")
}

/// Gives the program more rights than its user: a group of its own, taken on at start, which only root, or a member of
/// the group, may give a file. Returns whether this user may do that.
pub(crate) fn gives_rights(program: &Path) -> bool {
    const OTHER_GROUP: u32 = 65_534;
    let is_made = chown(program, None, Some(OTHER_GROUP)).is_ok()
        && fs::set_permissions(program, fs::Permissions::from_mode(0o2755)).is_ok();
    if !is_made {
        eprintln!("not tested: this user may not make a set-group-ID program");
    }
    is_made
}

/// The program under the library and under a limit of the shell's (`ulimit -v 1000000`), which applies before the program is
/// loaded.
pub(crate) fn limited(limit: &str, program: impl AsRef<OsStr>) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit} && LD_PRELOAD=$0 exec \"$@\"")]);
    shell.arg(path()).arg(program);
    shell
}

/// As [`compile`], with a compiler of the caller's choice.
pub(crate) fn compile_with(
    compiler: &str,
    source: &Path,
    kind: &str,
    arguments: &[&str],
) -> PathBuf {
    let stem = source.file_name().and_then(OsStr::to_str).expect("sources have plain names");
    let target = env::var("TESTED_TARGET").unwrap_or_default();
    let result = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{stem}.{kind}{target}"));
    // Another test may compile or run the same program now: write aside, then rename.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // ORDERING: Relaxed: the number only has to differ each time.
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let aside = result.with_extension(format!("{}-{number}", std::process::id()));
    // Without builtins the compiler cannot drop or merge the tested calls.
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
    fs::rename(&aside, &result).expect("the target folder is writable");
    result
}

/// A command that runs under the library.
pub(crate) fn preloaded(program: impl AsRef<OsStr>) -> Command {
    if foreign().is_none() {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", path());
        return command;
    }
    let preload = format!("LD_PRELOAD={}", path().display());
    if let Ok(runner) = env::var("TESTED_RUNNER") {
        let mut words = runner.split(' ');
        let mut command = Command::new(words.next().expect("a runner is a program"));
        command.args(words).arg("--file").arg(path()).args(["--env", &preload]).arg(program);
        return command;
    }
    let mut command = Command::new("qemu-aarch64");
    command.args(["-L", FOREIGN_ROOT, "-E", &preload]);
    // The emulator needs the folder for programs that the program runs.
    command.env("QEMU_LD_PREFIX", FOREIGN_ROOT).arg(program);
    command
}

/// Runs the command; returns its standard output.
pub(crate) fn succeeds(command: &mut Command) -> String {
    String::from_utf8_lossy(&success(command).stdout).into_owned()
}

/// Runs the command; returns all that it wrote.
pub(crate) fn success(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    let printed = printed(&output);
    assert!(output.status.success(), "{command:?}: {}\n{printed}", output.status);
    output
}

/// The whole output of a program, for a failure.
pub(crate) fn printed(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}
