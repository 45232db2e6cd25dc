//! A page as one HTML file with plots: no network, no script, legible in light, in dark and on paper.
//!
//! askama escapes the text that the template writes, and its filter `shown` spells out control characters; plots escape
//! their own text. The file is well-formed XML too, which tests check.

use askama::Template;

use super::text::{ends_part, visible};
use super::{Block, Mark, Page, SheetRow, Tone};

#[derive(Template)]
#[template(path = "page.html")]
struct File<'a> {
    page: &'a Page,
}

pub(super) fn page(page: &Page) -> String {
    let file = File { page };
    let text = file.render();
    text.expect("a template that only writes strings into a string has no way to fail") + "\n"
}

/// The filters of the template.
#[expect(unreachable_pub, reason = "the macro of a filter makes it public")]
mod filters {
    use std::fmt::Display;

    /// A text in which characters that no page may hold are spelled out.
    #[askama::filter_fn]
    pub(super) fn shown(text: impl Display, _: &dyn askama::Values) -> askama::Result<String> {
        Ok(super::visible(&text.to_string()).into_owned())
    }
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Dim => "dim",
            Tone::Strong => "strong",
            Tone::Better => "better",
            Tone::Worse => "worse",
            Tone::Good => "better strong",
            Tone::Bad => "worse strong",
            Tone::Caution => "caution strong",
        }
    }
}

impl SheetRow {
    /// The label in the parts between which it may be broken, so that a number stays whole.
    fn parts(&self) -> Vec<String> {
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let label = self.whole();
        let mut parts = vec![String::new()];
        for (at, c) in label.char_indices() {
            let behind = &label[at + c.len_utf8()..];
            parts.last_mut().expect("there is always one part").push(c);
            let is_inside = digit(label[..at].chars().next_back()) && digit(behind.chars().next());
            if ends_part(c) && !is_inside {
                parts.push(String::new());
            }
        }
        parts
    }
}
