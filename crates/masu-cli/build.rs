//! Builds the `libmasu.so` that `masu` carries inside, once for programs on glibc and once for
//! programs on musl; and each again as the library that counts requests, and as the hardened build.
//!
//! `libmasu/` holds links to the sources of `masu` and `masu-abi`; `cargo package` puts what they
//! point to into this crate, so an installed `masu` is built from its own package and never asks
//! the network. The hard part is a cargo inside a cargo: the sources are copied into a workspace
//! of their own under `OUT_DIR`, whose target folder nobody else locks.
//!
//! The library for the C library that `masu` itself is built for must build. The other one is
//! optional: where its Rust target is not installed the file is empty, and `masu` says at run
//! time what was missing.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// COUPLING: the packages of `libmasu/`; `masu-abi` names its neighbour as `../masu`.
const PACKAGES: [&str; 2] = ["masu", "masu-abi"];

/// Separates the flags in `CARGO_ENCODED_RUSTFLAGS`, as cargo's reference says.
const FLAG_SEPARATOR: char = '\u{1f}';

fn main() -> ExitCode {
    match build_libraries() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error=libmasu.so, which masu carries inside: {why}");
            ExitCode::FAILURE
        }
    }
}

fn build_libraries() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let target = variable("TARGET")?;
    let own = variable("CARGO_CFG_TARGET_ENV")?;
    if variable("CARGO_CFG_TARGET_OS")? != "linux" {
        return Err("masu works on Linux only".to_owned());
    }
    let arch = target.split('-').next().unwrap_or_default();
    let workspace = copy_sources(&out).map_err(|error| format!("copying its sources: {error}"))?;
    for (libc, name) in [("gnu", "glibc"), ("musl", "musl")] {
        let is_own = libc == own;
        let target = if is_own { target.clone() } else { format!("{arch}-unknown-linux-{libc}") };
        for (kind, prefix) in KINDS {
            let carried = out.join(format!("{prefix}-{name}.so"));
            let (absence, done) = match build_library(&workspace, &target, libc, is_own, kind) {
                Ok(built) => (String::new(), fs::copy(&built, &carried).map(drop)),
                Err(why) if is_own => return Err(why),
                Err(why) => (why, fs::write(&carried, [])),
            };
            done.map_err(|error| format!("{}: {error}", carried.display()))?;
            let variable = format!("{prefix}-{name}-absent").replace('-', "_").to_uppercase();
            println!("cargo::rustc-env={variable}={absence}");
        }
    }
    Ok(())
}

/// Which `libmasu.so`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The one to run programs with.
    Ordinary,
    /// The one that counts what they ask for.
    Counting,
    /// The one that stops their misuse of the heap.
    Hardened,
}

/// Each with its file's name.
const KINDS: [(Kind, &str); 3] = [
    (Kind::Ordinary, "libmasu"),
    (Kind::Counting, "libmasu-count"),
    (Kind::Hardened, "libmasu-secure"),
];

/// Builds `libmasu.so` for `target`; returns where it lies, or one line that says why not.
fn build_library(
    workspace: &Path,
    target: &str,
    libc: &str,
    is_own: bool,
    kind: Kind,
) -> Result<PathBuf, String> {
    if !is_own && !is_installed(target)? {
        return Err(format!(
            "the Rust target {target} was not installed when masu was built; \
             `rustup target add {target}` and build masu again"
        ));
    }
    // All kinds have one file name, so one folder would have them taken for each other.
    let (folder, features): (_, &[&str]) = match kind {
        Kind::Ordinary => ("target", &[]),
        Kind::Counting => ("target-count", &["--features=count"]),
        Kind::Hardened => ("target-secure", &["--features=secure"]),
    };
    let target_folder = workspace.join(folder);
    let mut cargo = Command::new(variable("CARGO")?);
    cargo
        .args(["build", "--offline", "--quiet", "--release", "--package=masu-abi"])
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_folder)
        .args(["--target", target])
        .args(features)
        .env("CARGO_ENCODED_RUSTFLAGS", flags_for(libc, is_own, workspace)?)
        // What the outer cargo knows about its own build must not reach this one: clippy's
        // wrapper, above all, would check instead of build.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("CARGO_BUILD_TARGET_DIR")
        .env_remove("CARGO_BUILD_BUILD_DIR")
        .env_remove("CARGO_BUILD_TARGET");
    let output = cargo.output().map_err(|error| format!("starting cargo: {error}"))?;
    if !output.status.success() {
        // Cargo shows this where the build fails, and with `-vv` where it goes on without.
        let text = String::from_utf8_lossy(&output.stderr);
        eprintln!("{text}");
        let reason = text.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
        return Err(format!("building it for {target} failed: {reason}"));
    }
    Ok(target_folder.join(target).join("release").join("libmasu.so"))
}

