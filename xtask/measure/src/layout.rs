//! `cargo xtask layout`: what a call costs by where code lies, as a table and a plot.
//!
//! Relies on the suite `workloads/layout.toml`, run by the lab in turns, and on the figures that each
//! run appends: nanoseconds a call, time to load, memory. The warm-up's figures, which come first
//! for each row, do not count.

mod page;
mod plot;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use masu_lab::compare::Destination;
use masu_lab::plan::Ground;
use masu_lab::results::Rounds;
use masu_lab::{Catalogue, CompareOptions, Parameter, Places, Plan, Stop, Suite, compare};

use xtask::{machine, options, records, steps};

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

/// What a call costs by where code lies: libraries, one library, the arena; writes benches/record (about 6 minutes)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// Rounds, each with one run of every layout
    #[arg(long, value_name = "N", value_parser = options::times)]
    rounds: Option<usize>,
}

/// Makes what is loaded, measures, and writes the record.
///
/// # Errors
///
/// The step that failed, named.
pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
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
    if let Some(rounds) = request.rounds {
        suite.rounds = Rounds::Fixed(rounds);
    }
    measure(&suite, &made)?;
    let text = fs::read_to_string(&figures)?;
    let rows = read(&text)?;
    let plot = format!("benches/record/{}-layout.svg", records::today());
    fs::write(root.join(&plot), plot::draw(&rows))?;
    let path = records::write(root, "layout", &page::page(&rows, &plot))?;
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
        let page = page::page(&rows, "benches/record/a.svg");
        assert!(page.contains("| own | 1 | 20.00 | 20.00–20.00 | 10.00 |"), "{page}");
        let plot = plot::draw(&rows);
        assert!(plot.contains(">own<") && plot.contains(">one<") && plot.ends_with("</svg>\n"));
    }
}
