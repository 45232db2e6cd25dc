//! A program of each allocator, built for each C library, without and with link-time optimization across crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::allocators::{ALLOCATORS, Allocator};
use xtask::commands;

/// The C library that a program is built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Libc {
    Glibc,
    Musl,
}

/// The reach of the compiler's optimization across crates.
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

pub(super) fn all(root: &Path, folder: &Path, libcs: &[Libc]) -> Result<Built> {
    let sources = root.join("workloads/rust");
    let lock = fs::read_to_string(sources.join("Cargo.lock")).context("no lock file")?;
    let names: Vec<&str> = libcs.iter().map(|libc| libc.name()).collect();
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-k", "-C"]).arg(&sources);
    make.arg(format!("OUT={}", folder.display())).arg(format!("LIBCS={}", names.join(" ")));
    // A program that is not there has its reason beside it.
    if let Err(error) = commands::run(&mut make) {
        println!("{error:#}");
    }
    let mut built = Built { programs: Vec::new(), missing: Vec::new(), lock };
    for &libc in libcs {
        for allocator in ALLOCATORS {
            let programs = Linking::ALL.map(|linking| {
                let name = format!("{}-{}-{}", allocator.name, libc.name(), linking.word());
                Program { allocator, libc, linking, path: folder.join("programs").join(name) }
            });
            if programs.iter().all(|program| program.path.is_file()) {
                built.programs.extend(programs);
                continue;
            }
            let failed =
                |program: &Program| fs::read_to_string(program.path.with_extension("failed")).ok();
            let reason = programs.iter().find_map(failed);
            let reason = reason.as_deref().map_or("it is not built for it", str::trim);
            let name = format!("{} on {}", allocator.name, libc.name());
            if allocator.is_needed() && libcs.first() == Some(&libc) {
                bail!("there is no {name}: {reason}");
            }
            println!("going on without {name}: {reason}");
            built.missing.push((name, reason.to_owned()));
        }
    }
    Ok(built)
}