/// Lays a workspace of `masu` and `masu-abi` under `out`; returns its folder.
///
/// The manifests are the real ones, cut to what is built: what they inherit stands in the
/// workspace made here.
fn copy_sources(out: &Path) -> io::Result<PathBuf> {
    let links = Path::new("libmasu");
    let workspace = out.join("libmasu");
    fs::create_dir_all(&workspace)?;
    for package in PACKAGES {
        let to = workspace.join(package);
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        copy_tree(&links.join(package), &to)?;
        let manifest = fs::read_to_string(to.join("manifest.toml"))?;
        fs::write(to.join("Cargo.toml"), without_development(&manifest))?;
    }
    // Cargo watches a folder with everything in it, and follows links.
    println!("cargo::rerun-if-changed={}", links.display());
    println!("cargo::rerun-if-changed=build.rs");
    let manifest = format!(
        "[workspace]\n\
         resolver = \"3\"\n\
         members = {PACKAGES:?}\n\
         [workspace.package]\n\
         version = \"{}\"\n\
         edition = \"2024\"\n\
         rust-version = \"{}\"\n\
         license = \"MIT OR Apache-2.0\"\n\
         authors = []\n\
         repository = \"\"\n\
         homepage = \"\"\n\
         [workspace.lints]\n\
         [profile.release]\n\
         panic = \"abort\"\n\
         lto = \"fat\"\n\
         codegen-units = 1\n\
         strip = \"debuginfo\"\n",
        env!("CARGO_PKG_VERSION"),
        env!("CARGO_PKG_RUST_VERSION"),
    );
    fs::write(workspace.join("Cargo.toml"), manifest)?;
    Ok(workspace)
}

/// `manifest` without what only tests, benchmarks and examples need, and without optional crates: the
/// former are not copied, and the latter may be on no disk when masu is installed.
fn without_development(manifest: &str) -> String {
    let is_header = |line: &str| line.starts_with('[');
    let is_development = |header: &str| {
        let parts = ["dev-dependencies", "[[test]]", "[[bench]]", "[[example]]"];
        parts.iter().any(|part| header.contains(part))
    };
    let mut keeps = true;
    let mut kept = String::new();
    for line in manifest.lines() {
        if is_header(line) {
            keeps = !is_development(line);
        }
        if keeps && !line.contains("optional = true") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Copies a folder, following links and keeping each file's time, so that the nested cargo sees
/// as changed only what changed.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::copy(from, to)?;
        return File::options().write(true).open(to)?.set_modified(from.metadata()?.modified()?);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        copy_tree(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

/// Whether the compiler has a standard library for `target`.
fn is_installed(target: &str) -> Result<bool, String> {
    let output = Command::new(variable("RUSTC")?)
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .map_err(|error| format!("starting rustc: {error}"))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // rustup writes this list whenever a target is added, so adding one builds masu again.
    if let Some(rustlib) = folder.parent().and_then(Path::parent) {
        let components = rustlib.join("components");
        if components.exists() {
            println!("cargo::rerun-if-changed={}", components.display());
        }
    }
    Ok(output.status.success() && folder.is_dir())
}

/// The compiler flags of the outer build as far as they make sense for the library.
///
/// Coverage and sanitizers need a runtime that a `no_std` library has not, and a shared library
/// is never linked statically. Linker flags are meant for the outer target alone.
fn flags_for(libc: &str, is_own: bool, workspace: &Path) -> Result<OsString, String> {
    let encoded = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let mut flags = Vec::new();
    let mut words = encoded.split(FLAG_SEPARATOR).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let flag = match word {
            "-C" | "-Z" | "--codegen" => {
                let option = words.next().unwrap_or_default();
                format!("{}{option}", if word == "-Z" { "-Z" } else { "-C" })
            }
            _ => word.to_owned(),
        };
        let never =
            ["crt-static", "instrument-coverage", "sanitizer", "prefer-dynamic", "profile-"];
        let own_only = ["-Clink", "-Crelocation-model", "-Clinker"];
        if !never.iter().any(|part| flag.contains(part))
            && (is_own || !own_only.iter().any(|start| flag.starts_with(start)))
        {
            flags.push(flag);
        }
    }
    flags.push("--cap-lints=allow".to_owned());
    if libc == "musl" {
        flags.push("-Ctarget-feature=-crt-static".to_owned());
        flags.push(format!("-Clink-arg=-L{}", no_c_library(workspace)?));
    }
    Ok(flags.join(&FLAG_SEPARATOR.to_string()).into())
}

/// Makes a folder with a C library that holds nothing, for linking on a machine whose own C
/// library is the wrong one: glibc's would be linked into what is meant for musl. The symbols stay
/// open, and the program that the library is preloaded into has them all.
fn no_c_library(workspace: &Path) -> Result<String, String> {
    let folder = workspace.join("no-c-library");
    let made = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("libc.so"), "/* an empty linker script */\n"));
    made.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder.display().to_string())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo did not set {name}"))
}
