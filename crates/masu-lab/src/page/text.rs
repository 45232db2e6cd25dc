//! A page for the terminal: styled lines, padded by visible characters rather than by bytes, wrapped at the width of
//! the page.
//!
//! Every character counts as one column. Words from outside are made [`visible`]: a results file must not steer a
//! terminal. Nothing is wider than the page unless a single word is; a table that would be continues below itself.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use anstyle::{AnsiColor, Style};

use super::{Block, Cell, Page, Point, Sheet, SheetRow, Statement, Tone};

/// The usual width of a page, and the range of widths: narrower pages cannot hold a label and a figure, wider ones are
/// hard to read.
const USUAL_WIDTH: usize = 80;
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=120;

static WIDTH: AtomicUsize = AtomicUsize::new(USUAL_WIDTH);

/// Sets the width of pages for the terminal, at least 40 and at most 120 columns; without a call it is 80. A program
/// calls this once, with the width of its terminal.
pub fn set_width(columns: usize) {
    // ORDERING: A number that nothing else depends on.
    WIDTH.store(columns.clamp(*WIDTHS.start(), *WIDTHS.end()), Ordering::Relaxed);
}

/// The width of a page for the terminal, in columns.
pub fn width() -> usize {
    // ORDERING: As in `set_width`.
    WIDTH.load(Ordering::Relaxed)
}

/// The width of the first column; a label that would fill it is on a line of its own.
const LABEL_WIDTH: usize = 16;

/// The marks before a point, before advice, and before lines to paste below a point.
const POINT: &str = "  - ";
const ADVICE: &str = "  → ";
const BELOW: &str = "      ";

pub(super) fn page(page: &Page) -> String {
    let mut lines = String::new();
    page.blocks.iter().for_each(|block| self::block(&mut lines, block));
    lines
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Dim => Style::new().dimmed(),
        Tone::Strong => Style::new().bold(),
        Tone::Better => AnsiColor::Green.on_default(),
        Tone::Worse => AnsiColor::Red.on_default(),
        Tone::Good => AnsiColor::Green.on_default().bold(),
        Tone::Bad => AnsiColor::Red.on_default().bold(),
        Tone::Caution => AnsiColor::Yellow.on_default().bold(),
    }
}

fn block(page: &mut String, block: &Block) {
    match block {
        Block::Heading(heading) => {
            let tone = if heading.tone == Tone::Plain { Tone::Strong } else { heading.tone };
            hung(page, "", &heading.text.words(), tone);
            if !heading.below.0.is_empty() {
                hung(page, "  ", &heading.below.words(), Tone::Dim);
            }
        }
        Block::Text(text, tone) => hung(page, "", &text.words(), *tone),
        Block::List(points) => points.iter().for_each(|point| self::point(page, point)),
        Block::Statements(statements) | Block::Facts(statements) => {
            statements.iter().for_each(|statement| labelled(page, statement));
        }
        Block::Note(statement) => labelled(page, statement),
        Block::Code(code) => {
            code.iter().for_each(|part| line(page, &format!("  {}", visible(part)), Tone::Plain));
        }
        Block::Sheet(sheet) if sheet.is_prose => prose(page, sheet),
        Block::Sheet(sheet) => self::sheet(page, sheet),
        Block::Figure(_) => {}
        Block::Gap => page.push('\n'),
    }
}

fn line(page: &mut String, text: &str, tone: Tone) {
    let style = style(tone);
    page.push_str(&format!("{style}{text}{style:#}\n"));
}

/// `text` in lines, the first behind `mark`, the others behind as many blanks as the mark is wide.
fn hung(page: &mut String, mark: &str, text: &str, tone: Tone) {
    let indent = mark.chars().count();
    for (index, part) in wrap(text, width() - indent).iter().enumerate() {
        page.push_str(&if index == 0 { mark.to_owned() } else { " ".repeat(indent) });
        line(page, part, tone);
    }
}

