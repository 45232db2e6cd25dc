//! What a call costs by where code lies: small functions, called in turn, in every layout that a JIT may choose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::noted;
use crate::Error;
use crate::experiment::format::{grouped, memory, milliseconds};
use crate::experiment::workbench::{in_one_table, keep, set};
use crate::experiment::{Block, Figure, Series, Sheet, Workbench, claim};
use crate::report::{self, Chart, Line};
use crate::suite::Suite;
use crate::tables::Table;

const SUITE: &str = include_str!("../../../experiments/layout.toml");

/// The ways code may lie, with the names that the page has for them.
const SHOWN: [(&str, &str); 4] = [
    ("own2m", "a library each, 2 MiB apart"),
    ("own", "a library each"),
    ("one", "one linked library"),
    ("arena", "code arena (masu-code)"),
];

/// The lengths of a function's code, in bytes.
const BODIES: [&str; 2] = ["8", "204"];

/// What was measured.
pub(super) struct Layouts {
    table: Table,
    /// The folder of what is loaded, and of the figures.
    folder: PathBuf,
    /// The numbers of functions.
    counts: &'static [&'static str],
}

impl Layouts {
    /// Makes what is loaded and measures; none where that cannot be done, which is noted.
    pub(super) fn measure(
        bench: &mut Workbench<'_>,
        program: &Path,
    ) -> Result<Option<Layouts>, Error> {
        let counts: &[&str] = bench.choose(
            &["1", "10"],
            &["100", "1000"],
            &["100", "1000", "4000"],
            &["1", "100", "1000", "4000"],
        );
        let folder = bench.cache().join("layouts");
        let most = counts.last().copied().unwrap_or("100");
        let mut command = Command::new(program);
        command.arg("prepare").arg(&folder).arg(most);
        if bench.step(&format!("compiling {most} functions"), &mut command)?.is_none() {
            return Ok(None);
        }
        // What an earlier time left would be taken for this one's.
        let _ = fs::remove_file(folder.join("figures.jsonl"));
        let suite = suite(bench, program, &folder, counts)?;
        let table = bench.table(&suite, "layouts")?;
        Ok(table.map(|table| Layouts { table, folder, counts }))
    }

    /// The slow configuration: what it is, and its command.
    pub(super) fn slow(&self, program: &Path) -> (String, Vec<String>) {
        let most = self.counts.last().copied().unwrap_or("100");
        let [program, folder] = [program, &self.folder].map(|path| path.display().to_string());
        let words = [&program, "run", &folder, "own", "8", most, "/dev/null"].map(str::to_owned);
        (format!("{} functions, a library each", grouped(most)), words.into())
    }

    /// A figure of a layout: `ns`, `load_us`, `rss_kb`, `page_tables_kb`, `mappings`.
    fn of(&self, layout: &str, body: &str, count: &str, key: &str) -> Series {
        let values = [("layout", layout), ("body", body), ("count", count)];
        let own = [("kind", layout), ("body", body), ("count", count)];
        noted(&self.table, &values, &self.folder.join("figures.jsonl"), &own, key)
    }

    /// Nanoseconds of a call of a longer function.
    fn call(&self, layout: &str, count: &str) -> Series {
        self.of(layout, "204", count, "ns")
    }

