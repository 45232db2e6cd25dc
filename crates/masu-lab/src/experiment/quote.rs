//! `quote`: a parallel line quoter gets slower with more threads (Rust, 2022).
//!
//! Relies on cargo for the published xquo 0.2.3 and on the tree for what it is held against. The hard idea: all programs
//! and all numbers of workers are rows of one table, so that they take turns and every claim is about pairs of
//! neighbouring runs.

mod made;

use super::build::Built;
use super::field_report::{FieldReport, Today};
use super::format::{self, time};
use super::series::row;
use super::{Block, Experiment, Figure, Outcome, Series, Sheet, Workbench, claim};
use crate::report::{self, Chart, Line, bytes, count, seconds};
use crate::tables::Table;
use crate::{Error, Measure, Variant};

const REPORT: &str = include_str!("../../experiments/reports/quote.toml");
const SUITE: &str = include_str!("../../experiments/quote.toml");

/// The programs and their features; those of the second half are for musl.
const PROGRAMS: [(&str, &[&str]); 6] = [
    ("gnu", &[]),
    ("gnu-masu", &["masu"]),
    ("gnu-jemalloc", &["jemalloc"]),
    ("musl", &[]),
    ("musl-masu", &["masu"]),
    ("musl-jemalloc", &["jemalloc"]),
];

pub(super) const QUOTE: Experiment = Experiment {
    name: "quote",
    about: "More threads make a parallel quoter slower",
    title: "A parallel quoter: more threads, more waiting for malloc",
    takes: ["2 min", "5 min", "20 min", "2 h"],
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<Outcome, Error> {
    let Some(made) = made::prepare(bench)? else {
        return Ok(outcome(&Measured::default(), Vec::new()));
    };
    let suite = made::suite(bench, &made)?;
    let comparison = bench.compare(&suite, "runs")?;
    let mut diagnosis = Vec::new();
    if made.has("gnu") {
        let program = made.folder.join("gnu");
        let words = [program.to_str().unwrap_or("gnu"), "4"];
        let what = "xquo with 4 workers, as it is";
        diagnosis = bench.diagnosis(what, &words, Some(&made.records))?;
    }
    let tables = comparison.map(|comparison| comparison.tables).unwrap_or_default();
    let workers = made::workers(bench).iter().map(ToString::to_string).collect();
    let measured = Measured { built: made.built, tables, workers, count: made::records(bench) };
    Ok(outcome(&measured, diagnosis))
}

#[derive(Default)]
struct Measured {
    built: Vec<Built>,
    tables: Vec<Table>,
    workers: Vec<String>,
    count: u64,
}

impl Measured {
    fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.case.name == name)
    }

    fn wall(&self, table: &str, variant: &str, values: &[(&str, &str)]) -> Series {
        let Some(table) = self.table(table) else { return Series::default() };
        Series::of(table, row(table, variant, values), Measure::Wall)
    }

    /// The wall time of a program that is linked with its malloc.
    fn linked(&self, program: &str, workers: &str) -> Series {
        self.wall("linked", "system", &[("program", program), ("workers", workers)])
    }

    fn preloaded(&self, malloc: &str, workers: &str) -> Series {
        self.wall("gnu", malloc, &[("workers", workers)])
    }

    fn built(&self, name: &str) -> Option<&Built> {
        self.built.iter().find(|built| built.name == name)
    }

    fn last(&self) -> &str {
        self.workers.last().map_or("1", String::as_str)
    }

    /// Every configuration with its wall time by number of workers.
    fn rows(&self) -> Vec<(String, Vec<Series>)> {
        let mut rows = Vec::new();
        let by_workers = |of: &dyn Fn(&str) -> Series| -> Vec<Series> {
            self.workers.iter().map(|workers| of(workers)).collect()
        };
        for (program, _) in PROGRAMS {
            rows.push((name(program), by_workers(&|workers| self.linked(program, workers))));
        }
        for malloc in self.table("gnu").map(mallocs).unwrap_or_default() {
            let label = format!("gnu under {}", format::malloc(malloc));
            let malloc = malloc.allocator_text();
            rows.push((label, by_workers(&|workers| self.preloaded(&malloc, workers))));
        }
        rows.retain(|(_, series)| series.iter().any(|one| !one.is_empty()));
        rows
    }
}

/// The mallocs of a table, the system's left out: a row of each.
fn mallocs(table: &Table) -> Vec<&Variant> {
    let mut once: Vec<&Variant> = Vec::new();
    for variant in &table.case.variants {
        let text = variant.allocator_text();
        if text != "system" && !once.iter().any(|known| known.allocator_text() == text) {
            once.push(variant);
        }
    }
    once
}

/// `musl-masu` in words.
fn name(program: &str) -> String {
    program.replace('-', " + ")
}

