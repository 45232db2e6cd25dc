//! A page before it has a form: headings, text, statements, tables and plots.
//!
//! Only `text`, `markdown` and `html` know the look of a form. Labels, commands and reasons stand in a page unchanged;
//! each renderer escapes everything that it writes.

mod html;
mod markdown;
mod text;

pub(crate) use text::ends_part;
pub use text::{set_width, visible, width, wrap, wrapped};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The title of the browser's window.
    pub title: String,
    pub(crate) blocks: Vec<Block>,
    /// The last line; the terminal has none.
    pub(crate) foot: Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For the terminal, with its styles.
    Text,
    /// For an issue or a wiki.
    Markdown,
    /// One file with plots, for a browser.
    Html,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Heading(Heading),
    Text(Text, Tone),
    List(Vec<Point>),
    /// Statements, one about each of several things.
    Statements(Vec<Statement>),
    /// Known facts, by name.
    Facts(Vec<Statement>),
    /// A note to read before trusting the rest; a dim one only informs.
    Note(Statement),
    /// Lines for a shell or a file, never broken.
    Code(Vec<String>),
    Sheet(Sheet),
    /// A plot. The terminal has none.
    Figure(Figure),
    /// An empty line of the terminal.
    Gap,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Heading {
    /// From 1, the page's own.
    pub(crate) level: u8,
    pub(crate) text: Text,
    pub(crate) tone: Tone,
    /// Small text below the heading; empty if there is none.
    pub(crate) below: Text,
    /// The id to which a table's row links; empty if there is none.
    pub(crate) id: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Statement {
    pub(crate) label: String,
    pub(crate) words: Text,
    pub(crate) tone: Tone,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) text: Text,
    /// Whether the point is something to do, and not something seen.
    pub(crate) is_advice: bool,
    pub(crate) code: Vec<String>,
    pub(crate) more: Text,
}

/// The tone of a text, besides its words; each form has its own sign for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    /// The reader may skip it.
    Dim,
    /// The reader must not miss it.
    Strong,
    Better,
    Worse,
    Good,
    Bad,
    /// The reader should take care.
    Caution,
}

/// Text in pieces, each with its mark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<(Mark, String)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Plain,
    Bold,
    Code,
    /// A new line; the piece is empty.
    Break,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sheet {
    pub(crate) caption: String,
    /// The columns, including that of the labels.
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<SheetRow>,
    /// Whether the cells are sentences rather than figures.
    pub(crate) is_prose: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) heading: String,
    /// The least width of the column on the terminal.
    pub(crate) width: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SheetRow {
    /// The common name of neighboring rows; empty if there is none.
    pub(crate) group: String,
    pub(crate) label: String,
    /// The id of the heading to which the row links; empty if there is none.
    pub(crate) link: String,
    pub(crate) cells: Vec<Cell>,
}

/// A cell of a table; an empty one is shown as a dash.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: Text,
    /// A ratio on a second line.
    pub(crate) below: String,
    pub(crate) interval: String,
    /// The tone of the ratio, or of the words if there is no ratio.
    pub(crate) tone: Tone,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figure {
    /// A word that no other plot of the page has: a part of its file's name.
    pub name: String,
    pub(crate) caption: String,
    pub svg: String,
    /// The same plot for a narrow screen; empty if there is only one.
    pub(crate) narrow: String,
}

impl Page {
    /// The page in `form`; `files` begins the names of files with its plots, for Markdown.
    pub fn render(&self, form: Form, files: &str) -> String {
        match form {
            Form::Text => text::page(self),
            Form::Markdown => markdown::page(self, files),
            Form::Html => html::page(self),
        }
    }

    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        })
    }

    pub(crate) fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }

    pub(crate) fn heading(&mut self, level: u8, text: impl Into<Text>) {
        self.push(Block::Heading(Heading { level, text: text.into(), ..Heading::default() }));
    }

    pub(crate) fn say(&mut self, text: impl Into<Text>, tone: Tone) {
        self.push(Block::Text(text.into(), tone));
    }

    pub(crate) fn note(&mut self, label: &str, words: impl Into<Text>, tone: Tone) {
        self.push(Block::Note(Statement::new(label, words, tone)));
    }
}

impl Block {
    /// A paragraph whose marks are `**bold**` and `` `code` ``.
    pub(crate) fn marked(text: impl AsRef<str>) -> Block {
        Block::Text(Text::marked(text.as_ref()), Tone::Plain)
    }

