//! Programs built with cargo, from the tree into the cache: packages come from the registry through cargo alone.
//!
//! Relies on cargo to know which builds are fresh. The hard idea: a *clean* build is timed once, and the time kept
//! beside the program; later builds only bring it up to date.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Workbench;
use masu_run::Error;
use masu_run::error::Doing;

pub(super) struct Cargo {
    program: PathBuf,
    pub(super) tree: PathBuf,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Built {
    pub(super) name: String,
    /// The seconds of the program's clean build.
    pub(super) seconds: f64,
    /// The bytes of the stripped program.
    pub(super) bytes: u64,
}

pub(super) struct Recipe<'a> {
    pub(super) name: &'a str,
    /// The program whose build folder this one shares; its own name where its build is timed from nothing.
    pub(super) beside: &'a str,
    pub(super) program: &'a str,
    pub(super) features: &'a [&'a str],
    /// The target; none for this machine's own.
    pub(super) target: Option<&'a str>,
}

impl Cargo {
    /// Cargo and the tree; none where one of them is missing for `what`, which is noted.
    pub(super) fn find(bench: &mut Workbench<'_>, what: &str) -> Option<Cargo> {
        let tree = bench.tree(what)?;
        let install = "install Rust from https://rustup.rs";
        let program = bench.tool("cargo", what, install)?;
        bench.tool("cc", what, "install gcc (Debian: apt install gcc)")?;
        Some(Cargo { program, tree })
    }

    fn command(&self, arguments: &[&str], target_folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.tree).env("CARGO_TARGET_DIR", target_folder);
        // Variables that a user sets for other builds must not change these.
        for name in ["RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_ENCODED_RUSTFLAGS", "LD_PRELOAD"] {
            command.env_remove(name);
        }
        // A cache of what was compiled would take the time that is to be measured; this overrules a setting, too.
        command.env("RUSTC_WRAPPER", "");
        command
    }

    /// Builds a part of the workspace by `cargo build` and `arguments`; returns its folder, none after a failure.
    pub(super) fn of_tree(
        &self,
        bench: &mut Workbench<'_>,
        what: &str,
        arguments: &[&str],
    ) -> Option<PathBuf> {
        let folder = bench.cache().join("build-tree");
        let arguments = [&["build", "--locked"][..], arguments].concat();
        bench.step(&format!("building {what}"), &mut self.command(&arguments, &folder))?;
        Some(folder)
    }

    /// Fetches the packages of the package at `manifest`, so that no download counts in a build's time.
    pub(super) fn fetch(&self, bench: &mut Workbench<'_>, manifest: &str) {
        let folder = bench.cache();
        let arguments = ["fetch", "--locked", "--manifest-path", manifest];
        bench.step("fetching packages (through cargo)", &mut self.command(&arguments, &folder));
    }

    /// Whether there is a standard library for `target`, and the compilers that `features` need.
    pub(super) fn has_target(&self, bench: &mut Workbench<'_>, target: &str) -> bool {
        // The rustc is the one in cargo's own folder, so that it is the one that will compile.
        let rustc = self.program.with_file_name("rustc");
        let mut command = Command::new(rustc);
        command.args(["--print", "target-libdir", "--target", target]).current_dir(&self.tree);
        let folder = command
            .output()
            .ok()
            .map(|said| PathBuf::from(String::from_utf8_lossy(&said.stdout).trim().to_owned()));
        let is_there = folder.is_some_and(|folder| folder.is_dir());
        if !is_there {
            bench.miss(
                target,
                format!("its standard library is not here; rustup target add {target}"),
            );
        }
        is_there
    }

    /// Builds a program into `to/NAME`, stripped, clean the first time; none after a failure, which is noted.
    pub(super) fn program(
        &self,
        bench: &mut Workbench<'_>,
        manifest: &str,
        recipe: &Recipe<'_>,
        to: &Path,
    ) -> Result<Option<Built>, Error> {
        let Recipe { name, beside, program, features, target } = recipe;
        let folder = bench.cache().join(format!("build-{beside}"));
        let seconds_file = to.join(format!("{name}.seconds"));
        let known =
            fs::read_to_string(&seconds_file).ok().and_then(|text| text.trim().parse().ok());
        if known.is_none() && name == beside && folder.exists() {
            fs::remove_dir_all(&folder).doing(|| format!("removing {}", folder.display()))?;
        }
        let mut arguments = vec!["build", "--locked", "--offline", "--release"];
        arguments.extend(["--manifest-path", manifest, "--bin", program]);
        let features = features.join(",");
        arguments.extend(["--features", &features]);
        if let Some(target) = target {
            arguments.extend(["--target", target]);
        }
        let mut command = self.command(&arguments, &folder);
        command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        if let Some(target) = target {
            command.env(format!("CC_{}", target.replace('-', "_")), "musl-gcc");
        }
        let Some(took) = bench.step(&format!("building {name}"), &mut command) else {
            return Ok(None);
        };
        let seconds: f64 = known.unwrap_or(took.as_secs_f64());
        let made = target
            .map_or(folder.clone(), |target| folder.join(target))
            .join("release")
            .join(program);
        let put = to.join(name);
        fs::copy(&made, &put)
            .doing(|| format!("copying {} to {}", made.display(), put.display()))?;
        fs::write(&seconds_file, format!("{seconds:.1}\n"))
            .doing(|| format!("writing {}", seconds_file.display()))?;
        let bytes = fs::metadata(&put).map_or(0, |metadata| metadata.len());
        Ok(Some(Built { name: (*name).to_owned(), seconds, bytes }))
    }
}
