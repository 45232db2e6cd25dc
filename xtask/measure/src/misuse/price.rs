//! What safety costs: CPU time, peak RSS and instructions of the same programs under each malloc.
//!
//! It relies on the lab's engine for every timed run, in rounds in which the mallocs take turns, and on cachegrind for
//! instructions, which do not depend on what else the machine does. The hard part is to be fair to what draws at
//! random: ratios are of pairs of one round, and stand with their lowest and highest.

mod table;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use masu_lab::compare::Destination;
use masu_lab::plan::Ground;
use masu_lab::results::Rounds;
use masu_lab::suite::{Choice, Entry, Named};
use masu_lab::{
    Catalogue, CompareOptions, Event, Libc, Plan, Program, Run, Spec, Stop, Suite, compare,
};

use super::mallocs;
use crate::profile::count;
use xtask::records;
use xtask::{commands, machine};

pub(super) use table::{HEADING, keep};

/// A malloc with its settings, and the head of its column.
struct Row {
    spec: &'static str,
    title: &'static str,
}

const fn row(spec: &'static str, title: &'static str) -> Row {
    Row { spec, title }
}

/// The first is what all others are held against.
const ROWS: [Row; 10] = [
    row("masu", "masu"),
    row("masu-secure", "masu secure"),
    row("masu:env.MASU_GUARD_RATE=5000", "masu, 1 of 5,000 guarded"),
    row("masu:env.MASU_GUARD_RATE=1000", "masu, 1 of 1,000 guarded"),
    row("mimalloc3", "mimalloc"),
    row("mimalloc-secure", "mimalloc secure"),
    row("scudo", "scudo"),
    row("hardened_malloc", "hardened_malloc"),
    row("glibc", "glibc"),
    row("glibc:tcache_count=0", "glibc, no tcache"),
];

/// One program.
struct Workload {
    name: &'static str,
    /// Its words, between spaces. `{patterns}` is the program of `workloads/patterns`, `{made}` where the others' input was
    /// made, `{n}` how much there is to do; run in `workloads`.
    words: &'static str,
    much: u32,
    /// How much where instructions are counted, by a simulator that takes fifty times as long; none where they are not.
    little: Option<u32>,
}

const fn workload(
    name: &'static str,
    words: &'static str,
    much: u32,
    little: Option<u32>,
) -> Workload {
    Workload { name, words, much, little }
}

const WORKLOADS: [Workload; 9] = [
    workload("pair-64", "{patterns} pair-64 --ops {n}", 10_000_000, Some(400_000)),
    workload("batch-random", "{patterns} batch-random --ops {n}", 5_000_000, Some(400_000)),
    workload("random-100k", "{patterns} random-100k --ops {n}", 1_000_000, Some(400_000)),
    // Few: what gives memory back at each free takes forty times as long as others.
    workload("churn-8-64k", "{patterns} churn-8-64k --ops {n}", 30_000, Some(10_000)),
    workload("large-buffers", "{patterns} large-buffers --ops {n}", 20, None),
    workload("ring", "{patterns} ring --ops {n}", 1_500_000, None),
    workload(
        "python",
        "env PYTHONMALLOC=malloc PYTHONHASHSEED=0 /usr/bin/python3 programs/work.py {n}",
        4_000,
        Some(200),
    ),
    workload(
        "perl",
        "env PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 perl programs/work.pl {n}",
        20_000,
        Some(1_000),
    ),
    workload("jq", "jq -c -f programs/work.jq {made}/orders.json", 0, None),
];

/// Rounds where none are asked for.
const ROUNDS: usize = 5;

/// Everything that was measured of one program.
struct Measured {
    name: &'static str,
    /// The timed runs, each with the index of its row.
    runs: Vec<Run>,
    /// Instructions under each of the rows, where they could be counted.
    instructions: Option<Vec<Option<u64>>>,
}

