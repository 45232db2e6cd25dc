//! `quote`: a parallel line quoter gets slower with more threads (Rust, 2022).
//!
//! Relies on cargo for the published xquo 0.2.3 and on the tree for the programs it is compared with. The hard idea:
//! all programs and all numbers of workers are rows of one table, so that they take turns and every claim is about
//! pairs of neighboring runs.

mod inputs;

use super::build::Built;
use super::format;
use super::page_file::{Figures, Known};
use super::series::row;
use super::{Experiment, Series, Workbench};
use crate::Measure;
use crate::report::count;
use crate::tables::Table;
use masu_run::{Error, Variant};

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
    report: include_str!("../../experiments/reports/quote.toml"),
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<super::Measured, Error> {
    let Some(made) = inputs::prepare(bench)? else {
        return Ok((Box::new(Measured::default()), Vec::new()));
    };
    let suite = inputs::suite(bench, &made)?;
    let tables = bench.tables(&suite);
    let mut diagnosis = Vec::new();
    if made.has("gnu") {
        let program = made.folder.join("gnu");
        let words = [program.to_str().unwrap_or("gnu"), "4"];
        let what = "xquo with 4 workers, as it is";
        diagnosis = bench.diagnosis(what, &words, Some(&made.records));
    }
    let workers = inputs::workers(bench).iter().map(ToString::to_string).collect();
    let measured = Measured { built: made.built, tables, workers, count: inputs::records(bench) };
    Ok((Box::new(measured), diagnosis))
}

#[derive(Default)]
pub(super) struct Measured {
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

    /// Every configuration of the published program that was measured.
    fn configurations(&self) -> Vec<(String, String)> {
        let linked = PROGRAMS.iter().map(|(program, _)| ((*program).to_owned(), name(program)));
        let mallocs = self.table("gnu").map(mallocs).unwrap_or_default();
        let preloaded = mallocs.into_iter().map(|malloc| {
            let label = format!("gnu under {}", format::malloc(malloc));
            (format!("under {}", malloc.allocator_text()), label)
        });
        linked.chain(preloaded).collect()
    }

    /// The lowest median of several series.
    fn fastest(&self, of: impl Iterator<Item = Series>) -> Known {
        Known::Number(of.filter_map(|series| series.median()).min_by(f64::total_cmp))
    }

    /// The rows of the tables of JSON: label, own wall time, and that of gnu's own malloc with as many workers.
    fn json(&self) -> Vec<(String, Series, Series)> {
        let mut rows = Vec::new();
        for name in ["jsonl", "jsonl linked"] {
            let Some(table) = self.table(name) else { continue };
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
                let own = Series::of(table, Some(index), Measure::Wall);
                let reference = self.wall("jsonl", "system", &[("workers", &workers)]);
                let label = format!("{label}, {}", format::numbered(&workers, "worker"));
                rows.push((label, own, reference));
            }
        }
        rows
    }
}

impl Figures for Measured {
    /// `gnu 2` and `under masu 2` are wall times with that number of workers; `gnu build` and `gnu size` are the time
    /// and size of a build; `limit HOW`, `json ROW` and `json ROW reference`, `fastest ours`, `fastest published`.
    fn known(&self, name: &str) -> Option<Known> {
        let built = |name: &str| self.built.iter().find(|built| built.name == name);
        Some(match name.split(' ').collect::<Vec<&str>>()[..] {
            ["under", malloc, workers] => Known::Runs(self.preloaded(malloc, workers)),
            ["limit", how] => Known::Runs(self.wall("limit", "system", &[("how", how)])),
            ["json", row] | ["json", row, "reference"] => {
                let row = self.json().into_iter().nth(row.parse().ok()?);
                let (_, own, reference) = row.unwrap_or_default();
                Known::Runs(if name.ends_with("reference") { reference } else { own })
            }
            ["fastest", "ours"] => {
                let ours = ["1", "2"].into_iter();
                self.fastest(ours.map(|how| self.wall("limit", "system", &[("how", how)])))
            }
            ["fastest", "published"] => {
                let others = self.configurations().into_iter().map(|(name, _)| name);
                let others = others.filter(|name| !name.contains("masu"));
                let all = others.flat_map(|name| {
                    self.workers.iter().map(move |workers| format!("{name} {workers}"))
                });
                self.fastest(all.filter_map(|name| match self.known(&name)? {
                    Known::Runs(series) => Some(series),
                    Known::Number(_) => None,
                }))
            }
            [program, "build"] => Known::Number(built(program).map(|built| built.seconds)),
            [program, "size"] => Known::Number(built(program).map(|built| built.bytes as f64)),
            [program, workers] => Known::Runs(self.linked(program, workers)),
            _ => return None,
        })
    }

    fn rows(&self, list: &str) -> Vec<(String, String)> {
        let same = |name: &String| (name.clone(), name.clone());
        match list {
            "workers" => self.workers.iter().map(same).collect(),
            "configurations" => self.configurations(),
            "built" => {
                self.built.iter().map(|built| (built.name.clone(), name(&built.name))).collect()
            }
            "limit" => {
                let variants = self.table("limit").map(|table| &table.case.variants[..]);
                let ways = variants.unwrap_or_default().iter();
                let ways = ways.filter_map(|one| Some(one.parameters.first()?.1.clone()));
                ways.map(|way| (way.clone(), limit(&way))).collect()
            }
            "json" => {
                let rows = self.json().into_iter().enumerate();
                rows.map(|(row, (label, ..))| (row.to_string(), label)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.built.is_empty()
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        let last = self.workers.last().map_or("1", String::as_str);
        vec![("last", last.to_owned()), ("records", count(self.count as f64))]
    }
}

/// The label of a row of limits: our own program, or `cat`.
fn limit(way: &str) -> String {
    match way {
        "cat" => "cat of the finished output".to_owned(),
        workers => format!("our xquo, {}", format::numbered(workers, "worker")),
    }
}

/// The mallocs of a table, except the system's: a row of each.
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

/// The label of a program: `musl + masu` for `musl-masu`.
fn name(program: &str) -> String {
    program.replace('-', " + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;

    #[test]
    fn the_suite_is_one_and_names_the_programs_that_are_built() {
        let suite = Suite::parse("quote.toml".as_ref(), SUITE).unwrap();
        let linked = suite.entries.iter().find(|entry| entry.name == "linked").unwrap();
        let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        assert_eq!(linked.parameters[0].values, names);
    }
}
