//! `cargo xtask layout`: what a call costs by where code lies, as a table and a plot.
//!
//! Relies on the suite `workloads/layout.toml`, run by the lab in turns, and on the figures that each
//! run appends: nanoseconds a call, time to load, memory. The warm-up's figures, which come first
//! for each row, do not count.

mod plot;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use masu_lab::compare::Destination;
use masu_lab::plan::Ground;
use masu_lab::results::Rounds;
use masu_lab::{Catalogue, CompareOptions, Parameter, Places, Plan, Stop, Suite, compare};

use crate::bench::record;
use crate::{machine, steps};

/// Functions that are made: the most that any row loads.
const COUNT: &str = "4000";

/// A row of the table: layout, bytes of a body, number of functions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    body: u32,
    count: u32,
    layout: String,
}

/// The medians of a row's runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Figures {
    runs: usize,
    call_ns: f64,
    /// The lowest and the highest of the runs.
    call_span_ns: (f64, f64),
    load_ms: f64,
    rss_kib: f64,
    page_tables_kib: f64,
    mappings: f64,
}

/// Makes what is loaded, measures, and writes the record.
///
/// # Errors
///
/// The step that failed, named.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let rounds = match options {
        [] => None,
        ["--rounds", rounds] => Some(rounds.parse().context("--rounds takes a number")?),
        _ => bail!("cargo xtask layout [--rounds N]"),
    };
    machine::provide(&machine::PATTERNS.iter().collect::<Vec<_>>())?;
    let target = steps::target_folder()?;
    let build = ["build", "--release", "--package", "masu-code", "--example", "layout"];
    steps::take("build", || steps::succeed(&mut steps::cargo(root, &build)))?;
    let (program, made) = (target.join("release/examples/layout"), target.join("layout"));
    let mut prepare = std::process::Command::new(&program);
    prepare.arg("prepare").arg(&made).arg(COUNT);
    steps::take("objects and libraries", || steps::succeed(&mut prepare))?;
    let figures = made.join("figures.jsonl");
    let _ = fs::remove_file(&figures);
    let mut suite = Suite::read(&root.join("workloads/layout.toml"))?;
    let values = [("program", &program), ("made", &made), ("figures", &figures)];
    for (name, path) in values {
        let path = path.to_str().context("a path is no text")?;
        suite.set(&Parameter { name: name.to_owned(), values: vec![path.to_owned()] })?;
    }
    if let Some(rounds) = rounds {
        suite.rounds = Rounds::Fixed(rounds);
    }
    measure(&suite, &made)?;
    let text = fs::read_to_string(&figures)?;
    let rows = read(&text)?;
    let plot = format!("benches/record/{}-layout.svg", record::today());
    fs::write(root.join(&plot), plot::draw(&rows))?;
    let path = record::write(root, "layout", &page(&rows, &plot))?;
    println!("{path}");
    Ok(())
}

fn measure(suite: &Suite, made: &Path) -> Result<()> {
    let catalogue = Catalogue::find(&Places::default());
    let mut ground = |_| Ground { catalogue: catalogue.clone(), ..Ground::default() };
    let plan = Plan::make(suite, &mut ground)?;
    let results = made.join("layout.jsonl");
    let options =
        CompareOptions { results: Destination::New(results), ..CompareOptions::default() };
    let compared = compare(&plan, &options, &Stop::on_signals()?, &mut |_| {})?;
    if compared.stopped {
        bail!("stopped");
    }
    Ok(())
}

