//! `code`: the more methods a JIT compiles, the slower the program (Ruby MJIT, 2018).
//!
//! Relies on two examples of masu-code: small functions in many layouts, and a JIT in miniature that answers requests. The
//! hard idea is that a run's clock says little here, so each run notes its own figures and these are compared, round by
//! round.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::build::Cargo;
use super::series::row;
use super::told::{self, memory, milliseconds};
use super::workbench::{in_one_table, keep, set, workload};
use super::{
    Block, Claim, Depth, Expect, Experiment, Figure, Outcome, Series, Sheet, Verdict, Workbench,
    claim,
};
use crate::report::{self, Chart, Line, Table, seconds};
use crate::suite::Suite;
use crate::{Error, Parameter};

/// What a call costs, and how long a request takes.
const LAYOUTS: &str = include_str!("../../experiments/layout.toml");
const REQUESTS: &str = include_str!("../../experiments/jit.toml");

/// The ways code may lie, with the names that the page has for them.
const SHOWN: [(&str, &str); 4] = [
    ("own2m", "a library each, 2 MiB apart"),
    ("own", "a library each"),
    ("one", "one linked library"),
    ("arena", "code arena (masu-code)"),
];

/// The ways of the JIT, as the report's table has them.
const WAYS: [(&str, &str); 4] = [
    ("interpreter", "no JIT"),
    ("own", "one .so each"),
    ("single", "single .so"),
    ("arena", "code arena"),
];

const PERCENTILES: [&str; 8] = ["50", "66", "75", "80", "90", "95", "98", "100"];

pub(super) struct Code;

impl Experiment for Code {
    fn name(&self) -> &'static str {
        "code"
    }

    fn about(&self) -> &'static str {
        "The more a JIT compiles, the slower it runs"
    }

    fn title(&self) -> &'static str {
        "A JIT's code: where it lies decides what a call costs"
    }

    fn takes(&self, depth: Depth) -> &'static str {
        match depth {
            Depth::Tiny => "1 min",
            Depth::Quick => "3 min",
            Depth::Usual => "8 min",
            Depth::Full => "15 min",
        }
    }

    fn run(&self, bench: &mut Workbench<'_>) -> Result<Outcome, Error> {
        let Some(made) = prepare(bench)? else {
            return Ok(outcome(&Measured::default(), Vec::new()));
        };
        let counts = counts(bench);
        let suite = layouts(bench, &made)?;
        let layouts = bench.compare(&suite, "layouts")?;
        let suite = requests(bench, &made)?;
        let requests = bench.compare(&suite, "requests")?;
        let most = counts.last().copied().unwrap_or("100");
        let folder = made.layouts.to_str().unwrap_or_default().to_owned();
        let program = made.program("layout");
        let words =
            [program.to_str().unwrap_or("layout"), "run", &folder, "own", "8", most, "/dev/null"];
        let found = bench.diagnose(&workload(&words, None)?)?;
        let diagnosis =
            told::diagnosis(&format!("{most} functions, a library each"), found.as_ref());
        let tables = |comparison: Option<crate::Comparison>| {
            comparison.map(|comparison| comparison.tables).unwrap_or_default().into_iter().next()
        };
        let measured = Measured {
            layouts: tables(layouts),
            requests: tables(requests),
            figures: made.layouts.join("figures.jsonl"),
            percentiles: made.requests.join("figures.jsonl"),
            counts: counts.iter().map(ToString::to_string).collect(),
            methods: methods(bench),
        };
        Ok(outcome(&measured, diagnosis))
    }
}

