//! The static package: masu and xquo for musl, which need no library of the machine they run on.
//!
//! It relies on cargo's musl target, which the toolchain file asks for. The `masu` in it is static and its
//! `libmasu.so`s are not: it carries one for programs on glibc and one for those on musl, as any `masu` does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::clean::{Root, is_served, talk};
use super::{LICENCES, PAGES, Shop, VERSION, notices};
use crate::{commands, files, install, machine};

pub(super) struct Cpu {
    /// As file names have it.
    name: &'static str,
    target: &'static str,
    strip: &'static str,
    /// Starts programs of this CPU here; empty where the machine does.
    emulator: &'static [&'static str],
}

impl Cpu {
    fn start(&self, program: &Path) -> Command {
        let Some((emulator, arguments)) = self.emulator.split_first() else {
            return Command::new(program);
        };
        let mut command = Command::new(emulator);
        command.args(arguments).arg(program);
        command
    }
}

/// This machine's CPU, and one whose programs an emulator runs here.
pub(super) const HERE: Cpu =
    Cpu { name: "x86_64", target: machine::MUSL, strip: "strip", emulator: &[] };
const OTHER: Cpu = Cpu {
    name: "aarch64",
    target: machine::OTHER_CPU_MUSL,
    strip: "aarch64-linux-gnu-strip",
    emulator: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
};

/// The linkers for the other CPU. `libmasu.so` for musl is linked by a compiler of C for glibc, without any C
/// library.
const LINKERS: [(&str, &str); 2] = [
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "aarch64-linux-gnu-gcc"),
];

/// Builds both programs and returns the folder they lie in, without debug information.
pub(super) fn programs(shop: &Shop, cpu: &Cpu) -> Result<PathBuf> {
    machine::provide_target(shop.root, cpu.target)?;
    let mut build = commands::cargo(shop.root, &["build", "--release", "--locked"]);
    build.args(["--package", "masu-cli", "--package", "masu-xquo", "--target", cpu.target]);
    build.envs(LINKERS);
    commands::run(build.arg("--target-dir").arg(&shop.target))?;
    let folder = shop.bench(&format!("static-programs-{}", cpu.name))?;
    for name in ["masu", "xquo"] {
        let built = shop.target.join(cpu.target).join("release").join(name);
        let program = folder.join(name);
        commands::run(Command::new(cpu.strip).arg("-o").arg(&program).arg(&built))?;
        let segments = commands::output(
            Command::new("readelf").args(["--program-headers", "--wide"]).arg(&program),
        )?;
        ensure!(!segments.contains("INTERP"), "{} is not static", built.display());
    }
    Ok(folder)
}

pub(super) fn make(shop: &Shop) -> Result<Vec<PathBuf>> {
    archive(shop, &HERE)
}

pub(super) fn make_other(shop: &Shop) -> Result<Vec<PathBuf>> {
    machine::provide_all(&[machine::FOREIGN])?;
    // For the library that `masu` carries for programs on glibc.
    machine::provide_target(shop.root, machine::OTHER_CPU)?;
    archive(shop, &OTHER)
}

fn archive(shop: &Shop, cpu: &Cpu) -> Result<Vec<PathBuf>> {
    let programs = programs(shop, cpu)?;
    let name = format!("masu-{VERSION}-{}-linux", cpu.name);
    let bench = shop.bench(&format!("static-{}", cpu.name))?;
    let folder = bench.join(&name);
    fs::create_dir(&folder)?;
    for program in ["masu", "xquo"] {
        fs::copy(programs.join(program), folder.join(program))?;
    }
    install::pages(&folder, |name| cpu.start(&folder.join(name)))?;
    for licence in LICENCES {
        files::write(&folder.join(licence), shop.read(licence)?)?;
    }
    files::write(&folder.join("README.md"), shop.read("crates/masu-cli/README.md")?)?;
    let notices = notices::of(shop.root, &["masu-cli", "masu-xquo"], cpu.target)?;
    files::write(&folder.join("LICENSES-OF-OTHERS"), notices)?;
    let archive = shop.out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    // The same files make the same archive, whatever machine packs them, and whenever.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-czf"]);
    commands::run(tar.arg(&archive).arg("-C").arg(&bench).arg(&name))?;
    Ok(vec![archive])
}

