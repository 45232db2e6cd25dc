//! Response times of a JIT in miniature that compiles its methods while it answers, like the report's table.

use std::fs;
use std::path::{Path, PathBuf};

use super::noted;
use crate::experiment::told::{memory, milliseconds};
use crate::experiment::workbench::{in_one_table, set};
use crate::experiment::{Block, Claim, Expect, Figure, Series, Sheet, Workbench, claim};
use crate::report::{self, Chart, Line, Table, count, seconds};
use crate::suite::Suite;
use crate::{Error, Parameter};

const SUITE: &str = include_str!("../../../experiments/jit.toml");

/// The ways of the JIT, as the report's table has them.
const WAYS: [(&str, &str); 4] = [
    ("interpreter", "no JIT"),
    ("own", "one .so each"),
    ("single", "single .so"),
    ("arena", "code arena"),
];

const PERCENTILES: [&str; 8] = ["50", "66", "75", "80", "90", "95", "98", "100"];

/// The numbers of requests that a run answers: the report's table, and what it says of more.
const REQUESTS: [&str; 2] = ["100", "1000"];

/// What was measured.
pub(super) struct Requests {
    table: Table,
    /// The file of the runs' figures.
    noted: PathBuf,
    methods: u64,
    /// Calls of a request.
    calls: u64,
}

impl Requests {
    /// Measures; none where that cannot be done, which is noted.
    pub(super) fn measure(
        bench: &mut Workbench<'_>,
        program: &Path,
    ) -> Result<Option<Requests>, Error> {
        let methods = bench.choose(20, 1_000, 1_000, 4_000);
        // Interpreted, the longest take about what the report's requests took.
        let calls = bench.choose(1_000, 50_000, 200_000, 1_000_000);
        let noted = bench.cache().join("requests.jsonl");
        // What an earlier time left would be taken for this one's.
        let _ = fs::remove_file(&noted);
        let mut suite = Suite::parse(&bench.cache().join("jit.toml"), SUITE)?;
        set(&mut suite, "program", program)?;
        set(&mut suite, "figures", &noted)?;
        for (name, value) in [("methods", methods), ("calls", calls)] {
            suite.set(&Parameter { name: name.to_owned(), values: vec![value.to_string()] })?;
        }
        in_one_table(&mut suite, bench.choose(1, 8, 9, 9));
        let table = bench.table(&suite, "requests")?;
        Ok(table.map(|table| Requests { table, noted, methods, calls }))
    }

    /// A figure of the JIT: `p50`, `compiled`, `swap_ms`, `rss_kb`.
    fn of(&self, way: &str, requests: &str, key: &str) -> Series {
        let values = [("way", way), ("requests", requests)];
        noted(&self.table, &values, &self.noted, &values, key)
    }

    #[expect(clippy::cast_precision_loss, reason = "methods and calls are far fewer than 2^53")]
    pub(super) fn blocks(&self) -> Vec<Block> {
        let (methods, calls) = (count(self.methods as f64), count(self.calls as f64));
        let text = format!(
            "The JIT in miniature has {methods} methods, all interpreted at first. A request makes {calls} calls, nearly half of \
             them to a tenth of the methods. Beside the requests, a thread takes the method that was called most often, \
             has gcc compile it and puts the code in place while calls go on; \"single .so\" begins with a library each, \
             too, and links all objects so far into one library whenever it would hold twice as many, or no method \
             waits. Every request counts, from the first on; what gcc takes from the other CPUs is in the times."
        );
        let responses = REQUESTS.into_iter().flat_map(|requests| self.responses(requests));
        std::iter::once(Block::Text(text)).chain(responses).collect()
    }

