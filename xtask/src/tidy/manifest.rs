//! The workspace's manifests, read line by line, and the rule that each dependency says why it is
//! there in a comment above it.
//!
//! It relies on the house writing one dependency a line (`name = …`); a table of its own
//! (`[dependencies.name]`) is reported, because neither this reader nor a human's eye takes in both.

use std::path::{Path, PathBuf};

use super::Finding;
use super::tree::Tree;

const RULE: &str = "dependency-reason";

pub(super) struct Dependency {
    pub(super) package: String,
    /// The section: `dependencies`, `target.'cfg(loom)'.dependencies`, …
    pub(super) section: String,
    pub(super) index: usize,
    has_reason: bool,
}

pub(super) struct Manifest {
    pub(super) path: PathBuf,
    /// The package's name; empty where the manifest has none.
    pub(super) package: String,
    pub(super) dependencies: Vec<Dependency>,
    /// Indices of lines that open a table for one dependency.
    tables: Vec<usize>,
}

impl Manifest {
    pub(super) fn all(tree: &Tree) -> Vec<Manifest> {
        tree.files
            .iter()
            .filter(|file| file.path.ends_with("Cargo.toml"))
            .map(|file| Manifest::read(&file.path, &file.contents))
            .collect()
    }

    fn read(path: &Path, contents: &str) -> Manifest {
        let (package, dependencies, tables) = (String::new(), Vec::new(), Vec::new());
        let mut manifest = Manifest { path: path.to_path_buf(), package, dependencies, tables };
        let mut section = String::new();
        let mut previous = "";
        for (index, line) in contents.lines().map(str::trim).enumerate() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                name.clone_into(&mut section);
                if name.contains("dependencies.") {
                    manifest.tables.push(index);
                }
            } else if section == "package" && line.starts_with("name ") {
                value(line).clone_into(&mut manifest.package);
            } else if section.ends_with("dependencies")
                && let Some((name, rest)) = line.split_once('=')
                && line.starts_with(|c: char| c.is_alphabetic())
            {
                let renamed = rest.split_once("package =").map(|(_, package)| value(package));
                let name = name.trim().trim_end_matches(".workspace");
                manifest.dependencies.push(Dependency {
                    package: renamed.unwrap_or(name).to_owned(),
                    section: section.clone(),
                    index,
                    has_reason: previous.starts_with('#'),
                });
            }
            previous = line;
        }
        manifest
    }
}

/// The first quoted string of a line.
fn value(line: &str) -> &str {
    line.split('"').nth(1).unwrap_or_default()
}

/// Dependencies without a reason, and tables that hide one.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in Manifest::all(tree) {
        for dependency in manifest.dependencies.iter().filter(|d| !d.has_reason) {
            let name = &dependency.package;
            let remedy = format!("say in a comment on the line above what {name} is needed for");
            findings.push(Finding::at(&manifest.path, dependency.index, RULE, remedy));
        }
        for &index in &manifest.tables {
            let remedy = "write the dependency as one line, `name = { … }`, under a reason";
            findings.push(Finding::at(&manifest.path, index, RULE, remedy));
        }
    }
    findings
}