/// What was measured for a claim: `gnu 2` over `gnu 1`, or `gnu-jemalloc build` over `gnu build`.
fn today(measured: &Measured, of: &str, over: &str) -> Option<Today> {
    let ((program, what), (other, same)) = (of.split_once(' ')?, over.split_once(' ')?);
    let (figure, unit): (fn(&Built) -> f64, _) = match what {
        "build" => (|built| built.seconds, seconds as fn(f64) -> String),
        "size" => (|built| built.bytes as f64, bytes),
        workers => {
            let [one, other] = [measured.linked(program, workers), measured.linked(other, same)];
            return Some(Today::Ratio(one.over(&other)));
        }
    };
    let both = measured.built(program).map(figure).zip(measured.built(other).map(figure));
    let said = both.map(|(one, other)| format!("{} instead of {}", unit(one), unit(other)));
    Some(Today::Count(said.unwrap_or("not built".to_owned()), both.map(|(one, other)| one / other)))
}

fn outcome(measured: &Measured, diagnosis: Vec<Block>) -> Outcome {
    let report = FieldReport::parse(REPORT);
    let mut claims = Vec::new();
    if !measured.tables.is_empty() {
        claims = report.claims(&[("last", measured.last())], |of, over| today(measured, of, over));
        if measured.last() == "2" {
            // It says what the first one says.
            claims.remove(1);
        }
    }
    let (now, change) = (now(measured), change(measured));
    Outcome { now, diagnosis, change, ..report.outcome(claims, &figures(measured)) }
}

fn now(measured: &Measured) -> Vec<Block> {
    let mut blocks = Vec::new();
    let rows = measured.rows();
    if !rows.is_empty() {
        let records = count(measured.count as f64);
        let caption = format!("xquo 0.2.3, {records} records: wall time by number of workers");
        let lines: Vec<Line> = rows
            .iter()
            .map(|(label, series)| Line {
                label: label.clone(),
                points: series.iter().map(Series::median).collect(),
                is_ours: label.contains("masu"),
            })
            .collect();
        let chart = Chart {
            title: &caption,
            across: "workers",
            ticks: &measured.workers,
            lines: &lines,
            unit: seconds,
        };
        let svg = report::lines("quote-workers", &chart);
        let figure = Figure { name: "workers".to_owned(), caption: caption.clone(), svg };
        blocks.push(Block::Figure(figure));
        let cells = |(label, series): &(String, Vec<Series>)| -> Vec<String> {
            std::iter::once(label.clone()).chain(series.iter().map(time)).collect()
        };
        let text = "A malloc behind + is linked into the program, one behind \"under\" is preloaded into it; gnu and musl \
                    are the program as published, on the malloc of its C library. musl + masu has masu's feature musl-memcpy, as its users \
                    are advised: it brings faster copies too.";
        blocks.push(Block::marked(text));
        let headings = std::iter::once("workers".to_owned()).chain(measured.workers.clone());
        let sheet =
            Sheet::new(format!("{caption}, medians"), headings, rows.iter().map(cells).collect());
        blocks.push(Block::Sheet(sheet));
    }
    if !measured.built.is_empty() {
        let row = |built: &Built| {
            vec![name(&built.name), seconds(built.seconds), bytes(built.bytes as f64)]
        };
        let headings = ["program", "clean build", "stripped"];
        let rows = measured.built.iter().map(row).collect();
        blocks.push(Block::Sheet(Sheet::new(
            "What each takes to build, one clean build each",
            headings,
            rows,
        )));
    }
    blocks.extend(limit(measured));
    blocks.extend(json(measured));
    blocks
}

/// Our own, and `cat`.
fn limit(measured: &Measured) -> Option<Block> {
    let table = measured.table("limit")?;
    let of = |how: &str| measured.wall("limit", "system", &[("how", how)]);
    let cat = of("cat");
    let how = |how: &str| match how {
        "cat" => "cat of the finished output".to_owned(),
        "1" => "our xquo, 1 worker".to_owned(),
        workers => format!("our xquo, {workers} workers"),
    };
    let values = table
        .case
        .variants
        .iter()
        .filter_map(|variant| Some(variant.parameters.first()?.1.clone()));
    let rows = values.map(|value| {
        let series = of(&value);
        let times = if value == "cat" {
            "1".to_owned()
        } else {
            claim::written(series.over(&cat).as_ref())
        };
        vec![how(&value), time(&series), times]
    });
    let caption = "Our own xquo on the same records, and what moving its output alone takes";
    Some(Block::Sheet(Sheet::new(caption, ["", "wall", "× cat"], rows.collect())))
}