    /// Response times like the report's table.
    fn responses(&self, requests: &str) -> [Block; 2] {
        let caption = format!(
            "Response time of the JIT in miniature, {requests} requests while methods are compiled"
        );
        let at = |way: &str, percentile: &str| self.of(way, requests, &format!("p{percentile}"));
        let lines: Vec<Line> = WAYS
            .iter()
            .map(|(way, name)| Line {
                label: (*name).to_owned(),
                points: PERCENTILES
                    .iter()
                    .map(|percentile| at(way, percentile).median().map(|ms| ms / 1e3))
                    .collect(),
                is_ours: *way == "arena",
            })
            .collect();
        let chart = Chart {
            title: &caption,
            across: "percentile",
            ticks: &PERCENTILES.map(str::to_owned),
            lines: &lines,
            unit: seconds,
        };
        let svg = report::lines(&format!("code-requests-{requests}"), &chart);
        let figure = Figure { name: format!("requests-{requests}"), caption: caption.clone(), svg };
        let row = |heading: &str, cell: &dyn Fn(&str) -> String| -> Vec<String> {
            std::iter::once(heading.to_owned()).chain(WAYS.map(|(way, _)| cell(way))).collect()
        };
        let of = |way: &str, key| self.of(way, requests, key);
        let mut rows: Vec<Vec<String>> = PERCENTILES
            .iter()
            .map(|percentile| row(percentile, &|way| milliseconds(&at(way, percentile))))
            .collect();
        rows.push(row("methods compiled by the end", &|way| {
            of(way, "compiled").median().map(count).unwrap_or_default()
        }));
        rows.push(row("loading a method and swapping it in", &|way| {
            milliseconds(&of(way, "swap_ms"))
        }));
        rows.push(row("memory added", &|way| {
            let kib = of(way, "rss_kb");
            memory(&kib.with(&kib, |value, _| value * 1024.0))
        }));
        let headings = std::iter::once("percentile").chain(WAYS.map(|(_, name)| name));
        let sheet = Sheet::new(format!("{caption}: medians over the runs"), headings, rows);
        [Block::Figure(figure), Block::Sheet(sheet)]
    }

    pub(super) fn claims(&self) -> Vec<Claim> {
        let over = |one: &str, other: &str, key: &str| {
            self.of(one, "1000", key).over(&self.of(other, "1000", key))
        };
        let (above, below) = (Expect::Above(1.0), Expect::Below(1.0));
        vec![
            Claim::of_ratio(
                "With a library each, the middle request takes longer than without JIT (1,000 requests)",
                "45 ms, not 38",
                over("own", "interpreter", "p50").as_ref(),
                above,
            ),
            Claim::of_ratio(
                "With a library each, the slowest request takes longer than without JIT (1,000 requests)",
                "133 ms, not 97",
                over("own", "interpreter", "p100").as_ref(),
                above,
            ),
            Claim::of_ratio(
                "With a single library the middle request takes less than with a library each (1,000 requests)",
                "41 ms, not 45",
                over("single", "own", "p50").as_ref(),
                below,
            ),
            Claim::of_ratio(
                "Objects loaded directly do as well as a single library, within a tenth (1,000 requests)",
                "43 and 41 ms",
                over("arena", "single", "p50").as_ref(),
                Expect::Near(1.1),
            ),
            Claim::of_ratio(
                "With 1,000 requests a single library does better against no JIT than with 100",
                "3 ms slower, then 1",
                self.gap("1000").over(&self.gap("100")).as_ref(),
                below,
            ),
        ]
    }

    /// The middle request with a single library, over that without JIT.
    fn gap(&self, requests: &str) -> Series {
        let middle = |way| self.of(way, requests, "p50");
        middle("single").with(&middle("interpreter"), |single, none| single / none)
    }

    /// The middle request of 1,000 in one way over another.
    fn middle(&self, one: &str, other: &str) -> String {
        let of = |way| self.of(way, "1000", "p50");
        claim::told(of(one).over(&of(other)).as_ref())
    }

    /// The figures of the verdict's sentence.
    pub(super) fn figures(&self) -> String {
        format!(
            "while methods are compiled, the middle of 1,000 requests takes {} of its time without JIT with a library each \
             (theirs ×1.18) and {} with a single one (×1.08)",
            self.middle("own", "interpreter"),
            self.middle("single", "interpreter")
        )
    }

    /// What masu changes.
    pub(super) fn change(&self) -> Block {
        Block::Text(format!(
            "In the JIT in miniature the arena's middle request of 1,000 takes {} of the time with a library each and {} of \
             that with a single library; nothing is linked, before or again, and no library stays behind.",
            self.middle("arena", "own"),
            self.middle("arena", "single")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_every_way_and_number_that_is_shown() {
        let suite = Suite::parse("jit.toml".as_ref(), SUITE).unwrap();
        let has = |name: &str, value: &str| {
            let entry = &suite.entries[0];
            let mut all = entry.parameters.iter().chain(&entry.each);
            all.any(|one| one.name == name && one.values.iter().any(|known| known == value))
        };
        assert!(WAYS.iter().all(|(way, _)| has("way", way)));
        assert!(REQUESTS.iter().all(|requests| has("requests", requests)));
    }
}
