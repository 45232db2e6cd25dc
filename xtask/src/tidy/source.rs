//! A Rust file cut line by line into code, text of strings, and comment, so that a rule about code is never fooled by a
//! word in a comment or a string.
//!
//! It relies on rustc's own lexer for where each of them begins and ends.

use std::path::{Path, PathBuf};

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

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

impl Source {
    /// Cuts the contents of a Rust file.
    pub(crate) fn new(path: &Path, contents: &str) -> Source {
        let mut source = Source { path: path.to_path_buf(), lines: vec![Line::default()] };
        let mut at = 0;
        for token in tokenize(contents, FrontmatterAllowed::No) {
            let text = &contents[at..at + token.len as usize];
            at += text.len();
            match token.kind {
                TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => {
                    source.add(text, |line| &mut line.comment);
                }
                TokenKind::Literal { kind: LiteralKind::Char { .. }, .. } => {
                    source.add("' '", |line| &mut line.code);
                }
                TokenKind::Literal { .. } if text.contains('"') => {
                    source.add("\"", |line| &mut line.code);
                    source.add(text, |line| &mut line.text);
                    source.add("\"", |line| &mut line.code);
                }
                _ => source.add(text, |line| &mut line.code),
            }
        }
        source.mark_tests();
        source
    }

    /// Adds a token to a part of the last line, and of those that it brings.
    fn add(&mut self, text: &str, part: fn(&mut Line) -> &mut String) {
        for (index, piece) in text.split('\n').enumerate() {
            if index > 0 {
                self.lines.push(Line::default());
            }
            if let Some(last) = self.lines.last_mut() {
                part(last).push_str(piece);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_texts_and_comments_are_kept_apart() {
        for (line, code, comment) in [
            ("let a = 1; // unsafe {", "let a = 1; ", "// unsafe {"),
            (r#"a("// no \" comment"); b"#, r#"a(""); b"#, ""),
            ("a(r#\"one \" two\"#) /* x /* y */ */ b", r#"a("")  b"#, "/* x /* y */ */"),
            (r"fn f<'a>() { '\'' } // b", "fn f<'a>() { ' ' } ", "// b"),
        ] {
            let source = Source::new(Path::new("a.rs"), line);
            assert_eq!((&*source.lines[0].code, &*source.lines[0].comment), (code, comment));
        }
        let lines = Source::new(Path::new("a.rs"), "a(\"one\ntwo\"); b").lines;
        assert!(lines[0].text.contains("one") && lines[1].text.contains("two"));
        assert_eq!((lines[0].code.as_str(), lines[1].code.as_str()), ("a(\"", "\"); b"));
    }

    #[test]
    fn test_modules_end_where_their_brace_closes() {
        for (text, marks) in [
            (
                "#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}",
                [true, true, true, true, false],
            ),
            ("#[cfg(test)]\nmod tests;\nfn c() {\n}\n", [true, true, false, false, false]),
        ] {
            let lines = Source::new(Path::new("crates/masu/src/page.rs"), text).lines;
            assert_eq!(lines.iter().map(|line| line.in_test).collect::<Vec<_>>(), marks);
        }
    }
}
