//! Each run as a dot, with the median and the quartiles of each variant.
//!
//! Dots that would hide each other are moved up and down, always in the same way.

use super::axis::Axis;
use super::svg::Point;
use super::{Rows, Screen};
use crate::report::measure;
use crate::{Measure, statistics};
use masu_run::Run;

const DOT: f64 = 5.0;

/// The most dots by which a dot may move up or down.
const LANES: i32 = 4;

/// The plot of `of` for the runs that count, each with its variant's index into `labels`.
pub(in crate::report) fn distribution(
    id: &str,
    of: Measure,
    labels: &[String],
    runs: &[&Run],
    screen: Screen,
) -> Option<String> {
    let values = |variant: usize| -> Vec<f64> {
        let own = runs.iter().filter(|run| run.variant == variant);
        own.filter_map(|run| of.of(run)).collect()
    };
    let all: Vec<f64> = (0..labels.len()).flat_map(values).collect();
    let mut axis = axis(&all, screen.left() + 6.0, screen.right() - 10.0)?;
    if of == Measure::PeakRss {
        axis = axis.of_bytes();
    }
    let rows = Rows::new(labels.iter().map(String::as_str), 52.0, screen);
    let mut svg = rows.svg(0.0);
    rows.axis(&mut svg, &axis, |tick| measure::value(of, tick));
    if let Some(median) = statistics::median(&values(0)) {
        svg.line((axis.at(median), 4.0), (axis.at(median), rows.bottom()), "reference");
    }
    for variant in 0..labels.len() {
        let (values, middle) = (values(variant), rows.middle(variant));
        let quantile = |share| statistics::quantile(&values, share);
        let (Some(low), Some(median), Some(high)) = (quantile(0.25), quantile(0.5), quantile(0.75))
        else {
            rows.figure(&mut svg, variant, (12.0, middle + 4.0), 0, ("figure dim", "no runs"));
            continue;
        };
        let (start, end) = (axis.at(low), axis.at(high));
        svg.rect((start, middle - 21.0), ((end - start).max(1.0), 42.0), "quartiles");
        svg.dots(&swarm(&values, &axis, middle), "dots");
        let x = axis.at(median);
        svg.line((x, middle - 23.0), (x, middle + 23.0), "median");
        let text = measure::value(of, median);
        rows.figure(&mut svg, variant, (12.0, middle), 1, ("figure", &text));
        let text = format!("{} runs", values.len());
        rows.figure(&mut svg, variant, (12.0, middle + 15.0), 0, ("figure dim", &text));
    }
    let name = measure::name(of);
    let description = format!(
        "For each variant every run that counts as a dot over its {name}, with a line at the median \
         and a box from the lower to the upper quartile. The table of all measures has the figures."
    );
    Some(svg.finish(id, &format!("Distribution of {name}"), &description))
}

/// An axis over all of `values`, with a little space; none without values.
fn axis(values: &[f64], from: f64, to: f64) -> Option<Axis> {
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    // An empty range would make the last digit's noise look like a spread.
    let air = ((high - low) * 0.04).max(high.abs() * 0.002);
    Some(Axis::linear((low - air).max(0.0), high + air, from, to))
}

/// The places of the dots of `values`: each in the free lane nearest to the middle.
fn swarm(values: &[f64], axis: &Axis, middle: f64) -> Vec<Point> {
    let mut sorted: Vec<f64> = values.iter().map(|value| axis.at(*value)).collect();
    sorted.sort_by(f64::total_cmp);
    let lanes: Vec<i32> = (0..=LANES).flat_map(|lane| [lane, -lane]).skip(1).collect();
    let mut last = vec![f64::NEG_INFINITY; lanes.len()];
    let mut points = Vec::with_capacity(sorted.len());
    for (index, x) in sorted.into_iter().enumerate() {
        // If every lane is taken, dots overlap, spread over the lanes.
        let free = last.iter().position(|taken| x - taken >= DOT);
        let lane = free.unwrap_or(index % lanes.len());
        last[lane] = x;
        points.push((x, middle + f64::from(lanes[lane]) * DOT));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_do_not_hide_each_other_while_there_is_room() {
        let axis = Axis::linear(0.0, 100.0, 0.0, 100.0);
        let values: Vec<f64> = (0..40).map(|index| (index / 8) as f64 * 20.0 + 1.0).collect();
        let points = swarm(&values, &axis, 50.0);
        assert_eq!(points.len(), 40);
        for (index, one) in points.iter().enumerate() {
            for other in &points[..index] {
                let apart = (one.0 - other.0).hypot(one.1 - other.1);
                assert!(apart >= DOT - 1e-9, "{one:?} {other:?}");
            }
        }
        assert!(points.iter().all(|point| (point.1 - 50.0).abs() <= f64::from(LANES) * DOT));
    }
}
