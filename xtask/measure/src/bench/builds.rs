//! The builds before any measurement: masu's library, the patterns, the floor, and the inputs of the programs; and
//! the list of mallocs.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use masu_lab::{Catalogue, Libc, Places, Program, Variant};

use super::figures::OURS;
use xtask::{commands, machine};

const MUSL_COMPILER: &str = "musl-gcc";

pub(super) struct Patterns {
    /// The one program that all mallocs run.
    pub(super) program: PathBuf,
    /// The folder with the library that is no malloc: `workloads/floor`.
    pub(super) floor: PathBuf,
}

/// masu's library as users get it, and the C library that masu and the measured programs work with.
pub(crate) struct Library {
    pub(crate) path: PathBuf,
    pub(crate) libc: Libc,
}

pub(crate) fn library(root: &Path, libc: Libc) -> Result<Library> {
    let mut cargo = commands::cargo(root, &["build", "--release", "--package", "masu-abi"]);
    let target = commands::target_folder()?;
    let folder = if libc == Libc::Musl {
        cargo.args(["--target", machine::MUSL]);
        cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER", MUSL_COMPILER);
        let flags = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS";
        cargo.env(flags, "-Ctarget-feature=-crt-static");
        target.join(machine::MUSL)
    } else {
        target
    };
    commands::step("build libmasu.so", || commands::run(&mut cargo))?;
    Ok(Library { path: folder.join("release/libmasu.so"), libc })
}

/// Builds the one program that all mallocs of `libc` run, and the floor under them.
pub(super) fn patterns(root: &Path, libc: Libc) -> Result<Patterns> {
    let mut target = commands::target_folder()?;
    if libc == Libc::Musl {
        target.push("musl");
    }
    let floor = target.join("floor");
    let compiler = (libc == Libc::Musl).then_some(MUSL_COMPILER);
    commands::make_by(compiler, &root.join("workloads/patterns"), &target)?;
    commands::make_by(compiler, &root.join("workloads/floor"), &floor)?;
    Ok(Patterns { program: target.join("patterns"), floor })
}

/// A malloc that trades time for checks, which `cargo xtask misuse` measures. It took a third of the time of all runs here.
const HARDENED: &str = "scudo";

/// Every malloc to measure: those that `cargo xtask peers` built, those of the system (the newest release of each, without
/// the hardened one), and the contents of the folders of `others`.
pub(crate) fn catalogue(library: &Library, others: Vec<PathBuf>) -> Catalogue {
    let folders = crate::peers::folder().into_iter().chain(others).collect();
    let mut places = Places { folders, ..Places::default() };
    let path = Some(library.path.clone());
    match library.libc {
        Libc::Musl => places.masu_musl = path,
        _ => places.masu_glibc = path,
    }
    let mut catalogue = Catalogue::find(&places);
    // The catalogue also lists an older release of a malloc, with the version in its name.
    catalogue.allocators.retain(|allocator| {
        let version = allocator.version.as_ref();
        let is_newest =
            version.is_none_or(|version| !allocator.name.ends_with(&format!("-{version}")));
        is_newest && allocator.name != HARDENED
    });
    catalogue
}

/// The variants of `program` whose figures a table has, the reference first.
pub(super) fn variants(library: &Library, program: &Path) -> Result<Vec<Variant>> {
    let program = Program::find(program.as_os_str())?;
    let variants = catalogue(library, Vec::new()).variants_for(&program);
    if !variants.iter().any(|variant| variant.label == OURS) || variants.len() < 2 {
        bail!("there is no malloc to compare masu with, or no masu");
    }
    Ok(variants)
}
