//! The workspace's manifests: each dependency says why it is there in a comment above it, and is an arrow of
//! ARCHITECTURE.md.
//!
//! It relies on one dependency a line (`name = …`); a table of its own (`[dependencies.name]`) is reported, because
//! neither this reader nor a human's eye takes in both.

use std::path::Path;

use super::Finding;
use super::tree::Tree;

/// Each crate with those that it may use. COUPLING: "Crates" in ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("masu", &[]),
    ("masu-abi", &["masu"]),
    ("masu-chunk", &[]),
    // The lab never links the allocator that it judges; the command takes the bytes of `masu-abi`'s library, never a symbol.
    ("masu-cli", &["masu-lab", "masu-abi", "masu-code"]),
    ("masu-code", &[]),
    ("masu-code-abi", &["masu-code"]),
    ("masu-code-cranelift", &["masu-code"]),
    ("masu-code-fuzz", &["masu-code"]),
    ("masu-lab", &["masu-run"]),
    ("masu-run", &[]),
    ("masu-xquo", &["masu", "masu-chunk"]),
    ("xtask", &[]),
    ("xtask-measure", &["masu-lab", "xtask"]),
];

/// The crate that builds on nothing, so that nothing can allocate beneath it.
const ALLOCATOR: &str = "masu";

/// The dependencies that the allocator may have outside its tests, and the sections for them. The allocator takes a
/// trait of `allocator-api2`, which calls nothing, and only where a program asks for it.
const ALLOCATOR_OUTSIDE: [(&str, &str); 2] =
    [("target.'cfg(loom)'.dependencies", "loom"), ("dependencies", "allocator-api2")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    manifests.flat_map(|file| check_manifest(&file.path, &file.contents)).collect()
}

fn check_manifest(path: &Path, contents: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find =
        |index, rule, remedy: String| findings.push(Finding::at(path, index, rule, remedy));
    let (mut section, mut package, mut previous) = ("", "", "");
    for (index, line) in contents.lines().map(str::trim).enumerate() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
            if name.contains("dependencies.") {
                let remedy = "write the dependency as one line, `name = { … }`, under a reason";
                find(index, "dependency-reason", remedy.to_owned());
            }
        } else if section == "package" && line.starts_with("name ") {
            package = value(line);
            let is_member = path.starts_with("crates") || path.starts_with("xtask");
            if is_member && arrows(package).is_none() {
                let remedy =
                    format!("draw {package} in xtask/src/tidy/manifest.rs and ARCHITECTURE.md");
                find(index, "arrow", remedy);
            }
        } else if section.ends_with("dependencies")
            && let Some((name, rest)) = line.split_once('=')
            && line.starts_with(char::is_alphabetic)
        {
            let renamed = rest.split_once("package =").map(|(_, package)| value(package));
            let used = renamed.unwrap_or(name.trim().trim_end_matches(".workspace"));
            if !previous.starts_with('#') {
                let remedy =
                    format!("say in a comment on the line above what {used} is needed for");
                find(index, "dependency-reason", remedy);
            }
            if let Some(remedy) = forbidden(package, section, used) {
                find(index, "arrow", remedy);
            }
        }
        previous = line;
    }
    findings
}

fn arrows(package: &str) -> Option<&'static [&'static str]> {
    ARROWS.iter().find(|(name, _)| *name == package).map(|(_, used)| *used)
}

/// The remedy where `package` must not use this crate.
fn forbidden(package: &str, section: &str, used: &str) -> Option<String> {
    let is_ours = arrows(used).is_some();
    let for_tests = section.ends_with("dev-dependencies");
    if is_ours && !arrows(package)?.contains(&used) {
        Some(format!("{package} must not use {used}: turn the need around or move the code"))
    } else if package == ALLOCATOR && !for_tests && !ALLOCATOR_OUTSIDE.contains(&(section, used)) {
        Some(format!("the allocator builds on nothing: do without {used}"))
    } else {
        None
    }
}

fn value(line: &str) -> &str {
    line.split('"').nth(1).unwrap_or_default()
}
