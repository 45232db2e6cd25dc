//! What came of an experiment, as its pages show it: text, tables and plots, each in its place.

pub(crate) mod claim;

use crate::Machine;
pub use claim::{Agreement, Claim, Expect, Held, Verdict};

/// Everything that a page shows.
#[derive(Debug, Clone)]
pub struct Page {
    /// The experiment's name.
    pub name: String,
    /// The heading.
    pub title: String,
    /// When it was made, in UTC.
    pub date: String,
    /// The machine.
    pub machine: Machine,
    /// What of the machine limits the figures.
    pub limits: Vec<String>,
    /// What was missing, and what to do.
    pub missing: Vec<Missing>,
    /// What came of it.
    pub outcome: Outcome,
}

/// A part that could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is not in the figures for it.
    pub what: String,
    /// Why, and what to do.
    pub reason: String,
}

/// What came of an experiment.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Whether today's machine agrees with the author, in one sentence.
    pub verdict: Verdict,
    /// What the author saw then.
    pub then: Vec<Block>,
    /// What this machine shows now.
    pub now: Vec<Block>,
    /// The author's claims, each held against today's figures.
    pub claims: Vec<Claim>,
    /// What the lab says unaided of the slow configuration.
    pub diagnosis: Vec<Block>,
    /// What masu changes.
    pub change: Vec<Block>,
    /// Every command to do it by hand.
    pub by_hand: Vec<String>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Points, one a line.
    List(Vec<String>),
    /// A table.
    Sheet(Sheet),
    /// A plot.
    Figure(Figure),
}

/// A table; the first cell of a row is its heading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    /// What it shows, with the unit.
    pub caption: String,
    /// The headings of all columns, the first one's among them.
    pub headings: Vec<String>,
    /// The rows; an empty cell is shown as a dash.
    pub rows: Vec<Vec<String>>,
}

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// A word that no other plot of the page has: part of its file's name.
    pub name: String,
    /// What it shows, with the unit.
    pub caption: String,
    /// The drawing, as [`report::lines`](crate::report::lines) and [`report::bars`](crate::report::bars) make it.
    pub svg: String,
}

impl Outcome {
    /// Every plot of the page.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        let blocks = [&self.then, &self.now, &self.diagnosis, &self.change];
        blocks.into_iter().flatten().filter_map(|block| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        })
    }
}

impl Sheet {
    /// A table of these rows.
    pub fn new<H: Into<String>>(
        caption: impl Into<String>,
        headings: impl IntoIterator<Item = H>,
        rows: Vec<Vec<String>>,
    ) -> Sheet {
        let headings = headings.into_iter().map(Into::into).collect();
        Sheet { caption: caption.into(), headings, rows }
    }

    /// A table as a report printed it: columns are separated by `|`, rows by line ends.
    pub(crate) fn printed(caption: &str, headings: &str, rows: &str) -> Sheet {
        let cells = |line: &str| -> Vec<String> {
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let rows = rows.lines().filter(|line| !line.trim().is_empty()).map(cells).collect();
        Sheet::new(caption, cells(headings), rows)
    }
}

impl Figure {
    /// The name of its file beside the Markdown page of `experiment`.
    pub(crate) fn file(&self, experiment: &str) -> String {
        format!("{experiment}-{}.svg", self.name)
    }
}
