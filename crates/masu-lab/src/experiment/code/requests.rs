//! Response times of a JIT in miniature, like the report's table: while it compiles its methods, and with all compiled.
//!
//! Relies on the program for both regimes. The hard idea is which of them the report is about: its methods were compiled
//! when it was measured, so its claims are held against runs whose methods are. The way there is shown beside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{noted, responses};
use crate::experiment::format::{grouped, memory, milliseconds};
use crate::experiment::workbench::{in_one_table, set};
use crate::experiment::{Block, Series, Workbench, claim};
use crate::report::count;
use crate::suite::Suite;
use crate::tables::Table;
use crate::{Error, Parameter};

const SUITE: &str = include_str!("../../../experiments/jit.toml");

/// When methods are compiled: the name in the suite, and what the page says of it.
const REGIMES: [(&str, &str); 2] =
    [("cold", "while methods are compiled"), (WARM, "all methods compiled")];

/// The regime that the claims are about.
const WARM: &str = "warm";

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
        // The report's slow programs had 4,000 to 5,000.
        let methods = bench.choose(20, 4_000, 4_000, 4_000);
        // Interpreted, the longest take about what the report's requests took.
        let calls = bench.choose(1_000, 25_000, 200_000, 1_000_000);
        let (made, noted) = (bench.cache().join("methods"), bench.cache().join("requests.jsonl"));
        let mut command = Command::new(program);
        command.arg("prepare").arg(&made).arg(methods.to_string());
        if bench.step(&format!("compiling {methods} methods"), &mut command)?.is_none() {
            return Ok(None);
        }
        // What an earlier time left would be taken for this one's.
        let _ = fs::remove_file(&noted);
        let mut suite = Suite::parse(&bench.cache().join("jit.toml"), SUITE)?;
        set(&mut suite, "program", program)?;
        set(&mut suite, "made", &made)?;
        set(&mut suite, "figures", &noted)?;
        for (name, value) in [("methods", methods), ("calls", calls)] {
            suite.set(&Parameter { name: name.to_owned(), values: vec![value.to_string()] })?;
        }
        in_one_table(&mut suite, bench.choose(1, 8, 9, 9));
        let table = bench.table(&suite, "requests")?;
        Ok(table.map(|table| Requests { table, noted, methods, calls }))
    }

    /// A figure of the JIT: `p50`, `compiled`, `rss_kb`; `swap_ms` while it compiles, `load_ms` where all is compiled.
    fn of(&self, regime: &str, way: &str, requests: &str, key: &str) -> Series {
        let values = [("way", way), ("regime", regime), ("requests", requests)];
        noted(&self.table, &values, &self.noted, &values, key)
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        for (regime, when) in REGIMES {
            blocks.push(Block::marked(self.text(regime)));
            blocks.extend(
                REQUESTS.iter().flat_map(|requests| self.responses(regime, when, requests)),
            );
        }
        blocks
    }

    /// What is measured in a regime.
    #[expect(clippy::cast_precision_loss, reason = "methods and calls are far fewer than 2^53")]
    fn text(&self, regime: &str) -> String {
        let (methods, calls) = (count(self.methods as f64), count(self.calls as f64));
        match regime {
            WARM => "The same requests with every method compiled and its code in place before the first one, as in a process \
                     that has run for long: nothing is compiled beside, and only where the code lies differs. \"single .so\" is \
                     one library, linked from all objects. Ten requests are answered before those that count. This is the \
                     state that the report speaks of, so **its claims are held against these tables**."
                .to_owned(),
            _ => format!(
                "The JIT in miniature has {methods} methods, all interpreted at first. A request makes {calls} calls, nearly \
                 half of them to a tenth of the methods. Beside the requests, a thread takes the method that was called most \
                 often, has gcc compile it and puts the code in place while calls go on; \"single .so\" begins with a \
                 library each, too, and links all objects so far into one library whenever it would hold twice as many, or \
                 no method waits. Every request counts, from the first on; what gcc takes from the other CPUs is in the \
                 times. This is the way to the report's state, of which it gives no figures: **no claim is held against it**."
            ),
        }
    }

    /// Response times like the report's table.
    fn responses(&self, regime: &str, when: &str, requests: &str) -> [Block; 2] {
        let caption = format!(
            "Response time of the JIT in miniature, {} requests, {when}",
            grouped(requests)
        );
        let of = |way: &str, key: &str| self.of(regime, way, requests, key);
        let compiled = responses::row("methods compiled by the end", &|way| {
            of(way, "compiled").median().map(count).unwrap_or_default()
        });
        let (placing, key) = match regime {
            WARM => ("linking and loading them all", "load_ms"),
            _ => ("loading a method and swapping it in", "swap_ms"),
        };
        let placing = responses::row(placing, &|way| milliseconds(&of(way, key)));
        let added = responses::row("memory added", &|way| {
            let kib = of(way, "rss_kb");
            memory(&kib.with(&kib, |value, _| value * 1024.0))
        });
        let name = format!("requests-{regime}-{requests}");
        responses::blocks(&name, &caption, &of, vec![compiled, placing, added])
    }

    /// `p50 own`: what a claim is about.
    pub(super) fn named(&self, name: &str) -> Option<Series> {
        match name.split(' ').collect::<Vec<&str>>()[..] {
            [figure @ ("p50" | "p100"), way] => Some(self.of(WARM, way, "1000", figure)),
            ["gap", "single", "all"] => Some(self.gap("1000")),
            ["gap", "single", "100"] => Some(self.gap("100")),
            _ => None,
        }
    }

    /// The middle request with a single library, over that without JIT.
    fn gap(&self, requests: &str) -> Series {
        let middle = |way| self.of(WARM, way, requests, "p50");
        middle("single").with(&middle("interpreter"), |single, none| single / none)
    }

    /// The middle request of 1,000 in one way over another.
    fn middle(&self, regime: &str, one: &str, other: &str) -> String {
        let of = |way| self.of(regime, way, "1000", "p50");
        claim::written(of(one).over(&of(other)).as_ref())
    }

    /// The figures of the verdict's sentence.
    pub(super) fn figures(&self) -> String {
        format!(
            "with all methods compiled, the middle of 1,000 requests takes {} of its time without JIT with a library each \
             (theirs ×1.18) and {} with a single one (×1.08)",
            self.middle(WARM, "own", "interpreter"),
            self.middle(WARM, "single", "interpreter")
        )
    }

    /// What masu changes.
    pub(super) fn change(&self) -> Vec<Block> {
        let points = REGIMES.map(|(regime, when)| {
            format!(
                "{when}: {} of the time with a library each, {} of that with a single library",
                self.middle(regime, "arena", "own"),
                self.middle(regime, "arena", "single")
            )
        });
        let text = "In the JIT in miniature nothing is linked, before or again, and no library stays behind. The arena's middle \
                    request of 1,000:";
        vec![Block::marked(text), Block::points(points)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Jit, REPORT, claims};
    use super::responses::WAYS;
    use super::*;
    use crate::experiment::Held;
    use crate::experiment::field_report::FieldReport;
    use crate::report::fixtures;

    /// Eight rounds in which a library each is slow where all is compiled, and quick while methods are.
    fn measured(noted: &Path) -> Requests {
        let mut table = fixtures::of_commands().sources.remove(0).tables.remove(0);
        (table.case.variants, table.runs) = (Vec::new(), Vec::new());
        let mut lines = String::new();
        for (way, _) in WAYS {
            for (regime, _) in REGIMES {
                for requests in REQUESTS {
                    let label = format!("system way={way} regime={regime} requests={requests}");
                    let row = table.case.variants.len();
                    table.case.variants.push(fixtures::variant(&label));
                    table.runs.extend((0..8).map(|round| fixtures::run(row, round, 1.0)));
                    let middle = match (way, regime) {
                        ("own", WARM) => 45,
                        ("own", _) => 10,
                        ("interpreter", _) => 38,
                        _ => 41,
                    };
                    let line = format!(
                        "{{\"way\":\"{way}\",\"regime\":\"{regime}\",\"requests\":{requests},\"p50\":{middle}}}\n"
                    );
                    lines.push_str(&line.repeat(8));
                }
            }
        }
        fs::write(noted, lines).unwrap();
        Requests { table, noted: noted.to_owned(), methods: 4_000, calls: 200_000 }
    }

    #[test]
    fn claims_are_held_against_the_runs_with_all_methods_compiled() {
        let noted = std::env::temp_dir().join(format!("masu-requests-{}", std::process::id()));
        let jit = Jit::Miniature(measured(&noted));
        let (claims, blocks, change) =
            (claims(&FieldReport::parse(REPORT), None, Some(&jit)), jit.blocks(), jit.change());
        fs::remove_file(&noted).unwrap();
        let held: Vec<Held> = claims.iter().map(|claim| claim.held).collect();
        // Nothing was noted of the slowest request; with 1,000 requests it is as with 100, which is no better.
        assert_eq!(
            held,
            [Held::Yes, Held::Undecided, Held::Yes, Held::Yes, Held::No],
            "{claims:?}"
        );
        let sheets = blocks.iter().filter_map(|block| match block {
            Block::Sheet(sheet) => sheet.rows.first(),
            _ => None,
        });
        let sheets: Vec<Vec<String>> =
            sheets.map(|row| row.cells.iter().map(|cell| cell.text.words()).collect()).collect();
        let cold = ["38.0 ms", "10.0 ms", "41.0 ms", "41.0 ms"];
        let warm = ["38.0 ms", "45.0 ms", "41.0 ms", "41.0 ms"];
        assert_eq!(sheets, [cold, cold, warm, warm]);
        assert!(format!("{change:?}").contains("×4.1"), "{change:?}");
    }

    #[test]
    fn the_suite_has_every_way_regime_and_number_that_is_shown() {
        let suite = Suite::parse("jit.toml".as_ref(), SUITE).unwrap();
        let has = |name: &str, value: &str| {
            let entry = &suite.entries[0];
            let mut all = entry.parameters.iter().chain(&entry.each);
            all.any(|one| one.name == name && one.values.iter().any(|known| known == value))
        };
        assert!(WAYS.iter().all(|(way, _)| has("way", way)));
        assert!(REGIMES.iter().all(|(regime, _)| has("regime", regime)));
        assert!(REQUESTS.iter().all(|requests| has("requests", requests)));
    }
}
