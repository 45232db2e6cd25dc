//! File names are nouns of the field: none that says only "more code", and no `mod.rs`.

use std::path::Path;

use super::Finding;
use super::tree::Tree;

const RULE: &str = "file-name";

const VAGUE: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc", "manager"];

/// A vague name, or a `mod.rs` that is not shared code of integration tests.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources
        .iter()
        .filter_map(|source| {
            let remedy = remedy(&source.path)?;
            Some(Finding::at(&source.path, 0, RULE, remedy))
        })
        .collect()
}

fn remedy(path: &Path) -> Option<String> {
    let vague = path
        .with_extension("")
        .iter()
        .find_map(|part| VAGUE.iter().find(|&&name| part == name).copied());
    if let Some(name) = vague {
        return Some(format!("`{name}` says nothing: name the file after its one subject"));
    }
    // Cargo takes every file directly in `tests/` for a test program; what several of them share
    // lies in `tests/NAME/mod.rs`.
    let parts: Vec<_> = path.iter().collect();
    let is_shared_by_tests = parts.len() >= 3 && parts[parts.len() - 3] == "tests";
    if path.ends_with("mod.rs") && !is_shared_by_tests {
        return Some("write `foo.rs` beside `foo/` instead of `foo/mod.rs`".to_owned());
    }
    None
}
