//! `brk`: a sed script that spends two thirds of its time in the kernel (GNU sed, 2018).
//!
//! Relies on the script, which is embedded, and on GNU sed. Calls are counted in runs of their own and multiplied by
//! this machine's price, because what a `brk` costs is the platform's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::series::row;
use super::told::{malloc, memory, time};
use super::workbench::{in_one_table, set, workload};
use super::{
    Block, Claim, Expect, Experiment, Figure, Outcome, Series, Sheet, Verdict, Workbench, claim,
};
use crate::calls::Call;
use crate::error::Doing;
use crate::prices::Service;
use crate::report::{self, Bar, Table, count, seconds};
use crate::statistics::Ratio;
use crate::suite::Suite;
use crate::{Calls, Error, Measure, Variant};

/// The suite and the script.
const SUITE: &str = include_str!("../../experiments/brk.toml");
const SCRIPT: &str = include_str!("../../experiments/primes49.sed");

/// What the list begins with, whatever its length.
const BEGINNING: &str = "19,29,41,43,47";

/// The paddings of the report.
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
        calls.push(bench.count(&counted, variant)?);
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
                other => claim::told(self.times(other, Measure::Wall).as_ref()),
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

#[expect(clippy::cast_precision_loss, reason = "calls stay far below 2^53")]
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
    let claims = sizes.first().map(claims).unwrap_or_default();
    let figures = sizes.first().map(figures).unwrap_or_default();
    Outcome {
        verdict: Verdict::of(&claims, &figures),
        then: then(),
        now,
        claims,
        diagnosis,
        change: sizes.last().map(change).unwrap_or_default(),
        by_hand: [
            "echo 50 | strace -f -c -e trace=memory sed -rf workloads/primes49.sed",
            "echo 50 | MALLOC_TOP_PAD_=10000000 strace -f -c -e trace=memory sed -rf workloads/primes49.sed",
            "echo 50 | masu diagnose --prove -- sed -rf workloads/primes49.sed",
            "echo 50 | masu compare -a system -a glibc:top_pad=64M,trim_threshold=64M -a masu -- sed -rf workloads/primes49.sed",
            "masu compare --suite workloads/brk.toml -P script=\"$PWD/workloads/primes49.sed\" -P input=FILE  # FILE holds 50",
        ]
        .map(str::to_owned)
        .into(),
    }
}

fn then() -> Vec<Block> {
    let story = "A sed script that lists the first N primes whose digits contain 4 or 9 took 82.5 s for N=100 under \
                 WSL, 9 s on another host. strace showed nothing but brk, up and down: glibc gave the top of its heap \
                 back and asked for it again. The cure was the heap's hysteresis, MALLOC_TOP_PAD_.";
    let headings = "MALLOC_TOP_PAD_ | brk, N=50 | user s | sys s | brk, N=100 | user s | sys s";
    let rows = "unset | 6,137 | 1.875 | 1.734 | 100,751 | 28.656 | 49.813
                100,000 | 7,274 | 1.781 | 2.141 | – | – | –
                1,000,000 | 17 | 1.625 | 0.047 | 18,241 | 25.922 | 20.469
                10,000,000 | 3 | 1.578 | 0.031 | 3 | 24.750 | 0.031";
    let table = Sheet::printed("GNU sed, 2018, under WSL", headings, rows);
    vec![Block::Text(story.to_owned()), Block::Sheet(table)]
}

fn claims(size: &Size) -> Vec<Claim> {
    let [little, middle, much] = PADDED;
    let breaks = |variant: &str| size.calls(variant, &[Call::Brk]);
    let counted = |variant: &str| {
        breaks(variant)
            .map_or("not counted".to_owned(), |calls| format!("{} brk", count(float(calls))))
    };
    let as_it_is = breaks("system");
    let over = |variant: &str| Some(float(breaks(variant)?) / float(as_it_is?.max(1)));
    let sys = size.sys_times(much);
    let user = size.times(much, Measure::User);
    let wall = size.times(much, Measure::Wall);
    vec![
        Claim::of_count(
            "As it is, sed asks the kernel for its heap again and again: a thousand brk and more",
            "6,137 (N=50)",
            &counted("system"),
            as_it_is.map(|calls| calls >= 1_000),
        ),
        Claim::of_count(
            "A padding of 100,000 bytes does not help: at least half of the calls stay",
            "7,274",
            &counted(little),
            over(little).map(|over| over >= 0.5),
        ),
        Claim::of_count(
            "One of 1,000,000 ends nearly all of them: a hundredth and less stays",
            "17",
            &counted(middle),
            over(middle).map(|over| over <= 0.01),
        ),
        Claim::of_count(
            "One of 10,000,000 ends them: a hundredth and less stays",
            "3",
            &counted(much),
            over(much).map(|over| over <= 0.01),
        ),
        Claim::of_ratio(
            "It takes the time in the kernel away: half of it and more",
            "1.734 s to 0.031 s",
            sys.as_ref(),
            Expect::Below(0.5),
        ),
        Claim::of_ratio(
            "Time in sed's own code falls too",
            "×0.84",
            user.as_ref(),
            Expect::Below(1.0),
        ),
        Claim::of_ratio(
            "So the script is done sooner",
            "×0.45 of the CPU time",
            wall.as_ref(),
            Expect::Below(1.0),
        ),
    ]
}

/// The figures of the verdict's sentence.
fn figures(size: &Size) -> String {
    let much = PADDED[2];
    let breaks = |variant: &str| {
        size.calls(variant, &[Call::Brk]).map_or("?".to_owned(), |calls| count(float(calls)))
    };
    let sys = |variant: &str| time(&size.series(variant, Measure::Sys));
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

/// What masu changes.
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
            claim::told(size.times(label, Measure::Wall).as_ref()),
            claim::told(size.times(label, Measure::PeakRss).as_ref()),
        ));
    }
    let text = "One knob alone makes glibc stop adapting its threshold for mmap, and a storm of mmap and munmap may \
                take the place of the storm of brk: so settings come in pairs. masu's hysteresis adapts by itself.";
    vec![Block::Text(text.to_owned()), Block::List(points)]
}

#[cfg(test)]
mod tests {
    use super::super::Held;
    use super::*;

    #[test]
    fn without_sed_the_page_is_made_and_nothing_is_claimed() {
        let outcome = outcome(&[], Vec::new());
        assert!(outcome.claims.is_empty() && outcome.now.is_empty());
        assert_eq!(outcome.verdict.agreement, super::super::Agreement::Undecided);
        assert_eq!(outcome.then.len(), 2);
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

    #[test]
    fn what_was_counted_decides() {
        let claim = Claim::of_count("a", "b", "c", Some(false));
        assert_eq!(claim.held, Held::No);
    }
}
