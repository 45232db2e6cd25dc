//! The parts of a page as a report's file describes them: paragraphs, tables and plots of figures that have names.
//!
//! Relies on an experiment's [`Figures`], which gives measured figures by name and the rows of lists. A cell is a
//! unit and a figure, `time wall masu`, or a ratio of two, `ratio wall masu over wall system`; in a text a cell is in
//! braces. A part without any known figure is left out.

use serde::Deserialize;

use super::{Block, Figure, Series, Sheet, claim};
use crate::report::{self, Bar, Chart, Line, bytes, count, seconds};
use crate::statistics::Ratio;

/// A figure.
pub(super) enum Known {
    /// One value in each round.
    Runs(Series),
    /// A value counted or timed once; none where it is not known.
    Number(Option<f64>),
}

pub(super) trait Figures {
    /// The figure of this name; none where there is no such name.
    fn known(&self, name: &str) -> Option<Known>;

    /// The names in this list, with their labels.
    fn rows(&self, _list: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Whether nothing could be measured.
    fn is_empty(&self) -> bool {
        false
    }

    /// The values of `{name}` in texts.
    fn values(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The ratio of two figures of runs, round by round.
    fn ratio(&self, of: &str, over: &str) -> Option<Ratio> {
        match (self.known(of)?, self.known(over)?) {
            (Known::Runs(of), Known::Runs(over)) => of.over(&over),
            _ => None,
        }
    }

    /// Blocks that no file can describe.
    fn blocks(&self, _name: &str) -> Vec<Block> {
        Vec::new()
    }
}

/// A part of a page, with its contents in the order of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Part {
    /// A list for whose rows the part is repeated, each row's name in the place of `{each}`.
    each: String,
    /// A figure without which the part is left out.
    needs: String,
    text: String,
    bars: Vec<Bars>,
    lines: Vec<Lines>,
    tables: Vec<Grid>,
    points: Vec<String>,
    /// The name of blocks that the experiment's code makes.
    code: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bars {
    name: String,
    caption: String,
    rows: String,
    cell: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    name: String,
    caption: String,
    /// The label of the columns.
    across: String,
    rows: String,
    columns: String,
    cell: String,
    /// A text in the labels of the lines to highlight.
    ours: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Grid {
    caption: String,
    headings: Vec<String>,
    rows: String,
    /// A cell for each heading behind the first, or one for every row of the list `columns`.
    cells: Vec<String>,
    columns: String,
    /// Rows with cells of their own, in the place of a list: each a label and a cell for every column.
    items: Vec<[String; 2]>,
}

#[derive(Clone)]
pub(super) struct Shown<'a> {
    figures: &'a dyn Figures,
    values: Vec<(String, String)>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(figures: &'a dyn Figures) -> Shown<'a> {
        let values = figures.values().into_iter();
        let values = values.map(|(name, value)| (name.to_owned(), value)).collect();
        Shown { figures, values }
    }

    fn with(&self, name: &str, value: &str) -> Shown<'a> {
        let mut shown = self.clone();
        shown.values.push((name.to_owned(), value.to_owned()));
        shown
    }

    /// `text` with values in the place of their names.
    pub(super) fn put(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }

    fn rows(&self, list: &str) -> Vec<(String, String)> {
        self.figures.rows(&self.put(list))
    }

    fn known(&self, name: &str) -> Option<Known> {
        let known = self.figures.known(name);
        debug_assert!(known.is_some(), "there is no figure `{name}`");
        known
    }

    /// The figure's median or number, in seconds or bytes where it has a unit.
    fn number(&self, unit: &str, name: &str) -> Option<f64> {
        let number = match self.known(name)? {
            Known::Runs(series) => series.median(),
            Known::Number(number) => number,
        };
        number.map(|number| number * scale(unit))
    }

    /// The text of a cell; empty where nothing is known.
    fn cell(&self, cell: &str) -> String {
        let cell = self.put(cell);
        let Some((unit, of)) = cell.split_once(' ') else { return cell };
        let text = match of.split_once(" over ") {
            Some((of, over)) if unit == "ratio" => self.ratio(of, over),
            Some((of, over)) => self
                .number(unit, of)
                .zip(self.number(unit, over))
                .map(|(of, over)| written(unit)((of - over).max(0.0))),
            None => self.number(unit, of).map(|number| match (unit, self.known(of)) {
                ("ns", Some(Known::Runs(series))) => with_range(number, &series),
                _ => written(unit)(number),
            }),
        };
        text.unwrap_or_default()
    }

    fn ratio(&self, of: &str, over: &str) -> Option<String> {
        match (self.known(of)?, self.known(over)?) {
            (Known::Runs(own), _) if of == over => (!own.is_empty()).then(|| "1".to_owned()),
            (Known::Runs(_), Known::Runs(_)) => {
                self.figures.ratio(of, over).map(|ratio| claim::written(Some(&ratio)))
            }
            (Known::Number(of), Known::Number(over)) => {
                of.zip(over).map(|(of, over)| format!("×{}", report::ratio(of / over)))
            }
            _ => None,
        }
    }

    /// `text` with its figures; none where it has figures and none of them is known.
    pub(super) fn fill(&self, text: &str) -> Option<String> {
        let (text, mut filled) = (self.put(text), String::new());
        let (mut rest, mut any, mut known) = (text.as_str(), false, false);
        while let Some((before, inside)) = rest.split_once('{') {
            let Some((cell, behind)) = inside.split_once('}') else { break };
            let shown = self.cell(cell);
            any = true;
            known |= !shown.is_empty();
            filled.push_str(before);
            filled.push_str(if shown.is_empty() { "?" } else { &shown });
            rest = behind;
        }
        (known || !any).then(|| filled + rest)
    }

    pub(super) fn parts(&self, experiment: &str, parts: &[Part]) -> Vec<Block> {
        let mut blocks = Vec::new();
        for part in parts {
            if part.each.is_empty() {
                self.part(experiment, part, &mut blocks);
            }
            for (name, _) in self.rows(&part.each) {
                self.with("each", &name).part(experiment, part, &mut blocks);
            }
        }
        blocks
    }

    fn part(&self, experiment: &str, part: &Part, blocks: &mut Vec<Block>) {
        if self.figures.is_empty()
            || (!part.needs.is_empty() && self.number("", &self.put(&part.needs)).is_none())
        {
            return;
        }
        let text = self.fill(&part.text).filter(|text| !text.is_empty());
        blocks.extend(text.map(Block::marked));
        blocks.extend(part.bars.iter().filter_map(|bars| self.bars(experiment, bars)));
        blocks.extend(part.lines.iter().filter_map(|lines| self.lines(experiment, lines)));
        blocks.extend(part.tables.iter().filter_map(|table| self.table(table)).map(Block::Sheet));
        let points: Vec<String> = part.points.iter().filter_map(|text| self.fill(text)).collect();
        blocks.extend((!points.is_empty()).then(|| Block::points(points)));
        if !part.code.is_empty() {
            blocks.extend(self.figures.blocks(&part.code));
        }
    }

    fn bars(&self, experiment: &str, bars: &Bars) -> Option<Block> {
        let (unit, of) = bars.cell.split_once(' ')?;
        let bar = |(name, label): (String, String)| {
            let value = self.number(unit, &self.with("row", &name).put(of));
            Bar { label, value }
        };
        let all: Vec<Bar> = self.rows(&bars.rows).into_iter().map(bar).collect();
        all.iter().find(|bar| bar.value.is_some())?;
        let (name, caption) = (self.put(&bars.name), self.fill(&bars.caption)?);
        let id = format!("{experiment}-{name}");
        let svg = match unit {
            "bytes" => report::bars_of_bytes(&id, &caption, &all),
            _ => report::bars(&id, &caption, &all, written(unit)),
        };
        Some(Block::Figure(Figure { name, caption, svg, ..Figure::default() }))
    }

    fn lines(&self, experiment: &str, lines: &Lines) -> Option<Block> {
        let (unit, of) = lines.cell.split_once(' ')?;
        let columns = self.rows(&lines.columns);
        let line = |(name, label): (String, String)| {
            let row = self.with("row", &name);
            let point = |(column, _): &(String, String)| {
                self.number(unit, &row.with("column", column).put(of))
            };
            let points = columns.iter().map(point).collect();
            Line { is_ours: label.contains(&lines.ours), label, points }
        };
        let mut all: Vec<Line> = self.rows(&lines.rows).into_iter().map(line).collect();
        all.retain(|line| line.points.iter().any(Option::is_some));
        all.first()?;
        let (name, caption) = (self.put(&lines.name), self.fill(&lines.caption)?);
        let ticks: Vec<String> = columns.iter().map(|(_, label)| label.clone()).collect();
        let chart = Chart {
            title: &caption,
            across: &lines.across,
            ticks: &ticks,
            lines: &all,
            unit: written(unit),
        };
        let svg = report::lines(&format!("{experiment}-{name}"), &chart);
        Some(Block::Figure(Figure { name, caption, svg, ..Figure::default() }))
    }

    fn table(&self, table: &Grid) -> Option<Sheet> {
        let columns = self.rows(&table.columns);
        let cells = |row: &Shown<'_>, cells: &[String]| -> Vec<String> {
            match (cells, table.columns.is_empty()) {
                ([cell], false) => {
                    columns.iter().map(|(name, _)| row.with("column", name).cell(cell)).collect()
                }
                _ => cells.iter().map(|cell| row.cell(cell)).collect(),
            }
        };
        let listed = self.rows(&table.rows).into_iter();
        let listed =
            listed.map(|(name, label)| (label, cells(&self.with("row", &name), &table.cells)));
        let items = table.items.iter();
        let items =
            items.map(|[label, cell]| (label.clone(), cells(self, std::slice::from_ref(cell))));
        let known = listed.chain(items).filter(|(_, cells)| cells.iter().any(|it| !it.is_empty()));
        let rows: Vec<Vec<String>> =
            known.map(|(label, cells)| [vec![label], cells].concat()).collect();
        rows.first()?;
        let headings = table.headings.iter().map(|heading| self.put(heading));
        let headings = headings.chain(columns.iter().map(|(_, label)| label.clone()));
        Some(Sheet::new(self.fill(&table.caption)?, headings, rows))
    }
}

/// The seconds or bytes of a unit.
fn scale(unit: &str) -> f64 {
    match unit {
        "ms" => 1e-3,
        "us" => 1e-6,
        "kib" => 1024.0,
        _ => 1.0,
    }
}

/// The function that writes figures of a unit.
pub(super) fn written(unit: &str) -> fn(f64) -> String {
    match unit {
        "bytes" | "kib" => bytes,
        "count" => count,
        "rate" => |value| format!("{}/s", count(value)),
        "tenths" => |value| format!("{value:.1}"),
        "ns" => nanoseconds,
        _ => seconds,
    }
}

fn nanoseconds(value: f64) -> String {
    if value < 9.95 { format!("{value:.2} ns") } else { format!("{value:.1} ns") }
}

fn with_range(median: f64, series: &Series) -> String {
    let range = series.range().map(|(low, high)| format!(" ({low:.2}–{high:.2})"));
    format!("{}{}", nanoseconds(median), range.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of `a` twice as long as those of `b`, and a number.
    struct Made;

    impl Figures for Made {
        fn known(&self, name: &str) -> Option<Known> {
            let runs = |figure: f64| Known::Runs((0..8).map(|round| (round, figure)).collect());
            Some(match name {
                "wall a" | "wall like a" => runs(2.0),
                "wall b" => runs(1.0),
                "size a" => Known::Number(Some(3072.0)),
                "size b" => Known::Number(Some(1024.0)),
                "wall c" | "size c" => Known::Number(None),
                _ => return None,
            })
        }

        fn rows(&self, list: &str) -> Vec<(String, String)> {
            let names: &[&str] = if list == "all" { &["a", "b", "c"] } else { &[] };
            names.iter().map(|name| ((*name).to_owned(), format!("row {name}"))).collect()
        }

        fn values(&self) -> Vec<(&'static str, String)> {
            vec![("first", "a".to_owned())]
        }
    }

    fn parts(text: &str) -> Vec<Block> {
        #[derive(Deserialize)]
        struct File {
            now: Vec<Part>,
        }
        Shown::new(&Made).parts("made", &toml::from_str::<File>(text).unwrap().now)
    }

    #[test]
    fn cells_have_a_unit_and_ratios_an_interval() {
        let shown = Shown::new(&Made);
        for (cell, expected) in [
            ("time wall {first}", "2.00 s"),
            ("ms wall b", "1.00 ms"),
            ("bytes size a", "3.00 KiB"),
            ("bytes size a over size b", "2.00 KiB"),
            ("ratio wall a over wall b", "×2.00 (2.00–2.00)"),
            ("ratio wall a over wall a", "1"),
            ("ratio wall a over wall like a", "×1.000 (1.000–1.000)"),
            ("ratio size a over size b", "×3.00"),
            ("time wall c", ""),
            ("ratio wall c over wall a", ""),
        ] {
            assert_eq!(shown.cell(cell), expected, "{cell}");
        }
    }

    #[test]
    fn a_text_without_any_known_figure_is_left_out() {
        let shown = Shown::new(&Made);
        let filled = shown.fill("{time wall {first}}, not {time wall c}");
        assert_eq!(filled.as_deref(), Some("2.00 s, not ?"));
        assert_eq!(shown.fill("of {time wall c}"), None);
        assert_eq!(shown.fill("as it was").as_deref(), Some("as it was"));
    }

    #[test]
    fn parts_have_what_is_known_and_rows_of_nothing_are_left_out() {
        let blocks = parts(
            r#"
            [[now]]
            text = "Of {first}."
            bars = [{ name = "w", caption = "Walls", rows = "all", cell = "time wall {row}" }]
            tables = [{ caption = "T", headings = ["", "wall"], rows = "all", cells = ["time wall {row}"] }]
            [[now]]
            needs = "wall c"
            text = "not shown"
            [[now]]
            each = "all"
            points = ["{bytes size {each}}"]
            "#,
        );
        let [Block::Text(..), Block::Figure(figure), Block::Sheet(sheet), rest @ ..] = &blocks[..]
        else {
            panic!("{blocks:?}")
        };
        assert!(figure.svg.contains("not measured") && figure.name == "w");
        let labels: Vec<&str> = sheet.rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!((labels, rest.len()), (vec!["row a", "row b"], 2));
    }
}