fn json(measured: &Measured) -> Vec<Block> {
    let mut rows = Vec::new();
    for name in ["jsonl", "jsonl linked"] {
        let Some(table) = measured.table(name) else { continue };
        for (index, variant) in table.case.variants.iter().enumerate() {
            let value = |wanted: &str| {
                let mut all = variant.parameters.iter();
                all.find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
            };
            let label = match value("program") {
                Some(program) => self::name(&program),
                None if variant.allocator_text() == "system" => "gnu".to_owned(),
                None => format!("gnu under {}", format::malloc(variant)),
            };
            let Some(workers) = value("workers") else { continue };
            let series = Series::of(table, Some(index), Measure::Wall);
            let times = if label == "gnu" {
                "1".to_owned()
            } else {
                let reference = measured.wall("jsonl", "system", &[("workers", &workers)]);
                claim::written(series.over(&reference).as_ref())
            };
            rows.push(vec![label, workers, time(&series), times]);
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let text = "The report's closing advice: ask first whether allocations can be fewer; and JSON parsed line by line on \
                workers is where another malloc should pay next.";
    let headings = ["malloc", "workers", "wall", "× gnu's own malloc"];
    let caption = "JSON by the line: each parsed into a tree on a worker and written out again";
    vec![Block::marked(text), Block::Sheet(Sheet::new(caption, headings, rows))]
}

/// The figures of the verdict's sentence.
fn figures(measured: &Measured) -> String {
    let ratio = |program: &str| {
        let two = measured.linked(program, "2");
        claim::written(two.over(&measured.linked(program, "1")).as_ref())
    };
    if measured.tables.is_empty() {
        return "nothing could be measured here".to_owned();
    }
    format!(
        "two workers take {} of one's time with gnu's malloc (theirs ×2.23), {} with musl's (×1.78), {} with jemalloc (×0.57)",
        ratio("gnu"),
        ratio("musl"),
        ratio("gnu-jemalloc")
    )
}

fn change(measured: &Measured) -> Vec<Block> {
    let mut rows = Vec::new();
    for workers in &measured.workers {
        let linked = |program: &str| measured.linked(program, workers);
        let over = |one: &Series, other: &Series| claim::written(one.over(other).as_ref());
        let preloaded = |malloc: &str| measured.preloaded(malloc, workers);
        rows.push(vec![
            workers.clone(),
            over(&preloaded("masu"), &preloaded("system")),
            over(&linked("gnu-masu"), &linked("gnu")),
            over(&linked("gnu-masu"), &linked("gnu-jemalloc")),
            over(&linked("musl-masu"), &linked("musl")),
            over(&linked("musl-masu"), &linked("musl-jemalloc")),
        ]);
    }
    rows.retain(|cells| cells[1..].iter().any(|cell| cell != "–"));
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        let headings = [
            "workers",
            "gnu under masu / gnu",
            "gnu + masu / gnu",
            "gnu + masu / gnu + jemalloc",
            "musl + masu / musl",
            "musl + masu / musl + jemalloc",
        ];
        blocks.push(Block::Sheet(Sheet::new(
            "Wall time with masu, over that of others",
            headings,
            rows,
        )));
    }
    let added = |name: &str, plain: &str| {
        let (one, other) = (measured.built(name)?, measured.built(plain)?);
        let size = bytes(one.bytes.saturating_sub(other.bytes) as f64);
        Some(format!(
            "{}: {size} more than {plain}, and {} instead of {} to build",
            self::name(name),
            seconds(one.seconds),
            seconds(other.seconds)
        ))
    };
    let pairs = [
        ("gnu-masu", "gnu"),
        ("gnu-jemalloc", "gnu"),
        ("musl-masu", "musl"),
        ("musl-jemalloc", "musl"),
    ];
    let points: Vec<String> = pairs.iter().filter_map(|(name, plain)| added(name, plain)).collect();
    if !points.is_empty() {
        blocks
            .push(Block::marked("What it costs, one clean build each; masu needs no C compiler:"));
        blocks.push(Block::points(points));
    }
    blocks.extend(best(measured).map(Block::marked));
    blocks
}

/// Our own xquo beside the published one at its fastest.
fn best(measured: &Measured) -> Option<String> {
    let rows = measured.rows();
    let all = rows.iter().filter(|(label, _)| !label.contains("masu"));
    let fastest =
        all.flat_map(|(_, series)| series).filter_map(Series::median).min_by(f64::total_cmp)?;
    let ours = ["1", "2"].map(|how| measured.wall("limit", "system", &[("how", how)]).median());
    let ours = ours.into_iter().flatten().min_by(f64::total_cmp)?;
    Some(format!(
        "Fewer allocations, beside a better malloc: our own xquo, which makes none a record, takes {}, the published one at \
         its fastest without masu {} (×{}).",
        seconds(ours),
        seconds(fastest),
        report::ratio(fastest / ours)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;

    #[test]
    fn without_programs_the_page_is_made_and_nothing_is_claimed() {
        let outcome = outcome(&Measured::default(), Vec::new());
        assert!(outcome.claims.is_empty() && outcome.now.is_empty() && outcome.change.is_empty());
        assert!(outcome.verdict.sentence.contains("nothing could be measured"));
        let measured = Measured::default();
        let today = |of: &str, over: &str| today(&measured, of, over);
        FieldReport::parse(REPORT).check(&[("last", "6")], today);
    }

    #[test]
    fn the_suite_is_one_and_names_the_programs_that_are_built() {
        let suite = Suite::parse("quote.toml".as_ref(), SUITE).unwrap();
        let linked = suite.entries.iter().find(|entry| entry.name == "linked").unwrap();
        let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        assert_eq!(linked.parameters[0].values, names);
    }
}
