//! A page as one HTML file with plots: no network, no script, legible in light, in dark and on paper.
//!
//! askama escapes what the template is given; plots escape for themselves. The file is well-formed XML too, which
//! tests check.

use askama::Template;

use super::text::{ends_part, visible};
use super::{Block, Mark, Page, SheetRow, Text, Tone};

#[derive(Template)]
#[template(path = "page.html")]
struct File<'a> {
    page: &'a Page,
}

pub(super) fn page(page: &Page) -> String {
    let mut page = page.clone();
    page.title = visible(&page.title).into_owned();
    page.blocks.iter_mut().for_each(show);
    let file = File { page: &page };
    file.render().expect("a template that only writes strings into a string has no way to fail")
}

/// Spells out what no page may hold.
fn show(block: &mut Block) {
    let string = |text: &mut String| *text = visible(text).into_owned();
    let text = |text: &mut Text| text.0.iter_mut().for_each(|(_, text)| string(text));
    match block {
        Block::Heading(heading) => {
            text(&mut heading.text);
            text(&mut heading.below);
        }
        Block::Text(words, _) => text(words),
        Block::List(points) => points.iter_mut().for_each(|point| {
            text(&mut point.text);
            point.code.iter_mut().for_each(string);
            text(&mut point.more);
        }),
        Block::Statements(statements) | Block::Facts(statements) => {
            for statement in statements {
                string(&mut statement.label);
                text(&mut statement.words);
            }
        }
        Block::Note(statement) => {
            string(&mut statement.label);
            text(&mut statement.words);
        }
        Block::Code(lines) => lines.iter_mut().for_each(string),
        Block::Sheet(sheet) => {
            string(&mut sheet.caption);
            sheet.columns.iter_mut().for_each(|column| string(&mut column.heading));
            for row in &mut sheet.rows {
                string(&mut row.group);
                string(&mut row.label);
                row.cells.iter_mut().for_each(|cell| text(&mut cell.text));
            }
        }
        Block::Figure(figure) => string(&mut figure.caption),
        Block::Gap => {}
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
    /// The label in the parts that it may be broken between, so that a number stays whole.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_broken_behind_its_punctuation_and_a_number_stays_whole() {
        let row = SheetRow { label: "glibc:A=100,B=10,000,000".to_owned(), ..SheetRow::default() };
        assert_eq!(row.parts(), ["glibc:", "A=", "100,", "B=", "10,000,000"]);
    }
}
