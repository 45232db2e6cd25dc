//! `brk`: a sed script that spends two thirds of its time in the kernel (GNU sed, 2018).
//!
//! Relies on the script, which is embedded, and on GNU sed. Calls are counted in runs of their own and multiplied by
//! this machine's price, because what a `brk` costs is the platform's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::field_report::{FieldReport, Today};
use super::format::{malloc, memory, time};
use super::series::row;
use super::workbench::{in_one_table, set, workload};
use super::{Block, Experiment, Figure, Outcome, Series, Sheet, Workbench, claim};
use crate::calls::Call;
use crate::error::Doing;
use crate::prices::Service;
use crate::report::{self, Bar, count, seconds};
use crate::statistics::Ratio;
use crate::suite::Suite;
use crate::tables::Table;
use crate::{Calls, Error, Measure, Variant};

/// The suite and the script.
const REPORT: &str = include_str!("../../experiments/reports/brk.toml");
const SUITE: &str = include_str!("../../experiments/brk.toml");
const SCRIPT: &str = include_str!("../../experiments/primes49.sed");

/// What the list begins with, whatever its length.
const BEGINNING: &str = "19,29,41,43,47";

const PADDED: [&str; 3] = [
    "glibc:env.MALLOC_TOP_PAD_=100000",
    "glibc:env.MALLOC_TOP_PAD_=1000000",
    "glibc:env.MALLOC_TOP_PAD_=10000000",
];

/// Both settings at once.
const PAIR: &str = "glibc:top_pad=64M,trim_threshold=64M";

/// Time in the kernel may be counted by ticks, of a hundredth of a second where they are longest: less than one is as good
/// as nothing.
const TICK_S: f64 = 0.01;

/// Calls by which a malloc takes and gives memory.
const MAPPING: [Call; 4] = [Call::Mmap, Call::Munmap, Call::Mremap, Call::Madvise];

