//! What is diagnosed, and what is to be found: fixed before anything was judged by it.
//!
//! Each case names the finding that must come first and those that are true of it besides. Whatever else is
//! found is false, but for findings that accuse nothing (`ACCUSES_NOTHING`).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Findings that accuse nothing of the program.
pub(super) const ACCUSES_NOTHING: [&str; 2] = ["cpu-bound", "io-bound"];

/// What says that memory is not what is slow: false where it is.
const MEMORY_IS_FINE: &str = "memory-is-fine";

/// Cases that are judged together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Group {
    /// Causes in C, on which thresholds were fixed.
    C,
    /// Causes in Rust, on which they are judged.
    Rust,
    /// Programs as they are used every day.
    #[value(skip)]
    Ordinary,
    /// The program of field report 2.
    #[value(skip)]
    Report,
}

impl Group {
    pub(super) const ALL: [Group; 4] = [Group::C, Group::Rust, Group::Ordinary, Group::Report];

    pub(super) fn name(self) -> &'static str {
        match self {
            Group::C => "C",
            Group::Rust => "Rust",
            Group::Ordinary => "ordinary",
            Group::Report => "field report 2",
        }
    }
}

/// One program that is diagnosed.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) group: Group,
    pub(super) name: &'static str,
    pub(super) command: Vec<String>,
    /// What `masu diagnose` is asked for besides.
    pub(super) options: &'static [&'static str],
    /// Of a cause: what must be found first. Of the field report: what must be found, in any order.
    pub(super) expected: &'static [&'static str],
    /// What may be found besides, because it is true.
    pub(super) also: &'static [&'static str],
}

/// Where what is run lies.
pub(super) struct Places {
    /// What `workloads/causes` became.
    pub(super) causes: PathBuf,
    /// What ordinary programs read.
    pub(super) programs: PathBuf,
}