/// Measures everything and writes the section of the page.
///
/// # Errors
///
/// When something cannot be built or installed, or a comparison fails.
pub(super) fn text(root: &Path, rounds: Option<usize>) -> Result<String> {
    let rounds = rounds.unwrap_or(ROUNDS);
    // Before anything is built: the workspace may have moved on when all is measured.
    let commit = records::commit(root);
    let needs = machine::PATTERNS.iter().chain(machine::PROGRAMS).chain([&machine::VALGRIND]);
    machine::provide(&needs.collect::<Vec<_>>())?;
    let target = commands::target_folder()?;
    let places = Places {
        workloads: root.join("workloads"),
        patterns: target.join("patterns"),
        made: target.join("programs"),
    };
    commands::step("build the patterns", || {
        commands::make(&places.workloads.join("patterns"), &target)
    })?;
    commands::step("make what programs read", || {
        commands::make(&places.workloads.join("programs"), &places.made)
    })?;
    let catalogue = mallocs::catalogue(root, &|_| true)?;
    let (rows, missing): (Vec<&Row>, Vec<&Row>) = ROWS.iter().partition(|row| {
        let name = row.spec.split(':').next().unwrap_or_default();
        catalogue.get(name, Libc::Glibc).is_some()
    });
    let runs = commands::step("measure", || places.measure(&catalogue, &rows, rounds))?;
    let mut measured = Vec::new();
    for (workload, runs) in WORKLOADS.iter().zip(runs) {
        let count = |little| {
            commands::step(&format!("count {}", workload.name), || {
                let words = places.words(workload, little);
                rows.iter().map(|row| places.count(&catalogue, row, &words)).collect()
            })
        };
        let instructions = workload.little.map(count).transpose()?;
        measured.push(Measured { name: workload.name, runs, instructions });
    }
    Ok(table::text(&commit, &rows, &missing, rounds, &measured))
}

struct Places {
    workloads: PathBuf,
    patterns: PathBuf,
    made: PathBuf,
}

impl Places {
    fn words(&self, workload: &Workload, how_much: u32) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (patterns, made) = (text(&self.patterns), text(&self.made));
        let word = |word: &str| {
            let word = word.replace("{n}", &how_much.to_string());
            word.replace("{patterns}", &patterns).replace("{made}", &made)
        };
        // Split first: a path may hold spaces.
        workload.words.split(' ').map(word).collect()
    }

    /// The timed runs of each workload.
    fn measure(
        &self,
        catalogue: &Catalogue,
        rows: &[&Row],
        rounds: usize,
    ) -> Result<Vec<Vec<Run>>> {
        let named = |row: &&Row| -> Result<Named> {
            Ok(Named { spec: row.spec.parse::<Spec>()?, optional: true })
        };
        let variants: Vec<Named> = rows.iter().map(named).collect::<Result<_>>()?;
        let entry = |workload: &Workload| Entry {
            name: workload.name.to_owned(),
            command: self.words(workload, workload.much).into_iter().map(Into::into).collect(),
            base: self.workloads.clone(),
            variants: Choice::Named(variants.clone()),
            ..Entry::default()
        };
        let suite = Suite {
            name: Some("prices".to_owned()),
            rounds: Rounds::Fixed(rounds),
            entries: WORKLOADS.iter().map(entry).collect(),
            values: Vec::new(),
        };
        let mut ground = |_| Ground { catalogue: catalogue.clone(), ..Ground::default() };
        let plan = Plan::make(&suite, &mut ground)?;
        let results = commands::target_folder()?.join("misuse/prices.jsonl");
        fs::create_dir_all(results.parent().context("results lie nowhere")?)?;
        let options = CompareOptions {
            results: Destination::New(results.clone()),
            ..CompareOptions::default()
        };
        let mut observe = |event: Event<'_>| match event {
            Event::LeftOut { case, left_out } => {
                println!("{case}: without {}: {}", left_out.label, left_out.reason);
            }
            Event::Finished { case, .. } => println!("{}: measured", case.name),
            _ => {}
        };
        let compared = compare(&plan, &options, &Stop::on_signals()?, &mut observe)?;
        if compared.stopped {
            bail!("stopped; the runs made so far are in {}", results.display());
        }
        let of_table = |table: masu_lab::tables::Table| {
            let labels = table.case.labels();
            let runs = table.runs.into_iter().filter(|run| !run.replaced).filter_map(|mut run| {
                let label = labels.get(run.variant)?;
                run.variant = rows.iter().position(|row| row.spec == *label)?;
                Some(run)
            });
            runs.collect()
        };
        Ok(compared.tables.into_iter().map(of_table).collect())
    }

    /// Instructions of one run; none where the malloc does not run under the simulator.
    fn count(&self, catalogue: &Catalogue, row: &Row, words: &[String]) -> Result<Option<u64>> {
        let program = Program::find(OsStr::new(&words[0]))?;
        let variant = catalogue.resolve(&row.spec.parse::<Spec>()?, &program)?;
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
        valgrind.arg("--trace-children=yes").args(words);
        valgrind.envs(variant.changes_here()).current_dir(&self.workloads);
        let output = valgrind.stdin(Stdio::null()).output().context("cannot start valgrind")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let counted = count::instructions(&said).filter(|_| output.status.success());
        if counted.is_none() {
            println!("{} does not run under cachegrind: {}", row.title, output.status);
        }
        Ok(counted)
    }
}
