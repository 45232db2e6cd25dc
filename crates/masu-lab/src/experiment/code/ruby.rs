//! The report's own program: Ruby's MJIT, by where the code of its methods is put.
//!
//! Relies on Debian's Ruby 3.1, whose MJIT works as the report's did, on an application that a script makes, and on a library
//! that is preloaded into Ruby and takes MJIT's objects to the code arena. The hard idea is what a burst is of: a start compiles
//! for minutes, so every way is a server that is kept until all is compiled, and bursts of requests take turns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{noted, responses, text};
use crate::experiment::format::{grouped, milliseconds};
use crate::experiment::workbench::{in_one_table, set, write};
use crate::experiment::{Block, Depth, Series, Sheet, Workbench, claim};
use crate::report::{bytes, count, seconds};
use crate::suite::Suite;
use crate::tables::Table;
use crate::{Error, Parameter};

/// The files it takes, by name.
const FILES: [(&str, &str); 4] = [
    ("application.rb", include_str!("../../../experiments/jit/application.rb")),
    ("client.rb", include_str!("../../../experiments/jit/client.rb")),
    ("serve.sh", include_str!("../../../experiments/jit/serve.sh")),
    ("ruby.toml", SUITE),
];

const SUITE: &str = include_str!("../../../experiments/jit/ruby.toml");

const PROGRAM: &str = "ruby3.1";

/// What the page calls it where something is missing.
const WHAT: &str = "Ruby's MJIT";

/// As few methods as the report's fast program had.
const FEW: &str = "25";

/// Says whether this Ruby has MJIT, its header and its compiler, by how it ends.
const IS_COMPLETE: &str = r##"
config = RbConfig::CONFIG
header = File.join(config["rubyarchhdrdir"], "rb_mjit_min_header-#{RUBY_VERSION}.h")
exit(RUBY_VERSION.start_with?("3.1.") && config["MJIT_SUPPORT"] == "yes" && File.exist?(header) && File.exist?(config["MJIT_CC"]))
"##;

/// What was measured.
pub(super) struct Ruby {
    table: Table,
    /// The file of the runs' figures.
    noted: PathBuf,
    /// Methods of the large application.
    many: &'static str,
    requests: usize,
}

impl Ruby {
    /// Measures; none where that cannot be done, which is noted. `shim` is the library for the arena.
    pub(super) fn measure(bench: &mut Workbench<'_>, shim: &Path) -> Result<Option<Ruby>, Error> {
        if !is_there(bench)? {
            return Ok(None);
        }
        let folder = bench.cache().join("ruby");
        for (name, text) in FILES {
            write(&folder.join(name), text)?;
        }
        let noted = folder.join("figures.jsonl");
        // What an earlier time left would be taken for this one's.
        let _ = fs::remove_file(&noted);
        let many = bench.choose(FEW, "150", "600", "4000");
        let requests = bench.choose(10, 100, 1_000, 1_000);
        let mut suite = Suite::parse(&folder.join("ruby.toml"), SUITE)?;
        set(&mut suite, "shim", shim)?;
        set(&mut suite, "figures", &noted)?;
        let values = vec![requests.to_string()];
        suite.set(&Parameter { name: "requests".to_owned(), values })?;
        in_one_table(&mut suite, bench.choose(1, 8, 8, 12));
        let mut methods = vec![FEW.to_owned(), many.to_owned()];
        methods.dedup();
        let parameters = suite.entries.iter_mut().flat_map(|entry| &mut entry.parameters);
        for parameter in parameters.filter(|parameter| parameter.name == "methods") {
            parameter.values.clone_from(&methods);
        }
        let table = bench.table(&suite, "ruby")?;
        Ok(table.map(|table| Ruby { table, noted, many, requests }))
    }

    /// The slow configuration, for the diagnosis: what it is, and its command. None where it has too few methods to show.
    pub(super) fn slow(&self, bench: &Workbench<'_>, shim: &Path) -> Option<(String, Vec<String>)> {
        if matches!(bench.depth(), Depth::Tiny | Depth::Quick) {
            return None;
        }
        let script = self.noted.with_file_name("serve.sh");
        let [script, shim] = [&script, shim].map(|path| path.display().to_string());
        let words =
            ["sh", &script, "own", PROGRAM, &shim, self.many, "0", "/dev/null"].map(str::to_owned);
        Some((format!("Ruby with {} methods, a library each", grouped(self.many)), words.into()))
    }

