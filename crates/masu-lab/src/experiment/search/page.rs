//! The page: what the author saw, what this machine shows, and what masu changes.

use super::claims::{self, REFERENCE, THEN, over};
use super::{Measured, scaling, standing};
use crate::experiment::field_report::FieldReport;
use crate::experiment::format::{malloc, memory, time};
use crate::experiment::series::row;
use crate::experiment::{Block, Figure, Outcome, Series, Sheet, claim};
use crate::report::{self, Bar, Chart, Line, count, seconds};
use crate::results::Row;
use crate::statistics::{PAIRS_MIN, median};
use crate::tables::Table;
use crate::{Measure, Variant};

pub(super) const REPORT: &str = include_str!("../../../experiments/reports/search.toml");

/// Everything on the page.
pub(super) fn outcome(measured: &Measured, diagnosis: Vec<Block>) -> Outcome {
    let report = FieldReport::parse(REPORT);
    let claims = claims::of(&report, measured);
    let mut now = Vec::new();
    if let Some(table) = &measured.solr {
        now.extend(solr(table, measured.size.documents));
    }
    if let Some(table) = &measured.mariadb {
        now.extend(mariadb(table));
    }
    if let Some(table) = &measured.scaling {
        now.extend(scaled(table));
    }
    let mut outcome = report.outcome(claims, &figures(measured));
    for command in &mut outcome.by_hand {
        let size = measured.size;
        *command = command.replace("INDEX", &size.index()).replace("HEAP", size.heap);
    }
    Outcome { now, diagnosis, change: change(measured), ..outcome }
}

/// The figures of the verdict's sentence: those of Solr, where there are any.
fn figures(measured: &Measured) -> String {
    let figures = measured.solr.as_ref().map(|table| {
        let queries = Series::of(table, row(table, REFERENCE, &[]), Measure::Throughput);
        // One burst, which may have been starved, is no headline.
        let is_enough = queries.len() >= PAIRS_MIN;
        let queries = queries.median().filter(|_| is_enough).map_or("?".to_owned(), count);
        let others = THEN.iter().filter_map(|(malloc, then)| {
            let ratio = over(table, malloc, Measure::Throughput)?;
            Some(format!("{} under {malloc} (theirs {then})", claim::written(Some(&ratio))))
        });
        let others: Vec<String> = others.collect();
        let documents = count(float(measured.size.documents));
        let others = if others.is_empty() { "no other malloc".to_owned() } else { others.join(", ") };
        format!(
            "over {documents} documents Solr answers {queries} queries a second under glibc (theirs 2,849), {others}"
        )
    });
    figures.unwrap_or_default()
}

fn solr(table: &Table, documents: usize) -> Vec<Block> {
    let mut text = format!(
        "Solr 9.8.1, one shard with two replicas and ZooKeeper in a process for each malloc, {} documents, all servers warm side by \
         side and loaded in turns; a burst asks first back to back on 8 connections",
        count(float(documents))
    );
    match latency_rate(table) {
        Some(rate) => text.push_str(&format!(
            ", then {} queries a second, whether answered or not: latencies are of that half.",
            count(rate)
        )),
        None => text.push('.'),
    }
    if let Some(allocations) = allocations(table) {
        text.push_str(&format!(
            " A query makes {allocations:.1} calls for memory of malloc, the virtual machine's compiler included; what Solr itself \
             allocates lies in Java's own heap, which malloc has no part in."
        ));
    }
    let bars = |name: &str, caption: &str, measure| {
        let bar = |index: usize, variant: &Variant| Bar {
            label: malloc(variant),
            value: Series::of(table, Some(index), measure).median(),
        };
        let variants = table.case.variants.iter().enumerate();
        let bars: Vec<Bar> = variants.map(|(index, variant)| bar(index, variant)).collect();
        let id = format!("search-{name}");
        let svg = match measure {
            Measure::PeakRss => report::bars_of_bytes(&id, caption, &bars),
            _ => report::bars(&id, caption, &bars, a_second),
        };
        Block::Figure(Figure { name: name.to_owned(), caption: caption.to_owned(), svg })
    };
    let mut blocks = vec![
        Block::marked(text),
        bars("solr", "Solr: queries answered in a second, back to back", Measure::Throughput),
        bars(
            "solr-memory",
            "Solr: memory of a warm server, Java's heap included",
            Measure::PeakRss,
        ),
        Block::Sheet(answers(table)),
        Block::Sheet(costs(table)),
        verdicts(table),
    ];
    blocks.extend(doubts(table));
    blocks
}

