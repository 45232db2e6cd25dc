//! `brk`: a sed script that spends two thirds of its time in the kernel (GNU sed, 2018).
//!
//! Relies on the script, which is embedded, and on GNU sed. Calls are counted in runs of their own and multiplied by
//! this machine's price, because the cost of a `brk` depends on the platform.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::format::{malloc, measure_named};
use super::page_file::{Figures, Known};
use super::series::row;
use super::workbench::{in_one_table, set, workload, write};
use super::{Experiment, Series, Workbench};
use crate::Measure;
use crate::suite::Suite;
use crate::tables::Table;
use masu_run::calls::Call;
use masu_run::prices::Service;
use masu_run::{Calls, Error, Variant};

const SUITE: &str = include_str!("../../experiments/brk.toml");
const SCRIPT: &str = include_str!("../../experiments/primes49.sed");

/// The beginning of the list, whatever its length.
const BEGINNING: &str = "19,29,41,43,47";

/// The longest tick by which the kernel may count time, a hundredth of a second: less time than one tick is as good
/// as nothing.
const TICK_S: f64 = 0.01;

/// The calls by which a malloc takes and gives memory, besides `brk`.
const MAPPING: [Call; 4] = [Call::Mmap, Call::Munmap, Call::Mremap, Call::Madvise];