    /// A figure of the bursts: `p50`, and `p50_of_100` of each burst's first hundred requests.
    fn of(&self, way: &str, methods: &str, key: &str) -> Series {
        let values = [("way", way), ("methods", methods)];
        let own = [("kind", "requests"), ("way", way), ("methods", methods)];
        noted(&self.table, &values, &self.noted, &own, key)
    }

    /// A figure of a server's start, up to when all was compiled.
    fn start(&self, way: &str, key: &str) -> Option<f64> {
        let lines = fs::read_to_string(&self.noted).ok()?;
        let mut lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_own = |line: &Value| {
            text(line, "kind") == "start"
                && text(line, "way") == way
                && text(line, "methods") == self.many
        };
        lines.rfind(is_own)?.get(key)?.as_f64()
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let caption = |requests: usize| {
            let (methods, requests) = (grouped(self.many), grouped(&requests.to_string()));
            format!(
                "Response time of GET /, Ruby's MJIT with {methods} methods, {requests} requests"
            )
        };
        let all = |way: &str, key: &str| self.of(way, self.many, key);
        let mut blocks = vec![Block::marked(self.text())];
        blocks.extend(responses::blocks("ruby", &caption(self.requests), &all, Vec::new()));
        if self.requests > 100 {
            let first = |way: &str, key: &str| self.of(way, self.many, &format!("{key}_of_100"));
            blocks.extend(responses::blocks("ruby-100", &caption(100), &first, Vec::new()));
        }
        blocks.extend([Block::Sheet(self.middles()), Block::Sheet(self.starts())]);
        blocks
    }

    /// What is measured.
    fn text(&self) -> String {
        format!(
            "Debian's {PROGRAM} runs an application of {} methods, made by a script, that calls all of them some 40,000 times a \
             request. **no JIT** is its interpreter. **one .so each** is MJIT with compaction refused; **single .so** is MJIT as it \
             is, which recompiles all methods into one library when none waits; for the **code arena** a library is preloaded \
             that takes MJIT's objects there before the linker starts, with Ruby as it is. Each server answers itself until all \
             is compiled and MJIT is stopped; then one client asks one server at a time, {} requests a burst, and bursts take \
             turns. All answer the same, met exceptions among it. A way has the luck of one start (where its code and its data \
             lie), which no interval knows of.",
            grouped(self.many),
            grouped(&self.requests.to_string())
        )
    }

    /// The middle request by the number of methods.
    fn middles(&self) -> Sheet {
        let mut counts = vec![FEW, self.many];
        counts.dedup();
        let rows = counts.into_iter().map(|methods| {
            responses::row(&grouped(methods), &|way| milliseconds(&self.of(way, methods, "p50")))
        });
        let headings = std::iter::once("methods").chain(responses::WAYS.map(|(_, name)| name));
        let rows = rows.collect();
        Sheet::new(
            "The middle request by the number of methods: medians over the bursts",
            headings,
            rows,
        )
    }

    /// What it took until all was compiled, and what the process is then.
    fn starts(&self) -> Sheet {
        let row = |heading: &str, key: &str, show: &dyn Fn(f64) -> String| {
            responses::row(heading, &|way| self.start(way, key).map(show).unwrap_or_default())
        };
        let from_ms = |ms: f64| seconds(ms / 1e3);
        let from_kib = |kib: f64| bytes(kib * 1024.0);
        let added = responses::row("memory added", &|way| {
            let added = self.start(way, "rss_kb").zip(self.start(way, "rss_before_kb"));
            added.map(|(after, before)| from_kib(after - before)).unwrap_or_default()
        });
        let rows = vec![
            row("methods compiled", "compiled", &count),
            row("until all were compiled", "warm_s", &seconds),
            row("the middle request until then", "warm_ms", &from_ms),
            row("compiling and loading a method", "method_ms", &from_ms),
            row("the last compaction", "compaction_ms", &from_ms),
            added,
            row("page tables", "page_tables_kb", &from_kib),
            row("mappings", "mappings", &count),
            row("executable mappings", "code_mappings", &count),
        ];
        let headings = std::iter::once("").chain(responses::WAYS.map(|(_, name)| name));
        let title =
            format!("Until all of {} methods are compiled, one start each", grouped(self.many));
        Sheet::new(title, headings, rows)
    }

