//! The name, the format and the judgement of each measure in a report, and the choice of measures for a table.
//!
//! A table has room for five measures: the primary one with its interval, and four others.

use crate::Measure;
use crate::results::Summary;
use masu_run::quantity;

/// The measures beside the primary measure of a command, as far as there is room.
const OF_COMMANDS: [Measure; 5] =
    [Measure::Wall, Measure::User, Measure::Sys, Measure::PeakRss, Measure::MinorFaults];

const OF_SERVERS: [Measure; 5] = [
    Measure::Throughput,
    Measure::LatencyP50,
    Measure::LatencyP99,
    Measure::CpuPerRequest,
    Measure::PeakRss,
];

/// The measures that a table of `summary` shows: the primary one, then up to four others that some run has.
pub(super) fn shown(summary: &Summary) -> Vec<Measure> {
    let is_there = |measure: &Measure| {
        let mut estimates = summary.rows.iter().filter_map(|row| row.estimate(*measure));
        estimates.any(|estimate| estimate.median.is_some())
    };
    let is_server = Measure::ALL.iter().any(|measure| measure.is_of_servers() && is_there(measure));
    let usual = if is_server { OF_SERVERS } else { OF_COMMANDS };
    let others = usual.into_iter().filter(|measure| *measure != summary.primary);
    let others = others.filter(is_there).take(4);
    std::iter::once(summary.primary).chain(others).collect()
}

/// A column's heading of at most ten characters, the name in a sentence, and how a figure is written.
type Words = (&'static str, &'static str, fn(f64) -> String);

fn words(measure: Measure) -> Words {
    use quantity::{bytes, count, rate, seconds};
    match measure {
        Measure::Wall => ("wall", "wall-clock time", seconds),
        Measure::User => ("user", "CPU time in the program", seconds),
        Measure::Sys => ("sys", "CPU time in the kernel", seconds),
        Measure::PeakRss => ("peak RSS", "peak resident memory", bytes),
        Measure::MinorFaults => ("faults", "page faults", count),
        Measure::MajorFaults => ("disk flts", "page faults that read from disk", count),
        Measure::Switches => ("switches", "context switches", count),
        Measure::Cpu => ("CPU", "CPU time", seconds),
        Measure::Throughput => ("answers/s", "answers a second", rate),
        Measure::LatencyP50 => ("p50", "median latency", seconds),
        Measure::LatencyP99 => ("p99", "latency of the 99th percentile", seconds),
        Measure::LatencyP999 => ("p99.9", "latency of the 99.9th percentile", seconds),
        Measure::CpuPerRequest => ("CPU/req", "CPU time a request", seconds),
    }
}

pub(super) fn heading(measure: Measure) -> &'static str {
    words(measure).0
}

pub(super) fn name(measure: Measure) -> &'static str {
    words(measure).1
}

pub(super) fn value(measure: Measure, figure: f64) -> String {
    words(measure).2(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_fits_its_column() {
        for measure in Measure::ALL {
            assert!(heading(measure).len() < 10, "{measure:?}");
        }
    }
}