    /// Points with the same marks.
    pub(crate) fn points<T: AsRef<str>>(points: impl IntoIterator<Item = T>) -> Block {
        let point = |text: T| Point { text: Text::marked(text.as_ref()), ..Point::default() };
        Block::List(points.into_iter().map(point).collect())
    }
}

impl Statement {
    pub(crate) fn new(label: &str, words: impl Into<Text>, tone: Tone) -> Statement {
        Statement { label: label.to_owned(), words: words.into(), tone }
    }
}

impl Sheet {
    /// A table of these rows; the first cell of each is the label.
    pub(crate) fn new<H: Into<String>>(
        caption: impl Into<String>,
        headings: impl IntoIterator<Item = H>,
        rows: Vec<Vec<String>>,
    ) -> Sheet {
        let column = |heading: H| Column { heading: heading.into(), width: 0 };
        let row = |cells: Vec<String>| {
            let mut cells = cells.into_iter();
            let label = cells.next().unwrap_or_default();
            SheetRow { label, cells: cells.map(Cell::from).collect(), ..SheetRow::default() }
        };
        Sheet {
            caption: caption.into(),
            columns: headings.into_iter().map(column).collect(),
            rows: rows.into_iter().map(row).collect(),
            is_prose: false,
        }
    }

    /// A table in the format of a printed report: `|` separates columns, line ends separate rows.
    pub(crate) fn printed(caption: &str, headings: &str, rows: &str) -> Sheet {
        let cells = |line: &str| -> Vec<String> {
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let rows = rows.lines().filter(|line| !line.trim().is_empty()).map(cells).collect();
        Sheet::new(caption, cells(headings), rows)
    }
}

impl Cell {
    /// Whether the cell has no value.
    fn is_empty(&self) -> bool {
        self.text.0.is_empty() && self.below.is_empty()
    }
}

impl SheetRow {
    /// The label with its group: `masu, A`.
    fn whole(&self) -> String {
        if self.group.is_empty() {
            self.label.clone()
        } else {
            format!("{}, {}", self.group, self.label)
        }
    }
}

impl Figure {
    /// The name of the plot's file beside a Markdown page that is called `page`.
    pub(crate) fn file(&self, page: &str) -> String {
        format!("{page}-{}.svg", self.name)
    }
}

impl Text {
    pub(crate) fn code(text: impl Into<String>) -> Text {
        Text(vec![(Mark::Code, text.into())])
    }

    /// `text` without its marks `**bold**` and `` `code` ``; a mark that is not closed is text.
    pub(crate) fn marked(text: &str) -> Text {
        let mut pieces = Text::default();
        let mut rest = text;
        while !rest.is_empty() {
            let found =
                [("**", Mark::Bold), ("`", Mark::Code)].into_iter().filter_map(|(sign, mark)| {
                    let start = rest.find(sign)?;
                    let inside = &rest[start + sign.len()..];
                    let length = inside.find(sign).filter(|length| *length > 0)?;
                    Some((start, mark, &inside[..length], &inside[length + sign.len()..]))
                });
            let Some((start, mark, inside, behind)) = found.min_by_key(|(start, ..)| *start) else {
                break;
            };
            pieces.add(Mark::Plain, &rest[..start]);
            pieces.add(mark, inside);
            rest = behind;
        }
        pieces.add(Mark::Plain, rest);
        pieces
    }

    /// Appends a piece, unless it is empty.
    pub(crate) fn add(&mut self, mark: Mark, text: &str) {
        if !text.is_empty() || mark == Mark::Break {
            self.0.push((mark, text.to_owned()));
        }
    }

    pub(crate) fn words(&self) -> String {
        let word = |(mark, text): &(Mark, String)| match mark {
            Mark::Break => " ".to_owned(),
            _ => text.clone(),
        };
        self.0.iter().map(word).collect()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        if text.is_empty() { Text::default() } else { Text(vec![(Mark::Plain, text)]) }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        text.to_owned().into()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_out_and_what_is_not_closed_is_text() {
        use Mark::{Bold, Code, Plain};
        let cases: [(&str, &[(Mark, &str)]); 4] = [
            (
                "a **b** `c*d` e",
                &[(Plain, "a "), (Bold, "b"), (Plain, " "), (Code, "c*d"), (Plain, " e")],
            ),
            ("2 ** 3 is `open", &[(Plain, "2 ** 3 is `open")]),
            ("``", &[(Plain, "``")]),
            ("", &[]),
        ];
        for (text, pieces) in cases {
            let pieces = pieces.iter().map(|(mark, text)| (*mark, (*text).to_owned()));
            assert_eq!(Text::marked(text), Text(pieces.collect()));
        }
    }
}
