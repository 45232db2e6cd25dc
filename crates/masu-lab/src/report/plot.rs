//! Plots as SVG, without script, font or network.
//!
//! Every plot has the same frame: a row for each variant, its label on the left, its figure on the right, one axis. Any
//! number of variants fits, and the only colors say better and worse. Classes instead of colors let the page's style
//! fit them to light, dark and paper. For a phone each plot is drawn a second time, narrow: there labels and figures
//! stand above their rows.

mod axis;
mod bars;
mod distribution;
mod flame;
mod intervals;
mod latency;
mod lines;
mod memory;
mod svg;

pub(crate) use bars::bars_of_bytes;
pub use bars::{Bar, bars};
pub(super) use distribution::distribution;
pub(super) use flame::{flame, heap};
pub(super) use intervals::{Interval, intervals};
pub(super) use latency::{LATENCIES, latency, latency_median};
pub use lines::{Chart, Line, lines};
pub(super) use memory::{largest, mean, median_run, memory};
pub use svg::standalone;

use axis::Axis;
use svg::Svg;

const WIDTH: f64 = 760.0;

/// The end of the labels, at which the axis begins, and the end of the axis, at which the figures begin.
const LEFT: f64 = 200.0;
const RIGHT: f64 = 600.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    Wide,
    Narrow,
}

impl Screen {
    fn width(self) -> f64 {
        match self {
            Screen::Wide => WIDTH,
            Screen::Narrow => 372.0,
        }
    }

    /// The start of the axis.
    fn left(self) -> f64 {
        match self {
            Screen::Wide => LEFT,
            Screen::Narrow => 6.0,
        }
    }

    /// The end of the axis, with a little space after it.
    fn right(self) -> f64 {
        match self {
            Screen::Wide => RIGHT,
            Screen::Narrow => self.width() + 2.0,
        }
    }
}

const LINE: f64 = 15.0;

/// Room below the rows for the axis, and for a line of notes below it.
const BELOW: f64 = 24.0;
const NOTES: f64 = 14.0;

/// The width of a letter of a tick's name.
const TICK_LETTER: f64 = 6.0;

/// The number of characters that fit into a line of a label.
const LABEL_CHARACTERS: usize = 25;

/// The width of a figure on a narrow screen.
const FIGURE: f64 = 82.0;

const LABEL_LINES: usize = 3;

struct Rows {
    labels: Vec<Vec<String>>,
    height: f64,
    /// Room above each row for its label and figures.
    above: f64,
    screen: Screen,
}

impl Rows {
    /// One row a label, each `height` high unless its label needs more.
    fn new<'a>(labels: impl Iterator<Item = &'a str>, height: f64, screen: Screen) -> Rows {
        let labels: Vec<Vec<String>> = labels.map(wrapped).collect();
        let lines = height_of(labels.iter().map(Vec::len).max().unwrap_or(1));
        let (height, above) = match screen {
            Screen::Wide => (height.max(lines + 6.0), 0.0),
            Screen::Narrow => (height, lines + 4.0),
        };
        Rows { labels, height, above, screen }
    }

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn top(&self, index: usize) -> f64 {
        8.0 + self.above + (self.height + self.above) * index as f64
    }

    fn middle(&self, index: usize) -> f64 {
        self.top(index) + self.height / 2.0
    }

    fn bottom(&self) -> f64 {
        self.top(self.len()) - self.above
    }

    /// The extents of lines across the rows, from top to bottom: the lines do not cross labels.
    fn spans(&self) -> Vec<(f64, f64)> {
        match self.screen {
            Screen::Wide => vec![(4.0, self.bottom())],
            Screen::Narrow => {
                let span = |row| (self.top(row), self.top(row) + self.height);
                (0..self.len()).map(span).collect()
            }
        }
    }

    /// The line of the label's last part; a narrow plot has the figures on it.
    fn line_above(&self, index: usize) -> f64 {
        self.top(index) - 5.0
    }

    /// A figure of the row: beside it at the height `y`, `from` the left end of the figures; on a narrow screen above
    /// it, far enough from the right end that the `behind` figures after it have room.
    fn figure(
        &self,
        svg: &mut Svg,
        index: usize,
        (from, y): (f64, f64),
        behind: usize,
        (class, text): (&str, &str),
    ) {
        match self.screen {
            Screen::Wide => svg.text(RIGHT + from, y, class, "start", text),
            Screen::Narrow => {
                let x = self.screen.width() - 4.0 - FIGURE * behind as f64;
                svg.text(x, self.line_above(index), class, "end", text);
            }
        }
    }

    /// An empty plot with the labels in place, and `notes` more room below the axis.
    fn svg(&self, notes: f64) -> Svg {
        let mut svg = Svg::new(self.screen.width(), self.bottom() + BELOW + notes);
        for (index, lines) in self.labels.iter().enumerate() {
            let (x, first, anchor) = match self.screen {
                Screen::Wide => {
                    let first = self.middle(index) - height_of(lines.len()) / 2.0 + LINE - 4.0;
                    (LEFT - 14.0, first, "end")
                }
                Screen::Narrow => (
                    self.screen.left(),
                    self.line_above(index) - height_of(lines.len() - 1),
                    "start",
                ),
            };
            for (line, text) in lines.iter().enumerate() {
                svg.text(x, first + height_of(line), "label", anchor, text);
            }
        }
        svg
    }

    /// The axis below the rows, with a faint line through them at each tick.
    fn axis(&self, svg: &mut Svg, axis: &Axis, name: impl Fn(f64) -> String) {
        let bottom = self.bottom();
        let mut free = f64::NEG_INFINITY;
        for (tick, name) in axis.named(name) {
            let x = axis.at(tick);
            for (top, bottom) in self.spans() {
                svg.line((x, top), (x, bottom), "grid");
            }
            let half = TICK_LETTER * name.chars().count() as f64 / 2.0;
            // A name that would overlap the one before is left out.
            if x - half >= free {
                svg.text(x, bottom + 15.0, "tick", "middle", &name);
                free = x + half + TICK_LETTER;
            }
        }
        svg.line((axis.start(), bottom), (axis.end(), bottom), "axis");
    }
}