/// What the servers answer and how soon.
fn answers(table: &Table) -> Sheet {
    let headings = ["malloc", "queries/s", "× glibc", "p50", "p90", "p99", "p99.9"];
    let rows = table.case.variants.iter().enumerate().map(|(index, variant)| {
        let of = |measure| Series::of(table, Some(index), measure);
        let p90 = Series::by(table, Some(index), |run| Some(run.burst?.latency_s?.p90));
        vec![
            malloc(variant),
            of(Measure::Throughput).median().map(count).unwrap_or_default(),
            claim::written(over(table, &variant.label, Measure::Throughput).as_ref()),
            time(&of(Measure::LatencyP50)),
            time(&p90),
            time(&of(Measure::LatencyP99)),
            time(&of(Measure::LatencyP999)),
        ]
    });
    Sheet::new(format!("Solr: medians of {}", bursts(table)), headings, rows.collect())
}

fn costs(table: &Table) -> Sheet {
    let headings = ["malloc", "CPU a query", "× glibc", "memory", "× glibc"];
    let rows = table.case.variants.iter().enumerate().map(|(index, variant)| {
        let of = |measure| Series::of(table, Some(index), measure);
        let times = |measure| claim::written(over(table, &variant.label, measure).as_ref());
        vec![
            malloc(variant),
            time(&of(Measure::CpuPerRequest)),
            times(Measure::CpuPerRequest),
            memory(&of(Measure::PeakRss)),
            times(Measure::PeakRss),
        ]
    });
    Sheet::new("Solr: what a query costs the server, in the same bursts", headings, rows.collect())
}

fn mariadb(table: &Table) -> Vec<Block> {
    let text = "MariaDB of this distribution, asked by sysbench (oltp_read_only, 8 connections) on the same machine: a burst is \
                so many transactions, and its time is the figure.";
    let headings = ["malloc", "a burst", "× glibc", "CPU", "× glibc", "memory", "× glibc"];
    let rows = table.case.variants.iter().enumerate().map(|(index, variant)| {
        let of = |measure| Series::of(table, Some(index), measure);
        let times = |measure| claim::written(over(table, &variant.label, measure).as_ref());
        vec![
            malloc(variant),
            time(&of(Measure::Wall)),
            times(Measure::Wall),
            time(&of(Measure::Cpu)),
            times(Measure::Cpu),
            memory(&of(Measure::PeakRss)),
            times(Measure::PeakRss),
        ]
    });
    let caption = format!("MariaDB: medians of {}", bursts(table));
    let mut blocks = vec![
        Block::marked(text),
        Block::Sheet(Sheet::new(caption, headings, rows.collect())),
        verdicts(table),
    ];
    blocks.extend(doubts(table));
    blocks
}

fn scaled(table: &Table) -> Vec<Block> {
    let mut mallocs: Vec<&Variant> = Vec::new();
    for variant in &table.case.variants {
        if mallocs.iter().all(|known| known.allocator_text() != variant.allocator_text()) {
            mallocs.push(variant);
        }
    }
    let median = |variant: &Variant, threads| {
        let index = row(table, &variant.allocator_text(), &[("threads", threads)]);
        Series::of(table, index, Measure::Wall).median()
    };
    let line = |variant: &&Variant| Line {
        label: malloc(variant),
        points: scaling::THREADS.into_iter().map(|threads| median(variant, threads)).collect(),
        is_ours: variant.allocator == "masu",
    };
    let lines: Vec<Line> = mallocs.iter().map(line).collect();
    let caption = "2 million malloc and free a thread: wall time by the number of threads";
    let ticks = scaling::THREADS.map(str::to_owned);
    let chart =
        Chart { title: caption, across: "threads", ticks: &ticks, lines: &lines, unit: seconds };
    let svg = report::lines("search-scaling", &chart);
    let figure = Figure { name: "scaling".to_owned(), caption: caption.to_owned(), svg };
    let rows = lines.iter().map(|line| {
        let cell = |point: &Option<f64>| point.map(seconds).unwrap_or_default();
        std::iter::once(line.label.clone()).chain(line.points.iter().map(cell)).collect()
    });
    let headings =
        std::iter::once("malloc".to_owned()).chain(scaling::THREADS.map(|threads| match threads {
            "1" => "1 thread".to_owned(),
            more => format!("{more} threads"),
        }));
    let sheet = Sheet::new(format!("{caption}; medians"), headings, rows.collect());
    vec![Block::Figure(figure), Block::Sheet(sheet)]
}

/// What masu changes: how it stands against the best of the others.
fn change(measured: &Measured) -> Vec<Block> {
    let mut points = Vec::new();
    let tables = [
        (
            &measured.solr,
            "Solr",
            [
                ("queries a second", Measure::Throughput),
                ("memory", Measure::PeakRss),
                ("p99 at the rate", Measure::LatencyP99),
            ],
        ),
        (
            &measured.mariadb,
            "MariaDB",
            [
                ("time of a burst", Measure::Wall),
                ("memory", Measure::PeakRss),
                ("CPU time", Measure::Cpu),
            ],
        ),
    ];
    for (table, server, measures) in tables {
        let Some(table) = table else { continue };
        for (what, measure) in measures {
            let Some(standing) = standing::of(table, measure) else { continue };
            points.push(standing::sentence(&format!("{server}, {what}"), measure, &standing));
        }
    }
    if points.is_empty() {
        return Vec::new();
    }
    let text = "The aim is memory of the least and throughput no worse than the best, whichever that is here. Malloc's part in \
                such a server is small, so hardly a difference is to be had.";
    vec![Block::marked(text), Block::points(points)]
}

