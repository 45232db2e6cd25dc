//! The crates that people get, each packaged by cargo, and built from its package to test it.
//!
//! It relies on cargo, which replaces the packages of a workspace by each other while it builds them. The test goes
//! on outside the workspace: a project of its own that depends on the packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::clean::talk;
use super::{Shop, VERSION};
use crate::{commands, files};

pub(super) fn make(shop: &Shop) -> Result<Vec<PathBuf>> {
    // Packages of members that are gone would be taken for today's.
    let _ = fs::remove_dir_all(built(shop).join("package"));
    commands::run(package(shop).arg("--no-verify"))?;
    let mut made = Vec::new();
    for built in files::list(&built(shop).join("package"))? {
        if built.extension().is_some_and(|end| end == "crate") {
            let path = shop.out.join(built.file_name().unwrap_or_default());
            fs::copy(&built, &path).with_context(|| built.display().to_string())?;
            made.push(path);
        }
    }
    Ok(made)
}

/// Cargo's target folder for the tests of packages.
fn built(shop: &Shop) -> PathBuf {
    shop.out.join("crates-built")
}

/// Packages the crates, and builds each from its package unless the caller adds `--no-verify`.
fn package(shop: &Shop) -> Command {
    let mut package = commands::cargo(shop.root, &["package", "--locked", "--workspace"]);
    package.args(["--exclude", "xtask", "--exclude", "xtask-measure"]);
    // The workspace's profile says so for `masu-abi`; a package by itself has no profile.
    package.env("CARGO_PROFILE_DEV_PANIC", "abort");
    package.arg("--target-dir").arg(built(shop));
    package
}

/// Uses the libraries, which may be used by anyone from a registry, and says so.
const MAIN: &str = "\
#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

fn main() {
    let numbers: Vec<u64> = (1..=1000).collect();
    let executor = masu_chunk::Executor::new().chunk(10);
    let sums = executor.slice(&numbers).map(|chunk| chunk.iter().sum::<u64>()).unwrap();
    let arena = masu_code::Arena::open(masu_code::Options::default());
    println!(\"{} {}\", sums.value.iter().sum::<u64>(), arena.is_ok());
}
";

/// Has cargo build each from its package; then unpacks them where the workspace is not, depends on the libraries in a new
/// project, and installs the commands.
pub(super) fn test(shop: &Shop, made: &[PathBuf]) -> Result<()> {
    commands::run(&mut package(shop))?;
    let folder = tempfile::tempdir()?;
    let (folder, target) = (folder.path(), built(shop));
    // A registry would provide these packages; here the unpacked packages replace it.
    let mut patches = Vec::new();
    for archive in made {
        commands::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder))?;
        let stem = archive.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = stem.trim_end_matches(VERSION).trim_end_matches('-').to_owned();
        patches.push((name, folder.join(stem)));
    }
    let cargo = |at: &Path, arguments: &[&str]| {
        let mut cargo = commands::cargo(at, arguments);
        cargo.arg("--offline").arg("--target-dir").arg(&target);
        for (name, path) in &patches {
            cargo.arg("--config").arg(format!("patch.crates-io.{name}.path='{}'", path.display()));
        }
        cargo
    };
    let project = folder.join("project");
    files::write(&project.join("src/main.rs"), MAIN)?;
    files::write(
        &project.join("Cargo.toml"),
        format!(
            "[package]\nname = \"project\"\nversion = \"1.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
             masu = \"{VERSION}\"\nmasu-chunk = \"{VERSION}\"\nmasu-code = \"{VERSION}\"\n"
        ),
    )?;
    let printed = talk(&mut cargo(&project, &["run", "--quiet"]), "")?;
    ensure!(printed.lines().last() == Some("500500 true"), "a project with the crates: {printed}");
    let installed = folder.join("installed");
    for name in ["masu-cli", "masu-xquo"] {
        let at = folder.join(format!("{name}-{VERSION}"));
        let mut install = cargo(folder, &["install", "--quiet", "--debug"]);
        talk(install.arg("--path").arg(at).arg("--root").arg(&installed), "")?;
    }
    let mut masu = Command::new(installed.join("bin/masu"));
    masu.args(["run", "--", "grep", "-c", "libmasu", "/proc/self/maps"]);
    let lines = talk(masu.current_dir(folder).env("XDG_CACHE_HOME", folder.join("cache")), "")?;
    ensure!(lines.trim() != "0", "masu run: libmasu is not mapped");
    let quoted = talk(&mut Command::new(installed.join("bin/xquo")), "a b\0")?;
    ensure!(quoted.contains("a b"), "xquo: {quoted}");
    Ok(())
}
