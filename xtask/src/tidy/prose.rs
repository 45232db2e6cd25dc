//! Pages for users are plain English: a sentence begins with its subject, and phrases of our own are not used.
//!
//! It relies on Markdown whose blocks are fenced. Headings, tables and questions may begin with any word. Records say what
//! was said then, and are left alone.

use std::path::Path;

use super::Finding;
use super::tree::{File, Tree};

const RULE: &str = "prose";

/// The first words of sentences whose subject comes late.
const BEGINNINGS: [&str; 5] = ["Who", "Whom", "Whose", "What", "Of"];

/// Phrases of our own, each with what to write in its place.
const PHRASES: [(&str, &str); 3] = [
    ("the malloc you have", "the current malloc"),
    ("what is said", "the message, or reported"),
    ("in turns", "alternately"),
];

/// Sentences of README.md, SECURITY.md and docs/ that begin otherwise, and phrases.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| is_for_users(&file.path)).flat_map(check_page).collect()
}

fn is_for_users(path: &Path) -> bool {
    let is_page = path.extension().is_some_and(|end| end == "md");
    let is_at_the_top = path.components().count() == 1;
    is_page && (path.starts_with("docs") || is_at_the_top)
}

fn check_page(page: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_code = false;
    // Whether the line before ended its sentence, so that this one begins another.
    let mut is_between = true;
    for (index, line) in page.contents.lines().enumerate() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence || text.starts_with(['#', '|', '<']) {
            is_between = true;
            continue;
        }
        if let Some((phrase, instead)) = PHRASES.iter().find(|(phrase, _)| text.contains(phrase)) {
            let remedy = format!("`{phrase}`: {instead}");
            findings.push(Finding::at(&page.path, index, RULE, remedy));
        }
        if let Some(word) = late_subject(text, is_between) {
            let remedy = format!("`{word} …`: begin with the subject");
            findings.push(Finding::at(&page.path, index, RULE, remedy));
        }
        is_between = text.is_empty() || text.ends_with(['.', ':', '!', '?']);
    }
    findings
}

/// The first word of a sentence of this line that is one of [`BEGINNINGS`]; `is_between` where the line begins one.
fn late_subject(text: &str, is_between: bool) -> Option<&'static str> {
    let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = text.strip_prefix("- ").or(numbered.strip_prefix(". ")).unwrap_or(text);
    let begins = is_between || item.len() < text.len();
    let first = begins.then_some(item);
    let others = text.match_indices(". ").map(|(at, end)| &text[at + end.len()..]);
    first.into_iter().chain(others).find_map(|sentence| {
        let is_question = sentence.split(['.', ':']).next().is_some_and(|it| it.contains('?'));
        let word = sentence.split(' ').next().unwrap_or_default();
        BEGINNINGS.into_iter().find(|beginning| *beginning == word && !is_question)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::planted(&[(path, text)])).len()
    }

    #[test]
    fn late_subjects_are_found() {
        assert_eq!(found("docs/a.md", "Plain. What fails is named.\n\n- Of two, one.\n"), 2);
        assert_eq!(found("README.md", "It runs.\nWho reads it has time."), 1);
        assert_eq!(found("docs/a.md", "Keep the malloc you have."), 1);
    }

    #[test]
    fn questions_headings_code_and_lines_that_go_on_are_not() {
        let text = "# What it is\n\n| What |\n\n```\nWhat now\n```\nWhat is it? That.\n\nIt says\nWhat here goes on.\n";
        assert_eq!(found("docs/a.md", text), 0);
        assert_eq!(found("benches/record/a.md", "What fails is named."), 0);
    }
}
