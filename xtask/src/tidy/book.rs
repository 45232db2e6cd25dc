//! The list of pages, `docs/SUMMARY.md`, has every page of `docs/` once.
//!
//! It relies on the rule on links for what is listed and not there.

use std::path::Path;

use super::Finding;
use super::tree::Tree;
use crate::links::{file_links, place};

const RULE: &str = "book";

pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

/// Pages that the list has not, or more than once.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let summary = Path::new(SUMMARY);
    let Some(list) = tree.files.iter().find(|file| file.path == summary) else {
        return Vec::new();
    };
    let listed: Vec<_> = file_links(&list.contents)
        .into_iter()
        .filter_map(|(index, target)| Some((index, place(summary, target)?)))
        .collect();
    let mut findings = Vec::new();
    for (at, (index, page)) in listed.iter().enumerate() {
        if listed[..at].iter().any(|(_, before)| before == page) {
            let remedy = format!("{} is listed twice", page.display());
            findings.push(Finding::at(summary, *index, RULE, remedy));
        }
    }
    for file in &tree.files {
        let is_page =
            file.path.starts_with("docs") && file.path.extension().is_some_and(|end| end == "md");
        if is_page && file.path != summary && !listed.iter().any(|(_, page)| *page == file.path) {
            let remedy = format!("list it in {SUMMARY}, or nobody finds it in the book");
            findings.push(Finding::at(&file.path, 0, RULE, remedy));
        }
    }
    findings
}
