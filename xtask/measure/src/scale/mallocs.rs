//! The mallocs that are compared, and where each is found.
//!
//! It relies on `cargo xtask peers` and on the lab's catalogue.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use masu_lab::{Catalogue, Places, Program, Spec};

use crate::bench::builds::masu_library;
use crate::peers;

pub(super) const OURS: &str = "masu";

/// In the order of the tables: ours first, then those that are built by `cargo xtask peers`, then the system's.
pub(super) const NAMES: [&str; 7] =
    [OURS, "mimalloc3", "snmalloc", "jemalloc", "tcmalloc-google", "rpmalloc", "glibc"];

#[derive(Debug, Clone)]
pub(super) struct Malloc {
    pub(super) name: String,
    pub(super) version: Option<String>,
    /// The variables that select it for a program.
    pub(super) environment: Vec<(OsString, OsString)>,
}

pub(super) struct All {
    pub(super) mallocs: Vec<Malloc>,
    pub(super) missing: Vec<(String, String)>,
}

/// The mallocs of these names, or all where neither a name nor a library is given, and those libraries.
pub(super) fn find(
    root: &Path,
    program: &Path,
    names: &[String],
    libraries: &[PathBuf],
) -> Result<All> {
    let is_wanted = |name: &str| {
        names.iter().any(|one| one == name) || (names.is_empty() && libraries.is_empty())
    };
    let masu_glibc = if is_wanted(OURS) { Some(masu_library(root)?) } else { None };
    let folders = peers::folder().into_iter().collect();
    let catalogue = Catalogue::find(&Places { masu_glibc, folders, ..Places::default() });
    let program = Program::find(program.as_os_str())?;
    let mut all = All { mallocs: Vec::new(), missing: Vec::new() };
    for name in NAMES.into_iter().filter(|name| is_wanted(name)) {
        match resolve(&catalogue, &program, name, name) {
            Ok(malloc) => all.mallocs.push(malloc),
            Err(error) => all.missing.push((name.to_owned(), format!("{error:#}"))),
        }
    }
    for library in libraries {
        let path = library.canonicalize().with_context(|| library.display().to_string())?;
        let path = path.to_str().context("the path of a library is no text")?;
        // Libraries of one name may be compared with each other, as before and after a change.
        let name = if libraries.len() == 1 { file_name(library) } else { path };
        all.mallocs.push(resolve(&catalogue, &program, path, name)?);
    }
    if all.mallocs.is_empty() {
        bail!("not one of the mallocs that were asked for is there");
    }
    Ok(all)
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or("library")
}

fn resolve(catalogue: &Catalogue, program: &Program, spec: &str, name: &str) -> Result<Malloc> {
    let spec: Spec = spec.parse()?;
    let variant = catalogue.resolve(&spec, program)?;
    let (version, environment) = (variant.version.clone(), variant.changes_here());
    Ok(Malloc { name: name.to_owned(), version, environment })
}
