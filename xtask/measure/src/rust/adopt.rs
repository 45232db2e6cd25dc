//! What it costs a program to adopt masu: CPU time of a build from nothing, and bytes of the stripped program.
//!
//! It relies on the lab's engine for the CPU time of cargo and everything it starts. The program is the workload's
//! `hello`, built under an environment in which every compiler of C is `false`: that it builds at all shows that masu
//! needs none. (The linker is rustc's choice and no part of that.)

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use masu_lab::execute::execute;
use masu_lab::{Ending, Input, Limits, Stop, Variant, Workload};

use super::allocators::OURS;
use super::build;

/// The median of so many builds counts.
const BUILDS: usize = 3;

/// Set to `false`, so that the build can call no C compiler.
const COMPILERS: [&str; 4] = ["CC", "CXX", "HOST_CC", "TARGET_CC"];

#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) cpu_s: f64,
    pub(super) bytes: u64,
}

/// The same program with masu and with the default allocator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adoption {
    pub(super) with: Cost,
    pub(super) without: Cost,
}

impl Adoption {
    pub(super) fn added_bytes(&self) -> i64 {
        self.with.bytes.cast_signed() - self.without.bytes.cast_signed()
    }
}

pub(super) fn measure(root: &Path, folder: &Path) -> Result<Adoption> {
    let target = folder.join("adopt");
    Ok(Adoption { with: cost(root, &target, OURS)?, without: cost(root, &target, "system")? })
}

fn cost(root: &Path, target: &Path, feature: &str) -> Result<Cost> {
    let mut command = build::command(root, "hello", feature, target);
    command.args(["--config", "profile.release.strip=true"]);
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let mut workload = Workload::new(words.map(ToOwned::to_owned), Input::Empty)?;
    workload.folder = Some(build::sources(root));
    let variables = variables(&command);
    let variant = Variant { label: feature.to_owned(), variables, ..Variant::default() };
    let mut cpus_s = Vec::new();
    for _ in 0..BUILDS {
        if target.exists() {
            fs::remove_dir_all(target).with_context(|| format!("removing {}", target.display()))?;
        }
        let run = execute(&workload, &variant, &Limits::default(), &Stop::never())?;
        if run.ending != Ending::Exited(0) {
            bail!("building hello with {feature}: {}\n{}", run.ending, run.stderr.tail);
        }
        cpus_s.push(run.user_s + run.sys_s);
    }
    let program = target.join("release/hello");
    let bytes = fs::metadata(&program).with_context(|| program.display().to_string())?.len();
    let cpu_s = masu_lab::statistics::median(&cpus_s).context("no build was timed")?;
    Ok(Cost { cpu_s, bytes })
}

/// What is set for the build. A variant can only set variables, so those that `command` removes are empty, which
/// is the same to cargo.
fn variables(command: &Command) -> Vec<(String, String)> {
    let removed = command.get_envs().filter(|(_, value)| value.is_none());
    let removed = removed.map(|(name, _)| (name.to_string_lossy().into_owned(), String::new()));
    let compilers = COMPILERS.map(|name| (name.to_owned(), "false".to_owned()));
    removed.chain(compilers).collect()
}

pub(super) fn text(adoption: &Adoption) -> String {
    let Adoption { with, without } = adoption;
    format!(
        "- build of a hello-world from nothing, without any compiler of C: {:.1} s of CPU time with masu, {:.1} s \
         without (median of {BUILDS})\n\
         - masu adds {:.1} KB to the stripped program: {:.1} KB with, {:.1} KB without (1 KB is 1,000 bytes)\n",
        with.cpu_s,
        without.cpu_s,
        kilobytes(adoption.added_bytes()),
        kilobytes(with.bytes.cast_signed()),
        kilobytes(without.bytes.cast_signed()),
    )
}

#[expect(clippy::cast_precision_loss, reason = "programs are shorter than 2^53 bytes")]
fn kilobytes(bytes: i64) -> f64 {
    bytes as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_whoever_measures_do_not_reach_the_build() {
        let command = build::command(Path::new("/"), "hello", OURS, Path::new("/target"));
        let variables = variables(&command);
        let value =
            |name| variables.iter().find(|(known, _)| known == name).map(|one| one.1.as_str());
        assert_eq!((value("RUSTFLAGS"), value("CC")), (Some(""), Some("false")));
    }
}
