//! `cargo xtask judge`: the diagnoses of `masu diagnose` for real programs, compared with the effect of changing
//! their memory.
//!
//! Relies on `workloads/judgement.toml` for the programs, on the command for every diagnosis and on the lab's engine
//! for every run under other mallocs and settings. This module has only the plan of the runs and the verdict
//! (`verdict.rs`). The hard idea is that a judge must not learn from the programs that it judges: every second
//! program is in the half with which the diagnosis may be improved, and the others are read when that is done.

mod busy;
mod diagnosis;
mod measured;
mod page;
mod tune;
mod verdict;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use masu_lab::{Parameter, Stop, Suite};
use serde_json::{Value, json};

use xtask::{commands, files, machine, options, page_part, records};

use crate::bench::builds;
use diagnosis::Said;
use verdict::Judged;

/// The suite, from the workspace's root.
const FILE: &str = "workloads/judgement.toml";

/// The page whose tables `--record` writes, from the workspace's root.
const PAGE: &str = "benches/record/checks/judgement.md";

/// The programs with which the diagnosis was improved, and the programs that judge it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Tuning,
    Judging,
}

impl Half {
    const ALL: [Half; 2] = [Half::Tuning, Half::Judging];

    /// The half of the program that has this place in the suite.
    fn of(place: usize) -> Half {
        Half::ALL[place % 2]
    }
}

/// masu diagnose on real programs, beside what other mallocs and settings give them (about an hour)
#[derive(Debug, Default, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// Only this program; repeats
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Diagnose again what was diagnosed before; what was measured is kept
    #[arg(long)]
    again: bool,
    /// Run nothing: judge what was diagnosed and measured before
    #[arg(long)]
    kept: bool,
    /// So many rounds, each with one run of every malloc and setting; without it as many as decide
    #[arg(long, value_name = "N", value_parser = options::times)]
    rounds: Option<usize>,
    /// Write benches/record/checks/judgement.md: of everything
    #[arg(long, conflicts_with = "only")]
    record: bool,
    /// Instead: masu tune, and whether what it names is within 3 % of the best of all candidates (4 minutes a program;
    /// six, or those of --only)
    #[arg(long, conflicts_with_all = ["again", "kept", "record", "beside"])]
    tuned: bool,
    /// Instead: diagnose each twice, alone and beside so many busy loops, and count what changes; with --kept only
    /// beside them, held against what was said before
    #[arg(long, value_name = "LOOPS", value_parser = options::times, conflicts_with_all = ["again", "record"])]
    beside: Option<usize>,
}

impl Request {
    /// The programs that are wanted, each with its half.
    fn choose(&self, suite: &Suite) -> Result<Vec<(String, Half)>> {
        let all = suite.entries.iter().enumerate();
        let all: Vec<_> = all.map(|(place, one)| (one.name.clone(), Half::of(place))).collect();
        options::chosen(all, &self.only, |(name, _)| name)
    }
}

/// Has every program diagnosed and measured, as far as that was not done before, and says of each whether the diagnosis
/// was right.
pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let target = commands::target_folder()?;
    let folder = target.join("judge");
    let needs = [machine::PATTERNS, machine::PEERS, machine::PROGRAMS, machine::JUDGED];
    machine::provide_all(&needs)?;
    let built = target.join("release");
    if !request.kept {
        commands::step("build masu and libmasu.so", || {
            commands::build(root, &["--package", "masu-cli", "--package", "masu-abi"])
        })?;
    }
    let library = builds::Library { path: built.join("libmasu.so"), libc: masu_lab::Libc::Glibc };
    let made = folder.join("made");
    commands::step("make what the programs read", || {
        commands::make(&root.join("workloads/judgement"), &made)
    })?;
    let mut suite = Suite::read(&root.join(FILE))?;
    suite.set(&Parameter::new("made", vec![made.display().to_string()])?)?;
    let bench = Bench {
        masu: built.join("masu"),
        programs: measured::Programs { suite, catalogue: builds::catalogue(&library, Vec::new()) },
        folder,
        commit: records::commit(root),
    };
    let stop = Stop::on_signals()?;
    let names = request.choose(&bench.programs.suite)?;
    if request.tuned {
        return tune::run(&bench, names, request, &stop);
    }
    if let Some(loops) = request.beside {
        return busy::run(&bench, names, loops, request.kept, &stop);
    }
    let mut judged = Vec::new();
    for (name, half) in names {
        println!("==> {name}");
        match bench.judge(&name, half, request, &stop) {
            Ok(one) => {
                println!("    {}", one.line());
                judged.push(one);
            }
            Err(error) => println!("    left out: {error:#}"),
        }
        if stop.requested() {
            bail!("stopped; the same call goes on");
        }
    }
    println!("\n{}", page::tables(&judged));
    if request.record {
        let text = page::text(&judged, bench.programs.suite.entries.len(), &bench.commit);
        page_part::replace(&root.join(PAGE), "judge", &text)?;
        println!("record: {PAGE}");
    }
    Ok(())
}

/// The programs, the folder of results and the build of a judgement.
struct Bench {
    masu: PathBuf,
    programs: measured::Programs,
    /// The folder of results, a file for each program.
    folder: PathBuf,
    commit: String,
}

impl Bench {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    fn judge(&self, name: &str, half: Half, request: &Request, stop: &Stop) -> Result<Judged> {
        let file = self.file(name);
        let mut kept = read(&file).unwrap_or_else(|| json!({}));
        if request.kept && kept["truth"].is_null() {
            bail!("it was not measured yet");
        }
        if request.again || kept["said"].is_null() {
            let load = records::load();
            let workload = self.programs.workload(name)?;
            let (diagnosis, seconds) = diagnosis::diagnose(&self.masu, &workload)?;
            kept["said"] = json!({
                "diagnosis": diagnosis, "seconds": seconds, "load": load, "commit": self.commit,
            });
            write(&file, &kept)?;
        }
        let said = Said::read(&kept["said"])?;
        said.succeeded()?;
        println!("    {}", said.line());
        let results = |part: &str| self.folder.join(format!("{name}{part}.jsonl"));
        if kept["truth"].is_null() {
            let plan = self.programs.plan(name, None, request.rounds, said.took_turns)?;
            kept["truth"] = measured::measure(&plan, request.rounds, &results(""), stop)?;
            write(&file, &kept)?;
        }
        // The variants that the diagnosis names and that are not among those of every program.
        let others = said.named_beside(&kept["truth"], &kept["beside"]);
        if !others.is_empty() && !request.kept {
            let plan = self.programs.plan(name, Some(&others), request.rounds, said.took_turns)?;
            kept["beside"] = measured::measure(&plan, request.rounds, &results("-beside"), stop)?;
            write(&file, &kept)?;
        }
        let effects = verdict::effects(&[&kept["truth"], &kept["beside"]])?;
        let own_s = kept["truth"]["reference"]["cpu_s"].as_f64();
        Ok(Judged::new(name, half, said, effects, own_s))
    }
}

fn read(file: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

fn write(file: &Path, kept: &Value) -> Result<()> {
    files::write(file, format!("{kept:#}\n"))
}

#[cfg(test)]
mod tests;