/// A number of a line of figures.
fn number(line: &str, name: &str) -> Result<f64> {
    let after = line.split_once(&format!("\"{name}\":")).map(|(_, after)| after);
    let digits = after.and_then(|after| after.split([',', '}']).next());
    digits.and_then(|digits| digits.parse().ok()).with_context(|| format!("no {name} in {line}"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// The rows of a file of figures, without the warm-ups.
fn read(text: &str) -> Result<BTreeMap<Key, Figures>> {
    let mut lines: BTreeMap<Key, Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        let layout = line.split('"').nth(3).context("a line without a layout")?.to_owned();
        let (body, count) = (number(line, "body")? as u32, number(line, "count")? as u32);
        lines.entry(Key { body, count, layout }).or_default().push(line);
    }
    let mut rows = BTreeMap::new();
    for (key, lines) in lines {
        let runs = if lines.len() > 1 { &lines[1..] } else { &lines[..] };
        let all = |name| runs.iter().map(|line| number(line, name)).collect::<Result<Vec<f64>>>();
        let calls = all("ns")?;
        let low = calls.iter().copied().fold(f64::INFINITY, f64::min);
        let high = calls.iter().copied().fold(0.0, f64::max);
        let figures = Figures {
            runs: runs.len(),
            call_ns: median(calls),
            call_span_ns: (low, high),
            load_ms: median(all("load_us")?) / 1000.0,
            rss_kib: median(all("rss_kb")?),
            page_tables_kib: median(all("page_tables_kb")?),
            mappings: median(all("mappings")?),
        };
        rows.insert(key, figures);
    }
    Ok(rows)
}

/// What each layout is.
const LAYOUTS: [(&str, &str); 8] = [
    ("one", "one linked library; the load is link and `dlopen`"),
    ("own", "a library each"),
    ("own2m", "a library each, aligned to 2 MiB"),
    ("arena", "the arena, from files, debugger and unwinder told"),
    ("arena-untold", "the arena, from files, nobody told"),
    ("arena-memory", "the arena, from memory, debugger and unwinder told"),
    ("arena-memory-untold", "the arena, from memory, nobody told"),
    ("arena-each", "the arena, object by object, from files, all told"),
];

fn page(rows: &BTreeMap<Key, Figures>, plot: &str) -> String {
    let mut text = format!("# What a call costs by where code lies, {}\n\n", record::today());
    text.push_str(
        "Small functions called in turn, each layout in runs that the lab made in turns (`cargo xtask \
         layout`). Medians of the runs; a run's nanoseconds a call are the quickest of 15 samples. \
         Ratios are to one linked library.\n\n",
    );
    for (name, meaning) in LAYOUTS {
        let _ = writeln!(text, "- `{name}`: {meaning}");
    }
    let file = Path::new(plot).file_name().map_or(plot.into(), |name| name.to_string_lossy());
    let _ = writeln!(text, "\n![nanoseconds a call by number of functions]({file})");
    let mut last = (0, 0);
    for (key, figures) in rows {
        if (key.body, key.count) != last {
            last = (key.body, key.count);
            let (body, count) = last;
            let _ = writeln!(text, "\n## Bodies of about {body} bytes, {count} functions\n");
            text.push_str("| layout | runs | ns a call | lowest to highest | × one | load, ms | × faster to load than `one` | RSS, KiB | page tables, KiB | mappings |\n");
            text.push_str("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
        }
        let one = rows.get(&Key { layout: "one".to_owned(), ..key.clone() });
        let one = one.copied().unwrap_or_default();
        let Figures { runs, call_ns, call_span_ns, load_ms, rss_kib, page_tables_kib, mappings } =
            figures;
        let (low, high) = call_span_ns;
        let (slower, faster) = (call_ns / one.call_ns, one.load_ms / load_ms);
        let _ = writeln!(
            text,
            "| {} | {runs} | {call_ns:.2} | {low:.2}–{high:.2} | {slower:.2} | {load_ms:.2} | {faster:.1} \
             | {rss_kib:.0} | {page_tables_kib:.0} | {mappings:.0} |",
            key.layout
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(layout: &str, ns: f64) -> String {
        format!(
            "{{\"kind\":\"{layout}\",\"body\":8,\"count\":100,\"ns\":{ns},\"load_us\":1500,\"link_us\":0,\
             \"rss_kb\":4,\"page_tables_kb\":5,\"mappings\":6,\"executable\":1}}\n"
        )
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let text = line("one", 900.0) + &line("one", 3.0) + &line("one", 1.0) + &line("one", 2.0);
        let rows = read(&text).unwrap();
        let figures = rows.values().next().unwrap();
        assert_eq!((figures.runs, figures.call_ns, figures.load_ms), (3, 2.0, 1.5));
        assert_eq!(figures.call_span_ns, (1.0, 3.0));
    }

    #[test]
    fn the_page_and_the_plot_have_every_layout() {
        let text = line("one", 2.0) + &line("own", 20.0);
        let rows = read(&text).unwrap();
        let page = page(&rows, "benches/record/a.svg");
        assert!(page.contains("| own | 1 | 20.00 | 20.00–20.00 | 10.00 |"), "{page}");
        let plot = plot::draw(&rows);
        assert!(plot.contains(">own<") && plot.contains(">one<") && plot.ends_with("</svg>\n"));
    }
}