    /// `p50 own`: what a claim is about.
    pub(super) fn named(&self, name: &str) -> Option<Series> {
        match name.split(' ').collect::<Vec<&str>>()[..] {
            [figure @ ("p50" | "p100"), way] => Some(self.of(way, self.many, figure)),
            ["p50", way, "few"] => Some(self.of(way, FEW, "p50")),
            ["gap", way, "all"] if self.requests > 100 => Some(self.gap(way, "p50")),
            ["gap", way, "100"] if self.requests > 100 => Some(self.gap(way, "p50_of_100")),
            _ => None,
        }
    }

    /// The middle request of a way over that without JIT.
    fn gap(&self, way: &str, key: &str) -> Series {
        let none = self.of("interpreter", self.many, key);
        self.of(way, self.many, key).with(&none, |own, none| own / none)
    }

    /// What claims are said of.
    pub(super) fn values(&self) -> [String; 3] {
        let jit = format!("{WHAT}, {} methods", grouped(self.many));
        [WHAT.to_owned(), jit, self.requests.to_string()]
    }

    fn middle(&self, one: &str, other: &str) -> String {
        let of = |way| self.of(way, self.many, "p50");
        claim::written(of(one).over(&of(other)).as_ref())
    }

    /// The figures of the verdict's sentence.
    pub(super) fn figures(&self) -> String {
        format!(
            "with {} methods of Ruby compiled by MJIT, the middle request takes {} of its time without JIT with a library each \
             (theirs ×1.18), {} with a single one (×1.08) and {} in the code arena",
            grouped(self.many),
            self.middle("own", "interpreter"),
            self.middle("single", "interpreter"),
            self.middle("arena", "interpreter")
        )
    }

    pub(super) fn change(&self) -> Vec<Block> {
        let text = "Ruby with its methods in the arena needs no linker and no compaction, and a method that is compiled again \
                    leaves nothing behind. The middle request:";
        let points = [("own", "with a library each"), ("single", "with a single library")];
        let points =
            points.map(|(way, what)| format!("{} of the time {what}", self.middle("arena", way)));
        vec![Block::marked(text), Block::points(points)]
    }
}

/// Whether Ruby is there with all that MJIT needs; else that is noted.
fn is_there(bench: &mut Workbench<'_>) -> Result<bool, Error> {
    let packages = [PROGRAM, "ruby3.1-dev", "gcc"];
    let is_complete = || {
        let mut ruby = Command::new(PROGRAM);
        ruby.args(["--disable=gems", "-rrbconfig", "-e", IS_COMPLETE]);
        ruby.output().is_ok_and(|output| output.status.success())
    };
    if is_complete() {
        return Ok(true);
    }
    let why = format!("there is no `{PROGRAM}` here with MJIT's header and its compiler");
    Ok(bench.provide(WHAT, &why, &packages)? && is_complete())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_every_way_and_the_files_beside_it() {
        let suite = Suite::parse("ruby.toml".as_ref(), SUITE).unwrap();
        let entry = &suite.entries[0];
        let has = |name: &str, value: &str| {
            entry
                .parameters
                .iter()
                .any(|one| one.name == name && one.values.iter().any(|known| known == value))
        };
        assert!(responses::WAYS.iter().all(|(way, _)| has("way", way)));
        assert!(has("methods", FEW));
        let words = entry.command.iter().map(|word| word.to_string_lossy());
        let mut files = words.filter(|word| word.contains('.'));
        assert!(files.all(|word| FILES.iter().any(|(name, _)| *name == word)));
    }
}
