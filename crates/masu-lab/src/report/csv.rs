//! Each run as a line of comma-separated values.
//!
//! The columns are a promise: their names and order stay, and new ones come at the end. Times are in seconds, memory in
//! bytes; a value that a run does not have is empty. Quoting is that of RFC 4180, with `\n` at the end of a line.

use super::document::Document;
use crate::summary;
use crate::tables::{Source, Table};
use masu_run::{Ending, Run};

struct Line<'a> {
    source: &'a Source,
    table: &'a Table,
    run: &'a Run,
    /// The place of the run in the order in which the runs of its case were made, from 1.
    order: usize,
    counts: bool,
}

/// A column: its name, and a run's value for it.
type Column = (&'static str, fn(&Line<'_>) -> Option<String>);

/// COUPLING: docs/reading.md explains them; a test holds it against them.
const COLUMNS: [Column; 43] = [
    ("file", |it| it.source.file.clone()),
    ("began", |it| Some(it.source.header.began.clone())),
    ("cpu", |it| it.source.header.machine.cpu.clone()),
    ("suite", |it| it.source.header.suite.clone()),
    ("case", |it| Some(it.table.case.name.clone())),
    ("variant", |it| Some(it.table.case.variants.get(it.run.variant)?.label.clone())),
    ("version", |it| it.table.case.variants.get(it.run.variant)?.version.clone()),
    ("round", |it| it.run.round.map(text)),
    ("order", |it| Some(text(it.order))),
    ("counts", |it| Some(flag(it.counts))),
    ("ending", |it| Some(ending(&it.run.ending))),
    ("starved", |it| Some(flag(it.run.starved))),
    ("replaced", |it| Some(flag(it.run.replaced))),
    ("wall_s", |it| Some(text(it.run.wall_s))),
    ("user_s", |it| Some(text(it.run.user_s))),
    ("sys_s", |it| Some(text(it.run.sys_s))),
    ("peak_rss_bytes", |it| Some(text(it.run.peak_rss_bytes))),
    ("minor_faults", |it| Some(text(it.run.minor_faults))),
    ("major_faults", |it| Some(text(it.run.major_faults))),
    ("voluntary_switches", |it| Some(text(it.run.voluntary_switches))),
    ("involuntary_switches", |it| Some(text(it.run.involuntary_switches))),
    ("queued_s", |it| it.run.queued_s.map(text)),
    ("steal_s", |it| it.run.steal_s.map(text)),
    ("others_s", |it| it.run.others_s.map(text)),
    ("load", |it| it.run.load.map(text)),
    ("offset_bytes", |it| Some(text(it.run.offset_bytes))),
    ("requests", |it| it.run.burst?.requests.map(text)),
    ("errors", |it| Some(text(it.run.burst?.errors))),
    ("throughput_per_s", |it| it.run.burst?.throughput.map(text)),
    ("latency_p50_s", |it| Some(text(it.run.burst?.latency_s?.p50))),
    ("latency_p90_s", |it| Some(text(it.run.burst?.latency_s?.p90))),
    ("latency_p99_s", |it| Some(text(it.run.burst?.latency_s?.p99))),
    ("latency_p999_s", |it| Some(text(it.run.burst?.latency_s?.p999))),
    ("latency_max_s", |it| Some(text(it.run.burst?.latency_s?.max))),
    ("latency_rate_per_s", |it| it.run.burst?.latency_rate.map(text)),
    ("allocations_a_request", |it| it.run.burst?.allocations_a_request.map(text)),
    ("stdout_bytes", |it| Some(text(it.run.stdout.bytes))),
    ("stdout_hash", |it| Some(it.run.stdout.hash.clone())),
    ("stderr_bytes", |it| Some(text(it.run.stderr.bytes))),
    ("left_behind", |it| Some(it.run.left_behind.join("; "))),
    ("seed", |it| Some(text(it.source.header.seed))),
    ("masu_version", |it| Some(it.source.header.masu_version.clone())),
    ("command", |it| Some(it.table.command())),
];

pub(super) fn page(document: &Document) -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let mut page = names.join(",") + "\n";
    for source in &document.sources {
        for table in &source.tables {
            let mut valid = summary::valid(&table.runs).into_iter().peekable();
            for (index, run) in table.runs.iter().enumerate() {
                let counts = valid.next_if(|one| std::ptr::eq(*one, run)).is_some();
                let line = Line { source, table, run, order: index + 1, counts };
                let cells: Vec<String> = COLUMNS
                    .iter()
                    .map(|(_, value)| quoted(&value(&line).unwrap_or_default()))
                    .collect();
                page.push_str(&cells.join(","));
                page.push('\n');
            }
        }
    }
    page
}

fn text(value: impl ToString) -> String {
    value.to_string()
}

fn flag(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

/// `exited 0`, `signalled 9`: for filters, not for people.
fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Exited(code) => format!("exited {code}"),
        Ending::Signalled(signal) => format!("signalled {signal}"),
        Ending::TimedOut => "timed out".to_owned(),
        Ending::OutOfMemory { .. } => "out of memory".to_owned(),
        Ending::Stopped => "stopped".to_owned(),
    }
}

/// The value in quotation marks if it needs them, with its own quotation marks doubled.
fn quoted(value: &str) -> String {
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    /// The cells of a page without quoted ones.
    fn cells(page: &str) -> Vec<Vec<String>> {
        page.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_run_is_a_line_and_odd_labels_survive() {
        let mut document = fixtures::of_commands();
        document.sources[0].tables[0].case.variants[1].label = "a,\"b\"\nc;=1+1".to_owned();
        document.sources[0].tables[0].runs[4].ending = Ending::Signalled(11);
        // The quoting is that of RFC 4180.
        let rows = cells(&page(&document).replace("\"a,\"\"b\"\"\nc;=1+1\"", "odd"));
        assert_eq!(rows.len(), 61);
        assert!(rows.iter().all(|row| row.len() == COLUMNS.len()));
        let column = |name: &str| rows[0].iter().position(|it| it == name).unwrap();
        assert_eq!(rows[2][column("variant")], "odd");
        assert_eq!(rows[5][column("ending")], "signalled 11");
        assert_eq!((&*rows[5][column("counts")], &*rows[4][column("counts")]), ("no", "yes"));
        let wall_s: f64 = rows[1][column("wall_s")].parse().unwrap();
        assert!((wall_s - document.sources[0].tables[0].runs[0].wall_s).abs() < 1e-15);
        assert_eq!(rows[1][column("throughput_per_s")], "");
    }

    #[test]
    fn the_columns_are_explained_in_their_order() {
        let page = include_str!("../../../../docs/reading.md");
        let section = page.split("## The columns of CSV").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let first_cells = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let cells = first_cells.flat_map(|line| line.split(" |").next().unwrap().split(", "));
        let explained: Vec<&str> = cells.map(|cell| cell.trim_matches('`')).collect();
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        assert_eq!(explained, names);
    }

    #[test]
    fn a_servers_bursts_have_their_columns() {
        let rows = cells(&page(&fixtures::of_servers()));
        let column = rows[0].iter().position(|it| it == "latency_p999_s").unwrap();
        assert!(rows[1..].iter().all(|row| row[column].parse::<f64>().is_ok()));
    }
}
