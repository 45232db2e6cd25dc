//! The static package: masu and xquo for musl, which need no library of the machine they run on.
//!
//! It relies on cargo's musl target, which the toolchain file asks for. The `masu` in it is static and its
//! `libmasu.so`s are not: it carries one for programs on glibc and one for those on musl, as any `masu` does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::clean::Root;
use super::{LICENCES, Shop, VERSION, notices};
use crate::{commands, machine};

/// Builds both programs and returns the folder they lie in, without debug information.
pub(super) fn programs(shop: &Shop) -> Result<PathBuf> {
    machine::provide_target(shop.root, machine::MUSL)?;
    let mut build = commands::cargo(shop.root, &["build", "--release", "--locked"]);
    build.args(["--package", "masu-cli", "--package", "xquo", "--target", machine::MUSL]);
    commands::run(build.arg("--target-dir").arg(&shop.target))?;
    let folder = shop.bench("static-programs")?;
    for name in ["masu", "xquo"] {
        let built = shop.target.join(machine::MUSL).join("release").join(name);
        let program = folder.join(name);
        commands::run(Command::new("strip").arg("-o").arg(&program).arg(&built))?;
        let segments = commands::output(
            Command::new("readelf").args(["--program-headers", "--wide"]).arg(&program),
        )?;
        ensure!(!segments.contains("INTERP"), "{} is not static", built.display());
    }
    Ok(folder)
}

pub(super) fn make(shop: &Shop) -> Result<Vec<PathBuf>> {
    let programs = programs(shop)?;
    let name = format!("masu-{VERSION}-{}-linux", std::env::consts::ARCH);
    let bench = shop.bench("static")?;
    let folder = bench.join(&name);
    fs::create_dir(&folder)?;
    for program in ["masu", "xquo"] {
        fs::copy(programs.join(program), folder.join(program))?;
    }
    for licence in LICENCES {
        fs::write(folder.join(licence), shop.read(licence)?)?;
    }
    fs::write(folder.join("README.md"), shop.read("crates/masu-cli/README.md")?)?;
    let notices = notices::of(shop.root, &["masu-cli", "xquo"], machine::MUSL)?;
    fs::write(folder.join("LICENSES-OF-OTHERS"), notices)?;
    let archive = shop.out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    // The same files make the same archive, whatever machine packs them, and whenever.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-czf"]);
    commands::run(tar.arg(&archive).arg("-C").arg(&bench).arg(&name))?;
    Ok(vec![archive])
}

/// Unpacks it where nothing else is, and runs it; then puts one program on glibc beside it and runs that on masu.
pub(super) fn test(_: &Shop, made: &[PathBuf]) -> Result<()> {
    let root = Root::empty("static")?;
    unpack(made, &root.folder)?;
    let version = root.run(&[], &["/masu", "--version"], "")?;
    ensure!(version.contains(VERSION), "masu --version: {version}");
    let listed = root.run(&[], &["/masu", "list"], "")?;
    ensure!(listed.contains("masu"), "masu list: {listed}");
    let quoted = root.run(&[], &["/xquo"], "it's\0two words\0")?;
    ensure!(quoted.lines().count() == 2 && quoted.contains("two words"), "xquo: {quoted}");

    let root = Root::of_debian("static-and-glibc", &["bash"])?;
    unpack(made, &root.folder)?;
    serves(&root, &["/masu", "run", "--", "bash", "-c", "echo"])
}

/// Whether a program that is started so is served by masu, seen by the statistics that are printed at its end. (Those
/// of coreutils close their streams before.)
pub(super) fn serves(root: &Root, command: &[&str]) -> Result<()> {
    serves_with(root, &[], command)
}

/// The same with variables.
pub(super) fn serves_with(root: &Root, variables: &[(&str, &str)], command: &[&str]) -> Result<()> {
    let variables = [&[("HOME", "/tmp"), ("MASU_STATISTICS_AT_EXIT", "1")], variables].concat();
    let printed = root.run(&variables, command, "")?;
    let is_served = printed.lines().any(|line| line == "masu statistics");
    ensure!(is_served, "{}: not served by masu:\n{printed}", command.join(" "));
    Ok(())
}

fn unpack(made: &[PathBuf], to: &Path) -> Result<()> {
    let archive = made.first().context("nothing was made")?;
    let mut tar = Command::new("tar");
    commands::run(tar.arg("-xzf").arg(archive).arg("-C").arg(to).arg("--strip-components=1"))
}
