//! `cargo xtask duel`: `masu compare` and hyperfine on the same two commands, while other load on the
//! machine comes and goes; the truth is known.
//!
//! Relies on a program whose work is its argument (`workloads/duel/work.c`), and on a load drawn from a
//! seed (`load.rs`). Both tools make as many runs of each command, one after the other tool, under a load
//! of the same kind; neither knows of it. Each pairing is repeated with other seeds, because a single
//! answer may be right or wrong by luck.

mod load;
mod record;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use masu_lab::results::{self, Record};
use masu_lab::statistics::{Measure, Ratio, Verdict};

use self::load::Load;
use xtask::{machine, records, steps};

/// Parts of work of the first command: a tenth of a second or so.
const AMOUNT: u32 = 1000;

/// What differs between the two commands of a pairing: the amounts of work.
const TRUTHS: [(&str, [u32; 2]); 2] =
    [("the same command twice", [AMOUNT, AMOUNT]), ("3 % more work", [AMOUNT, AMOUNT * 103 / 100])];

/// How much is asked of the tools.
struct Extent {
    /// Runs of each command by each tool.
    runs: u32,
    /// Pairings of each truth.
    repeats: u64,
}

/// One pairing of two commands, asked of both tools.
struct Pairing {
    /// What hyperfine found.
    hyperfine: Hyperfine,
    /// What masu found.
    masu: Answer,
}

/// What hyperfine says of two commands.
struct Hyperfine {
    /// Mean and standard deviation of each, in seconds.
    times: [(f64, f64); 2],
    /// Its closing sentence; empty where it has none.
    claim: String,
}

/// What masu says of the second command.
struct Answer {
    ratio: Option<Ratio>,
    verdict: Verdict,
}

/// Everything that was asked and answered.
struct Duel {
    extent: Extent,
    /// By truth, then by repetition.
    pairings: Vec<Vec<Pairing>>,
    versions: [String; 2],
    commit: String,
    took_s: f64,
}

/// Runs the duel and writes its record; `--quick` only shows that it works.
///
/// # Errors
///
/// When hyperfine or gcc cannot be had, the build fails, or a tool does.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<()> {
    let is_whole = options != ["--quick"];
    let extent = match options {
        [] => Extent { runs: 40, repeats: 5 },
        ["--quick"] => Extent { runs: 12, repeats: 1 },
        ["--runs", runs] => Extent {
            runs: runs.parse().with_context(|| format!("--runs {runs}: write a whole number"))?,
            repeats: 5,
        },
        _ => bail!("cargo xtask duel takes --quick, or --runs N, and nothing else"),
    };
    machine::provide(&machine::DUEL.iter().collect::<Vec<_>>())?;
    steps::take("build", || {
        let build = ["build", "--release", "--locked", "--package", "masu-cli"];
        steps::succeed(&mut steps::cargo(root, &build))
    })?;
    let target = steps::target_folder()?;
    let place = Place { masu: target.join("release/masu"), folder: target.join("duel") };
    let duel = steps::take("duel", || place.duel(root, extent))?;
    let text = record::text(&duel);
    println!("{text}");
    if is_whole {
        println!("The record is {}.", records::write(root, "hyperfine", &text)?);
    }
    Ok(())
}

/// Where the tools and the program are.
struct Place {
    masu: PathBuf,
    folder: PathBuf,
}