/// The label in the first column, with the words beside it, wrapped below themselves.
fn labelled(page: &mut String, Statement { label, words, tone }: &Statement) {
    let label = label_column(label);
    match label.rsplit_once('\n') {
        Some((above, indent)) => {
            page.push_str(&format!("{above}\n"));
            hung(page, indent, &words.words(), *tone);
        }
        None => hung(page, &label, &words.words(), *tone),
    }
}

fn point(page: &mut String, point: &Point) {
    hung(page, if point.is_advice { ADVICE } else { POINT }, &point.text.words(), Tone::Plain);
    // A line to paste stays one line, however long it is.
    for part in &point.code {
        page.push_str(BELOW);
        line(page, &visible(part), Tone::Strong);
    }
    if !point.more.0.is_empty() {
        hung(page, BELOW, &point.more.words(), Tone::Plain);
    }
}

/// `label` padded to the first column, or on a line of its own.
fn label_column(label: &str) -> String {
    let label = visible(label);
    if label.chars().count() < LABEL_WIDTH {
        format!("{label:LABEL_WIDTH$}")
    } else {
        format!("{label}\n{:LABEL_WIDTH$}", "")
    }
}

/// A table of sentences: the cells of each row, one after the other.
fn prose(page: &mut String, sheet: &Sheet) {
    for row in &sheet.rows {
        let headings = sheet.columns.iter().skip(1).map(|column| &column.heading);
        let cells = headings.zip(&row.cells).filter(|(_, cell)| !cell.is_empty());
        let cells: Vec<String> =
            cells.map(|(heading, cell)| format!("{heading}: {}", cell.text.words())).collect();
        labelled(page, &Statement::new(&row.whole(), cells.join("; "), Tone::Plain));
    }
}

fn sheet(page: &mut String, sheet: &Sheet) {
    if !sheet.caption.is_empty() {
        hung(page, "", &sheet.caption, Tone::Strong);
    }
    for (index, columns) in fitting(&widths(sheet)).iter().enumerate() {
        if index > 0 {
            page.push('\n');
        }
        let heading = |(column, width): &(usize, usize)| {
            format!("{:>width$}", visible(&sheet.columns[column + 1].heading))
        };
        let headings: String = columns.iter().map(heading).collect();
        line(page, &format!("{:LABEL_WIDTH$}{headings}", ""), Tone::Strong);
        let mut group = "";
        for row in &sheet.rows {
            if row.group != group {
                line(page, &visible(&row.group), Tone::Plain);
                group = &row.group;
            }
            self::row(page, row, columns);
        }
    }
}

/// A row's line of figures, and a line of ratios if the row has any.
fn row(page: &mut String, row: &SheetRow, columns: &[(usize, usize)]) {
    let cells = |cell: fn(&Cell) -> (String, Style)| -> String {
        let cell = |(column, width): &(usize, usize)| {
            let (text, style) = row.cells.get(*column).map(cell).unwrap_or_default();
            let gap = " ".repeat(width.saturating_sub(text.chars().count()));
            format!("{gap}{style}{text}{style:#}")
        };
        columns.iter().map(cell).collect()
    };
    let indent = if row.group.is_empty() { "" } else { "  " };
    page.push_str(&label_column(&format!("{indent}{}", row.label)));
    line(page, &cells(|cell| (figure(cell), Style::new())), Tone::Plain);
    let shown = columns.iter().filter_map(|(column, _)| row.cells.get(*column));
    if shown.into_iter().any(|cell| !cell.below.is_empty()) {
        let below = cells(|cell| (ratio(cell), style(cell.tone)));
        line(page, &format!("{:LABEL_WIDTH$}{below}", ""), Tone::Plain);
    }
}

fn figure(cell: &Cell) -> String {
    if cell.is_empty() { "–".to_owned() } else { visible(&cell.text.words()).into_owned() }
}

