//! Resident memory over a run.
//!
//! Each variant is shown by the run whose primary measure is nearest to the median: a mean of curves would have a shape
//! that no run had.

use super::axis::Axis;
use super::svg::Point;
use super::{Rows, Screen};
use crate::{Measure, statistics};
use masu_run::Run;
use masu_run::quantity;

/// The run that stands for `variant`; none if no run has a curve.
pub(in crate::report) fn median_run<'a>(
    variant: usize,
    primary: Measure,
    runs: &[&'a Run],
) -> Option<&'a Run> {
    let own = runs.iter().filter(|run| run.variant == variant && run.rss_over_time.len() > 1);
    let own: Vec<(f64, &Run)> = own.filter_map(|run| Some((primary.of(run)?, *run))).collect();
    let values: Vec<f64> = own.iter().map(|(value, _)| *value).collect();
    let median = statistics::median(&values)?;
    let distance = |value: f64| (value - median).abs();
    own.into_iter()
        .min_by(|one, other| distance(one.0).total_cmp(&distance(other.0)))
        .map(|(_, run)| run)
}

/// The plot, one panel for each variant, all with the same scales; none if no run has a curve.
pub(in crate::report) fn memory(
    id: &str,
    primary: Measure,
    labels: &[String],
    runs: &[&Run],
    screen: Screen,
) -> Option<String> {
    let curves: Vec<Option<&Run>> =
        (0..labels.len()).map(|variant| median_run(variant, primary, runs)).collect();
    let points = || curves.iter().flatten().flat_map(|run| &run.rss_over_time);
    let time = points().map(|(seconds, _)| *seconds).max_by(f64::total_cmp)?;
    let most = points().map(|(_, bytes)| *bytes).max()?;
    let rows = Rows::new(labels.iter().map(String::as_str), 74.0, screen);
    let mut svg = rows.svg(0.0);
    let across = Axis::linear(0.0, time, screen.left() + 6.0, screen.right() - 10.0);
    rows.axis(&mut svg, &across, quantity::seconds);
    let curve = |run: &Run, up: &Axis| -> Vec<Point> {
        let place = |(seconds, bytes): &(f64, u64)| (across.at(*seconds), up.at(*bytes as f64));
        run.rss_over_time.iter().map(place).collect()
    };
    for (variant, run) in curves.iter().enumerate() {
        let (top, bottom) = (rows.top(variant) + 8.0, rows.top(variant) + rows.height - 4.0);
        let up = Axis::linear(0.0, most as f64, bottom, top);
        svg.line((screen.left(), bottom), (screen.right() - 4.0, bottom), "grid");
        let Some(run) = run else {
            rows.figure(&mut svg, variant, (12.0, bottom - 24.0), 0, ("figure dim", "not sampled"));
            continue;
        };
        let line = curve(run, &up);
        let mut area = line.clone();
        area.push((line[line.len() - 1].0, bottom));
        area.insert(0, (line[0].0, bottom));
        svg.polygon(&area, "area");
        if let Some(reference) = curves[0].filter(|_| variant > 0) {
            svg.polyline(&curve(reference, &up), "reference");
        }
        svg.polyline(&line, "curve");
        let text = format!("peak {}", quantity::bytes(largest(run) as f64));
        rows.figure(&mut svg, variant, (12.0, bottom - 32.0), 1, ("figure", &text));
        let text = format!("mean {}", quantity::bytes(mean(run)));
        rows.figure(&mut svg, variant, (12.0, bottom - 16.0), 0, ("figure dim", &text));
    }
    let description = "For each variant the resident memory of the process tree over time, in the run \
         whose primary measure lies nearest to the median, all on one scale that begins at 0; the \
         dashed line is the reference's. The figures are the largest sample and the mean over time.";
    Some(svg.finish(id, "Resident memory over time", description))
}

/// The largest sample of the run's resident bytes.
pub(in crate::report) fn largest(run: &Run) -> u64 {
    run.rss_over_time.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)
}

/// The mean of the run's resident bytes over time. The last sample would say less: a program gives all memory back at
/// its end.
pub(in crate::report) fn mean(run: &Run) -> f64 {
    let steps = || run.rss_over_time.windows(2);
    let area: f64 = steps()
        .map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 as f64 + pair[1].1 as f64) / 2.0)
        .sum();
    let time: f64 = steps().map(|pair| pair[1].0 - pair[0].0).sum();
    if time > 0.0 { area / time } else { largest(run) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn the_mean_is_over_time_and_not_over_samples() {
        let rss_over_time = vec![(0.0, 0), (1.0, 100), (9.0, 100)];
        let run = Run { rss_over_time, ..Run::default() };
        assert!((mean(&run) - 850.0 / 9.0).abs() < 1e-9);
        assert_eq!(largest(&run), 100);
    }

    #[test]
    fn the_run_nearest_to_the_median_stands_for_its_variant() {
        let runs: Vec<Run> =
            [1.0, 9.0, 2.0].iter().map(|times| fixtures::run(0, 0, *times)).collect();
        let runs: Vec<&Run> = runs.iter().collect();
        assert_eq!(median_run(0, Measure::Wall, &runs), Some(runs[2]));
        assert_eq!(median_run(1, Measure::Wall, &runs), None);
    }
}
