//! The mallocs of a table, and the place of each.
//!
//! It relies on `cargo xtask peers` and on the lab's catalogue. A malloc that is not there is named with the reason;
//! the others are tried.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use masu_lab::{Catalogue, Libc, Places, Program, Spec, Variant};

use crate::bench::builds;
pub(crate) use crate::bench::figures::OURS;
use crate::peers;
use xtask::{commands, machine};

pub(crate) const SECURE: &str = "masu-secure";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    /// The variant as the lab reads it: a name with settings, or a library's path.
    pub(crate) spec: &'a str,
}

impl<'a> Wanted<'a> {
    pub(crate) const fn new(name: &'a str, title: &'a str) -> Wanted<'a> {
        Wanted { name, title, spec: name }
    }

    pub(crate) fn is_ours(&self) -> bool {
        [OURS, SECURE].contains(&self.listed())
    }

    /// The malloc's name in the catalogue.
    fn listed(&self) -> &str {
        self.spec.split(':').next().unwrap_or(self.spec)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Malloc {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) version: Option<String>,
    /// The variables that select it for a program.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

impl Malloc {
    pub(crate) fn version(&self) -> &str {
        self.version.as_deref().unwrap_or("unknown")
    }
}

/// Every malloc that is wanted, ready to run `program`. One that is missing is an error where all are `needed`.
pub(crate) fn find(
    root: &Path,
    program: &Path,
    wanted: &[Wanted<'_>],
    needed: bool,
) -> Result<Vec<Malloc>> {
    let catalogue = catalogue(root, wanted)?;
    let program = Program::find(program.as_os_str())?;
    let mut found = Vec::new();
    for one in wanted {
        match variant(&catalogue, &program, one.spec) {
            Ok(variant) => found.push(Malloc {
                name: one.name.to_owned(),
                title: one.title.to_owned(),
                version: version(&variant, one),
                environment: variant.changes_here(),
            }),
            Err(error) if needed => bail!("the record needs {}: {error:#}", one.title),
            Err(error) => println!("going on without {}: {error:#}", one.title),
        }
    }
    ensure!(!found.is_empty(), "not one of the mallocs that were asked for is there");
    Ok(found)
}

/// The mallocs of this machine, built where they are of this workspace and wanted.
fn catalogue(root: &Path, wanted: &[Wanted<'_>]) -> Result<Catalogue> {
    let wants = |name: &str| wanted.iter().any(|one| one.listed() == name);
    if wanted.iter().any(|one| !one.is_ours() && !one.spec.starts_with('/')) {
        machine::provide_what_there_is(&[machine::PEERS, machine::HARDENED_PEERS]);
    }
    let mut folders: Vec<PathBuf> = peers::folder().into_iter().chain(peers::hardened()).collect();
    if wants(SECURE) {
        folders.push(secure(root)?);
    }
    let masu_glibc =
        if wants(OURS) { Some(builds::library(root, Libc::Glibc)?.path) } else { None };
    Ok(Catalogue::find(&Places { masu_glibc, folders, ..Places::default() }))
}

fn variant(catalogue: &Catalogue, program: &Program, spec: &str) -> Result<Variant> {
    let spec: Spec = spec.parse()?;
    let variant = catalogue.resolve(&spec, program);
    variant.context("not here; `cargo xtask peers` builds those that no package has")
}

/// The folder with masu's hardened library, under its usual name.
fn secure(root: &Path) -> Result<PathBuf> {
    let built =
        commands::step("build masu secure", || commands::build_library_with(root, "secure"))?;
    let folder = commands::target_folder()?.join("secure");
    std::fs::copy(built, folder.join("libmasu-secure.so"))?;
    Ok(folder)
}

/// The malloc's release, as far as it is known.
fn version(variant: &Variant, wanted: &Wanted<'_>) -> Option<String> {
    let of_llvm = || {
        let path = variant.library.as_ref()?.to_str()?;
        let (_, rest) = path.split_once("/llvm-")?;
        Some(format!("of LLVM {}", rest.split('/').next()?))
    };
    let of_ours = || wanted.is_ours().then(|| env!("CARGO_PKG_VERSION").to_owned());
    variant.version.clone().or_else(of_llvm).or_else(of_ours)
}