/// `×0.893`, and its interval before it.
fn ratio(cell: &Cell) -> String {
    match cell.interval.as_str() {
        "" => cell.below.clone(),
        interval => format!("({interval}) {}", cell.below),
    }
}

/// The width of each column behind that of the labels: as the column asks, and as its content needs.
fn widths(sheet: &Sheet) -> Vec<usize> {
    let behind = sheet.columns.iter().skip(1).enumerate();
    let width = |(index, column): (usize, &super::Column)| {
        let cells = sheet.rows.iter().filter_map(|row| row.cells.get(index));
        let needed =
            cells.map(|cell| figure(cell).chars().count().max(ratio(cell).chars().count()));
        let gap = if column.width == 0 { 2 } else { 1 };
        let needed = needed.max().unwrap_or(0).max(column.heading.chars().count());
        column.width.max(needed + gap)
    };
    behind.map(width).collect()
}

/// The columns in tables that fit the page: each column's place among all, and its width.
fn fitting(widths: &[usize]) -> Vec<Vec<(usize, usize)>> {
    let mut tables: Vec<Vec<(usize, usize)>> = vec![Vec::new()];
    let mut used = LABEL_WIDTH;
    for (index, width) in widths.iter().enumerate() {
        if used + width > self::width() && used > LABEL_WIDTH {
            tables.push(Vec::new());
            used = LABEL_WIDTH;
        }
        used += width;
        tables.last_mut().expect("there is always one table").push((index, *width));
    }
    tables
}

/// `text` with characters that steer a page spelled out, `\u{1b}`: shown, never obeyed.
pub fn visible(text: &str) -> Cow<'_, str> {
    // Besides control characters, those that turn the direction of what follows, and ends of lines.
    let steers =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let spelt = |c: char| if steers(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(spelt).collect())
}

/// `text` in lines as wide as the page.
pub fn wrapped(text: &str) -> String {
    wrap(text, width()).join("\n")
}

/// Whether a label may be broken behind `c`: the punctuation of variants, so that their numbers stay whole.
pub(crate) fn ends_part(c: char) -> bool {
    matches!(c, ':' | ',' | '=' | ' ' | '/')
}

/// `text` broken at spaces into lines of at most `width` characters. A longer word is kept whole.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
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
    fn a_part_of_a_table_without_ratios_has_no_line_for_them() {
        let cell =
            |below: &str| Cell { text: "1".into(), below: below.to_owned(), ..Cell::default() };
        let cells = vec![cell("×2"), cell("")];
        let row = SheetRow { label: "masu".to_owned(), cells, ..SheetRow::default() };
        let lines = |columns: &[(usize, usize)]| {
            let mut page = String::new();
            self::row(&mut page, &row, columns);
            page.lines().count()
        };
        assert_eq!((lines(&[(0, 4), (1, 4)]), lines(&[(0, 4)]), lines(&[(1, 4)])), (2, 2, 1));
    }

    #[test]
    fn words_wrap_under_themselves_and_are_shown_and_not_obeyed() {
        let indent = " ".repeat(LABEL_WIDTH);
        let word = "x".repeat(100);
        let long = format!("a {word}");
        let cases = [
            (
                "label",
                "one two three four five six seven eight nine ten eleven twelve thirteen 14",
                "label           one two three four five six seven eight nine ten eleven twelve\n                \
                 thirteen 14\n"
                    .to_owned(),
            ),
            ("a\u{1b}[31mb", "c\u{202e}", "a\\u{1b}[31mb    c\\u{202e}\n".to_owned()),
            ("glibc:top_pad=64M", &long, format!("glibc:top_pad=64M\n{indent}a\n{indent}{word}\n")),
        ];
        for (label, words, expected) in cases {
            let mut page = String::new();
            labelled(&mut page, &Statement::new(label, words, Tone::Plain));
            assert_eq!(page, expected);
        }
    }
}
