//! The runs in the order of their rounds: whether they drift, jump or come in two kinds.

use super::axis::Axis;
use super::svg::Point;
use super::{LEFT, RIGHT, Rows, distribution, float};
use crate::report::measure;
use crate::{Measure, Run, statistics};

/// The plot of `of` over the rounds, one panel a variant, all with the same scale.
pub(in crate::report) fn drift(
    id: &str,
    of: Measure,
    labels: &[String],
    runs: &[&Run],
) -> Option<String> {
    const HEIGHT: f64 = 64.0;
    let all: Vec<f64> = runs.iter().filter_map(|run| of.of(run)).collect();
    let rounds = runs.iter().filter_map(|run| run.round).max()?.saturating_add(1);
    if rounds < 3 {
        return None;
    }
    let rows = Rows::new(labels.iter().map(String::as_str), HEIGHT);
    let mut svg = rows.svg(0.0);
    let across = Axis::linear(1.0, float(rounds), LEFT + 6.0, RIGHT - 10.0);
    let whole = |tick: f64| if tick.fract() == 0.0 { format!("{tick:.0}") } else { String::new() };
    rows.axis(&mut svg, &across, whole);
    svg.text(RIGHT + 12.0, rows.bottom() + 15.0, "note", "start", "round");
    let reference: Vec<f64> =
        runs.iter().filter(|run| run.variant == 0).filter_map(|run| of.of(run)).collect();
    for variant in 0..labels.len() {
        let (top, bottom) = (rows.top(variant) + 6.0, rows.top(variant) + rows.height - 6.0);
        let up = distribution::axis(&all, bottom, top)?;
        if let Some(median) = statistics::median(&reference) {
            svg.line((LEFT, up.at(median)), (RIGHT - 4.0, up.at(median)), "reference");
        }
        let own = runs.iter().filter(|run| run.variant == variant);
        let mut points: Vec<(Point, bool)> = own
            .filter_map(|run| {
                let place = (across.at(float(run.round?.saturating_add(1))), up.at(of.of(run)?));
                Some((place, run.starved))
            })
            .collect();
        points.sort_by(|one, other| one.0.0.total_cmp(&other.0.0));
        let line: Vec<Point> = points.iter().map(|(point, _)| *point).collect();
        svg.polyline(&line, "thread");
        svg.dots(&line, "dots small");
        for (point, _) in points.iter().filter(|(_, starved)| *starved) {
            svg.circle(*point, 5.0, "starved");
        }
        let (least, most) = ends(&all)?;
        svg.text(RIGHT + 12.0, top + 8.0, "figure dim", "start", &measure::value(of, most));
        svg.text(RIGHT + 12.0, bottom, "figure dim", "start", &measure::value(of, least));
        svg.line((LEFT, bottom + 6.0), (RIGHT - 4.0, bottom + 6.0), "grid");
    }
    let name = measure::name(of);
    let description = format!(
        "For each variant the {name} of its runs in the order of the rounds, all on one scale; the \
         dashed line is the reference's median. A run that waited long for a CPU has a ring. \
         masu report --format csv lists every run."
    );
    Some(svg.finish(id, &format!("{name} round by round"), &description))
}

fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    Some((least, values.iter().copied().max_by(f64::total_cmp)?))
}
