//! A table of a record or a page, as Markdown.

use std::fmt::{Display, Formatter, Result};

#[derive(Debug, Clone, Copy)]
pub enum Cells {
    Figures,
    Words,
}

#[derive(Debug)]
pub struct Table(String);

impl Table {
    /// A table with these heads and no row.
    pub fn new(heads: impl IntoIterator<Item = impl Display>, cells: Cells) -> Table {
        let mut table = Table(String::new());
        let columns = table.row(heads);
        let side = match cells {
            Cells::Figures => "---:|",
            Cells::Words => "---|",
        };
        table.0.push_str(&format!("|---|{}\n", side.repeat(columns.saturating_sub(1))));
        table
    }

    /// Adds a row, and says how many cells it has. A line's end in a cell becomes a blank.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Display>) -> usize {
        self.0.push('|');
        let cells = cells.into_iter().map(|cell| {
            self.0.push_str(&format!(" {cell} |").replace('\n', " "));
        });
        let count = cells.count();
        self.0.push('\n');
        count
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.0)
    }
}