fn verdicts(table: &Table) -> Block {
    let summary = &table.summary;
    let rows = table.case.variants.iter().zip(&summary.rows);
    let as_point = |(variant, row): (&Variant, &Row)| {
        format!("{}: {}", malloc(variant), report::verdict(row, summary.primary))
    };
    Block::points(rows.map(as_point))
}

/// What may mislead, as the engine says it.
fn doubts(table: &Table) -> Option<Block> {
    let warnings = &table.summary.warnings;
    (!warnings.is_empty()).then(|| Block::points(warnings.clone()))
}

/// How many bursts a median rests on.
fn bursts(table: &Table) -> String {
    let fewest = table.summary.rows.iter().map(|row| row.valid_runs).min().unwrap_or(0);
    let most = table.summary.rows.iter().map(|row| row.valid_runs).max().unwrap_or(0);
    let number = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let confidence = table.summary.confidence * 100.0;
    format!("{number} bursts; intervals hold together with {confidence:.0} %")
}

/// Requests a second in the half of the bursts that latencies are of.
fn latency_rate(table: &Table) -> Option<f64> {
    table.runs.iter().find_map(|run| run.burst?.latency_rate)
}

/// Calls for memory a request.
fn allocations(table: &Table) -> Option<f64> {
    let known = table.runs.iter().filter_map(|run| run.burst?.allocations_a_request);
    median(&known.collect::<Vec<f64>>())
}

fn a_second(value: f64) -> String {
    format!("{}/s", count(value))
}

fn float(documents: usize) -> f64 {
    documents as f64
}

#[cfg(test)]
mod tests {
    use super::super::Size;
    use super::super::claims::tests::{scaled as made_scaled, servers};
    use super::*;
    use crate::experiment::Agreement;
    use crate::page::{Form, Page};

    fn measured() -> Measured {
        let solr = servers(&[("glibc", 1.0), ("tcmalloc", 0.9), ("jemalloc", 0.9), ("masu", 0.85)]);
        let size = Size { documents: 20_000, heap: "512m" };
        let scaling = Some(made_scaled([2.0, 4.0, 8.0, 16.0], [1.0, 1.0, 2.0, 4.0]));
        Measured { cpus: 2, size, solr: Some(solr), mariadb: None, scaling }
    }

    fn text(blocks: &[Block]) -> String {
        let page = Page { blocks: blocks.to_vec(), ..Page::default() };
        page.render(Form::Markdown, "search").replace('\\', "")
    }

    #[test]
    fn without_anything_the_page_is_made_and_nothing_is_decided() {
        let outcome = outcome(&Measured::default(), Vec::new());
        assert_eq!(outcome.verdict.agreement, Agreement::Undecided);
        assert!(outcome.now.is_empty() && outcome.change.is_empty());
        assert_eq!(outcome.then.len(), 2);
    }

    #[test]
    fn the_verdict_names_today_s_figures_beside_the_author_s() {
        let outcome = outcome(&measured(), Vec::new());
        let sentence = &outcome.verdict.sentence;
        assert_eq!(outcome.verdict.agreement, Agreement::Full);
        assert!(
            sentence.contains("over 20,000 documents") && sentence.contains("theirs 2,849"),
            "{sentence}"
        );
        assert!(sentence.contains("under tcmalloc (theirs ×1.10)"), "{sentence}");
        assert!(!sentence.contains("vespamalloc"), "{sentence}");
    }

    #[test]
    fn every_malloc_has_its_row_and_its_verdict() {
        let outcome = outcome(&measured(), Vec::new());
        let now = text(&outcome.now);
        assert!(now.contains("20,000 documents") && now.contains("31.0 calls for memory"), "{now}");
        for malloc in ["glibc 1.2", "tcmalloc 1.2", "jemalloc 1.2", "masu 1.2"] {
            assert!(now.contains(malloc), "{malloc} is not in {now}");
        }
        assert!(now.contains("the reference") && now.contains("× the answers a second"), "{now}");
        for name in ["solr", "solr-memory", "scaling"] {
            assert!(now.contains(&format!("(search-{name}.svg)")), "{now}");
        }
    }

    #[test]
    fn masu_is_held_against_the_best() {
        let change = text(&outcome(&measured(), Vec::new()).change);
        assert!(
            change.contains("Solr, queries a second") && change.contains("masu is better"),
            "{change}"
        );
        assert!(!change.contains("MariaDB"), "{change}");
    }
}