fn height_of(lines: usize) -> f64 {
    LINE * lines as f64
}

/// A label in lines that fit, broken behind the punctuation of variants if possible. A label that does not fit is cut
/// in the middle, because the page's tables have all of it.
fn wrapped(label: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest: Vec<char> = crate::page::visible(label).chars().collect();
    while !rest.is_empty() {
        let end =
            rest.iter().position(|c| crate::page::ends_part(*c)).map_or(rest.len(), |at| at + 1);
        let part: Vec<char> = rest.drain(..end.min(LABEL_CHARACTERS)).collect();
        let last = lines.last_mut().expect("there is always one line");
        if last.chars().count() + part.len() <= LABEL_CHARACTERS {
            last.extend(part);
        } else {
            lines.push(part.into_iter().collect());
        }
    }
    shortened(lines)
}

/// The first line and the last ones with a sign between: a path says most at its end.
fn shortened(lines: Vec<String>) -> Vec<String> {
    let Some(over) = lines.len().checked_sub(LABEL_LINES).filter(|over| *over > 0) else {
        return lines;
    };
    let mut kept: Vec<String> = lines
        .into_iter()
        .enumerate()
        .filter(|(index, _)| *index == 0 || *index > over)
        .map(|(_, line)| line)
        .collect();
    let cut = kept[1].chars().count().saturating_sub(LABEL_CHARACTERS - 1);
    kept[1] = format!("…{}", kept[1].chars().skip(cut).collect::<String>());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ticks_do_not_overlap() {
        let rows = Rows::new(["a"].into_iter(), 10.0, Screen::Narrow);
        let axis = Axis::logarithmic(1e-9, 1.0, rows.screen.left(), rows.screen.right());
        let mut svg = rows.svg(0.0);
        rows.axis(&mut svg, &axis, |tick| format!("×{}", masu_run::quantity::ratio(tick)));
        let text = svg.finish("a", "", "");
        let tree = roxmltree::Document::parse(&text).unwrap();
        let ticks = tree.descendants().filter(|it| it.attribute("class") == Some("tick"));
        let places: Vec<f64> =
            ticks.map(|tick| tick.attribute("x").unwrap().parse().unwrap()).collect();
        // The shortest names that can stand beside each other have six letters.
        assert!(places.len() >= 3, "{text}");
        assert!(places.windows(2).all(|it| it[1] - it[0] > 6.0 * TICK_LETTER), "{text}");
    }

    #[test]
    fn a_label_breaks_where_a_variant_can_be_read_on() {
        assert_eq!(wrapped("masu"), ["masu"]);
        let lines = wrapped("glibc:top_pad=64M,trim_threshold=64M");
        assert_eq!(lines, ["glibc:top_pad=64M,", "trim_threshold=64M"]);
        let path =
            wrapped("/opt/some/where/very/deep/inside/a/big/file/system/lib/libmymalloc-2.so");
        assert_eq!(path, ["/opt/some/where/very/", "…system/lib/", "libmymalloc-2.so"]);
        let long = wrapped(&format!("a:{}", "x".repeat(200)));
        assert_eq!(long.len(), LABEL_LINES);
        assert!(long.iter().all(|line| line.chars().count() <= LABEL_CHARACTERS), "{long:?}");
    }
}
