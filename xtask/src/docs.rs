//! `cargo xtask docs`: the pages of `docs/` as a book, by mdBook.
//!
//! It relies on `docs/SUMMARY.md` for the order of pages and on `cargo xtask tidy` for links that lead nowhere. Pages
//! lead to files outside `docs/`, which mdBook would not take along. So the book is made of a copy that has the
//! repository's own layout, of the pages and of whatever they lead to, and every link that holds in the repository
//! holds in the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tidy::pages::SUMMARY;
use crate::{commands, files, links, tools};

/// The book's first page. mdBook has the first one twice, under its own name and at the top: links of a page that lies
/// at the top itself hold from both.
const COVER: &str = "README.md";

/// The style of the pages; `book.toml` names it.
const STYLE: &str = "docs/book.css";

pub(crate) fn run(root: &Path) -> Result<()> {
    let target = commands::target_folder()?;
    let (sources, book) = (target.join("book-sources"), target.join("book"));
    let pages = stage(root, &sources)?;
    println!("{pages} files of the book are in {}", sources.display());
    let mut build = tools::command(root, "mdbook", &["build"])?;
    commands::run(build.arg(&sources).arg("--dest-dir").arg(&book))?;
    println!("{}", book.join("index.html").display());
    Ok(())
}

/// mdBook's settings for the copy: its list of pages is at the top, and a README is a page like others.
fn settings(root: &Path) -> Result<String> {
    let settings = files::read(&root.join("book.toml"))?;
    let settings = settings.replace("src = \"docs\"", "src = \".\"");
    Ok(settings.replace("[build]", "[build]\nuse-default-preprocessors = false"))
}

/// Copies the pages and the files that they link to into a folder of their own; returns the number of files.
fn stage(root: &Path, sources: &Path) -> Result<usize> {
    files::empty_folder(sources)?;
    let read = |path: &Path| files::read(&root.join(path));
    let summary = read(Path::new(SUMMARY))?;
    let files = closure(&[SUMMARY, COVER, STYLE], |path| match root.join(path) {
        folder if folder.is_dir() => Ok(None),
        _ if is_page(path) => read(path).map(Some),
        _ => Ok(Some(String::new())),
    })?;
    for file in &files {
        let to = sources.join(file);
        fs::create_dir_all(to.parent().unwrap_or(sources))?;
        fs::copy(root.join(file), &to).with_context(|| file.display().to_string())?;
    }
    // The list is no page of the book.
    fs::remove_file(sources.join(SUMMARY))?;
    let is_outside =
        |file: &&PathBuf| is_page(file) && !file.starts_with("docs") && **file != *COVER;
    let outside = files.iter().filter(is_outside);
    let titled =
        outside.map(|file| Ok((file.clone(), title(&read(file)?)))).collect::<Result<Vec<_>>>()?;
    files::write(&sources.join("SUMMARY.md"), list(&summary, &titled))?;
    files::write(&sources.join("book.toml"), settings(root)?)?;
    Ok(files.len())
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

fn title(page: &str) -> String {
    let heading = page.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or("Without a title").replace(['[', ']'], "")
}

/// The list of pages of the book: its cover, that of docs/, and behind it the pages outside that these lead to.
fn list(summary: &str, outside: &[(PathBuf, String)]) -> String {
    let pages = summary.trim_start_matches("# Summary").replace("](", "](docs/");
    let mut list = format!("# Summary\n\n[masu]({COVER})\n{}", pages.trim_start_matches('\n'));
    if !outside.is_empty() {
        list.push_str("\n# From the repository\n\n");
    }
    for (path, title) in outside {
        list.push_str(&format!("- [{title}]({})\n", path.display()));
    }
    list
}

/// These pages and the files that they lead to, with those that these lead to, and so on. `read` gives the text of a
/// page, any of another file, and none of a folder.
fn closure(
    first: &[&str],
    read: impl Fn(&Path) -> Result<Option<String>>,
) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut left: Vec<PathBuf> = first.iter().map(PathBuf::from).collect();
    while let Some(path) = left.pop() {
        let Some(text) = read(&path)? else { continue };
        if !found.insert(path.clone()) || !is_page(&path) {
            continue;
        }
        for (_, target) in links::file_links(&text) {
            let target = target.split('#').next().unwrap_or_default();
            let place = links::place(&path, target)
                .with_context(|| format!("{}: `{target}` is outside", path.display()))?;
            left.push(place);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn pages_bring_what_they_lead_to() {
        let files = [
            ("docs/SUMMARY.md", "- [A](a.md)"),
            (
                "docs/a.md",
                "[top](../TOP.md#x) [back](#here) [world](https://example.org) [all](../src)",
            ),
            ("COVER.md", "[a](docs/a.md)"),
            ("TOP.md", "[code](src/a.rs) [a](docs/a.md)"),
            ("src/a.rs", "[no](link.md)"),
            ("docs/other.md", ""),
        ];
        let read = |path: &Path| match files.iter().find(|(name, _)| path == Path::new(name)) {
            Some((_, text)) => Ok(Some((*text).to_owned())),
            None if path == Path::new("src") => Ok(None),
            None => bail!("{} is read", path.display()),
        };
        let found = closure(&["docs/SUMMARY.md", "COVER.md"], read).unwrap();
        let found: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(found, ["COVER.md", "TOP.md", "docs/SUMMARY.md", "docs/a.md", "src/a.rs"]);
    }
}
