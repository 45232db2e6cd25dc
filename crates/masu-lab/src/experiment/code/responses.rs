//! Response times as the report's table has them: percentiles down, ways of placing code across, and their plot.

use crate::experiment::format::milliseconds;
use crate::experiment::{Block, Figure, Series, Sheet};
use crate::report::{self, Chart, Line, seconds};

pub(super) const WAYS: [(&str, &str); 4] = [
    ("interpreter", "no JIT"),
    ("own", "one .so each"),
    ("single", "single .so"),
    ("arena", "code arena"),
];

const PERCENTILES: [&str; 8] = ["50", "66", "75", "80", "90", "95", "98", "100"];

/// A row of the table: `cell` says what stands under each way.
pub(super) fn row(heading: &str, cell: &dyn Fn(&str) -> String) -> Vec<String> {
    std::iter::once(heading.to_owned()).chain(WAYS.map(|(way, _)| cell(way))).collect()
}

/// The plot and the table: `of` has a way's figures of a key such as `p50`; `more` are rows below.
pub(super) fn blocks(
    name: &str,
    caption: &str,
    of: &dyn Fn(&str, &str) -> Series,
    more: Vec<Vec<String>>,
) -> [Block; 2] {
    let at = |way: &str, percentile: &str| of(way, &format!("p{percentile}"));
    let lines: Vec<Line> = WAYS
        .iter()
        .map(|(way, name)| Line {
            label: (*name).to_owned(),
            points: PERCENTILES
                .iter()
                .map(|percentile| at(way, percentile).median().map(|ms| ms / 1e3))
                .collect(),
            is_ours: *way == "arena",
        })
        .collect();
    let ticks = PERCENTILES.map(str::to_owned);
    let chart =
        Chart { title: caption, across: "percentile", ticks: &ticks, lines: &lines, unit: seconds };
    let svg = report::lines(&format!("code-{name}"), &chart);
    let figure = Figure { name: name.to_owned(), caption: caption.to_owned(), svg };
    let percentiles = PERCENTILES
        .iter()
        .map(|percentile| row(percentile, &|way| milliseconds(&at(way, percentile))));
    let headings = std::iter::once("percentile").chain(WAYS.map(|(_, name)| name));
    let rows = percentiles.chain(more).collect();
    let sheet = Sheet::new(format!("{caption}: medians over the runs"), headings, rows);
    [Block::Figure(figure), Block::Sheet(sheet)]
}