    /// The many and the few that claims are about; the report's limit was 1,000 methods.
    fn many(&self) -> &'static str {
        let usual = self.counts.iter().find(|count| **count == "1000");
        usual.or(self.counts.last()).copied().unwrap_or_default()
    }

    fn few(&self) -> &'static str {
        let usual = self.counts.iter().find(|count| **count == "100");
        usual.or(self.counts.first()).copied().unwrap_or_default()
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let calls = BODIES.into_iter().flat_map(|body| self.calls(body));
        calls.chain([Block::Sheet(self.loads())]).collect()
    }

    /// What a call costs, as a plot and a table.
    fn calls(&self, body: &str) -> [Block; 2] {
        let caption =
            format!("Nanoseconds a call, bodies of about {body} bytes, by number of functions");
        let ticks: Vec<String> = self.counts.iter().map(|count| grouped(count)).collect();
        let series = |layout: &str| -> Vec<Series> {
            self.counts.iter().map(|count| self.of(layout, body, count, "ns")).collect()
        };
        let lines: Vec<Line> = SHOWN
            .iter()
            .map(|(layout, name)| Line {
                label: (*name).to_owned(),
                points: series(layout).iter().map(Series::median).collect(),
                is_ours: *layout == "arena",
            })
            .collect();
        let chart = Chart {
            title: &caption,
            across: "functions called in turn",
            ticks: &ticks,
            lines: &lines,
            unit: nanoseconds,
        };
        let svg = report::lines(&format!("code-calls-{body}"), &chart);
        let figure = Figure { name: format!("calls-{body}"), caption: caption.clone(), svg };
        let rows = SHOWN.iter().map(|(layout, name)| {
            let cell = |series: Series| {
                let range = series.range().map(|(low, high)| format!(" ({low:.2}–{high:.2})"));
                series
                    .median()
                    .map(|ns| format!("{}{}", nanoseconds(ns), range.unwrap_or_default()))
                    .unwrap_or_default()
            };
            let cells = series(layout).into_iter().map(cell);
            std::iter::once((*name).to_owned()).chain(cells).collect()
        });
        let headings = std::iter::once("layout".to_owned()).chain(ticks.clone());
        let sheet =
            Sheet::new(format!("{caption}: medians (lowest–highest)"), headings, rows.collect());
        [Block::Figure(figure), Block::Sheet(sheet)]
    }

    fn loads(&self) -> Sheet {
        let count = self.many();
        let rows = SHOWN.iter().map(|(layout, name)| {
            let of = |key| self.of(layout, "8", count, key);
            let scaled =
                |series: Series, factor: f64| series.with(&series, |value, _| value * factor);
            vec![
                (*name).to_owned(),
                milliseconds(&scaled(of("load_us"), 1e-3)),
                memory(&scaled(of("rss_kb"), 1024.0)),
                memory(&scaled(of("page_tables_kb"), 1024.0)),
                of("mappings").median().map(report::count).unwrap_or_default(),
            ]
        });
        let headings = ["layout", "load (link included)", "memory", "page tables", "mappings"];
        let title = format!("Loading {} functions of 8 bytes", grouped(count));
        Sheet::new(title, headings, rows.collect())
    }

    /// The few and the many functions that claims are about.
    pub(super) fn counts(&self) -> [&'static str; 2] {
        [self.few(), self.many()]
    }

    /// `call own many`: what a claim is about.
    pub(super) fn named(&self, name: &str) -> Option<Series> {
        let (layout, count) = name.strip_prefix("call ")?.split_once(' ')?;
        Some(self.call(layout, if count == "many" { self.many() } else { self.few() }))
    }

    /// The figures of the verdict's sentence.
    pub(super) fn figures(&self) -> String {
        let (few, many) = (self.few(), self.many());
        let own = self.call("own", many);
        format!(
            "with a library each a call among {} functions takes {} of one among {}, and {} of one in a linked library",
            grouped(many),
            claim::written(own.over(&self.call("own", few)).as_ref()),
            grouped(few),
            claim::written(own.over(&self.call("one", many)).as_ref())
        )
    }

    pub(super) fn change(&self) -> Vec<Block> {
        let mut rows = Vec::new();
        for body in BODIES {
            for count in self.counts {
                let over = |key: &str, other: &str| {
                    let ratio =
                        self.of("arena", body, count, key).over(&self.of(other, body, count, key));
                    claim::written(ratio.as_ref())
                };
                rows.push(vec![
                    format!("{}, bodies of {body} bytes", grouped(count)),
                    over("ns", "own"),
                    over("ns", "one"),
                    over("load_us", "one"),
                    over("rss_kb", "own"),
                ]);
            }
        }
        let headings = [
            "functions",
            "a call / a library each",
            "a call / one library",
            "load / link and load",
            "memory / a library each",
        ];
        let text = "The code arena loads the compiler's objects into one dense range: no linker, no library a method, seen by \
                    gdb, perf and unwinders, and methods can be unloaded while threads run. Load is from files, and the \
                    debugger and the unwinder know them.";
        let sheet = Sheet::new("The code arena, over the others", headings, rows);
        vec![Block::marked(text), Block::Sheet(sheet)]
    }
}

fn suite(
    bench: &Workbench<'_>,
    program: &Path,
    folder: &Path,
    counts: &[&str],
) -> Result<Suite, Error> {
    let mut suite = Suite::parse(&bench.cache().join("layout.toml"), SUITE)?;
    set(&mut suite, "program", program)?;
    set(&mut suite, "made", folder)?;
    set(&mut suite, "figures", &folder.join("figures.jsonl"))?;
    in_one_table(&mut suite, bench.choose(1, 8, 9, 9));
    for entry in &mut suite.entries {
        keep(entry, "layout", |layout| SHOWN.iter().any(|(shown, _)| *shown == layout));
        for parameter in entry.parameters.iter_mut().filter(|parameter| parameter.name == "count") {
            parameter.values = counts.iter().map(ToString::to_string).collect();
        }
    }
    Ok(suite)
}

fn nanoseconds(value: f64) -> String {
    if value < 9.95 { format!("{value:.2} ns") } else { format!("{value:.1} ns") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_every_layout_and_length_that_is_shown() {
        let suite = Suite::parse("layout.toml".as_ref(), SUITE).unwrap();
        let has = |name: &str, value: &str| {
            let entry = &suite.entries[0];
            let mut all = entry.parameters.iter().chain(&entry.each);
            all.any(|one| one.name == name && one.values.iter().any(|known| known == value))
        };
        assert!(SHOWN.iter().all(|(layout, _)| has("layout", layout)));
        assert!(BODIES.iter().all(|body| has("body", body)));
    }
}
