//! A page as GitHub's Markdown; its plots lie in files beside it.
//!
//! A `|`, a `<` or an `@name` in labels, commands and warnings must not break a table, become HTML, or notify a person:
//! punctuation is escaped with a backslash, and a code span's fence is longer than any row of backticks inside.

use super::text::visible;
use super::{Block, Cell, Mark, Page, Point, Sheet, Statement, Text, Tone};

/// The page; names of files with plots begin with `files`.
pub(super) fn page(page: &Page, files: &str) -> String {
    let mut text = String::new();
    page.blocks.iter().for_each(|block| self::block(&mut text, block, files));
    let is_bold = |cell: &Cell| !cell.below.is_empty() && is_news(cell.tone);
    let has_bold = page.blocks.iter().any(|block| match block {
        Block::Sheet(sheet) => sheet.rows.iter().flat_map(|row| &row.cells).any(is_bold),
        _ => false,
    });
    let legend = if has_bold { "Bold where the interval leaves out 1. " } else { "" };
    text.push_str(&format!("{legend}{}", spans(&page.foot)));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn block(page: &mut String, block: &Block, files: &str) {
    match block {
        Block::Heading(heading) => {
            let marks = "#".repeat(usize::from(heading.level) + 1);
            paragraph(page, &format!("{marks} {}", spans(&heading.text)));
            if !heading.below.0.is_empty() {
                paragraph(page, &spans(&heading.below));
            }
        }
        Block::Text(text, Tone::Plain | Tone::Dim) => paragraph(page, &spans(text)),
        Block::Text(text, _) => paragraph(page, &format!("**{}**", spans(text))),
        Block::List(points) => {
            points.iter().for_each(|point| self::point(page, point));
            page.push('\n');
        }
        Block::Statements(statements) => {
            for Statement { label, words, .. } in statements {
                // Two stars before a blank begin nothing bold.
                let label = escaped(label.trim_start());
                page.push_str(&format!("- **{label}**: {}\n", spans(words)));
            }
            page.push('\n');
        }
        Block::Facts(facts) => {
            for Statement { label, words, .. } in facts {
                page.push_str(&format!("- {}: {}\n", escaped(label), spans(words)));
            }
            page.push('\n');
        }
        Block::Note(Statement { label, words, .. }) => {
            paragraph(page, &format!("> **{}**: {}", escaped(label), spans(words)));
        }
        Block::Code(lines) => {
            page.push_str(&fenced(lines, ""));
            page.push('\n');
        }
        Block::Sheet(sheet) => self::sheet(page, sheet),
        // A plot without a name for its file is left out.
        Block::Figure(_) if files.is_empty() => {}
        Block::Figure(figure) => {
            paragraph(page, &format!("![{}]({})", escaped(&figure.caption), figure.file(files)));
        }
        Block::Gap => {}
    }
}

fn paragraph(page: &mut String, text: &str) {
    page.push_str(&format!("{text}\n\n"));
}

fn point(page: &mut String, point: &Point) {
    let mark = if point.is_advice { "→ " } else { "" };
    page.push_str(&format!("- {mark}{}\n", spans(&point.text)));
    if !point.code.is_empty() {
        page.push_str(&format!("\n{}\n", fenced(&point.code, "  ")));
    }
    if !point.more.0.is_empty() {
        page.push_str(&format!("  {}\n", spans(&point.more)));
    }
}

fn fenced(lines: &[String], indent: &str) -> String {
    let fence = "`".repeat(lines.iter().map(|line| backticks(line)).max().unwrap_or(0).max(2) + 1);
    let lines: String = lines.iter().map(|line| format!("{indent}{}\n", visible(line))).collect();
    format!("{indent}{fence}sh\n{lines}{indent}{fence}\n")
}

fn sheet(page: &mut String, sheet: &Sheet) {
    if !sheet.caption.is_empty() {
        paragraph(page, &format!("{}:", escaped(&sheet.caption)));
    }
    let mut line = |cells: Vec<String>| page.push_str(&format!("| {} |\n", cells.join(" | ")));
    line(sheet.columns.iter().map(|column| escaped(&column.heading)).collect());
    let side = if sheet.is_prose { ":--" } else { "--:" };
    let sides = (0..sheet.columns.len()).map(|column| if column == 0 { ":--" } else { side });
    line(sides.map(str::to_owned).collect());
    for row in &sheet.rows {
        let label = std::iter::once(escaped(&row.whole()));
        line(label.chain(row.cells.iter().map(cell)).collect());
    }
    page.push('\n');
}

/// A cell; bold text differs from the reference, because its interval leaves out 1.
fn cell(cell: &Cell) -> String {
    if cell.is_empty() {
        return "–".to_owned();
    }
    let mut parts = Vec::new();
    if !cell.text.0.is_empty() {
        parts.push(spans(&cell.text));
    }
    if !cell.below.is_empty() {
        let below =
            if is_news(cell.tone) { format!("**{}**", cell.below) } else { cell.below.clone() };
        let interval = &cell.interval;
        parts.push(if interval.is_empty() { below } else { format!("{below} ({interval})") });
    }
    parts.join("<br>")
}

fn is_news(tone: Tone) -> bool {
    matches!(tone, Tone::Better | Tone::Worse)
}

fn spans(text: &Text) -> String {
    let span = |(mark, text): &(Mark, String)| match mark {
        Mark::Plain => escaped(text),
        Mark::Bold => format!("**{}**", escaped(text)),
        Mark::Code => code(text),
        Mark::Break => "<br>".to_owned(),
    };
    text.0.iter().map(span).collect()
}

/// `text` in a form that Markdown shows unchanged, on one line.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            // No extension reads an entity, not even those for mentions and autolinks.
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            '@' => shown.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' | '~' | '!' => {
                shown.push('\\');
                shown.push(c);
            }
            _ => shown.push(c),
        }
    }
    shown
}

fn code(text: &str) -> String {
    let text = visible(text);
    let longest = backticks(&text);
    let fence = "`".repeat(longest + 1);
    // A backtick at an edge would be taken for the fence; one blank there is not shown.
    let gap = if longest > 0 { " " } else { "" };
    format!("{fence}{gap}{text}{gap}{fence}")
}

/// The longest row of backticks in `text`.
fn backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_indented_label_is_bold_too() {
        let (label, words) = ("  masu".to_owned(), "gain shown".into());
        let mut page = String::new();
        block(
            &mut page,
            &Block::Statements(vec![Statement { label, words, tone: Tone::Plain }]),
            "",
        );
        assert_eq!(page, "- **masu**: gain shown\n\n");
    }

    #[test]
    fn a_code_span_holds_any_backticks() {
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(code("a``b`"), "``` a``b` ```");
        assert_eq!(fenced(&["a```b".to_owned()], " "), " ````sh\n a```b\n ````\n");
    }
}