pub(super) const BRK: Experiment = Experiment {
    name: "brk",
    about: "A sed script spends its time in the kernel",
    title: "A sed script in the kernel: what the top of a heap costs",
    takes: ["seconds", "2 min", "10 min", "50 min"],
    report: include_str!("../../experiments/reports/brk.toml"),
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<super::Measured, Error> {
    let script = bench.cache().join("primes49.sed");
    write(&script, SCRIPT)?;
    let mut sizes = Vec::new();
    if is_gnu_sed(bench, &script) {
        let numbers: &[u32] = bench.choose(&[5], &[36], &[50], &[50, 100]);
        for number in numbers {
            let size = measure(bench, &script, *number);
            sizes.extend(bench.noted(&format!("N={number}"), size).flatten());
        }
    }
    let mut diagnosis = Vec::new();
    if let Some(size) = sizes.first() {
        diagnosis = bench.diagnosis("The script as it is", &sed(&script), Some(&size.input));
    }
    Ok((Box::new(Measured(sizes)), diagnosis))
}

fn sed(script: &Path) -> [&str; 3] {
    ["sed", "-rf", script.to_str().unwrap_or("primes49.sed")]
}

/// Whether there is a sed that understands the script, and prints the author's list.
fn is_gnu_sed(bench: &mut Workbench<'_>, script: &Path) -> bool {
    let install = "install GNU sed (Debian: apt install sed; Alpine: apk add sed)";
    if bench.tool("sed", "everything here", install).is_none() {
        return false;
    }
    let said =
        Command::new("sh").arg("-c").arg("echo 5 | sed -rf \"$1\"").arg("sh").arg(script).output();
    let is_right = said
        .is_ok_and(|said| said.status.success() && said.stdout.starts_with(BEGINNING.as_bytes()));
    if !is_right {
        let reason = format!("the `sed` here does not make the author's list; {install}");
        bench.miss("everything here", reason);
    }
    is_right
}

struct Size {
    number: u32,
    input: PathBuf,
    table: Table,
    /// The rows' calls, in the table's order.
    calls: Vec<Option<Calls>>,
    /// The seconds that a `brk` up and down takes here, and those of an `mmap` and `munmap`, as far as they are known.
    prices_s: [Option<f64>; 2],
}

/// Measures the list of `number` primes; none after a failure, which is noted.
fn measure(bench: &mut Workbench<'_>, script: &Path, number: u32) -> Result<Option<Size>, Error> {
    let input = bench.cache().join(format!("{number}.txt"));
    write(&input, &format!("{number}\n"))?;
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
    let Some(table) = bench.table(&suite, &part) else { return Ok(None) };
    bench.say("counting the calls, a run of each");
    let counted = workload(&sed(script), Some(&input))?;
    let mut calls = Vec::new();
    for (index, variant) in table.case.variants.iter().enumerate() {
        let has_run = !Series::of(&table, Some(index), Measure::Wall).is_empty();
        calls.push(has_run.then(|| bench.count(&counted, variant)).flatten());
    }
    let price = |service| Some(bench.prices().of(service)? / 1e9);
    let prices_s = [price(Service::BreakPair), price(Service::MapPair)];
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

    /// The seconds of a row's system calls for memory, at this machine's prices.
    fn price_s(&self, variant: &str) -> Option<f64> {
        let (breaks, maps) = (self.calls(variant, &[Call::Brk])?, self.calls(variant, &MAPPING)?);
        let [pair_s, map_s] = self.prices_s;
        Some(breaks as f64 / 2.0 * pair_s? + maps as f64 / 2.0 * map_s?)
    }

    /// `brk VARIANT`, `wall VARIANT`; `kernel VARIANT` is a time that may be too short for the kernel's clock.
    fn known(&self, what: &str, variant: &str) -> Option<Known> {
        let calls = |of: &[Call]| self.calls(variant, of).map(|calls| calls as f64);
        Some(Known::Number(match (what, variant) {
            ("brk", _) => calls(&[Call::Brk]),
            ("maps", _) => calls(&MAPPING),
            ("calls", _) => calls(&[&[Call::Brk][..], &MAPPING].concat()),
            ("price", "brk") => self.prices_s[0],
            ("price", "maps") => self.prices_s[1],
            ("price", _) => self.price_s(variant),
            ("runs", _) => Some(self.series(variant, Measure::Wall).len() as f64),
            ("kernel", _) => {
                return Some(Known::Runs(self.series(variant, Measure::Sys).at_least(TICK_S)));
            }
            _ => return Some(Known::Runs(self.series(variant, measure_named(what)?))),
        }))
    }
}

/// The sizes; claims are about the first, and a name may begin with the number of another.
struct Measured(Vec<Size>);

impl Measured {
    fn size(&self, number: &str) -> Option<&Size> {
        self.0.iter().find(|size| size.number.to_string() == number)
    }
}

impl Figures for Measured {
    fn known(&self, name: &str) -> Option<Known> {
        let (size, name) = match name.split_once(' ')? {
            (number, rest) if number.parse::<u32>().is_ok() => (self.size(number), rest),
            _ => (self.0.first(), name),
        };
        let (what, variant) = name.split_once(' ')?;
        size.map_or(Some(Known::Number(None)), |size| size.known(what, variant))
    }

    fn rows(&self, list: &str) -> Vec<(String, String)> {
        match list.split_once(' ') {
            Some(("mallocs", number)) => {
                let variants = self.size(number).map(|size| &size.table.case.variants[..]);
                let rows = variants.unwrap_or_default().iter();
                rows.map(|variant| (variant.label.clone(), name(variant))).collect()
            }
            _ if list == "sizes" => {
                self.0.iter().map(|size| (size.number.to_string(), String::new())).collect()
            }
            _ => Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        let number = |size: Option<&Size>| size.map(|size| size.number.to_string());
        let ends = [("first", number(self.0.first())), ("last", number(self.0.last()))];
        ends.map(|(name, number)| (name, number.unwrap_or_default())).into()
    }
}

/// A row's name: the paddings as the report names them.
fn name(variant: &Variant) -> String {
    match variant.label.strip_prefix("glibc:env.") {
        Some(set) => set.to_owned(),
        None if variant.label == "system" => {
            let version = variant.version.as_deref().unwrap_or_default();
            format!("as it is ({})", format!("{} {version}", variant.allocator).trim_end())
        }
        None => malloc(variant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;

    #[test]
    fn every_figure_of_a_claim_is_known() {
        let table = fixtures::of_commands().sources.remove(0).tables.remove(0);
        let (input, calls) = (PathBuf::new(), Vec::new());
        let size = Size { number: 50, input, table, calls, prices_s: [Some(1e-6), Some(2e-6)] };
        let report = crate::experiment::field_report::FieldReport::parse(BRK.report);
        report.check(&Measured(vec![size]));
    }

    #[test]
    fn the_suite_has_every_row_that_the_report_is_about() {
        let suite = Suite::parse("brk.toml".as_ref(), SUITE).unwrap();
        let crate::suite::Choice::Named(named) = &suite.entries[0].variants else {
            panic!("the rows are named")
        };
        let labels: Vec<String> = named.iter().map(|named| named.spec.to_string()).collect();
        let mut named =
            BRK.report.split([' ', '"', '}', '\n']).filter(|it| it.starts_with("glibc:"));
        assert!(named.all(|variant| labels.iter().any(|label| label == variant)), "{labels:?}");
        assert_eq!(labels[0], "system");
    }
}
