//! The licenses of other people's crates that are linked into a program, for people who pass the program on.
//!
//! It relies on `cargo tree` for the linked crates and on each crate carrying its license's text. The same text is
//! there once, however many crates have it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::{commands, files, registry};

/// The license of the C library of static programs, which is no crate.
const MUSL: &str = include_str!("../../../packaging/static/MUSL");

/// The texts, each below the crates that have it, of all that is linked into these members of the workspace.
pub(super) fn of(root: &Path, members: &[&str], target: &str) -> Result<String> {
    let mut tree = commands::cargo(root, &["tree", "--locked", "--edges=normal,no-proc-macro"]);
    tree.args(["--no-dedupe", "--prefix=none", "--format={p}|{l}", "--target", target]);
    tree.args(members.iter().flat_map(|member| ["--package", member]));
    let linked = linked(&commands::output(&mut tree)?);
    ensure!(!linked.is_empty(), "cargo tree names nothing that is linked into {members:?}");
    let mut crates_of: BTreeMap<String, Vec<&Linked>> = BTreeMap::new();
    for one in &linked {
        for text in texts(&registry::source(&one.name, &one.version)?)? {
            crates_of.entry(text).or_default().push(one);
        }
    }
    let all: Vec<&Linked> = linked.iter().collect();
    let mut notices = format!(
        "Programs of this package have these crates linked in, besides Rust's standard library (MIT or Apache-2.0):\n{}",
        lines(&all)
    );
    for (text, crates) in crates_of {
        let rule = "-".repeat(78);
        notices.push_str(&format!(
            "\n{rule}\nThe text of\n{}\n{}\n",
            lines(&crates),
            text.trim_end()
        ));
    }
    if target.ends_with("-musl") {
        notices.push_str(&format!(
            "\n{}\nThe C library that static programs have in them\n\n{MUSL}",
            "-".repeat(78)
        ));
    }
    Ok(notices)
}

fn lines(crates: &[&Linked]) -> String {
    let line =
        |linked: &&Linked| format!("  {} {}: {}\n", linked.name, linked.version, linked.license);
    crates.iter().map(line).collect()
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Linked {
    name: String,
    version: String,
    license: String,
}

/// The crates of others in lines of `NAME vVERSION|LICENSE`; a crate of the workspace has its folder behind the version.
fn linked(tree: &str) -> BTreeSet<Linked> {
    let read = |line: &str| {
        let (package, license) = line.split_once('|')?;
        let (name, version) = package.split_once(" v")?;
        let is_ours = version.contains(' ');
        let [name, version, license] = [name, version, license].map(str::to_owned);
        (!is_ours).then_some(Linked { name, version, license })
    };
    tree.lines().filter_map(read).collect()
}

fn texts(folder: &Path) -> Result<Vec<String>> {
    const STARTS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
    let is_text = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && STARTS.iter().any(|start| name.starts_with(start))
    };
    let paths = files::list(folder)?.into_iter();
    paths.filter(is_text).map(|path| files::read(&path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_others_are_named_once() {
        let tree = "xquo v0.1.0 (/masu/crates/xquo)|MIT\nb v1.0.0|MIT OR Apache-2.0\n\na v2.0.0|MIT\nb v1.0.0|MIT OR Apache-2.0\n";
        let linked = linked(tree);
        let lines = lines(&linked.iter().collect::<Vec<_>>());
        assert_eq!(lines, "  a 2.0.0: MIT\n  b 1.0.0: MIT OR Apache-2.0\n");
    }
}
