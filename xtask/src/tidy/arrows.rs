//! Which crate may depend on which: the arrows of ARCHITECTURE.md as data.

use super::Finding;
use super::manifest::{Dependency, Manifest};
use super::tree::Tree;

const RULE: &str = "arrow";

/// Each room with the rooms that it may use. COUPLING: "Arrows" in ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("masu", &[]),
    ("masu-abi", &["masu"]),
    ("masu-chunk", &[]),
    // Of `masu-abi` the command takes the library's bytes, never a symbol (see `doors.rs`).
    ("masu-cli", &["masu-lab", "masu-abi", "masu-code"]),
    ("masu-code", &[]),
    ("masu-code-abi", &["masu-code"]),
    ("masu-code-fuzz", &["masu-code"]),
    ("masu-lab", &[]),
    ("xquo", &["masu", "masu-chunk"]),
    ("xtask", &[]),
    ("xtask-measure", &["masu-lab", "xtask"]),
];

/// The room that builds on nothing, so that nothing can allocate beneath it.
const ALLOCATOR: &str = "masu";

/// What the allocator may depend on outside its tests, and where. Of `allocator-api2` it takes a trait,
/// which calls nothing, and only where a program asks for it.
const ALLOCATOR_OUTSIDE: &[(&str, &str)] =
    &[("target.'cfg(loom)'.dependencies", "loom"), ("dependencies", "allocator-api2")];

/// Arrows that ARCHITECTURE.md does not draw.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    Manifest::all(tree).iter().filter(|m| !m.package.is_empty()).flat_map(check_manifest).collect()
}

fn check_manifest(manifest: &Manifest) -> Vec<Finding> {
    let package = &manifest.package;
    let is_member = manifest.path.starts_with("crates") || manifest.path.starts_with("xtask");
    let Some((_, allowed)) = ARROWS.iter().find(|(room, _)| room == package) else {
        let remedy =
            format!("draw the room {package} in xtask/src/tidy/arrows.rs and ARCHITECTURE.md");
        let unknown = Finding::at(&manifest.path, 0, RULE, remedy);
        return if is_member { vec![unknown] } else { Vec::new() };
    };
    let is_room = |name: &str| ARROWS.iter().any(|(room, _)| *room == name);
    let mut findings = Vec::new();
    for dependency in &manifest.dependencies {
        let used = dependency.package.as_str();
        let remedy = if is_room(used) && !allowed.contains(&used) {
            format!("{package} must not use {used}: turn the need around or move the code")
        } else if package == ALLOCATOR && !is_room(used) && !is_for_tests(dependency) {
            format!("the allocator builds on nothing: do without {used}")
        } else {
            continue;
        };
        findings.push(Finding::at(&manifest.path, dependency.index, RULE, remedy));
    }
    findings
}

fn is_for_tests(dependency: &Dependency) -> bool {
    let Dependency { package, section, .. } = dependency;
    let may = |(place, name): &(&str, &str)| section == place && package == name;
    section.ends_with("dev-dependencies") || ALLOCATOR_OUTSIDE.iter().any(may)
}
