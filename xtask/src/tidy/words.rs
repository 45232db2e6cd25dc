//! Words that make a page or a comment harder to read than a plain one would: readers are engineers in a hurry, whose
//! first language may be another.
//!
//! It relies on the lexer for what a comment is. Records and the changelog say what was said then, and are left alone.

use std::path::Path;

use super::Finding;
use super::source::Source;
use super::tree::{File, Tree};

const RULE: &str = "words";

/// Each with what to write in its place.
const RETIRED: [(&str, &str); 15] = [
    ("whoever", "name the caller, the reader, the thread"),
    ("anew", "again, or nothing"),
    ("told", "say what it knows, reads or is given"),
    ("meanwhile", "at the same time, or nothing"),
    ("dear", "expensive"),
    ("dearer", "more expensive"),
    ("dearest", "most expensive"),
    ("house's", "masu's, or nothing"),
    ("lest", "so that … not"),
    ("deeds", "actions, operations"),
    ("doings", "work, operations"),
    ("homed", "laned"),
    ("whence", "from which"),
    ("thereby", "so, or nothing"),
    ("whatsoever", "nothing"),
];

/// Folders and files whose words are not looked at: what was written then, and this list.
const LEFT_ALONE: [&str; 3] = ["benches", "CHANGELOG.md", "xtask/src/tidy/words.rs"];

/// Retired words in Markdown pages and in comments of Rust files.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_looked_at =
        |path: &Path| !LEFT_ALONE.iter().any(|left_alone| path.starts_with(left_alone));
    let pages = tree.files.iter().filter(|file| is_looked_at(&file.path)).flat_map(check_page);
    let sources = tree.sources.iter().filter(|source| is_looked_at(&source.path));
    pages.chain(sources.flat_map(check_source)).collect()
}

fn check_page(page: &File) -> Vec<Finding> {
    if page.path.extension().is_none_or(|end| end != "md") {
        return Vec::new();
    }
    let lines = page.contents.lines().enumerate();
    lines.filter_map(|(index, line)| finding(&page.path, index, line)).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let lines = source.lines.iter().enumerate();
    lines.filter_map(|(index, line)| finding(&source.path, index, &line.comment)).collect()
}

/// The first retired word of a text.
fn finding(path: &Path, index: usize, text: &str) -> Option<Finding> {
    let mut words = text.split(|c: char| !c.is_alphabetic() && !"'_".contains(c));
    let (word, instead) = words.find_map(|word| {
        RETIRED.iter().find(|(retired, _)| word.trim_matches('\'').eq_ignore_ascii_case(retired))
    })?;
    Some(Finding::at(path, index, RULE, format!("`{word}`: {instead}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn a_retired_word_is_found_in_pages_and_comments() {
        assert_eq!(found("docs/a.md", "Whoever reads.\n\nPlain.\nIt is told."), 2);
        assert_eq!(found("crates/masu-lab/src/a.rs", "//! A file.\n/// Made anew.\nfn a() {}"), 1);
        assert_eq!(found("xtask/src/a.rs", "fn a() {} // the house's own"), 1);
    }

    #[test]
    fn code_strings_and_longer_words_are_not() {
        let source =
            "//! A file.\nfn told() { say(\"whoever\"); }\n// `endear`, untold, `is_not_told`";
        assert_eq!(found("crates/masu-lab/src/a.rs", source), 0);
        assert_eq!(found("docs/a.svg", "told"), 0);
        assert_eq!(found("benches/record/a.md", "told"), 0);
    }
}
