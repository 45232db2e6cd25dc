//! A Rust file cut line by line into code, text of strings, and comment, so that a rule about code
//! is never fooled by a word in a comment or a string.
//!
//! It relies on nothing but Rust's lexical grammar. Only a few states outlive a line (a nested block comment, a string,
//! a raw string with its number of hashes), so one pass over the characters with that state is enough; no syntax tree
//! is needed for the house rules.

use std::path::{Path, PathBuf};

/// One line of a file, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The code, without comments; each string literal is an empty pair of quotes.
    pub(crate) code: String,
    /// The contents of string literals.
    pub(crate) text: String,
    /// The comment, with its slashes.
    pub(crate) comment: String,
    pub(crate) in_test: bool,
}

impl Line {
    pub(crate) fn is_blank(&self) -> bool {
        self.code.trim().is_empty() && self.comment.is_empty() && self.text.is_empty()
    }

    /// Whether the line is a comment and nothing else.
    pub(crate) fn is_comment(&self) -> bool {
        self.code.trim().is_empty() && !self.comment.is_empty()
    }

    /// Whether the line holds an attribute and nothing else.
    pub(crate) fn is_attribute(&self) -> bool {
        let code = self.code.trim();
        code.starts_with("#[") && code.ends_with(']')
    }
}

pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) lines: Vec<Line>,
}

/// A construct that is still open at the end of a line.
#[derive(Clone, Copy)]
enum Open {
    Nothing,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

impl Source {
    /// Cuts the contents of a Rust file.
    pub(crate) fn new(path: &Path, contents: &str) -> Source {
        let mut lines = Vec::new();
        let mut open = Open::Nothing;
        for line in contents.lines() {
            let (cut, still_open) = cut(line, open);
            lines.push(cut);
            open = still_open;
        }
        let mut source = Source { path: path.to_path_buf(), lines };
        source.mark_tests();
        source
    }

    /// Marks the lines of test code: whole files of tests, and modules under `#[cfg(test)]`.
    fn mark_tests(&mut self) {
        let folder = |name: &str| self.path.iter().any(|part| part == name);
        let whole = folder("tests") || folder("benches") || self.path.ends_with("tests.rs");
        let mut depth = 0_usize;
        let mut pending = false;
        let mut test_until = None;
        for line in &mut self.lines {
            let code = line.code.replace(' ', "");
            if code.contains("#[cfg(test)]") || code.contains("#[cfg(all(test,") {
                pending = true;
            }
            line.in_test = whole || pending || test_until.is_some();
            for character in code.chars() {
                match character {
                    '{' => {
                        if pending && test_until.is_none() {
                            test_until = Some(depth);
                        }
                        pending = false;
                        depth += 1;
                    }
                    '}' => {
                        depth = depth.saturating_sub(1);
                        if test_until == Some(depth) {
                            test_until = None;
                        }
                    }
                    ';' => pending = false,
                    _ => {}
                }
            }
        }
    }
}

/// Cuts one line, given what was open at its beginning; returns what is open at its end.
fn cut(line: &str, open: Open) -> (Line, Open) {
    let mut cut = Line::default();
    let mut open = open;
    let mut rest = line;
    while !rest.is_empty() {
        rest = match open {
            Open::BlockComment { depth } => cut.block_comment(rest, depth, &mut open),
            Open::Text => cut.string(rest, &mut open),
            Open::RawText { hashes } => cut.raw_string(rest, hashes, &mut open),
            Open::Nothing => cut.plain(rest, &mut open),
        };
    }
    (cut, open)
}

/// Each of these takes something off the front of `rest` and returns what follows it.
impl Line {
    fn block_comment<'a>(&mut self, rest: &'a str, depth: usize, open: &mut Open) -> &'a str {
        let (length, depth) = if rest.starts_with("*/") {
            (2, depth - 1)
        } else if rest.starts_with("/*") {
            (2, depth + 1)
        } else {
            (first_length(rest), depth)
        };
        self.comment.push_str(&rest[..length]);
        *open = if depth == 0 { Open::Nothing } else { Open::BlockComment { depth } };
        &rest[length..]
    }

    fn string<'a>(&mut self, rest: &'a str, open: &mut Open) -> &'a str {
        if let Some(after) = rest.strip_prefix('"') {
            *open = Open::Nothing;
            self.code.push('"');
            return after;
        }
        let mut length = first_length(rest);
        if rest.starts_with('\\') {
            length += first_length(&rest[length..]);
        }
        self.text.push_str(&rest[..length]);
        &rest[length..]
    }

    fn raw_string<'a>(&mut self, rest: &'a str, hashes: usize, open: &mut Open) -> &'a str {
        let end = format!("\"{}", "#".repeat(hashes));
        if let Some(after) = rest.strip_prefix(&end) {
            *open = Open::Nothing;
            self.code.push('"');
            return after;
        }
        let length = first_length(rest);
        self.text.push_str(&rest[..length]);
        &rest[length..]
    }

    fn plain<'a>(&mut self, rest: &'a str, open: &mut Open) -> &'a str {
        if rest.starts_with("//") {
            self.comment.push_str(rest);
            return "";
        }
        if let Some(after) = rest.strip_prefix("/*") {
            self.comment.push_str("/*");
            *open = Open::BlockComment { depth: 1 };
            return after;
        }
        let inside_a_word = self.code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if let Some((length, hashes)) = raw_string_opening(rest).filter(|_| !inside_a_word) {
            self.code.push('"');
            *open = Open::RawText { hashes };
            return &rest[length..];
        }
        if let Some(after) = rest.strip_prefix('"') {
            self.code.push('"');
            *open = Open::Text;
            return after;
        }
        if let Some(length) = character_literal_length(rest) {
            self.code.push_str("' '");
            return &rest[length..];
        }
        let length = first_length(rest);
        self.code.push_str(&rest[..length]);
        &rest[length..]
    }
}

