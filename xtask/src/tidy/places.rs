//! Nothing in the repository names the machine it was written on: no path of a home folder or of the checkout, no package
//! registry but the public one.
//!
//! Names that must not be in the repository cannot be here either, so the rule learns the paths and the hosts from
//! the machine that runs it.

use std::collections::BTreeSet;
use std::env::{var, vars};
use std::path::Path;

use super::Finding;
use super::tree::Tree;

/// The only source that `Cargo.lock` may name.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Hosts that are everybody's.
const PUBLIC_HOSTS: [&str; 5] =
    ["crates.io", "static.crates.io", "index.crates.io", "static.rust-lang.org", "github.com"];

/// Parts of names of environment variables that say where packages come from.
const DOWNLOADS: [&str; 6] = ["CARGO", "INDEX", "MIRROR", "PROXY", "REGISTRY", "RUSTUP"];

/// Folders that are on everybody's machine.
const PUBLIC_FOLDERS: [&str; 7] = ["/", "/tmp", "/var/tmp", "/home", "/usr/src", "/opt", "/mnt"];

/// Lines that name this machine.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let home = var("HOME").ok().filter(|home| home.len() > 1);
    let places = folders(&tree.root).into_iter().chain(home.clone()).collect();
    let cargo = var("CARGO_HOME").ok().or_else(|| Some(format!("{}/.cargo", home?)));
    let settings = cargo.and_then(|cargo| std::fs::read_to_string(cargo + "/config.toml").ok());
    // Cargo's output about xtask's own package is the same for everybody.
    let foreign = vars().filter(|(name, _)| !name.starts_with("CARGO_PKG_"));
    let of_downloads =
        foreign.filter(|(name, _)| DOWNLOADS.iter().any(|part| name.to_uppercase().contains(part)));
    let texts = of_downloads.map(|(_, value)| value).chain(settings);
    check_against(tree, &places, &texts.flat_map(|text| hosts(&text)).collect())
}

/// The checkout's folder and the folders around it, as far as they are this machine's own.
fn folders(root: &Path) -> Vec<String> {
    let folders = root.ancestors().filter_map(Path::to_str);
    folders.filter(|path| !PUBLIC_FOLDERS.contains(path)).map(str::to_owned).collect()
}

/// The hosts of the web addresses in a text, without those that are everybody's.
fn hosts(text: &str) -> Vec<String> {
    let hosts = text.split("://").skip(1).filter_map(|rest| {
        let authority = rest.split(['/', '"', '\'', '?', ' ', '\n', ',']).next()?;
        authority.rsplit('@').next()?.split(':').next()
    });
    let is_private = |host: &&str| {
        host.contains('.') && host.contains(char::is_alphabetic) && !PUBLIC_HOSTS.contains(host)
    };
    hosts.filter(is_private).map(str::to_owned).collect()
}

fn check_against(tree: &Tree, places: &BTreeSet<String>, hosts: &BTreeSet<String>) -> Vec<Finding> {
    let lines = tree.files.iter().flat_map(|file| {
        file.contents.lines().enumerate().map(move |(index, line)| (&file.path, index, line))
    });
    let remedy = |path: &Path, line: &str| {
        let source = line.strip_prefix("source = ").map(|source| source.trim_matches('"'));
        if places.iter().any(|place| names_place(line, place)) || names_a_home(line) {
            Some("this path is of one machine: write it relative to the repository")
        } else if hosts.iter().any(|host| line.contains(host.as_str())) {
            Some("this host is of one machine: leave it out")
        } else if path.ends_with("Cargo.lock") && source.is_some_and(|source| source != REGISTRY) {
            Some("take the package from the public registry")
        } else {
            None
        }
    };
    lines
        .filter_map(|(path, index, line)| {
            Some(Finding::at(path, index, "machine-named", remedy(path, line)?))
        })
        .collect()
}

/// Whether the line names something in `place`, and not a longer name.
fn names_place(line: &str, place: &str) -> bool {
    let is_inside_a_name = |c: char| c.is_alphanumeric() || "_-.}".contains(c);
    line.match_indices(place).any(|(at, _)| {
        line[at + place.len()..].starts_with('/') && !line[..at].ends_with(is_inside_a_name)
    })
}

/// A home folder of somebody by name; names of one or two letters, "user" and "you" are nobody's.
fn names_a_home(line: &str) -> bool {
    ["/home/", "/Users/"].iter().flat_map(|homes| line.match_indices(homes)).any(|(at, homes)| {
        let is_absolute = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.');
        let mut names = line[at + homes.len()..].split(|c: char| !c.is_alphanumeric());
        let name = names.next().unwrap_or_default();
        is_absolute && name.len() > 2 && !["user", "you"].contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hosts_and_registries_of_this_machine_are_found() {
        let home = ["/home", "/someone/masu"].concat();
        let public = format!("source = \"{REGISTRY}\"");
        for (path, line, count) in [
            ("docs/a.md", "see /farm/field/masu/docs", 1),
            ("docs/a.md", "see /farm/shared/notes", 1),
            ("docs/a.md", "see src/farm/page.rs and /farming/", 0),
            ("docs/a.md", &home, 1),
            ("docs/a.md", "`/home/` holds homes, `/home/you` yours", 0),
            ("README.md", "cargo fetch from mirror.example.net", 1),
            ("Cargo.lock", "source = \"registry+https://elsewhere.example.org/index\"", 1),
            ("Cargo.lock", &public, 0),
        ] {
            let places = folders(Path::new("/farm/field/masu")).into_iter().collect();
            let hosts = hosts("index = \"sparse+https://mirror.example.net:8080/x\"");
            let found = check_against(
                &Tree::planted(&[(path, line)]),
                &places,
                &hosts.into_iter().collect(),
            );
            assert_eq!(found.len(), count, "{path}: {line}");
        }
        assert!(hosts("https://github.com/rust-lang http://127.0.0.1:80").is_empty());
    }
}
