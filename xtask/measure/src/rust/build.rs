//! A program of each allocator, built for each C library, without and with link-time optimisation across crates.
//!
//! It relies on cargo: all are built in one target folder, so that sources in C are compiled once and what is there
//! already is not built again. The program's place is the same for all of them, so each is copied away at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::allocators::{ALLOCATORS, Allocator, OURS, REFERENCE};
use xtask::{commands, machine};

/// The C library that a program is built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Libc {
    Glibc,
    Musl,
}

/// How far the compiler sees across crates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linking {
    /// The default of a program that sets nothing.
    Plain,
    /// `lto = "thin"`.
    Thin,
}

impl Libc {
    pub(super) const ALL: [Libc; 2] = [Libc::Glibc, Libc::Musl];

    pub(super) fn name(self) -> &'static str {
        match self {
            Libc::Glibc => "glibc",
            Libc::Musl => "musl",
        }
    }
}

impl Linking {
    pub(super) const ALL: [Linking; 2] = [Linking::Plain, Linking::Thin];

    pub(super) fn name(self) -> &'static str {
        match self {
            Linking::Plain => "no LTO",
            Linking::Thin => "thin LTO",
        }
    }

    /// The profile's setting, as cargo's `--config` takes it.
    fn config(self) -> &'static str {
        match self {
            Linking::Plain => "profile.release.lto=false",
            Linking::Thin => "profile.release.lto=\"thin\"",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Linking::Plain => "plain",
            Linking::Thin => "thin",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) allocator: Allocator,
    pub(super) libc: Libc,
    pub(super) linking: Linking,
    pub(super) path: PathBuf,
}

pub(super) struct Built {
    pub(super) programs: Vec<Program>,
    /// The allocators that are missing, where, and why.
    pub(super) missing: Vec<(String, String)>,
    pub(super) lock: String,
}

fn sources(root: &Path) -> PathBuf {
    root.join("workloads/rust")
}

pub(super) fn all(root: &Path, folder: &Path, libcs: &[Libc]) -> Result<Built> {
    let lock = fs::read_to_string(sources(root).join("Cargo.lock")).context("no lock file")?;
    let mut built = Built { programs: Vec::new(), missing: Vec::new(), lock };
    for &libc in libcs {
        for allocator in ALLOCATORS {
            let name = format!("{} on {}", allocator.name, libc.name());
            if let Some(reason) = allocator.not_on_musl.filter(|_| libc == Libc::Musl) {
                built.missing.push((name, reason.to_owned()));
                continue;
            }
            match Linking::ALL.map(|linking| one(root, folder, allocator, libc, linking)) {
                [Ok(plain), Ok(thin)] => built.programs.extend([plain, thin]),
                [Err(error), _] | [_, Err(error)] => {
                    let is_needed = [OURS, REFERENCE].contains(&allocator.name);
                    if is_needed && libcs.first() == Some(&libc) {
                        return Err(error);
                    }
                    println!("going on without {name}: {error:#}");
                    built.missing.push((name, first_line(&error)));
                }
            }
        }
    }
    Ok(built)
}

fn first_line(error: &anyhow::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn one(
    root: &Path,
    folder: &Path,
    allocator: Allocator,
    libc: Libc,
    linking: Linking,
) -> Result<Program> {
    let target = folder.join("build");
    let mut cargo = command(root, allocator.name, &target);
    cargo.args(["--config", linking.config()]);
    let mut produced = target;
    match libc {
        Libc::Glibc => {
            if let Some((c, cpp)) = allocator.compilers {
                cargo.env("CC", c).env("CXX", cpp);
            }
        }
        Libc::Musl => {
            cargo.args(["--target", machine::MUSL]);
            cargo.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
            produced.push(machine::MUSL);
        }
    }
    produced.push("release/rust-patterns");
    let output = cargo.output().with_context(|| commands::show(&cargo))?;
    if !output.status.success() {
        bail!("{}", reason(&String::from_utf8_lossy(&output.stderr)));
    }
    let name = format!("{}-{}-{}", allocator.name, libc.name(), linking.word());
    let path = folder.join("programs").join(name);
    fs::create_dir_all(folder.join("programs"))?;
    fs::copy(&produced, &path).with_context(|| format!("copying {}", produced.display()))?;
    println!("{}, {}, {}", allocator.name, libc.name(), linking.name());
    Ok(Program { allocator, libc, linking, path })
}

/// A build of the workload with the allocator of `feature`, into `target`.
fn command(root: &Path, feature: &str, target: &Path) -> Command {
    let mut cargo = commands::cargo(&sources(root), &["build", "--release", "--locked"]);
    cargo.args(["--features", feature, "--target-dir"]).arg(target);
    // A user who sets these for other builds would make other programs than the record says.
    for variable in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CFLAGS", "CXXFLAGS", "CARGO_TARGET_DIR"]
    {
        cargo.env_remove(variable);
    }
    cargo
}

/// The line that says why a build failed, with what followed it.
fn reason(said: &str) -> String {
    const SHOWN_LINES: usize = 12;
    let lines: Vec<&str> = said.lines().collect();
    let first = lines.iter().position(|line| line.starts_with("error")).unwrap_or(0);
    let last = lines.len().saturating_sub(SHOWN_LINES).max(first + 1);
    let end = lines.get(last..).unwrap_or_default().join("\n");
    format!("{}\n{end}", lines.get(first).copied().unwrap_or("cargo said nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failed_build_is_its_first_error() {
        let said = "   Compiling a\nwarning: b\nerror: no compiler\n\ncaused by:\n  nothing";
        assert!(reason(said).starts_with("error: no compiler\n"));
        assert!(reason(said).ends_with("nothing"));
        assert!(reason("").starts_with("cargo said nothing"));
    }
}
