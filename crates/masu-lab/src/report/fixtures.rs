//! Made-up comparisons for tests: the same on every machine, with every measure that a run can have.

use super::document::Document;
use crate::page::{Form, Page};
use crate::results::{Case, Rounds, SCHEMA_VERSION};
use crate::statistics::Look;
use crate::summary::summarize;
use crate::tables::{Extent, Source, Table};
use crate::{Header, Measure};
use masu_run::execute::{Burst, Latencies};
use masu_run::{Machine, Run, Variant};

/// A machine that does not exist.
pub(crate) fn machine(cpu: &str) -> Machine {
    Machine {
        cpu: Some(cpu.to_owned()),
        architecture: "x86_64".to_owned(),
        cpus: 8,
        memory_bytes: Some(32 << 30),
        kernel: Some("6.18.0".to_owned()),
        system: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        huge_pages: Some("madvise".to_owned()),
        governor: None,
        host_takes_free_memory: false,
    }
}

pub(crate) fn header(cases: Vec<Case>) -> Header {
    Header {
        schema_version: SCHEMA_VERSION,
        masu_version: "0.1.0".to_owned(),
        began: "2026-11-20T10:00:00Z".to_owned(),
        suite: None,
        cases,
        rounds: Rounds::Fixed(20),
        seed: 4711,
        machine: machine("Made-Up 9000"),
        decide: None,
        asked: Vec::new(),
        files: Vec::new(),
    }
}

pub(crate) fn variant(label: &str) -> Variant {
    let allocator = label.split(':').next().unwrap_or_default();
    Variant {
        label: label.to_owned(),
        allocator: allocator.to_owned(),
        version: Some("1.2".to_owned()),
        library: (allocator != "glibc").then(|| format!("/lib/lib{allocator}.so").into()),
        ..Variant::default()
    }
}

pub(crate) fn a_case(name: &str, labels: &[&str], primary: Measure) -> Case {
    Case {
        name: name.to_owned(),
        command: vec![name.to_owned(), "--with".to_owned(), "two words".to_owned()],
        variants: labels.iter().map(|label| variant(label)).collect(),
        primary,
        ..Case::default()
    }
}

/// A number between -1 and 1 that seems random and is not.
fn noise(variant: usize, round: usize) -> f64 {
    let bytes = [variant.to_le_bytes(), round.to_le_bytes()].concat();
    let drawn = u32::try_from(xxhash_rust::xxh3::xxh3_64(&bytes) % 2001).unwrap_or(0);
    f64::from(drawn) / 1000.0 - 1.0
}

/// A run of a command that takes `times` as long as the reference.
pub(crate) fn run(variant: usize, round: usize, times: f64) -> Run {
    let wall_s = 1.2 * times * (1.0 + 0.01 * noise(variant, round));
    let peak = (40e6 * times) as u64;
    let rss = |step: u64| (wall_s * step as f64 / 10.0, peak * step.min(6) / 6);
    Run {
        variant,
        round: Some(round),
        wall_s,
        user_s: wall_s * 0.9,
        sys_s: wall_s * 0.05 * (1.0 + 0.3 * noise(round, variant)),
        peak_rss_bytes: peak,
        minor_faults: 10_000 + round as u64,
        voluntary_switches: 12,
        rss_over_time: (0..=10).map(rss).collect(),
        ..Run::default()
    }
}

/// The same run as a burst on a server.
pub(crate) fn burst(variant: usize, round: usize, times: f64) -> Run {
    let mut run = run(variant, round, times);
    let median = 0.0004 * times;
    run.burst = Some(Burst {
        requests: Some(20_000),
        throughput: Some(24_000.0 / run.wall_s),
        latency_s: Some(Latencies {
            p50: median,
            p90: median * 1.5,
            p99: median * 4.0,
            p999: median * 11.0,
            max: median * 40.0,
        }),
        allocations_a_request: Some(31.0),
        ..Burst::default()
    });
    run
}

/// Twenty rounds in which every further variant takes 5 % less.
pub(crate) fn rounds(variants: usize, make: fn(usize, usize, f64) -> Run) -> Vec<Run> {
    let of_round = |round| {
        (0..variants).map(move |variant| {
            let steps = i32::try_from(variant).unwrap_or(0);
            make(variant, round, 0.95_f64.powi(steps))
        })
    };
    (0..20).flat_map(of_round).collect()
}

pub(crate) fn table(case: Case, runs: Vec<Run>) -> Table {
    let summary = summarize(&case.labels(), case.primary, Look::ONLY, &runs);
    Table { case, evidence: Vec::new(), runs, summary, extent: Extent::Whole }
}

pub(crate) fn source(tables: Vec<Table>) -> Source {
    let cases = tables.iter().map(|table| table.case.clone()).collect();
    Source { file: Some("runs.jsonl".to_owned()), header: header(cases), tables }
}

/// The page as the terminal shows it, without its styles.
pub(crate) fn plain(page: &Page) -> String {
    anstream::adapter::strip_str(&page.render(Form::Text, "")).to_string()
}

/// The tree of a page for a browser, which is well-formed.
#[track_caller]
pub(crate) fn parsed(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(page, options).unwrap()
}

pub(crate) fn elements(tree: &roxmltree::Document<'_>, name: &str) -> usize {
    tree.descendants().filter(|it| it.tag_name().name() == name).count()
}

pub(crate) fn document(tables: Vec<Table>) -> Document {
    Document { sources: vec![source(tables)], notes: Vec::new() }
}

pub(crate) fn of_commands() -> Document {
    let case = a_case("job", &["glibc", "masu", "jemalloc"], Measure::Wall);
    document(vec![table(case, rounds(3, run))])
}

pub(crate) fn of_servers() -> Document {
    let case = a_case("server", &["glibc", "masu"], Measure::Throughput);
    document(vec![table(case, rounds(2, burst))])
}
