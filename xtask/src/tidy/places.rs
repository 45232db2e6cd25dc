//! Nothing in the repository names the machine it was written on: no path of a home folder or of
//! the checkout, no package registry but the public one.
//!
//! What must not be named cannot stand here either, so the rule learns the paths and the hosts from the machine that
//! runs it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Finding;
use super::tree::Tree;

const RULE: &str = "machine-named";

/// The only source that `Cargo.lock` may name.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Hosts that are everybody's.
const PUBLIC_HOSTS: &[&str] =
    &["crates.io", "static.crates.io", "index.crates.io", "static.rust-lang.org", "github.com"];

/// Parts of names of environment variables that say where packages come from.
const DOWNLOADS: &[&str] = &["CARGO", "INDEX", "MIRROR", "PROXY", "REGISTRY", "RUSTUP"];

/// Folders that are on everybody's machine.
const PUBLIC_FOLDERS: &[&str] = &["/", "/tmp", "/var/tmp", "/home", "/usr/src", "/opt", "/mnt"];

/// Names in a path of a home folder that are nobody's, like those of one or two letters.
const NOBODY: &[&str] = &["user", "you"];

/// Lines that name this machine.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut places = checkout_folders(&tree.root);
    places.extend(std::env::var("HOME").into_iter().filter(|home| home.len() > 1));
    let is_of_downloads = |name: &str| DOWNLOADS.iter().any(|part| name.contains(part));
    let mut settings: Vec<String> = std::env::vars()
        .filter(|(name, _)| is_of_downloads(&name.to_uppercase()))
        .map(|(_, value)| value)
        .collect();
    settings.extend(cargo_settings().and_then(|path| std::fs::read_to_string(path).ok()));
    let hosts = settings.iter().flat_map(|text| hosts(text)).collect();
    check_against(tree, &places, &hosts)
}

/// The checkout's folder and the folders around it, as far as they are this machine's own.
fn checkout_folders(root: &Path) -> BTreeSet<String> {
    root.ancestors()
        .filter_map(Path::to_str)
        .filter(|path| !PUBLIC_FOLDERS.contains(path))
        .map(str::to_owned)
        .collect()
}

fn cargo_settings() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    Some(home.join("config.toml"))
}

/// The hosts of the web addresses in a text, without those that are everybody's.
fn hosts(text: &str) -> Vec<String> {
    text.match_indices("://")
        .filter_map(|(at, sign)| {
            let rest = &text[at + sign.len()..];
            let authority = rest.split(['/', '"', '\'', '?', ' ', '\n', ',']).next()?;
            let host = authority.rsplit('@').next()?.split(':').next()?;
            let has_name = host.contains('.') && host.contains(char::is_alphabetic);
            (has_name && !PUBLIC_HOSTS.contains(&host)).then(|| host.to_owned())
        })
        .collect()
}

fn check_against(tree: &Tree, places: &BTreeSet<String>, hosts: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (index, line) in file.contents.lines().enumerate() {
            let remedy =
                if places.iter().any(|place| names_place(line, place)) || names_a_home(line) {
                    "this path is of one machine: write it relative to the repository"
                } else if hosts.iter().any(|host| line.contains(host.as_str())) {
                    "this host is of one machine: leave it out"
                } else if file.path.ends_with("Cargo.lock") && names_other_registry(line) {
                    "take the package from the public registry"
                } else {
                    continue;
                };
            findings.push(Finding::at(&file.path, index, RULE, remedy));
        }
    }
    findings
}

/// Whether the line names `place` or something in it, and not a longer name.
fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + place.len()..].chars().next();
        let inside_a_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}');
        !before.is_some_and(inside_a_name) && after == Some('/')
    })
}

/// A home folder of somebody by name.
fn names_a_home(line: &str) -> bool {
    ["/home/", "/Users/"].iter().any(|homes| {
        line.match_indices(homes).any(|(at, _)| {
            let is_absolute = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.');
            let mut names = line[at + homes.len()..].split(|c: char| !c.is_alphanumeric());
            let name = names.next().unwrap_or_default();
            is_absolute && name.len() > 2 && !NOBODY.contains(&name)
        })
    })
}

fn names_other_registry(line: &str) -> bool {
    let source = line.strip_prefix("source = ");
    source.is_some_and(|source| source.trim_matches('"') != REGISTRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, line: &str) -> usize {
        let places = checkout_folders(Path::new("/farm/field/masu"));
        let hosts = BTreeSet::from(["mirror.example.net".to_owned()]);
        check_against(&Tree::planted(&[(path, line)]), &places, &hosts).len()
    }

    #[test]
    fn paths_of_the_checkout_and_around_it_are_found() {
        assert_eq!(found("docs/a.md", "see /farm/field/masu/docs"), 1);
        assert_eq!(found("docs/a.md", "see /farm/shared/notes"), 1);
        assert_eq!(found("docs/a.md", "see src/farm/page.rs and /farming/"), 0);
    }

    #[test]
    fn homes_are_found() {
        let home = ["/home", "/someone/masu"].concat();
        assert_eq!(found("docs/a.md", &home), 1);
        assert_eq!(found("docs/a.md", "`/home/` holds homes, `/home/you` yours"), 0);
    }

    #[test]
    fn hosts_of_the_machines_registry_are_found() {
        assert_eq!(found("README.md", "cargo fetch from mirror.example.net"), 1);
        assert_eq!(
            hosts("index = \"sparse+https://mirror.example.net:8080/x\""),
            ["mirror.example.net"]
        );
        assert!(hosts("https://github.com/rust-lang http://127.0.0.1:80").is_empty());
    }

    #[test]
    fn another_registry_in_the_lock_file_is_found() {
        let line = "source = \"registry+https://elsewhere.example.org/index\"";
        assert_eq!(found("Cargo.lock", line), 1);
        assert_eq!(found("Cargo.lock", &format!("source = \"{REGISTRY}\"")), 0);
    }
}