/// Unpacks the archive in an empty place, and runs it; then puts one program on glibc beside it and runs that on
/// masu.
pub(super) fn test(_: &Shop, made: &[PathBuf]) -> Result<()> {
    machine::provide_all(&[machine::MANUAL])?;
    let root = Root::empty("static")?;
    unpack(made, &root.folder)?;
    let version = root.run(&[], &["/masu", "--version"], "")?;
    ensure!(version.contains(VERSION), "masu --version: {version}");
    let listed = root.run(&[], &["/masu", "list"], "")?;
    ensure!(listed.contains("masu"), "masu list: {listed}");
    root.has_pages("share/man", "", &PAGES)?;
    let quoted = root.run(&[], &["/xquo"], "it's\0two words\0")?;
    ensure!(quoted.lines().count() == 2 && quoted.contains("two words"), "xquo: {quoted}");

    let root = Root::of_debian("static-and-glibc", &["bash"])?;
    unpack(made, &root.folder)?;
    serves(&root, &[], &["/masu", "run", "--", "bash", "-c", "echo"])
}

/// A program of the other CPU that the carried library is to serve.
const SERVED: &str = "\
#include <stdlib.h>
int main(void) { void *volatile block = malloc(100); free(block); return block == 0; }
";

/// Runs both programs under the emulator, and a program in C on the library that `masu` carries.
pub(super) fn test_other(shop: &Shop, made: &[PathBuf]) -> Result<()> {
    let folder = shop.bench("static-other")?;
    unpack(made, &folder)?;
    let emulated = |name: &str| OTHER.start(&folder.join(name));
    let version = talk(emulated("masu").arg("--version"), "")?;
    ensure!(version.contains(VERSION), "masu --version: {version}");
    let quoted = talk(&mut emulated("xquo"), "it's\0two words\0")?;
    ensure!(quoted.lines().count() == 2 && quoted.contains("two words"), "xquo: {quoted}");
    let source = folder.join("served.c");
    files::write(&source, SERVED)?;
    let program = folder.join("served");
    commands::run(Command::new("aarch64-linux-gnu-gcc").arg(&source).arg("-o").arg(&program))?;
    // The emulator starts no program of its CPU from within, but the library is laid out before that.
    let cache = folder.join("cache");
    let mut run = emulated("masu");
    run.args(["run", "--"]).arg(&program).env("XDG_CACHE_HOME", &cache);
    let said = talk(&mut run, "").unwrap_or_else(|error| format!("{error:#}"));
    let laid_out = files::list(&cache.join("masu")).with_context(|| said.clone())?;
    let library = laid_out
        .into_iter()
        .find(|path| path.to_string_lossy().contains("libmasu-glibc-"))
        .with_context(|| format!("masu run laid out no library: {said}"))?;
    let mut served = OTHER.start(&program);
    // qemu's own variable: preloaded itself, it would be served by a library of another CPU.
    let set = format!("LD_PRELOAD={},MASU_STATISTICS_AT_EXIT=1", library.display());
    let printed = talk(served.env("QEMU_SET_ENV", set), "")?;
    ensure!(is_served(&printed), "not served by masu: {printed}");
    Ok(())
}

/// Fails where a program that is started so, with these variables, is not served by masu.
pub(super) fn serves(root: &Root, variables: &[(&str, &str)], command: &[&str]) -> Result<()> {
    let variables = [&[("HOME", "/tmp"), ("MASU_STATISTICS_AT_EXIT", "1")], variables].concat();
    let printed = root.run(&variables, command, "")?;
    ensure!(is_served(&printed), "{}: not served by masu:\n{printed}", command.join(" "));
    Ok(())
}

fn unpack(made: &[PathBuf], to: &Path) -> Result<()> {
    let archive = made.first().context("nothing was made")?;
    let mut tar = Command::new("tar");
    commands::run(tar.arg("-xzf").arg(archive).arg("-C").arg(to).arg("--strip-components=1"))
}