/// The length in bytes of the first character; 0 of nothing.
fn first_length(rest: &str) -> usize {
    rest.chars().next().map_or(0, char::len_utf8)
}

/// Where `rest` opens a raw string: the opening's length and its number of hashes.
fn raw_string_opening(rest: &str) -> Option<(usize, usize)> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let length = prefix.len() + hashes + 1;
    after[hashes..].starts_with('"').then_some((length, hashes))
}

/// The length of a character literal at the front; a lifetime is none.
fn character_literal_length(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if inner.starts_with('\\') {
        let end = inner.get(2..)?.find('\'')?;
        return Some(1 + 2 + end + 1);
    }
    let length = first_length(inner);
    inner.get(length..)?.starts_with('\'').then_some(length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(contents: &str) -> Source {
        Source::new(Path::new("crates/masu/src/page.rs"), contents)
    }

    #[test]
    fn a_comment_is_not_code_and_code_is_not_a_comment() {
        let line = &source("let a = 1; // unsafe {").lines[0];
        assert_eq!((line.code.trim(), line.comment.as_str()), ("let a = 1;", "// unsafe {"));
    }

    #[test]
    fn slashes_in_strings_open_no_comment() {
        let line = &source(r#"let a = "// no \" comment"; b();"#).lines[0];
        assert_eq!((line.code.as_str(), line.comment.as_str()), (r#"let a = ""; b();"#, ""));
        assert!(line.text.contains("no"));
    }

    #[test]
    fn raw_strings_end_at_their_hashes_only() {
        let lines = source("let a = r#\"one \" two\nthree\"#; b();").lines;
        assert_eq!(lines[0].code, "let a = \"");
        assert_eq!(lines[1].code, "\"; b();");
        assert_eq!(lines[1].text, "three");
    }

    #[test]
    fn block_comments_nest() {
        let lines = source("a /* one /* two */\n three */ b").lines;
        assert_eq!(lines[0].code.trim(), "a");
        assert_eq!(lines[1].code.trim(), "b");
    }

    #[test]
    fn lifetimes_are_not_character_literals() {
        let line = &source("fn f<'a>(x: &'a str) -> char { '\"' }").lines[0];
        assert!(line.code.contains("&'a str") && line.code.ends_with("' ' }"), "{}", line.code);
        assert_eq!(source(r"let a = '\''; // b").lines[0].comment, "// b");
    }

    #[test]
    fn test_modules_end_where_their_brace_closes() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}";
        let marks: Vec<bool> = source(text).lines.iter().map(|line| line.in_test).collect();
        assert_eq!(marks, [false, true, true, true, true, false]);
    }

    #[test]
    fn a_test_module_in_its_own_file_marks_nothing_after_it() {
        let marks: Vec<bool> = source("#[cfg(test)]\nmod tests;\nfn c() {\n}")
            .lines
            .iter()
            .map(|line| line.in_test)
            .collect();
        assert_eq!(marks, [true, true, false, false]);
    }
}
