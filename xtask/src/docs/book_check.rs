//! The book as readers get it: its links, and the width of its pages in Chromium on a phone and on a desk, without scripts.
//!
//! It relies on Chromium without a window. Each page lies in a frame that may run no script, as wide as the reader's window; the page
//! around the frames measures them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{commands, files, links, machine};

/// Widths of readers' windows, a phone's and a desk's, in the units of style sheets.
const WIDTHS: [u32; 2] = [390, 1280];

pub(super) fn look(book: &Path, out: &Path) -> Result<()> {
    let pages = pages(book)?;
    let broken = broken_links(book, &pages)?;
    ensure!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    machine::provide_all(&[machine::BROWSER])?;
    measure(book, &pages, out)?;
    println!("{} pages have their links and their width", pages.len());
    Ok(())
}

fn pages(book: &Path) -> Result<Vec<PathBuf>> {
    let mut found = files::below(book, "*.html")?;
    found.retain(|page| {
        !["print.html", "404.html", "toc.html"].iter().any(|name| page.as_os_str() == *name)
    });
    Ok(found)
}

/// A line for each link of these pages to a file or a heading that is not there.
fn broken_links(book: &Path, pages: &[PathBuf]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for page in pages {
        let text = files::read(&book.join(page))?;
        for target in targets(&text) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let holds = links::place(page, path).is_some_and(|place| {
                let file = book.join(&place);
                match heading {
                    "" => file.is_file(),
                    _ => files::read(&file)
                        .is_ok_and(|text| text.contains(&format!("id=\"{heading}\""))),
                }
            });
            if !holds {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    Ok(broken)
}

/// The targets of the links on a page of mdBook's.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let named = |name| {
        text.match_indices(name).map(move |(at, name): (usize, &str)| &text[at + name.len()..])
    };
    let all = named("href=\"").chain(named("src=\"")).filter_map(|rest| rest.split('"').next());
    all.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

/// Says of each page in each width how far it reaches beyond its window, and how wide its text is.
const MEASURE: &str = include_str!("book_check/measure.html");

/// Fails where a page is wider than a reader's window, or its text is narrow or hidden.
fn measure(book: &Path, pages: &[PathBuf], out: &Path) -> Result<()> {
    let list: String = pages.iter().fold(String::new(), |mut list, page| {
        let _ = write!(list, "'file://{}',", book.join(page).display());
        list
    });
    let widths = WIDTHS.map(|width| width.to_string()).join(",");
    let script =
        MEASURE.replace("WIDTHS", &format!("[{widths}]")).replace("PAGES", &format!("[{list}]"));
    let around = out.join("measure.html");
    files::write(&around, script)?;
    let mut ask = Command::new("chromium");
    ask.args([
        "--headless",
        "--disable-gpu",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
    ]);
    if machine::is_root() {
        ask.arg("--no-sandbox");
    }
    ask.args(["--window-size=1300,900", "--virtual-time-budget=600000", "--dump-dom"]);
    let printed = commands::output(ask.arg(&around))?;
    let lines = printed.lines().filter_map(|line| line.find("page ").map(|at| &line[at..]));
    let measured: Vec<(&str, bool)> =
        lines.filter_map(|line| Some((line, is_right(line)?))).collect();
    ensure!(
        measured.len() == WIDTHS.len() * pages.len(),
        "Chromium measured {} pages:\n{printed}",
        measured.len()
    );
    let wrong = measured.iter().filter(|(_, is_right)| !is_right).map(|(line, _)| *line);
    let wrong: Vec<&str> = wrong.collect();
    ensure!(
        wrong.is_empty(),
        "window's width, reach beyond it, width of the text:\n{}",
        wrong.join("\n")
    );
    Ok(())
}

/// Whether a page that was measured fits: `page WINDOW BEYOND TEXT …`, the widths of the reader's window, of what is
/// beyond it and of the text.
fn is_right(line: &str) -> Option<bool> {
    let mut words = line.split(' ').skip(1);
    let mut number = || words.next()?.parse::<u32>().ok();
    let (window, beyond, text) = (number()?, number()?, number()?);
    Some(beyond == 0 && text > window / 2 && text <= window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_too_wide_or_hidden_are_wrong() {
        let right = ["page 390 0 335 a.html", "page 390 12 335 b", "page 1280 0 0 c", "page"];
        assert_eq!(right.map(is_right), [Some(true), Some(false), Some(false), None]);
    }

    #[test]
    fn links_to_nothing_are_broken() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let page = "<a href=\"../index.html#top\"></a><a href=\"#here\"></a><h1 id=\"here\"></h1><img src=\"no.svg\">\
                    <a href=\"https://example.org\"></a><a href=\"../docs\"></a><a href=\"../index.html#gone\"></a>";
        files::write(&folder.join("docs/a.html"), page).unwrap();
        files::write(&folder.join("index.html"), "<h1 id=\"top\">").unwrap();
        let pages = pages(folder).unwrap();
        assert_eq!(pages.len(), 2);
        let broken = broken_links(folder, &pages).unwrap();
        let expected = ["../docs", "../index.html#gone", "no.svg"]
            .map(|target| format!("docs/a.html: {target}"));
        assert_eq!(broken, expected);
    }
}
