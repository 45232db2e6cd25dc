//! `cargo xtask interface`: the public items of the crates that programs depend on, a file for each beside its manifest.
//!
//! It relies on `cargo-public-api`, which reads the output of a nightly rustdoc, and on `cargo-semver-checks` for the
//! question whether a program that compiled with an earlier commit still does. A change of the interface shows in the
//! commit that makes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::package::clean::talk;
use crate::{commands, files, machine, tools};

/// The public items of the libraries, compared with the files of the last commit (minutes)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// Write the files
    #[arg(long, conflicts_with = "since")]
    write: bool,
    /// Say instead what breaks programs that compile with this commit
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
}

/// Programs depend on these, with these features: all of those that a stable compiler has.
const LIBRARIES: [(&str, &str); 3] = [
    ("masu", "allocator-api2,guards,musl-memcpy,profile,secure,tls-dynamic"),
    ("masu-chunk", "timely"),
    ("masu-code", "jit-symbols"),
];

/// Their names behind cargo's option.
fn packages<'a>() -> impl Iterator<Item = &'a str> {
    LIBRARIES.iter().flat_map(|(library, _)| ["--package", library])
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    match &request.since {
        Some(commit) => since(root, commit),
        None if request.write => write(root),
        None => check(root),
    }
}

/// Fails where a library has other public items than its file lists, or one of them has no example.
pub(crate) fn check(root: &Path) -> Result<()> {
    machine::provide_nightly(root)?;
    examples(root)?;
    let mut different = Vec::new();
    for (library, features) in LIBRARIES {
        let mut diff = Command::new("diff");
        diff.arg("--unified=0").arg(place(root, library)).arg("-");
        if let Err(error) = talk(&mut diff, &items(root, library, features)?) {
            println!("{error:#}");
            different.push(library);
        }
    }
    ensure!(
        different.is_empty(),
        "other public items than listed: {}. Where that is meant, `cargo xtask interface --write`, and a line in CHANGELOG.md",
        different.join(", ")
    );
    Ok(())
}

/// Fails where a program that compiles with this commit may not compile now, though the version promises it.
pub(crate) fn since(root: &Path, commit: &str) -> Result<()> {
    let words: Vec<&str> =
        ["semver-checks", "--baseline-rev", commit].into_iter().chain(packages()).collect();
    commands::run(&mut tools::command(root, "cargo-semver-checks", &words)?)
}

fn write(root: &Path) -> Result<()> {
    machine::provide_nightly(root)?;
    for (library, features) in LIBRARIES {
        let path = place(root, library);
        files::write(&path, items(root, library, features)?)?;
        println!("{}", path.display());
    }
    Ok(())
}

fn place(root: &Path, library: &str) -> PathBuf {
    root.join("crates").join(library).join("interface.txt")
}

/// Fails where a public function, type or trait has no example, which only a nightly rustdoc looks for.
fn examples(root: &Path) -> Result<()> {
    let mut doc = Command::new("rustup");
    doc.args([
        "run",
        machine::NIGHTLY,
        "cargo",
        "doc",
        "--quiet",
        "--locked",
        "--no-deps",
        "--all-features",
    ]);
    doc.args(packages());
    doc.arg("--target-dir").arg(commands::target_folder()?.join("nightly"));
    const LINT: &str = "-Zcrate-attr=feature(rustdoc_missing_doc_code_examples) -Drustdoc::missing_doc_code_examples";
    commands::run(doc.env("RUSTDOCFLAGS", LINT).env_remove("RUSTUP_TOOLCHAIN").current_dir(root))
}

/// A line for each public item with these features, without the traits that the compiler implements by itself.
fn items(root: &Path, library: &str, features: &str) -> Result<String> {
    let mut words = vec!["public-api", "-sss", "--color=never", "--package", library];
    words.extend(["--features", features]);
    let items = commands::output(&mut tools::command(root, "cargo-public-api", &words)?)?;
    Ok(without_places(&items))
}

/// The items without the section that a function's code lies in: no program sees it.
fn without_places(items: &str) -> String {
    let bare = |line: &str| {
        let rest = line.strip_prefix("#[link_section = ").and_then(|rest| rest.split_once("] "));
        rest.map_or(line, |(_, rest)| rest).to_owned() + "\n"
    };
    items.lines().map(bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_stable_compiler_lacks_is_left_out() {
        let root = crate::root().unwrap();
        for (library, features) in LIBRARIES {
            let path = root.join("crates").join(library).join("Cargo.toml");
            let manifest = files::read(&path).unwrap();
            let (_, rest) = manifest.split_once("\n[features]\n").unwrap();
            let lines = rest.lines().take_while(|line| !line.starts_with('['));
            for name in lines.filter_map(|line| Some(line.split_once(" = ")?.0)) {
                let is_listed = features.split(',').any(|feature| feature == name);
                assert!(is_listed || ["default", "nightly"].contains(&name), "{library}: {name}");
            }
        }
    }

    #[test]
    fn sections_are_no_part_of_the_interface() {
        let items = "#[link_section = \".text.cold\"] pub fn a()\n#[must_use] pub fn b()\n";
        assert_eq!(without_places(items), "pub fn a()\n#[must_use] pub fn b()\n");
    }
}
