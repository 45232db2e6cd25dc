//! Pages, comments and messages are plain English: readers are engineers in a hurry, whose first language may be another.
//! Some words are not used. A sentence of a page or a comment begins with its subject. Pages for users have no phrases of our
//! own.
//!
//! It relies on the lexer for comments and strings, and on Markdown whose blocks are fenced. Headings, tables and
//! questions may begin with any word. Records and the changelog keep the words of their time, and are left alone.

use std::path::Path;

use super::Finding;
use super::source::Source;
use super::tree::{File, Tree};
use crate::links::outside_code;

const RULE: &str = "words";

/// Each word with its replacement.
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

/// Parts of words in British spelling, each with its American one.
const BRITISH: [(&str, &str); 8] = [
    ("neighbour", "neighbor"),
    ("behaviour", "behavior"),
    ("colour", "color"),
    ("favour", "favor"),
    ("optimis", "optimiz"),
    ("initialis", "initializ"),
    ("recognis", "recogniz"),
    ("synchronis", "synchroniz"),
];

/// Phrases of our own, not used on pages for users.
const PHRASES: [(&str, &str); 3] = [
    ("the malloc you have", "the current malloc"),
    ("what is said", "the message, or reported"),
    ("in turns", "alternately"),
];

/// First words of sentences whose subject comes late, used neither there nor in comments.
const LATE_SUBJECTS: [&str; 5] = ["Who", "Whom", "Whose", "What", "Of"];

/// The endings of files that are checked whole, Rust beside them.
const TEXTS: [&str; 7] = ["md", "toml", "c", "h", "hpp", "sh", "py"];

const LEFT_ALONE: [&str; 3] = ["benches", "CHANGELOG.md", "xtask/src/tidy/words.rs"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_checked = |path: &Path| !LEFT_ALONE.iter().any(|alone| path.starts_with(alone));
    let ends =
        |file: &File| file.path.extension().and_then(|end| TEXTS.iter().find(|it| end == **it));
    let texts = tree.files.iter().filter_map(|file| Some((file, *ends(file)?)));
    let texts = texts.flat_map(|(file, end)| {
        let words = if is_checked(&file.path) { check_text(file) } else { Vec::new() };
        let is_on_top = file.path.starts_with("docs") || file.path.components().count() == 1;
        let prose = if is_on_top && end == "md" { check_prose(file) } else { Vec::new() };
        words.into_iter().chain(prose)
    });
    let sources = tree.sources.iter().filter(|source| is_checked(&source.path));
    texts.chain(sources.flat_map(check_source)).collect()
}

fn check_text(file: &File) -> Vec<Finding> {
    let lines = file.contents.lines().enumerate();
    lines.filter_map(|(index, line)| retired(&file.path, index, line)).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let lines = source.lines.iter().enumerate();
    let texts = lines.flat_map(|(index, line)| {
        let text = if line.in_test { "" } else { &line.text };
        [(index, &*line.comment), (index, text)]
    });
    let words = texts.filter_map(|(index, text)| retired(&source.path, index, text));
    words.chain(late_comments(source)).collect()
}

/// Comments with a sentence that begins with another word than its subject.
fn late_comments(source: &Source) -> Vec<Finding> {
    let lines = source.lines.iter().enumerate().filter(|(_, line)| line.is_comment());
    let texts =
        lines.map(|(index, line)| (index, line.comment.trim_start_matches(['/', '!']).trim()));
    late_sentences(&source.path, texts)
}

fn retired(path: &Path, index: usize, text: &str) -> Option<Finding> {
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphabetic() && !"'_".contains(c));
    let (word, instead) = words
        .find_map(|word| RETIRED.iter().find(|(retired, _)| word.trim_matches('\'') == *retired))
        .or_else(|| BRITISH.iter().find(|(british, _)| lower.contains(british)))?;
    Some(Finding::at(path, index, RULE, format!("`{word}`: {instead}")))
}

/// Phrases, and sentences that begin with another word than their subject.
fn check_prose(page: &File) -> Vec<Finding> {
    let lines = outside_code(&page.contents).map(|(index, line)| (index, line.trim_start()));
    let lines: Vec<_> = lines.filter(|(_, text)| !text.starts_with(['#', '|', '<'])).collect();
    let phrase = |&(index, text): &(usize, &str)| {
        let (phrase, instead) = PHRASES.iter().find(|(phrase, _)| text.contains(phrase))?;
        Some(Finding::at(&page.path, index, RULE, format!("`{phrase}`: {instead}")))
    };
    let phrases = lines.iter().filter_map(phrase);
    phrases.chain(late_sentences(&page.path, lines.iter().copied())).collect()
}

/// Sentences of these lines that begin with another word than their subject. A gap between lines ends a sentence.
fn late_sentences<'a>(path: &Path, lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // The line in the middle of a sentence.
    let mut continued = None;
    for (index, text) in lines {
        if let Some(word) = late_subject(text, continued != Some(index)) {
            let remedy = format!("`{word} …`: begin with the subject");
            findings.push(Finding::at(path, index, RULE, remedy));
        }
        let is_ended = text.is_empty() || text.ends_with(['.', ':', '!', '?']);
        continued = (!is_ended).then_some(index + 1);
    }
    findings
}

/// The first word of a sentence of this line that is one of [`LATE_SUBJECTS`]; `is_between` where the line begins one.
fn late_subject(text: &str, is_between: bool) -> Option<&'static str> {
    let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let item = text.strip_prefix("- ").or(numbered.strip_prefix(". ")).unwrap_or(text);
    let first = (is_between || item.len() < text.len()).then_some(item);
    let others = text.match_indices(". ").map(|(at, end)| &text[at + end.len()..]);
    first.into_iter().chain(others).find_map(|sentence| {
        let is_question = sentence.split(['.', ':']).next().is_some_and(|it| it.contains('?'));
        let word = sentence.split(' ').next().unwrap_or_default();
        LATE_SUBJECTS.into_iter().find(|late| *late == word && !is_question)
    })
}
