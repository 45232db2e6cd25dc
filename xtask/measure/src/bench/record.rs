//! The dated record: the commit that was measured, the machine, its load, and the tables.
//!
//! It relies on `table.rs`. Others read a record later, so it includes the facts without which the figures mean
//! little, and it names neither hosts nor paths.

use masu_lab::statistics::{self, Measure};
use masu_lab::{Run, Totals};

use super::figures::Figures;
use super::table::ALL_PEERS;
use super::{Bench, table};
use crate::machine_facts::MachineFacts;
use xtask::benchmarks::MEMORY_ONLY;
use xtask::records::{load, today};

const WORK: &str = "CPU milliseconds (user and system) / page faults in thousands";

const READING: &str = include_str!("reading.md");

pub(super) fn text(bench: &Bench) -> String {
    let [patterns, programs] =
        [&bench.patterns, &bench.programs].map(|figures| figures.iter().collect::<Vec<&Figures>>());
    let subject = match (patterns.is_empty(), programs.is_empty()) {
        (false, true) => "Patterns",
        (true, false) => "Programs",
        _ => "Patterns and programs",
    };
    let mut text = format!("# {subject} under every malloc, {}\n\n", today());
    text.push_str(&machine(bench));
    if !patterns.is_empty() {
        text.push_str(&of_patterns(&patterns, bench.smallest.as_ref()));
    }
    if !programs.is_empty() {
        text.push_str(&of_programs(&programs, &bench.asked));
    }
    text.push_str(&format!("\n## How to read this\n\n{READING}"));
    text
}

fn of_patterns(patterns: &[&Figures], smallest: Option<&Figures>) -> String {
    let untimed = MEMORY_ONLY.join("` and `");
    [
        format!("\n## Patterns in short\n\n{}\n", table::verdicts(patterns)),
        format!(
            "\nWall time, geometric mean relative to the first column (without `{untimed}`, whose figure \
             is memory):\n\n{}",
            table::means(patterns, Measure::Wall)
        ),
        format!("\nPeak RSS, likewise:\n\n{}", table::means(patterns, Measure::PeakRss)),
        format!("\n## Patterns: wall time\n\n{}", table::ratios(patterns, Measure::Wall, ALL_PEERS)),
        format!("\n## Patterns: over the floor\n\n{}", table::floors(patterns)),
        format!("\n## Patterns: peak RSS, MB\n\n{}", table::memory(patterns, smallest)),
        format!("\n## Patterns: {WORK}\n\n{}", table::work(patterns)),
    ]
    .concat()
}

fn of_programs(programs: &[&Figures], asked: &[Totals]) -> String {
    [
        format!("\n## Programs in short\n\n{}\n", table::verdicts(programs)),
        format!("\nWall time, geometric mean:\n\n{}", table::means(programs, Measure::Wall)),
        format!("\nPeak RSS, likewise:\n\n{}", table::means(programs, Measure::PeakRss)),
        format!(
            "\nWhat they ask for, counted in a run apart:\n\n{}",
            table::asked(programs, asked)
        ),
        format!(
            "\n## Programs: wall time\n\n{}",
            table::ratios(programs, Measure::Wall, ALL_PEERS)
        ),
        format!("\n## Programs: peak RSS, MB\n\n{}", table::memory(programs, None)),
        format!("\n## Programs: {WORK}\n\n{}", table::work(programs)),
    ]
    .concat()
}

fn machine(bench: &Bench) -> String {
    let MachineFacts { cpu, cpus, architecture, memory, system, .. } = MachineFacts::here();
    let mallocs = bench.variants.iter().map(|variant| match &variant.version {
        Some(version) => format!("{} {version}", variant.label),
        None => variant.label.clone(),
    });
    let seeds: Vec<String> = bench.seeds.iter().map(|seed| format!("seed {seed}")).collect();
    let minutes = (bench.took_s / 60.0).ceil();
    let facts = [
        format!(
            "made by `{}` at {}, in {minutes} min: {} rounds, {}",
            bench.command,
            bench.commit,
            bench.rounds,
            seeds.join(" and ")
        ),
        format!("mallocs: {}", mallocs.collect::<Vec<_>>().join(", ")),
        format!("machine: {cpu}, {cpus} CPUs, {memory}, {architecture}"),
        format!("system: {system}; the C library is the first malloc's"),
        busyness(bench),
        format!(
            "peak RSS below {} may be that of the lab's copy which became the program; the kernel counts it \
             in steps of about 0.13 MB",
            hidden(bench)
        ),
    ];
    facts.map(|fact| format!("- {fact}\n")).concat()
}

fn busyness(bench: &Bench) -> String {
    // Only programs of one thread, because the threads of others may wait for the program itself.
    let single =
        bench.patterns.iter().chain(&bench.programs).filter(|one| one.pattern.threads == 1);
    let runs: Vec<&Run> = single.flat_map(|one| &one.runs).collect();
    let shares: Vec<f64> = runs.iter().filter_map(|run| queued_share(run)).collect();
    let waited = match statistics::median(&shares) {
        Some(share) => format!("{:.1} % (median)", share * 100.0),
        None => "an unknown part".to_owned(),
    };
    format!(
        "busy: load {} before, {} after; runs of one thread waited for a CPU {waited} of the time they \
         wanted one, {} of {} for more than a tenth",
        bench.load_before,
        load(),
        runs.iter().filter(|run| run.starved).count(),
        runs.len()
    )
}

fn queued_share(run: &Run) -> Option<f64> {
    let queued_s = run.queued_s?;
    Some(queued_s / (queued_s + run.user_s + run.sys_s))
}

/// The peak RSS in MB below which no measurement is certain, as the lab's runs report it.
fn hidden(bench: &Bench) -> String {
    let all = bench.patterns.iter().chain(&bench.smallest).chain(&bench.programs);
    let runs = all.flat_map(|one| &one.runs);
    let floor = runs.filter_map(|run| run.rss_floor_bytes).max();
    floor.map_or("an unknown size".to_owned(), |bytes| format!("{:.2} MB", bytes as f64 / 1e6))
}
