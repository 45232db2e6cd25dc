//! The pages that mdBook wrote, and where their links lead.
//!
//! It relies on mdBook quoting attributes with `"`. Anchors of pages are looked up as ids.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// Local links that lead to no file of the book, or to no place of a page, each with the page it stands on.
pub(super) fn dead_links(book: &Path) -> Result<BTreeSet<(PathBuf, String)>> {
    let mut files = Vec::new();
    walk(book, &mut files)?;
    let mut pages = BTreeMap::new();
    for file in &files {
        let is_page = file.extension().is_some_and(|end| end == "html");
        // One holds all the others' pages, the other is for addresses that nobody knows.
        let is_copy = file.ends_with("print.html") || file.ends_with("404.html");
        if is_page && !is_copy {
            let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
            pages.insert(file.clone(), text);
        }
    }
    let mut dead = BTreeSet::new();
    for (page, text) in &pages {
        for link in attributes(text, "href").chain(attributes(text, "src")) {
            if !leads_somewhere(&pages, page, link) {
                let name = page.strip_prefix(book).unwrap_or(page);
                dead.insert((name.to_path_buf(), link.to_owned()));
            }
        }
    }
    Ok(dead)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The values of an attribute.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let start = format!(" {name}=\"");
    let places: Vec<usize> = text.match_indices(&start).map(|(at, _)| at + start.len()).collect();
    places.into_iter().filter_map(|at| text[at..].split('"').next())
}

fn leads_somewhere(pages: &BTreeMap<PathBuf, String>, page: &Path, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    if path.contains(':') || link.is_empty() {
        return true;
    }
    let target = if path.is_empty() { page.to_path_buf() } else { beside(page, path) };
    match pages.get(&target) {
        Some(text) => anchor.is_empty() || attributes(text, "id").any(|id| id == anchor),
        None => target.exists(),
    }
}

/// What a relative path leads to from a page.
fn beside(page: &Path, path: &str) -> PathBuf {
    let mut place = page.parent().unwrap_or(page).to_path_buf();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(place.pop()),
            Component::Normal(name) => place.push(name),
            _ => {}
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_pages_are_followed() {
        let book = Path::new("/book");
        let pages: BTreeMap<PathBuf, String> =
            [("docs/a.html", "<h1 id=\"top\"><a href=\"../b.html\">"), ("b.html", "")]
                .map(|(name, text)| (book.join(name), text.to_owned()))
                .into();
        let page = book.join("docs/a.html");
        for link in ["../b.html", "a.html#top", "#top", "https://example.org/x", ""] {
            assert!(leads_somewhere(&pages, &page, link), "{link}");
        }
        for link in ["b.html", "#bottom", "../b.html#top"] {
            assert!(!leads_somewhere(&pages, &page, link), "{link}");
        }
    }

    #[test]
    fn attributes_are_read() {
        let text = "<a href=\"x\" id=\"y\"><img src=\"z\">";
        assert_eq!(attributes(text, "href").collect::<Vec<_>>(), ["x"]);
        assert_eq!(attributes(text, "src").collect::<Vec<_>>(), ["z"]);
    }
}