/// The numbers of functions.
fn counts(bench: &Workbench<'_>) -> &'static [&'static str] {
    bench.choose(
        &["1", "10"],
        &["100", "1000"],
        &["100", "1000", "4000"],
        &["1", "100", "1000", "4000"],
    )
}

/// The methods of the JIT.
fn methods(bench: &Workbench<'_>) -> &'static str {
    bench.choose("20", "1000", "1000", "4000")
}

/// What is measured.
struct Made {
    /// Where cargo put the programs.
    target: PathBuf,
    layouts: PathBuf,
    requests: PathBuf,
}

impl Made {
    fn program(&self, name: &str) -> PathBuf {
        self.target.join("release/examples").join(name)
    }
}

/// Builds the programs and makes what they load.
fn prepare(bench: &mut Workbench<'_>) -> Result<Option<Made>, Error> {
    let Some(cargo) = Cargo::find(bench, "the layouts and the JIT") else { return Ok(None) };
    let install = "install gcc, which compiles the methods (Debian: apt install gcc)";
    if bench.tool("gcc", "the layouts and the JIT", install).is_none() {
        return Ok(None);
    }
    let examples =
        ["--release", "--package", "masu-code", "--example", "layout", "--example", "jit"];
    let Some(target) = cargo.of_tree(bench, "the layouts and the JIT", &examples)? else {
        return Ok(None);
    };
    let [layouts, requests] = ["layouts", "requests"].map(|name| bench.cache().join(name));
    let made = Made { target, layouts, requests };
    let most = counts(bench).last().copied().unwrap_or("100");
    for (name, folder, count) in
        [("layout", &made.layouts, most), ("jit", &made.requests, methods(bench))]
    {
        let mut command = Command::new(made.program(name));
        command.arg("prepare").arg(folder).arg(count);
        let what = format!("compiling {count} methods for the {name}");
        if bench.step(&what, &mut command)?.is_none() {
            return Ok(None);
        }
        // What an earlier time left would be taken for this one's.
        let _ = fs::remove_file(folder.join("figures.jsonl"));
    }
    Ok(Some(made))
}

fn layouts(bench: &mut Workbench<'_>, made: &Made) -> Result<Suite, Error> {
    let mut suite = Suite::parse(&bench.cache().join("layout.toml"), LAYOUTS)?;
    set(&mut suite, "program", &made.program("layout"))?;
    set(&mut suite, "made", &made.layouts)?;
    set(&mut suite, "figures", &made.layouts.join("figures.jsonl"))?;
    in_one_table(&mut suite, bench.choose(1, 8, 9, 9));
    let counts = counts(bench);
    for entry in &mut suite.entries {
        keep(entry, "layout", |layout| SHOWN.iter().any(|(shown, _)| *shown == layout));
        for parameter in entry.parameters.iter_mut().filter(|parameter| parameter.name == "count") {
            parameter.values = counts.iter().map(ToString::to_string).collect();
        }
    }
    Ok(suite)
}

fn requests(bench: &mut Workbench<'_>, made: &Made) -> Result<Suite, Error> {
    let mut suite = Suite::parse(&bench.cache().join("jit.toml"), REQUESTS)?;
    set(&mut suite, "program", &made.program("jit"))?;
    set(&mut suite, "made", &made.requests)?;
    set(&mut suite, "figures", &made.requests.join("figures.jsonl"))?;
    let methods = vec![methods(bench).to_owned()];
    suite.set(&Parameter { name: "methods".to_owned(), values: methods })?;
    in_one_table(&mut suite, bench.choose(1, 8, 9, 9));
    Ok(suite)
}

/// What was measured.
#[derive(Default)]
struct Measured {
    layouts: Option<Table>,
    requests: Option<Table>,
    figures: PathBuf,
    percentiles: PathBuf,
    counts: Vec<String>,
    methods: &'static str,
}

impl Measured {
    /// A figure of a layout: `ns`, `load_us`, `rss_kb`, `mappings`.
    fn layout(&self, layout: &str, body: &str, count: &str, key: &str) -> Series {
        let Some(table) = &self.layouts else { return Series::default() };
        let values = [("layout", layout), ("body", body), ("count", count)];
        let is_own = |line: &Value| {
            text(line, "kind") == layout
                && text(line, "body") == body
                && text(line, "count") == count
        };
        noted(table, &values, &self.figures, is_own, key)
    }

    /// A figure of the JIT: `p50`, `load_ms`, `rss_kb`.
    fn jit(&self, way: &str, requests: &str, key: &str) -> Series {
        let Some(table) = &self.requests else { return Series::default() };
        let values = [("way", way), ("requests", requests)];
        let is_own = |line: &Value| text(line, "way") == way && text(line, "requests") == requests;
        noted(table, &values, &self.percentiles, is_own, key)
    }

    fn most(&self) -> &str {
        // The report's limit was 1,000 methods.
        let usual = self.counts.iter().find(|count| *count == "1000");
        usual.or(self.counts.last()).map_or("", String::as_str)
    }

    fn fewest(&self) -> &str {
        let usual = self.counts.iter().find(|count| *count == "100");
        usual.or(self.counts.first()).map_or("", String::as_str)
    }
}

fn noted(
    table: &Table,
    values: &[(&str, &str)],
    file: &Path,
    is_own: impl Fn(&Value) -> bool,
    key: &str,
) -> Series {
    Series::noted(table, row(table, "system", values), file, is_own, key)
}

/// A value of a line as text, be it a number or not.
fn text(line: &Value, key: &str) -> String {
    match line.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn outcome(measured: &Measured, diagnosis: Vec<Block>) -> Outcome {
    let claims = claims(measured);
    Outcome {
        verdict: Verdict::of(&claims, &figures(measured)),
        then: then(),
        now: now(measured),
        claims,
        diagnosis,
        change: change(measured),
        by_hand: [
            "cargo build --release -p masu-code --example layout --example jit",
            "target/release/examples/layout prepare target/layout 4000",
            "target/release/examples/layout run target/layout own 8 1000 /dev/stderr    # also own2m, one, arena; 204",
            "masu compare --suite workloads/layout.toml",
            "target/release/examples/jit prepare target/jit 1000",
            "target/release/examples/jit run target/jit own 1000 1000 /dev/stderr       # also interpreter, single, arena",
            "masu compare --suite workloads/jit.toml",
            "masu code map -p PID     # how scattered a running process's code is",
        ]
        .map(str::to_owned)
        .into(),
    }
}

fn then() -> Vec<Block> {
    let story = "A method JIT emits C, compiles each method into a `.so` of its own and loads it. With 4,000 to 5,000 \
                 methods (a Rails application) the program ran slower than without JIT, with 20 to 30 it ran faster: each \
                 library lands 2 MiB from the next, so the instruction cache and the iTLB miss. Two remedies were \
                 compared: one `.so` linked from all objects, and objects loaded directly (objfcn). The first was chosen.";
    let headings = "percentile | no JIT | one .so each | single .so | objfcn";
    let rows = "50 | 38 | 45 | 41 | 43
                66 | 39 | 50 | 44 | 44
                75 | 47 | 51 | 46 | 45
                80 | 49 | 52 | 47 | 47
                90 | 50 | 63 | 50 | 52
                95 | 60 | 79 | 52 | 55
                98 | 91 | 114 | 91 | 91
                100 | 97 | 133 | 96 | 99";
    let table =
        Sheet::printed("Response time of GET /, milliseconds, 100 requests, 2018", headings, rows);
    vec![Block::Text(story.to_owned()), Block::Sheet(table)]
}

/// Nanoseconds.
fn nanoseconds(value: f64) -> String {
    if value < 9.95 { format!("{value:.2} ns") } else { format!("{value:.1} ns") }
}

fn now(measured: &Measured) -> Vec<Block> {
    let mut blocks = Vec::new();
    if measured.layouts.is_some() {
        for body in ["8", "204"] {
            blocks.extend(calls(measured, body));
        }
        blocks.push(Block::Sheet(loads(measured)));
    }
    if measured.requests.is_some() {
        for requests in ["100", "1000"] {
            blocks.extend(responses(measured, requests));
        }
    }
    blocks
}

/// What a call costs, as a plot and a table.
fn calls(measured: &Measured, body: &str) -> [Block; 2] {
    let caption =
        format!("Nanoseconds a call, bodies of about {body} bytes, by number of functions");
    let series = |layout: &str| -> Vec<Series> {
        measured.counts.iter().map(|count| measured.layout(layout, body, count, "ns")).collect()
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
        ticks: &measured.counts,
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
    let headings = std::iter::once("layout".to_owned()).chain(measured.counts.clone());
    let sheet =
        Sheet::new(format!("{caption}: medians (lowest–highest)"), headings, rows.collect());
    [Block::Figure(figure), Block::Sheet(sheet)]
}

/// What loading takes.
fn loads(measured: &Measured) -> Sheet {
    let count = measured.most();
    let rows = SHOWN.iter().map(|(layout, name)| {
        let of = |key| measured.layout(layout, "8", count, key);
        let scaled = |series: Series, factor: f64| series.with(&series, |value, _| value * factor);
        vec![
            (*name).to_owned(),
            milliseconds(&scaled(of("load_us"), 1e-3)),
            memory(&scaled(of("rss_kb"), 1024.0)),
            memory(&scaled(of("page_tables_kb"), 1024.0)),
            of("mappings").median().map(crate::report::count).unwrap_or_default(),
        ]
    });
    let headings = ["layout", "load (link included)", "memory", "page tables", "mappings"];
    Sheet::new(format!("Loading {count} functions of 8 bytes"), headings, rows.collect())
}

/// Response times like the report's table.
fn responses(measured: &Measured, requests: &str) -> [Block; 2] {
    let caption = format!(
        "Response time of the JIT in miniature, {} methods, {requests} requests",
        measured.methods
    );
    let at = |way: &str, percentile: &str| measured.jit(way, requests, &format!("p{percentile}"));
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
    let ticks = PERCENTILES.map(str::to_owned);
    let chart = Chart {
        title: &caption,
        across: "percentile",
        ticks: &ticks,
        lines: &lines,
        unit: seconds,
    };
    let svg = report::lines(&format!("code-requests-{requests}"), &chart);
    let figure = Figure { name: format!("requests-{requests}"), caption: caption.clone(), svg };
    let mut rows: Vec<Vec<String>> = PERCENTILES
        .iter()
        .map(|percentile| {
            let cells = WAYS.iter().map(|(way, _)| milliseconds(&at(way, percentile)));
            std::iter::once((*percentile).to_owned()).chain(cells).collect()
        })
        .collect();
    let loads = WAYS.iter().map(|(way, _)| milliseconds(&measured.jit(way, requests, "load_ms")));
    rows.push(std::iter::once("load before".to_owned()).chain(loads).collect());
    let headings = std::iter::once("percentile").chain(WAYS.map(|(_, name)| name));
    let sheet = Sheet::new(format!("{caption}: medians over the runs"), headings, rows);
    [Block::Figure(figure), Block::Sheet(sheet)]
}

fn claims(measured: &Measured) -> Vec<Claim> {
    let mut claims = Vec::new();
    let of_ratio = Claim::of_ratio;
    let (few, many) = (measured.fewest(), measured.most());
    let (above, below) = (Expect::Above(1.0), Expect::Below(1.0));
    if measured.layouts.is_some() {
        let call = |layout: &str, count: &str| measured.layout(layout, "204", count, "ns");
        claims.extend([
            of_ratio(
                &format!("A call costs more the more methods there are, a library each: {many} against {few}"),
                "slower with thousands, faster with 20 to 30",
                call("own", many).over(&call("own", few)).as_ref(),
                above,
            ),
            of_ratio(
                "Libraries 2 MiB apart are what is slow: slower than libraries side by side",
                "2 MiB apart",
                call("own2m", many).over(&call("own", many)).as_ref(),
                above,
            ),
            of_ratio(
                "One linked library is faster than a library each",
                "41 ms, not 45",
                call("one", many).over(&call("own", many)).as_ref(),
                below,
            ),
            of_ratio(
                "Objects loaded densely are called as fast as one linked library, within a tenth",
                "43 and 41 ms",
                call("arena", many).over(&call("one", many)).as_ref(),
                Expect::Near(1.1),
            ),
        ]);
    }
    if measured.requests.is_some() {
        let median = |way: &str| measured.jit(way, "1000", "p50");
        claims.extend([
            of_ratio(
                "With a library each, a request takes longer than without JIT",
                "45 ms, not 38",
                median("own").over(&median("interpreter")).as_ref(),
                above,
            ),
            of_ratio(
                "With a single library it takes less than with a library each",
                "41 ms, not 45",
                median("single").over(&median("own")).as_ref(),
                below,
            ),
            of_ratio(
                "Objects loaded directly do as well as a single library, within a tenth",
                "43 and 41 ms",
                median("arena").over(&median("single")).as_ref(),
                Expect::Near(1.1),
            ),
        ]);
    }
    claims
}

/// The figures of the verdict's sentence.
fn figures(measured: &Measured) -> String {
    let mut parts = Vec::new();
    let (few, many) = (measured.fewest(), measured.most());
    let told = |ratio: Option<crate::statistics::Ratio>| claim::told(ratio.as_ref());
    if measured.layouts.is_some() {
        let call = |layout: &str, count: &str| measured.layout(layout, "204", count, "ns");
        parts.push(format!(
            "with a library each a call among {many} functions takes {} of one among {few}, and {} of one in a linked library",
            told(call("own", many).over(&call("own", few))),
            told(call("own", many).over(&call("one", many)))
        ));
    }
    if measured.requests.is_some() {
        let median = |way: &str| measured.jit(way, "1000", "p50");
        parts.push(format!(
            "a request takes {} of its time without JIT with a library each (theirs ×1.18) and {} with a single one (×1.08)",
            told(median("own").over(&median("interpreter"))),
            told(median("single").over(&median("interpreter")))
        ));
    }
    if parts.is_empty() { "nothing could be measured here".to_owned() } else { parts.join("; ") }
}

/// What masu changes.
fn change(measured: &Measured) -> Vec<Block> {
    let Some(_) = &measured.layouts else { return Vec::new() };
    let told = |ratio: Option<crate::statistics::Ratio>| claim::told(ratio.as_ref());
    let mut rows = Vec::new();
    for body in ["8", "204"] {
        for count in &measured.counts {
            let of = |layout: &str, key| measured.layout(layout, body, count, key);
            let arena = of("arena", "ns");
            rows.push(vec![
                format!("{count}, bodies of {body} bytes"),
                told(arena.over(&of("own", "ns"))),
                told(arena.over(&of("one", "ns"))),
                told(of("arena", "load_us").over(&of("one", "load_us"))),
                told(of("arena", "rss_kb").over(&of("own", "rss_kb"))),
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
                gdb, perf and unwinders, and methods can be unloaded while threads run. Load is from files, debugger and \
                unwinder told.";
    let sheet = Sheet::new("The code arena, over the others", headings, rows);
    vec![Block::Text(text.to_owned()), Block::Sheet(sheet)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_programs_the_page_is_made_and_nothing_is_claimed() {
        let outcome = outcome(&Measured::default(), Vec::new());
        assert!(outcome.claims.is_empty() && outcome.now.is_empty() && outcome.change.is_empty());
        assert!(outcome.verdict.sentence.contains("nothing could be measured"));
    }

    #[test]
    fn the_suites_have_every_way_that_is_shown() {
        let layouts = Suite::parse("layout.toml".as_ref(), LAYOUTS).unwrap();
        let requests = Suite::parse("jit.toml".as_ref(), REQUESTS).unwrap();
        let has = |suite: &Suite, name: &str, value: &str| {
            let mut all = suite.entries[0].parameters.iter();
            all.any(|one| one.name == name && one.values.iter().any(|known| known == value))
        };
        assert!(SHOWN.iter().all(|(layout, _)| has(&layouts, "layout", layout)));
        assert!(WAYS.iter().all(|(way, _)| has(&requests, "way", way)));
    }

    #[test]
    fn a_line_s_values_are_told_by_their_text() {
        let line: Value = serde_json::from_str("{\"kind\":\"own\",\"body\":8}").unwrap();
        assert_eq!((text(&line, "kind").as_str(), text(&line, "body").as_str()), ("own", "8"));
        assert_eq!(text(&line, "none"), "");
    }
}