pub(super) const BRK: Experiment = Experiment {
    name: "brk",
    about: "A sed script spends its time in the kernel",
    title: "A sed script in the kernel: what the top of a heap costs",
    takes: ["seconds", "2 min", "10 min", "50 min"],
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<Outcome, Error> {
    let script = bench.cache().join("primes49.sed");
    fs::write(&script, SCRIPT).doing(|| format!("writing {}", script.display()))?;
    let mut sizes = Vec::new();
    if is_gnu_sed(bench, &script) {
        let numbers: &[u32] = bench.choose(&[5], &[36], &[50], &[50, 100]);
        for number in numbers {
            sizes.extend(measure(bench, &script, *number)?);
        }
    }
    let mut diagnosis = Vec::new();
    if let Some(size) = sizes.first() {
        diagnosis = bench.diagnosis("The script as it is", &sed(&script), Some(&size.input))?;
    }
    Ok(outcome(&sizes, diagnosis))
}

/// The command, as a shell has it.
fn sed(script: &Path) -> [&str; 3] {
    ["sed", "-rf", script.to_str().unwrap_or("primes49.sed")]
}

/// Whether there is a sed that understands the script, and makes the author's list.
fn is_gnu_sed(bench: &mut Workbench<'_>, script: &Path) -> bool {
    let install = "install GNU sed (Debian: apt install sed; Alpine: apk add sed)";
    if bench.tool("sed", "everything here", install).is_none() {
        return false;
    }
    let said =
        Command::new("sh").arg("-c").arg("echo 5 | sed -rf \"$1\"").arg("sh").arg(script).output();
    let list = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    let is_right = list.is_ok_and(|list| list.starts_with(BEGINNING));
    if !is_right {
        let reason = format!("the `sed` here does not make the author's list; {install}");
        bench.miss("everything here", reason);
    }
    is_right
}

/// What was measured of one length of the list.
struct Size {
    number: u32,
    input: PathBuf,
    table: Table,
    /// The rows' calls, in the table's order.
    calls: Vec<Option<Calls>>,
    /// Seconds that one `brk` up and down takes here, and `mmap` and `munmap`.
    prices_s: (f64, f64),
}

/// Measures the list of `number` primes; none where that failed, which is noted.
fn measure(bench: &mut Workbench<'_>, script: &Path, number: u32) -> Result<Option<Size>, Error> {
    let input = bench.cache().join(format!("{number}.txt"));
    fs::write(&input, format!("{number}\n")).doing(|| format!("writing {}", input.display()))?;
    let mut suite = Suite::parse(&bench.cache().join("brk.toml"), SUITE)?;
    set(&mut suite, "script", script)?;
    set(&mut suite, "input", &input)?;
    let rounds = match number {
        100 => 8,
        _ => bench.choose(1, 8, 20, 20),
    };
    in_one_table(&mut suite, rounds);
    for entry in &mut suite.entries {
        bench.add_found(entry, "sed");
    }
    let part = format!("n{number}");
    let Some(table) = bench.table(&suite, &part)? else { return Ok(None) };
    bench.say("counting the calls, a run of each");
    let counted = workload(&sed(script), Some(&input))?;
    let mut calls = Vec::new();
    for variant in &table.case.variants {
        calls.push(bench.count(&counted, variant));
    }
    let price = |service| bench.prices().of(service).unwrap_or(0.0) / 1e9;
    let prices_s = (price(Service::BreakPair), price(Service::MapPair));
    Ok(Some(Size { number, input, table, calls, prices_s }))
}

impl Size {
    fn series(&self, variant: &str, measure: Measure) -> Series {
        Series::of(&self.table, row(&self.table, variant, &[]), measure)
    }

    fn calls(&self, variant: &str, of: &[Call]) -> Option<u64> {
        let calls = self.calls.get(row(&self.table, variant, &[])?)?.as_ref()?;
        Some(calls.total.of_any(of))
    }

    /// `measure` of `variant` over that of the program as it is.
    fn times(&self, variant: &str, measure: Measure) -> Option<Ratio> {
        self.series(variant, measure).over(&self.series("system", measure))
    }

    /// The same of the time in the kernel, which may be too short for the kernel's clock.
    fn sys_times(&self, variant: &str) -> Option<Ratio> {
        let series = |variant| self.series(variant, Measure::Sys).at_least(TICK_S);
        series(variant).over(&series("system"))
    }

    fn sheet(&self) -> Sheet {
        let rows = self.table.case.variants.iter().map(|variant| self.row(variant)).collect();
        let headings = [
            "malloc",
            "brk",
            "mmap and its like",
            "at this machine's price",
            "user",
            "sys",
            "page faults",
            "peak RSS",
            "wall",
            "wall × as it is",
        ];
        let runs = self.series("system", Measure::Wall).len();
        let (pair_s, map_s) = self.prices_s;
        let caption = format!(
            "The first {} primes: medians of {runs} runs each; calls counted in one more. Two brk cost {}, mmap and \
             munmap {}",
            self.number,
            seconds(pair_s),
            seconds(map_s)
        );
        Sheet::new(caption, headings, rows)
    }

    fn row(&self, variant: &Variant) -> Vec<String> {
        let label = &variant.label;
        let of = |measure| self.series(label, measure);
        let (breaks, maps) = (self.calls(label, &[Call::Brk]), self.calls(label, &MAPPING));
        let price = breaks.zip(maps).map(|(breaks, maps)| {
            let (pair_s, map_s) = self.prices_s;
            seconds(float(breaks) / 2.0 * pair_s + float(maps) / 2.0 * map_s)
        });
        let faults = of(Measure::MinorFaults).median().map(count).unwrap_or_default();
        vec![
            name(variant),
            breaks.map(|calls| count(float(calls))).unwrap_or_default(),
            maps.map(|calls| count(float(calls))).unwrap_or_default(),
            price.unwrap_or_default(),
            time(&of(Measure::User)),
            time(&of(Measure::Sys)),
            faults,
            memory(&of(Measure::PeakRss)),
            time(&of(Measure::Wall)),
            match label.as_str() {
                "system" => "1".to_owned(),
                other => claim::written(self.times(other, Measure::Wall).as_ref()),
            },
        ]
    }

    /// A bar for every row: what `of` says, in words of `unit`.
    fn figure(
        &self,
        word: &str,
        caption: &str,
        of: impl Fn(&str) -> Option<f64>,
        unit: fn(f64) -> String,
    ) -> Block {
        let bar = |variant: &Variant| Bar { label: name(variant), value: of(&variant.label) };
        let bars: Vec<Bar> = self.table.case.variants.iter().map(bar).collect();
        let name = format!("{word}-{}", self.number);
        let caption = format!("The first {} primes: {caption}", self.number);
        let svg = report::bars(&format!("brk-{name}"), &caption, &bars, unit);
        Block::Figure(Figure { name, caption, svg })
    }
}

/// A row's name: the paddings as the report has them.
fn name(variant: &Variant) -> String {
    let label = variant.label.as_str();
    match label.strip_prefix("glibc:env.") {
        Some(set) => set.to_owned(),
        None if label == "system" => format!("as it is ({})", malloc_of(variant)),
        None => malloc(variant),
    }
}

fn malloc_of(variant: &Variant) -> String {
    let version = variant.version.as_deref().unwrap_or_default();
    format!("{} {version}", variant.allocator).trim_end().to_owned()
}

fn float(calls: u64) -> f64 {
    calls as f64
}

fn outcome(sizes: &[Size], diagnosis: Vec<Block>) -> Outcome {
    let mut now = Vec::new();
    for size in sizes {
        let calls = |label: &str| {
            let all: Vec<Call> = [&[Call::Brk][..], &MAPPING].concat();
            size.calls(label, &all).map(float)
        };
        let sys = |label: &str| size.series(label, Measure::Sys).median();
        now.push(size.figure("calls", "system calls for memory", calls, count));
        now.push(size.figure("sys", "CPU time in the kernel", sys, seconds));
        now.push(Block::Sheet(size.sheet()));
    }
    let report = FieldReport::parse(REPORT);
    let claims = sizes.first().map(|size| report.claims(&[], |of, over| today(size, of, over)));
    let figures = sizes.first().map(figures).unwrap_or_default();
    Outcome {
        now,
        diagnosis,
        change: sizes.last().map(change).unwrap_or_default(),
        ..report.outcome(claims.unwrap_or_default(), &figures)
    }
}

/// What was measured for a claim: `brk system`, `wall masu`.
fn today(size: &Size, of: &str, over: &str) -> Option<Today> {
    let ((what, variant), reference) = (of.split_once(' ')?, over.split_once(' '));
    let other = reference.map_or("system", |(_, other)| other);
    let ratio = |measure| size.series(variant, measure).over(&size.series(other, measure));
    let breaks = |variant: &str| size.calls(variant, &[Call::Brk]);
    Some(match what {
        "brk" => {
            let said = breaks(variant).map(|calls| format!("{} brk", count(float(calls))));
            let over = match reference {
                Some(_) => breaks(other).map(|calls| float(calls.max(1))),
                None => Some(1.0),
            };
            let number = breaks(variant).zip(over).map(|(calls, over)| float(calls) / over);
            Today::Count(said.unwrap_or("not counted".to_owned()), number)
        }
        "sys" => Today::Ratio(size.sys_times(variant)),
        "user" => Today::Ratio(ratio(Measure::User)),
        "wall" => Today::Ratio(ratio(Measure::Wall)),
        _ => return None,
    })
}

/// The figures of the verdict's sentence.
fn figures(size: &Size) -> String {
    let much = PADDED[2];
    let breaks = |variant: &str| {
        size.calls(variant, &[Call::Brk]).map_or("?".to_owned(), |calls| count(float(calls)))
    };
    let sys = |variant: &str| {
        size.series(variant, Measure::Sys).median().map_or("?".to_owned(), crate::report::seconds)
    };
    format!(
        "for N={} sed makes {} brk as it is and {} with a padding of 10,000,000 (theirs 6,137 and 3), and its time in \
         the kernel is {} and {} (theirs 1.734 s and 0.031 s)",
        size.number,
        breaks("system"),
        breaks(much),
        sys("system"),
        sys(much)
    )
}

fn change(size: &Size) -> Vec<Block> {
    let mut points = Vec::new();
    for (label, what) in [
        (PADDED[2], "the author's cure"),
        (PAIR, "two settings of glibc's together"),
        ("masu", "masu, nothing set"),
    ] {
        let all: Vec<Call> = [&[Call::Brk][..], &MAPPING].concat();
        let Some(calls) = size.calls(label, &all) else { continue };
        let faults =
            size.series(label, Measure::MinorFaults).median().map(count).unwrap_or_default();
        points.push(format!(
            "{what}: {} calls for memory, {faults} page faults, {} in the kernel; wall {}, peak RSS {}",
            count(float(calls)),
            time(&size.series(label, Measure::Sys)),
            claim::written(size.times(label, Measure::Wall).as_ref()),
            claim::written(size.times(label, Measure::PeakRss).as_ref()),
        ));
    }
    let text = "One knob alone makes glibc stop adapting its threshold for mmap, and a storm of mmap and munmap may \
                take the place of the storm of brk: so settings come in pairs. masu's hysteresis adapts by itself.";
    vec![Block::marked(text), Block::points(points)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn without_sed_the_page_is_made_and_nothing_is_claimed() {
        let outcome = outcome(&[], Vec::new());
        assert!(outcome.claims.is_empty() && outcome.now.is_empty());
        assert_eq!(outcome.verdict.agreement, super::super::Agreement::Undecided);
        assert_eq!(outcome.then.len(), 2);
    }

    #[test]
    fn every_figure_of_a_claim_is_known() {
        let table = fixtures::of_commands().sources.remove(0).tables.remove(0);
        let (input, calls) = (PathBuf::new(), Vec::new());
        let size = Size { number: 50, input, table, calls, prices_s: (0.0, 0.0) };
        FieldReport::parse(REPORT).check(&[], |of, over| today(&size, of, over));
    }

    #[test]
    fn the_suite_has_every_row_that_the_claims_are_about() {
        let suite = Suite::parse("brk.toml".as_ref(), SUITE).unwrap();
        let crate::suite::Choice::Named(named) = &suite.entries[0].variants else {
            panic!("the rows are named")
        };
        let labels: Vec<String> = named.iter().map(|named| named.spec.to_string()).collect();
        assert_eq!(labels[0], "system");
        assert!(
            PADDED.iter().chain([&PAIR]).all(|label| labels.iter().any(|known| known == label))
        );
    }
}