/// A cause made on purpose: its name, what must be found first, what is true besides.
type Cause = (&'static str, &'static [&'static str], &'static [&'static str]);

const CAUSES: [Cause; 13] = [
    // What was given back is faulted in again.
    ("brk-storm", &["heap-call-storm"], &["fault-storm"]),
    ("arena-lock", &["malloc-lock"], &[]),
    // One thread starts all others, and none of them does much.
    ("thread-per-task", &["thread-churn"], &[MEMORY_IS_FINE, "serial-phase", "uneven-cores"]),
    // Who frees another thread's block waits for the lock of that thread's arena.
    ("producer-consumer", &["remote-frees"], &["malloc-lock"]),
    ("eager-return", &["fault-storm"], &[]),
    ("phase-change", &["retention"], &[]),
    ("huge-page-waste", &["huge-page-waste"], &[]),
    // It is stopped while it grows: a program that ends by itself may have needed all of it.
    ("growth", &["growth"], &[]),
    ("scattered-libraries", &["scattered-code"], &[MEMORY_IS_FINE]),
    ("small-writes", &["small-writes"], &[MEMORY_IS_FINE]),
    // The thread that works alone keeps one core busy while the others are idle.
    ("serial-phase", &["serial-phase"], &[MEMORY_IS_FINE, "uneven-cores"]),
    // Who spins works, as far as clocks tell; in C the threads take turns.
    ("spinning", &["spinning"], &[MEMORY_IS_FINE, "serial-phase", "uneven-cores"]),
    // Every process touches its own pages.
    ("fork-storm", &["fork-storm"], &[MEMORY_IS_FINE, "first-touch", "fault-storm"]),
];

/// An ordinary program: its name, its command, what is true of it.
type Ordinary = (&'static str, &'static [&'static str], &'static [&'static str]);

/// `{made}` is where its input was made, `{out}` a folder for what it writes. Run in `workloads`.
const ORDINARY: [Ordinary; 10] = [
    (
        "gcc",
        &[
            "gcc",
            "-std=c11",
            "-D_GNU_SOURCE",
            "-O2",
            "-pthread",
            "-o",
            "{out}/patterns",
            "patterns/main.c",
            "patterns/run.c",
            "patterns/small.c",
            "patterns/large.c",
            "patterns/threads.c",
            "patterns/lifetime.c",
            "patterns/jsonl.c",
        ],
        &[],
    ),
    ("g++", &["g++", "-std=c++17", "-O1", "-c", "-o", "{out}/work.o", "programs/work.cpp"], &[]),
    ("xz", &["xz", "-6", "-k", "-c", "{made}/orders.json"], &[]),
    ("gzip", &["gzip", "-9", "-k", "-c", "{made}/orders.xml"], &[]),
    ("python3", &["/usr/bin/python3", "programs/work.py", "12000"], &[]),
    // Perl and jq take 15 to 23 per cent less time under another malloc (benches/record/2026-11-22-programs.md).
    ("perl", &["perl", "programs/work.pl", "50000"], &["many-allocations"]),
    ("sqlite3", &["sqlite3", ":memory:", ".read programs/work.sql"], &[]),
    ("jq", &["jq", "-c", "-f", "programs/work.jq", "{made}/orders.json"], &["many-allocations"]),
    // It reads and writes on one thread and sorts on all.
    ("sort", &["sort", "{made}/orders.json"], &["serial-phase", "uneven-cores"]),
    ("redis-server", &["{made}/cache", "redis-server", "300000"], &[]),
];

/// A step of the field report's program: its name, how many numbers it works on, how many workers, what must be found, what is
/// true besides.
type Step =
    (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

/// The steps as their author ran them: an unoptimised build, started by cargo, that prints a line for each result to a
/// terminal; a worker for each of eight CPUs.
/// Together they have the six findings of the list of field reports. A thread for each chunk takes so long that the
/// lines and the making of the numbers, which are the same in both, need not be seen beside it. Every chunk of both is a
/// copy that the first thread allocates and another frees.
const REPORT: [Step; 2] = [
    (
        "threads",
        "2000000",
        "8",
        &["unoptimised-build", "wrapper", "thread-churn"],
        &["small-writes", "serial-phase", "uneven-cores", MEMORY_IS_FINE],
    ),
    (
        "pool",
        "20000000",
        "8",
        &["small-writes", "serial-phase", "unoptimised-build", "wrapper", "one-lock"],
        &["uneven-cores", "malloc-lock", "remote-frees", MEMORY_IS_FINE],
    ),
];

/// Every case, in the order of the tables.
///
/// # Errors
///
/// When a path is no text.
pub(super) fn cases(places: &Places) -> Result<Vec<Case>> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.with_context(|| format!("the path {} is no text", path.display()))
    };
    let (made, out) = (text(&places.programs)?, text(&places.causes)?);
    let libraries = text(&places.causes.join("libraries"))?;
    let mut cases = Vec::new();
    for (group, program) in [(Group::C, "causes"), (Group::Rust, "rust/release/rust-causes")] {
        let program = text(&places.causes.join(program))?;
        for (name, expected, also) in CAUSES {
            let mut command = vec![program.clone(), name.to_owned()];
            if name == "scattered-libraries" {
                command.extend(["--libraries".to_owned(), libraries.clone()]);
            }
            let options: &[&str] = if name == "growth" { &["--timeout", "2s"] } else { &[] };
            cases.push(Case { group, name, command, options, expected, also });
        }
    }
    for (name, words, also) in ORDINARY {
        let word = |word: &&str| word.replace("{made}", &made).replace("{out}", &out);
        let command = words.iter().map(word).collect();
        let group = Group::Ordinary;
        cases.push(Case { group, name, command, options: &[], expected: &[], also });
    }
    for (name, items, workers, expected, also) in REPORT {
        let cargo = ["cargo", "run", "--quiet", "--package", "masu-chunk", "--example", "steps"];
        let step = ["--", name, "--items", items, "--workers", workers, "--print"];
        let command = cargo.into_iter().chain(step).map(str::to_owned).collect();
        let (group, options) = (Group::Report, &["--terminal"]);
        cases.push(Case { group, name, command, options, expected, also });
    }
    Ok(cases)
}
