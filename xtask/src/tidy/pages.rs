//! Pages: their links lead somewhere, the book's list has each once, and the page of figures follows from the
//! records.
//!
//! An anchor is a heading as Markdown's viewers write it, in small letters, without marks, with hyphens for spaces.
//! The pages of `docs/` that messages and comments name are links too.

use std::path::{Path, PathBuf};

use super::Finding;
use super::tree::{File, Tree};
use crate::benchmarks::{PAGE, RECORDS, page};
use crate::links::{file_links, outside_code, place};

pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let (pages, others): (Vec<&File>, Vec<&File>) =
        tree.files.iter().partition(|file| is_markdown(&file.path));
    let mut findings: Vec<Finding> = pages.iter().flat_map(|page| links(tree, page)).collect();
    // Checks and the book's chore have pages of their own making in their tests.
    let with_tests = ["xtask/src/tidy", "xtask/src/docs.rs"];
    let others =
        others.iter().filter(|file| !with_tests.iter().any(|it| file.path.starts_with(it)));
    findings.extend(others.flat_map(|file| names(tree, file)));
    findings.extend(book(&pages));
    findings.extend(figures(&pages));
    findings
}

/// Local links whose file or folder is not in the tree, or whose heading is not in the file.
fn links(tree: &Tree, page: &File) -> Vec<Finding> {
    let remedy = |target: &str| {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        match place(&page.path, path).filter(|place| leads_somewhere(tree, place)) {
            None => Some(format!("`{path}` is not in the repository: mend the link")),
            Some(place) => (!has_heading(tree, &place, anchor)).then(|| {
                format!("no heading of {} becomes `#{anchor}`: mend the link", place.display())
            }),
        }
    };
    let links = file_links(&page.contents).into_iter();
    links
        .filter_map(|(index, to)| Some(Finding::at(&page.path, index, "dead-link", remedy(to)?)))
        .collect()
}

/// Pages of docs/ that a file names and that are not there.
fn names(tree: &Tree, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.contents.lines().enumerate() {
        for (at, _) in line.match_indices("docs/") {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
            let name = line[at..].split(|c| !is_part(c)).next().unwrap_or_default();
            let name = name.trim_end_matches('.');
            if name.ends_with(".md") && !leads_somewhere(tree, Path::new(name)) {
                let remedy = format!("there is no `{name}`: name the page that says it now");
                findings.push(Finding::at(&file.path, index, "dead-link", remedy));
            }
        }
    }
    findings
}

/// Pages that the book's list has not, or more than once.
fn book(pages: &[&File]) -> Vec<Finding> {
    let summary = Path::new(SUMMARY);
    let Some(list) = pages.iter().find(|page| page.path == summary) else { return Vec::new() };
    let links = file_links(&list.contents).into_iter();
    let listed: Vec<(usize, PathBuf)> =
        links.filter_map(|(index, to)| Some((index, place(summary, to)?))).collect();
    let twice = listed
        .iter()
        .enumerate()
        .filter(|(at, (_, page))| listed[..*at].iter().any(|(_, before)| before == page));
    let twice = twice.map(|(_, (index, page))| {
        Finding::at(summary, *index, "book", format!("{} is listed twice", page.display()))
    });
    let missing = pages.iter().filter(|page| {
        let is_listed = listed.iter().any(|(_, listed)| *listed == page.path);
        page.path.starts_with("docs") && page.path != summary && !is_listed
    });
    let remedy = format!("list it in {SUMMARY}, or nobody finds it in the book");
    twice.chain(missing.map(|page| Finding::at(&page.path, 0, "book", remedy.as_str()))).collect()
}

/// The page of figures, if the records do not make it.
fn figures(pages: &[&File]) -> Option<Finding> {
    let records: Vec<_> = pages.iter().filter(|page| page.path.starts_with(RECORDS)).collect();
    let made = page(records.iter().map(|file| (file.path.as_path(), file.contents.as_str())));
    let there = pages.iter().find(|page| page.path == Path::new(PAGE));
    let is_made = there.is_some_and(|page| page.contents == made);
    let remedy = format!("it is not what the records in {RECORDS} make: `cargo xtask benchmarks`");
    (!records.is_empty() && !is_made).then(|| Finding::at(Path::new(PAGE), 0, "figures", remedy))
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
    page.is_some_and(|page| {
        let mut lines = outside_code(&page.contents);
        lines.any(|(_, line)| line.starts_with('#') && self::anchor(line) == anchor)
    })
}

fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
