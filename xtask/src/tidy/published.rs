//! Crates that people get say of themselves what a registry shows: what they are, how they may be used, and a page.
//!
//! It relies on manifests that name a field a line. A crate that is for the house alone says `publish = false`.

use std::path::Path;

use super::Finding;
use super::tree::Tree;

const RULE: &str = "published";

/// What a manifest says under `[package]`.
const FIELDS: [&str; 8] = [
    "description",
    "license",
    "rust-version",
    "readme",
    "categories",
    "keywords",
    "repository",
    "homepage",
];

/// Manifests that lack a field, or crates that lack the page that they name.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_manifest_of_a_crate(&file.path)) {
        let package = file.contents.split("\n[").next().unwrap_or_default();
        let fields: Vec<&str> =
            package.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
        if package.contains("publish = false") {
            continue;
        }
        for field in FIELDS.iter().filter(|field| !fields.contains(field)) {
            let remedy = format!("name its {field}, or say `publish = false`");
            findings.push(Finding::at(&file.path, 0, RULE, remedy));
        }
        let readme = file.path.with_file_name("README.md");
        if !tree.files.iter().any(|other| other.path == readme) {
            let remedy = format!("write {}: what a registry shows of the crate", readme.display());
            findings.push(Finding::at(&file.path, 0, RULE, remedy));
        }
    }
    findings
}

/// `crates/NAME/Cargo.toml`.
fn is_manifest_of_a_crate(path: &Path) -> bool {
    path.starts_with("crates") && path.ends_with("Cargo.toml") && path.iter().count() == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "[package]\nname = \"a\"\ndescription = \"b\"\nlicense.workspace = true\n\
                         rust-version.workspace = true\nreadme = \"README.md\"\ncategories = []\nkeywords = []\n\
                         repository.workspace = true\nhomepage.workspace = true\n";

    fn found(manifest: &str, with_readme: bool) -> usize {
        let mut files = vec![("crates/a/Cargo.toml", manifest), ("crates/a/fuzz/Cargo.toml", "")];
        if with_readme {
            files.push(("crates/a/README.md", ""));
        }
        check(&Tree::planted(&files)).len()
    }

    #[test]
    fn a_field_that_is_not_there_is_found() {
        assert_eq!(found(WHOLE, true), 0);
        assert_eq!(found(&WHOLE.replace("keywords", "key-words"), true), 1);
        // Of another section it is no field of the package.
        assert_eq!(found(&WHOLE.replace("readme", "[x]\nreadme"), true), 5);
    }

    #[test]
    fn a_page_that_is_not_there_is_found() {
        assert_eq!(found(WHOLE, false), 1);
    }

    #[test]
    fn a_crate_of_the_house_needs_none() {
        assert_eq!(found("[package]\nname = \"a\"\npublish = false\n", false), 0);
    }
}
