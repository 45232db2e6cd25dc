//! The mallocs of the table, and where each is found.
//!
//! It relies on `cargo xtask peers` and on the lab's catalogue. What is not there is named with the reason; the rest is
//! tried.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use masu_lab::{Catalogue, Libc, Places, Program, Spec, Variant};

use crate::bench::builds::masu_library;
use crate::peers;
use xtask::{commands, machine};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malloc {
    pub(crate) name: &'static str,
    spec: &'static str,
    pub(crate) title: &'static str,
}

const fn malloc(name: &'static str, title: &'static str) -> Malloc {
    Malloc { name, spec: name, title }
}

const OURS: &str = "masu";
const SECURE: &str = "masu-secure";
const GUARDS: &str = "masu-guards";

pub(super) const MALLOCS: [Malloc; 10] = [
    malloc(OURS, "masu"),
    malloc(SECURE, "masu secure"),
    // Every block of up to 60 KiB: what the option finds where it looks.
    Malloc {
        name: GUARDS,
        spec: "masu:guard_rate=1,guard_slots=8000",
        title: "masu, each block guarded",
    },
    malloc("glibc", "glibc"),
    malloc("jemalloc", "jemalloc"),
    malloc("tcmalloc", "tcmalloc"),
    malloc("mimalloc3", "mimalloc"),
    malloc("mimalloc-secure", "mimalloc secure"),
    malloc("scudo", "scudo"),
    malloc("hardened_malloc", "hardened_malloc"),
];

impl Malloc {
    pub(super) fn is_ours(&self) -> bool {
        [OURS, SECURE, GUARDS].contains(&self.name)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) malloc: Malloc,
    pub(crate) version: String,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

pub(crate) struct All {
    pub(crate) mallocs: Vec<Found>,
    pub(crate) missing: Vec<(Malloc, String)>,
}

/// The mallocs of this machine that `is_wanted`, built where they are of this workspace.
pub(super) fn catalogue(root: &Path, is_wanted: &impl Fn(&Malloc) -> bool) -> Result<Catalogue> {
    let wants = |name: &str| MALLOCS.iter().any(|one| one.name == name && is_wanted(one));
    if MALLOCS.iter().any(|one| !one.is_ours() && is_wanted(one)) {
        machine::provide_what_there_is(&[machine::PEERS, machine::HARDENED_PEERS]);
    }
    let mut folders: Vec<PathBuf> = peers::folder().into_iter().chain(peers::hardened()).collect();
    if wants(SECURE) {
        folders.push(secure(root)?);
    }
    let masu_glibc = if wants(OURS) || wants(GUARDS) { Some(masu_library(root)?) } else { None };
    Ok(Catalogue::find(&Places { masu_glibc, folders, ..Places::default() }))
}

/// Every malloc that `is_wanted`, ready to run `program`.
pub(crate) fn find(
    root: &Path,
    program: &Path,
    is_wanted: impl Fn(&Malloc) -> bool,
) -> Result<All> {
    let catalogue = catalogue(root, &is_wanted)?;
    let program = Program::find(program.as_os_str())?;
    let mut all = All { mallocs: Vec::new(), missing: Vec::new() };
    for malloc in MALLOCS.into_iter().filter(is_wanted) {
        match variant(&catalogue, &program, malloc) {
            Ok(variant) => all.mallocs.push(Found {
                malloc,
                version: version(&variant, malloc),
                environment: variant.changes_here(),
            }),
            Err(error) => all.missing.push((malloc, format!("{error:#}"))),
        }
    }
    if all.mallocs.is_empty() {
        bail!("not one of the mallocs that were asked for is there");
    }
    Ok(all)
}

fn variant(catalogue: &Catalogue, program: &Program, malloc: Malloc) -> Result<Variant> {
    let name = malloc.spec.split(':').next().unwrap_or(malloc.spec);
    if catalogue.get(name, Libc::Glibc).is_none() {
        bail!("not here; `cargo xtask peers` builds those that no package has");
    }
    let spec: Spec = malloc.spec.parse()?;
    Ok(catalogue.resolve(&spec, program)?)
}

/// The folder with masu's hardened library, under its usual name.
fn secure(root: &Path) -> Result<PathBuf> {
    // One of its own, because cargo calls it what it calls the plain one.
    let target = commands::target_folder()?.join("secure");
    commands::step("build masu secure", || {
        let build = ["build", "--release", "--package", "masu-abi", "--features", "secure"];
        commands::run(commands::cargo(root, &build).arg("--target-dir").arg(&target))
    })?;
    std::fs::copy(target.join("release/libmasu.so"), target.join("libmasu-secure.so"))?;
    Ok(target)
}

/// Its release, as far as it is known.
fn version(variant: &Variant, malloc: Malloc) -> String {
    let of_llvm = || {
        let path = variant.library.as_ref()?.to_str()?;
        let (_, rest) = path.split_once("/llvm-")?;
        Some(format!("of LLVM {}", rest.split('/').next()?))
    };
    let known = variant.version.clone().or_else(of_llvm);
    known.unwrap_or_else(|| {
        if malloc.is_ours() { env!("CARGO_PKG_VERSION").to_owned() } else { "unknown".to_owned() }
    })
}
