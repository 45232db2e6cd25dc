//! Ratios with their intervals, one in each row: the plot that carries the verdicts.
//!
//! The axis is logarithmic: half and double are equally far from 1. An interval that leaves out 1 is filled and
//! colored, others are hollow and gray. An interval that reaches far beyond all estimates ends in an arrow.

use super::axis::Axis;
use super::{NOTES, Rows, Screen};
use crate::Measure;
use crate::report::measure;
use crate::statistics::{Ratio, Side};
use masu_run::quantity;

#[derive(Debug, Clone)]
pub(in crate::report) struct Interval {
    pub(in crate::report) label: String,
    /// The ratio; none for the reference and for variants without runs.
    pub(in crate::report) ratio: Option<Ratio>,
    /// The words in place of a ratio.
    pub(in crate::report) instead: &'static str,
}

/// The ratio of the largest end to the smallest from which on the widest interval would hide the others.
const WIDE: f64 = 4.0;

/// The plot of `rows`, all ratios of `of` to the reference.
pub(in crate::report) fn intervals(
    id: &str,
    of: Measure,
    rows: &[Interval],
    screen: Screen,
) -> String {
    let places = Rows::new(rows.iter().map(|row| row.label.as_str()), 30.0, screen);
    let mut svg = places.svg(NOTES);
    let axis = axis(rows, screen);
    places.axis(&mut svg, &axis, |tick| format!("×{}", trimmed(tick)));
    let bottom = places.bottom();
    svg.line((axis.at(1.0), 2.0), (axis.at(1.0), bottom), "one");
    let (less, more) =
        if of.is_better_larger() { ("worse", "better") } else { ("better", "worse") };
    svg.text(axis.start(), bottom + 31.0, "note", "start", &format!("◂ {less}"));
    svg.text(axis.end(), bottom + 31.0, "note", "end", &format!("{more} ▸"));
    for (index, row) in rows.iter().enumerate() {
        let y = places.middle(index);
        let Some(ratio) = &row.ratio else {
            places.figure(&mut svg, index, (12.0, y + 4.0), 0, ("figure dim", row.instead));
            continue;
        };
        let class = class(of.side(ratio));
        if let Some((low, high)) = ratio.interval {
            bar(&mut svg, &axis, (low, high), y, class);
        }
        svg.circle((axis.at(ratio.estimate), y), 5.0, &format!("point {class}"));
        let text = format!("×{}", quantity::ratio(ratio.estimate));
        let class = format!("figure {class}");
        places.figure(&mut svg, index, (12.0, y + 4.0), 1, (&class, &text));
        let text = ratio.interval.map_or_else(
            || "no interval".to_owned(),
            |(low, high)| format!("{}–{}", quantity::ratio(low), quantity::ratio(high)),
        );
        places.figure(&mut svg, index, (66.0, y + 4.0), 0, ("figure dim", &text));
    }
    let name = measure::name(of);
    let description = format!(
        "For each variant the ratio of its {name} to the reference's, with its interval, on a \
         logarithmic axis with a line at 1. The table of all measures has the same figures."
    );
    svg.finish(id, &format!("Ratios of {name}"), &description)
}

pub(super) fn class(side: Side) -> &'static str {
    match side {
        Side::Better => "better",
        Side::Worse => "worse",
        Side::Open => "open",
    }
}

/// The interval as a bar, with an arrow at an end that lies beyond the axis.
fn bar(svg: &mut super::Svg, axis: &Axis, (low, high): (f64, f64), y: f64, class: &str) {
    let (start, end) = (axis.at(low).max(axis.start()), axis.at(high).min(axis.end()));
    svg.line((start, y), (end, y), &format!("bar {class}"));
    for (is_beyond, x, inwards) in [(low < axis.low(), start, 7.0), (high > axis.high(), end, -7.0)]
    {
        if is_beyond {
            let arrow = [(x, y), (x + inwards, y - 5.0), (x + inwards, y + 5.0)];
            svg.polygon(&arrow, &format!("arrow {class}"));
        } else {
            svg.line((x, y - 4.0), (x, y + 4.0), &format!("bar {class}"));
        }
    }
}

/// An axis over 1, every estimate, and every interval that is not far beyond them.
fn axis(rows: &[Interval], screen: Screen) -> Axis {
    let ratios: Vec<&Ratio> = rows.iter().filter_map(|row| row.ratio.as_ref()).collect();
    let ends = ratios.iter().filter_map(|ratio| ratio.interval).flat_map(|(low, high)| [low, high]);
    let (mut low, mut high) = (0.99_f64, 1.01_f64);
    for ratio in &ratios {
        (low, high) = (low.min(ratio.estimate), high.max(ratio.estimate));
    }
    let (least, most) =
        ends.fold((low, high), |(least, most), end| (least.min(end), most.max(end)));
    if most / least > WIDE {
        (low, high) = (least.max(low / 1.5), most.min(high * 1.5));
    } else {
        (low, high) = (least, most);
    }
    // A little space, so that no mark touches an edge.
    let air = (high / low).powf(0.04);
    Axis::logarithmic(low / air, high * air, screen.left(), screen.right() - 10.0)
}

/// A tick without zeros at its end: `0.95`, `1`, `20`.
fn trimmed(tick: f64) -> String {
    let text = quantity::ratio(tick);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