impl Place {
    fn duel(&self, root: &Path, extent: Extent) -> Result<Duel> {
        let begun = Instant::now();
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("making {}", self.folder.display()))?;
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(self.folder.join("work"));
        steps::succeed(gcc.arg(root.join("workloads/duel/work.c")))?;
        let mut pairings = Vec::new();
        for (number, (name, amounts)) in TRUTHS.iter().enumerate() {
            let mut of_truth = Vec::new();
            for repeat in 0..extent.repeats {
                let seed = 100 * number as u64 + repeat;
                println!("{name}: pairing {} of {}", repeat + 1, extent.repeats);
                of_truth.push(self.pairing(*amounts, extent.runs, seed)?);
            }
            pairings.push(of_truth);
        }
        Ok(Duel {
            extent,
            pairings,
            versions: [version(Path::new("hyperfine"))?, version(&self.masu)?],
            commit: commit(root),
            took_s: begun.elapsed().as_secs_f64(),
        })
    }

    /// Each tool under a load of its own that comes from the same seed; who begins takes turns.
    fn pairing(&self, amounts: [u32; 2], runs: u32, seed: u64) -> Result<Pairing> {
        let hyperfine = || {
            let _load = Load::begin(seed);
            self.hyperfine(amounts, runs)
        };
        let masu = || {
            let _load = Load::begin(seed);
            self.masu(amounts, runs, seed)
        };
        let (hyperfine, masu) = if seed.is_multiple_of(2) {
            let first = hyperfine()?;
            (first, masu()?)
        } else {
            let first = masu()?;
            (hyperfine()?, first)
        };
        Ok(Pairing { hyperfine, masu })
    }

    fn hyperfine(&self, amounts: [u32; 2], runs: u32) -> Result<Hyperfine> {
        let mut command = Command::new("hyperfine");
        command.args(["--shell=none", "--warmup=1", "--style=basic", "--export-csv=times.csv"]);
        command
            .arg(format!("--runs={runs}"))
            .args(works(amounts).map(|work| format!("./work {work}")));
        let said = self.said(&mut command)?;
        let table = fs::read_to_string(self.folder.join("times.csv")).context("reading its CSV")?;
        Hyperfine::read(&table, &said)
    }

    fn masu(&self, amounts: [u32; 2], runs: u32, seed: u64) -> Result<Answer> {
        let mut command = Command::new(&self.masu);
        let [first, second] = works(amounts);
        command.args(["compare", "-n", &runs.to_string(), "--seed", &seed.to_string()]);
        command.args(["--json", "runs.jsonl", "-P", &format!("work={first},{second}")]);
        command.args(["--", "./work", "{work}"]);
        self.said(&mut command)?;
        let records = results::read(&self.folder.join("runs.jsonl"))?;
        let summary = records.into_iter().find_map(|record| match record {
            Record::Summary { summary, .. } => Some(summary),
            _ => None,
        });
        let row = summary.and_then(|summary| summary.rows.into_iter().nth(1));
        let row = row.context("masu's results have no second row")?;
        let ratio = row.estimate(Measure::Wall).and_then(|estimate| estimate.ratio);
        Ok(Answer { ratio, verdict: row.verdict })
    }

    /// What a tool writes to standard output.
    fn said(&self, command: &mut Command) -> Result<String> {
        command.current_dir(&self.folder).stdin(Stdio::null()).env_remove("LD_LIBRARY_PATH");
        let output = command.output().with_context(|| steps::show(command))?;
        if !output.status.success() {
            bail!("{}: {}", steps::show(command), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// What tells the two commands apart; the same twice needs a name for that.
fn works([first, second]: [u32; 2]) -> [String; 2] {
    [format!("{first}:a"), format!("{second}:b")]
}

impl Hyperfine {
    /// Reads its table and the sentence that it ends with.
    fn read(table: &str, said: &str) -> Result<Self> {
        let mut lines = table.lines().skip(1).map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |index: usize| fields.get(index).and_then(|field| field.parse().ok());
            let read: Option<(f64, f64)> = number(1).zip(number(2));
            read.with_context(|| format!("hyperfine's CSV has a line `{line}`"))
        });
        let mut next = || lines.next().context("hyperfine's CSV is too short")?;
        let times = [next()?, next()?];
        let summary = said.split_once("Summary").map_or("", |(_, summary)| summary);
        let claim = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self { times, claim })
    }

    /// How much longer the second takes than the first, by its means: 1.03 is three per cent.
    fn ratio(&self) -> f64 {
        let [(first, _), (second, _)] = self.times;
        second / first
    }

    /// One standard deviation of that ratio, as hyperfine itself works it out for its sentence.
    fn deviation(&self) -> f64 {
        let share = |(mean, deviation): (f64, f64)| (deviation / mean).powi(2);
        self.ratio() * self.times.map(share).iter().sum::<f64>().sqrt()
    }
}

fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn commit(root: &Path) -> String {
    let mut git = Command::new("git");
    let output = git.args(["describe", "--always", "--dirty"]).current_dir(root).output();
    output.map_or_else(|_| String::new(), |it| String::from_utf8_lossy(&it.stdout).trim().into())
}
