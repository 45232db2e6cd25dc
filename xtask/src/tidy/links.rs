//! Links in Markdown files that lead to files of the repository lead somewhere, and those that lead to a
//! heading find it. So do the pages of `docs/` that messages and comments name.
//!
//! An anchor is a heading as those who show Markdown write it, in small letters, without marks, with hyphens for
//! spaces.

use std::path::Path;

use super::Finding;
use super::tree::Tree;
use crate::links::{file_links, place};

const RULE: &str = "dead-link";

/// Local links whose file or folder is not in the tree, or whose heading is not in the file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_markdown(&file.path)) {
        for (index, target) in file_links(&file.contents) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let remedy = match place(&file.path, path) {
                Some(place) if leads_somewhere(tree, &place) => {
                    if has_heading(tree, &place, anchor) {
                        continue;
                    }
                    format!("no heading of {} becomes `#{anchor}`: mend the link", place.display())
                }
                _ => format!("`{path}` is not in the repository: mend the link"),
            };
            findings.push(Finding::at(&file.path, index, RULE, remedy));
        }
    }
    for file in tree.files.iter().filter(|file| !is_markdown(&file.path)) {
        // Checks and the book's chore have pages of their own making in their tests.
        if file.path.starts_with("xtask/src/tidy") || file.path.starts_with("xtask/src/docs.rs") {
            continue;
        }
        for (index, line) in file.contents.lines().enumerate() {
            for page in pages_named(line).filter(|page| !leads_somewhere(tree, Path::new(page))) {
                let remedy = format!("there is no `{page}`: name the page that says it now");
                findings.push(Finding::at(&file.path, index, RULE, remedy));
            }
        }
    }
    findings
}

/// Pages that a line names as `docs/NAME.md`.
fn pages_named(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("docs/").filter_map(|(at, _)| {
        let rest = &line[at..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
        let name = rest.split(|c: char| !is_part(c)).next()?.trim_end_matches('.');
        name.ends_with(".md").then_some(name)
    })
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

fn leads_somewhere(tree: &Tree, place: &Path) -> bool {
    tree.files.iter().any(|file| file.path.starts_with(place))
}

/// Whether the page at `place` has a heading for this anchor; of other files nothing is known.
fn has_heading(tree: &Tree, place: &Path, anchor: &str) -> bool {
    if anchor.is_empty() || !is_markdown(place) {
        return true;
    }
    let page = tree.files.iter().find(|file| file.path == place);
    page.is_some_and(|page| headings(&page.contents).any(|heading| self::anchor(heading) == anchor))
}

fn headings(contents: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    contents.lines().filter_map(move |line| {
        in_code ^= line.trim_start().starts_with("```");
        let is_heading = !in_code && line.starts_with('#');
        is_heading.then(|| line.trim_start_matches('#').trim())
    })
}

/// The anchor that a heading becomes.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
