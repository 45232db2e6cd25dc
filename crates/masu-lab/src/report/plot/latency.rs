//! Latencies of a server: the times that half, most and nearly all of the requests waited.

use super::axis::Axis;
use super::{Rows, Screen};
use crate::statistics;
use masu_run::Run;
use masu_run::execute::Latencies;
use masu_run::quantity;

/// A share of the requests: its name, and the latency below which the requests lay.
type Share = (&'static str, fn(&Latencies) -> f64);

/// The shares in a burst, in their order.
pub(in crate::report) const LATENCIES: [Share; 5] = [
    ("p50", |it| it.p50),
    ("p90", |it| it.p90),
    ("p99", |it| it.p99),
    ("p99.9", |it| it.p999),
    ("max", |it| it.max),
];

pub(in crate::report) fn latency_median(
    variant: usize,
    share: fn(&Latencies) -> f64,
    runs: &[&Run],
) -> Option<f64> {
    let own = runs.iter().filter(|run| run.variant == variant);
    let values: Vec<f64> =
        own.filter_map(|run| Some(share(&run.burst?.latency_s?))).filter(|it| *it > 0.0).collect();
    statistics::median(&values)
}

/// The plot; none if no burst has latencies.
pub(in crate::report) fn latency(
    id: &str,
    labels: &[String],
    runs: &[&Run],
    screen: Screen,
) -> Option<String> {
    let medians: Vec<Vec<Option<f64>>> = (0..labels.len())
        .map(|variant| {
            LATENCIES.iter().map(|(_, share)| latency_median(variant, *share, runs)).collect()
        })
        .collect();
    let all = || medians.iter().flatten().flatten().copied();
    let (low, high) = (all().min_by(f64::total_cmp)?, all().max_by(f64::total_cmp)?);
    let air = (high / low).powf(0.05);
    let axis = Axis::logarithmic(low / air, high * air, screen.left() + 6.0, screen.right() - 10.0);
    let rows = Rows::new(labels.iter().map(String::as_str), 46.0, screen);
    let mut svg = rows.svg(0.0);
    rows.axis(&mut svg, &axis, quantity::seconds);
    for (variant, of_variant) in medians.iter().enumerate() {
        let y = rows.middle(variant) + 6.0;
        let places: Vec<(f64, &str)> = of_variant
            .iter()
            .zip(LATENCIES)
            .filter_map(|(median, (name, _))| Some((axis.at((*median)?), name)))
            .collect();
        if let (Some(first), Some(last)) = (places.first(), places.last()) {
            svg.line((first.0, y), (last.0, y), "thread");
        }
        let mut written = f64::NEG_INFINITY;
        for (x, name) in &places {
            svg.circle((*x, y), 4.0, "point plain");
            // A name that would overlap the one before is left out; the order shows which it is.
            if x - written > 34.0 {
                svg.text(*x, y - 9.0, "note", "middle", name);
                written = *x;
            }
        }
        let figure = |index: usize| of_variant[index].map(quantity::seconds);
        if let (Some(half), Some(nearly)) = (figure(0), figure(2)) {
            rows.figure(&mut svg, variant, (12.0, y - 7.0), 1, ("figure", &format!("p50 {half}")));
            let text = format!("p99 {nearly}");
            rows.figure(&mut svg, variant, (12.0, y + 8.0), 0, ("figure dim", &text));
        }
    }
    let description = "For each variant the latencies below which 50, 90, 99, 99.9 per cent and all \
         of the requests lay, on a logarithmic axis: medians over the bursts. The table of latencies \
         has the figures.";
    Some(svg.finish(id, "Latencies", description))
}
