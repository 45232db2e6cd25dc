//! Lines over a few steps (workers, functions, percentiles), each with its name at its end.
//!
//! Names that would overlap are moved apart, in the order of the lines' ends, and a thin line leads from each to its
//! end: no legend is needed.

use super::WIDTH;
use super::axis::Axis;
use super::svg::{Point, Svg};
use masu_run::quantity::clipped;

#[derive(Debug, Clone)]
pub struct Chart<'a> {
    pub title: &'a str,
    /// The meaning of the steps.
    pub across: &'a str,
    pub(crate) ticks: &'a [String],
    pub lines: &'a [Line],
    /// Puts a figure into words.
    pub unit: fn(f64) -> String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub label: String,
    /// The figure for each step; none if it was not measured.
    pub points: Vec<Option<f64>>,
    /// Whether the line is drawn so that it stands out.
    pub is_ours: bool,
}

const LEFT: f64 = 76.0;
const RIGHT: f64 = 540.0;
const TOP: f64 = 16.0;
const HEIGHT: f64 = 300.0;
const BELOW: f64 = 44.0;

/// The least distance between the base lines of two names.
const APART: f64 = 14.0;

/// Characters of a name that fit beside the plot.
const NAME: usize = 30;

/// The plot; the axis of the figures is logarithmic if they span a wide range. `id` must be unique in a page.
pub fn lines(id: &str, chart: &Chart<'_>) -> String {
    // Every name has a place, however many names there are.
    let bottom = TOP + HEIGHT.max(APART * chart.lines.len() as f64);
    let mut svg = Svg::new(WIDTH, bottom + BELOW);
    let axis = axis(chart.lines, bottom);
    for (tick, name) in axis.named(chart.unit) {
        let y = axis.at(tick);
        svg.line((LEFT, y), (RIGHT, y), "grid");
        svg.text(LEFT - 8.0, y + 4.0, "tick", "end", &name);
    }
    let step = (RIGHT - LEFT - 40.0) / chart.ticks.len().saturating_sub(1).max(1) as f64;
    let x = |index: usize| LEFT + 20.0 + step * index as f64;
    for (index, tick) in chart.ticks.iter().enumerate() {
        svg.line((x(index), bottom), (x(index), bottom + 4.0), "axis");
        svg.text(x(index), bottom + 18.0, "tick", "middle", tick);
    }
    svg.line((LEFT, bottom), (RIGHT, bottom), "axis");
    svg.text((LEFT + RIGHT) / 2.0, bottom + 36.0, "note", "middle", chart.across);
    let mut ends: Vec<(f64, Point, &Line)> = Vec::new();
    for line in chart.lines {
        let points: Vec<Point> = line
            .points
            .iter()
            .enumerate()
            .filter_map(|(index, value)| Some((x(index), axis.at(positive(*value)?))))
            .collect();
        let Some(last) = points.last() else { continue };
        svg.polyline(&points, if line.is_ours { "curve ours" } else { "curve" });
        for point in &points {
            svg.circle(*point, 3.5, if line.is_ours { "point better" } else { "point plain" });
        }
        ends.push((last.1, *last, line));
    }
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (y, (from, line)) in apart(&ends, bottom) {
        svg.line((from.0 + 5.0, from.1), (RIGHT + 14.0, y), "thread");
        let class = if line.is_ours { "figure better" } else { "figure" };
        svg.text(RIGHT + 18.0, y + 4.0, class, "start", &clipped(&line.label, NAME));
    }
    let description = "A line for each name over the steps below; the table has the same figures.";
    svg.finish(id, chart.title, description)
}

/// A figure that a logarithmic axis can show.
fn positive(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value > 0.0)
}

/// An axis over all figures.
fn axis(lines: &[Line], bottom: f64) -> Axis {
    let all = || lines.iter().flat_map(|line| &line.points).filter_map(|value| positive(*value));
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(0.0_f64, f64::max);
    if high <= 0.0 {
        return Axis::linear(0.0, 1.0, bottom, TOP);
    }
    if high / low > 4.0 {
        let air = (high / low).powf(0.04);
        Axis::logarithmic(low / air, high * air, bottom, TOP)
    } else {
        Axis::linear(0.0, high * 1.04, bottom, TOP)
    }
}

/// The places of the lines' names, in the order of the lines' ends: as near to the ends as possible without an overlap.
fn apart<'a>(ends: &[(f64, Point, &'a Line)], bottom: f64) -> Vec<(f64, (Point, &'a Line))> {
    let mut places: Vec<f64> = Vec::new();
    for (wanted, _, _) in ends {
        let least = places.last().map_or(TOP, |last| last + APART);
        places.push(wanted.max(least));
    }
    // A name that ran over the bottom moves up again, and pushes the names above it.
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - APART;
    }
    places.into_iter().zip(ends.iter().map(|(_, point, line)| (*point, *line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, points: &[f64]) -> Line {
        let points = points.iter().map(|value| Some(*value)).collect();
        Line { label: label.to_owned(), points, is_ours: label == "masu" }
    }

    #[test]
    fn every_line_has_its_name_and_no_name_lies_on_another() {
        let mut made: Vec<Line> = (0..29).map(|n| line(&format!("m{n}"), &[1.0, 2.0])).collect();
        made.push(line("masu", &[0.1, 0.2]));
        made.push(line("nothing", &[]));
        let ticks = ["1", "2"].map(str::to_owned);
        let chart = Chart {
            title: "seconds",
            across: "workers",
            ticks: &ticks,
            lines: &made,
            unit: |value| format!("{value} s"),
        };
        let text = lines("x", &chart);
        let tree = roxmltree::Document::parse(&text).unwrap();
        let mut places: Vec<f64> = tree
            .descendants()
            .filter(|it| it.attribute("class").is_some_and(|class| class.starts_with("figure")))
            .map(|it| it.attribute("y").unwrap().parse().unwrap())
            .collect();
        assert_eq!(places.len(), 30);
        places.sort_by(f64::total_cmp);
        assert!(places[0] >= TOP, "{places:?}");
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= APART - 0.2), "{places:?}");
        assert!(text.contains("curve ours"));
    }

    #[test]
    fn a_chart_of_nothing_is_still_one() {
        let chart =
            Chart { title: "", across: "", ticks: &[], lines: &[], unit: |_| String::new() };
        assert!(roxmltree::Document::parse(&lines("x", &chart)).is_ok());
    }
}
