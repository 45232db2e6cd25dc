//! Lines of text: styled, padded by what is seen rather than by bytes, wrapped at the width of the page.
//!
//! Relies on every character being one column wide, which holds for what masu itself prints. Words
//! that come from elsewhere are made [`visible`]: a results file must not steer a terminal.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use anstyle::Style;

/// What a page holds where nobody says otherwise, and between what it may be: narrower ones cannot hold a label and a
/// figure, wider ones are hard to read.
const USUAL_WIDTH: usize = 80;
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=120;

static WIDTH: AtomicUsize = AtomicUsize::new(USUAL_WIDTH);

/// Makes pages for the terminal so many columns wide, at least 40 and at most 120; 80 where it is not called. For a
/// program to call once, with the width of its terminal.
pub fn set_width(columns: usize) {
    // ORDERING: A number that nothing else depends on.
    WIDTH.store(columns.clamp(*WIDTHS.start(), *WIDTHS.end()), Ordering::Relaxed);
}

/// Columns of a page for the terminal.
#[must_use]
pub fn width() -> usize {
    // ORDERING: As in `set_width`.
    WIDTH.load(Ordering::Relaxed)
}

/// The first column; labels that would fill it stand on a line of their own.
pub(super) const LABEL_WIDTH: usize = 16;

/// Adds `text` and the end of the line to `page`.
pub(super) fn line(page: &mut String, text: &str, style: Style) {
    page.push_str(&format!("{style}{text}{style:#}\n"));
}

/// `text` at the right of a column of `width`.
pub(super) fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// `text` with control characters spelt out, `\u{1b}`: shown, never obeyed.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let spelt = |c: char| {
        if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
    };
    Cow::Owned(text.chars().map(spelt).collect())
}

/// `label` padded to the first column, or on a line of its own.
pub(super) fn label_column(label: &str) -> String {
    let label = visible(label);
    if label.chars().count() < LABEL_WIDTH {
        format!("{label:LABEL_WIDTH$}")
    } else {
        format!("{label}\n{:LABEL_WIDTH$}", "")
    }
}

/// `label` in the first column, `text` beside it, wrapped under itself.
pub(super) fn labelled(page: &mut String, label: &str, text: &str, style: Style) {
    page.push_str(&label_column(label));
    for (index, part) in wrap(text, width() - LABEL_WIDTH).iter().enumerate() {
        if index > 0 {
            page.push_str(&" ".repeat(LABEL_WIDTH));
        }
        line(page, part, style);
    }
}

/// `text` as a paragraph, styled line by line.
pub(super) fn paragraph(page: &mut String, text: &str, style: Style) {
    for part in wrap(text, width()) {
        line(page, &part, style);
    }
}

/// `text` as a paragraph.
pub(super) fn wrapped(text: &str) -> String {
    wrap(text, width()).join("\n")
}

/// Whether a label may be broken behind `c`: behind the punctuation of variants, so that their numbers stay whole.
pub(super) fn ends_part(c: char) -> bool {
    matches!(c, ':' | ',' | '=' | ' ' | '/')
}

/// `text` broken at spaces into lines of at most `width` characters. A longer word is kept whole.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let word = visible(word);
        let last = lines.last_mut().expect("there is always one line");
        if last.is_empty() {
            last.push_str(&word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(&word);
        } else {
            lines.push(word.into_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_under_itself_beside_its_label() {
        let mut page = String::new();
        let text = "one two three four five six seven eight nine ten eleven twelve thirteen 14";
        labelled(&mut page, "label", text, Style::new());
        let expected = "\
label           one two three four five six seven eight nine ten eleven twelve
                thirteen 14\n";
        assert_eq!(page, expected);
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        let mut page = String::new();
        labelled(&mut page, "a\u{1b}[31mb", "c\u{7}", Style::new());
        assert_eq!(page, "a\\u{1b}[31mb    c\\u{7}\n");
    }

    #[test]
    fn a_long_label_and_a_long_word_are_kept_whole() {
        let mut page = String::new();
        let word = "x".repeat(100);
        labelled(&mut page, "glibc:top_pad=64M", &format!("a {word}"), Style::new());
        let indent = " ".repeat(LABEL_WIDTH);
        assert_eq!(page, format!("glibc:top_pad=64M\n{indent}a\n{indent}{word}\n"));
    }
}
