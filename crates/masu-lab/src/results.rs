//! Results: a header, one line a run, a summary; JSON lines that later versions can still read.
//!
//! Every line is an object whose `record` names its kind, written as soon as it is known. A comparison that is cut
//! off loses only its summary, which [`summarize`](crate::summary::summarize) makes again from the runs.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::statistics::{Estimate, Look, Measure, Verdict};
use masu_run::error::Doing;
use masu_run::{Error, Evidence, Machine, Run, Variant};

mod journal;

pub(crate) use journal::Journal;

/// The version of the lines this module writes. It grows when a reader would misread them.
pub(crate) const SCHEMA_VERSION: u32 = 2;

/// The subject, place and method of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub schema_version: u32,
    /// The version of the lab that wrote the file.
    pub masu_version: String,
    /// The start of the comparison, in UTC: `2026-11-20T10:00:00Z`.
    pub began: String,
    /// The suite's name; none for a single command.
    pub suite: Option<String>,
    /// The cases that are compared, one table each.
    pub cases: Vec<Case>,
    pub rounds: Rounds,
    /// The seed of the order of runs.
    pub seed: u64,
    pub machine: Machine,
    /// The criterion fixed beforehand: `masu if wall <= 0.97`; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decide: Option<String>,
    /// The words that request the same comparison again; empty where they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The files that were measured, so that a comparison goes on only with the same: libraries, programs and inputs,
    /// each once.
    #[serde(default)]
    pub files: Vec<FileMark>,
}

/// The number of rounds of a table, each with one run of every variant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rounds {
    /// A fixed number of rounds, looked at once, at the end.
    Fixed(usize),
    /// Until every interval of the primary measure is narrow, or the time is over: the growing
    /// table is looked at now and then, and the looks share the error that a table may have.
    Budget {
        /// The most seconds for the timed runs of all cases together.
        seconds: f64,
        /// The most that an interval may reach from its estimate, relative to the estimate: 0.01 is one per cent.
        precision: f64,
    },
    /// Until nothing is undecided ([`Summary::is_decided`]), at most this many: looked at as a budget is.
    UntilDecided { most: usize },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// The file's path, or its purpose where it has no path.
    pub path: String,
    pub bytes: u64,
    /// The 128-bit XXH3 of its content, in hexadecimal.
    pub hash: String,
}

/// One workload under some variants: the content of one table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Case {
    /// The workload's name, with the values that it was repeated for: `ring threads=2`.
    pub name: String,
    /// The command as written, placeholders included; bytes that are no UTF-8 are replaced.
    pub command: Vec<String>,
    /// The variants; the first is the reference. Only the variables that they change are kept of the environment.
    pub variants: Vec<Variant>,
    pub primary: Measure,
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Further settings of the request, by their names in a suite file: `("timeout", "30s")`.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
}

/// A variant that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub label: String,
    pub reason: String,
}

impl Case {
    /// The variants' labels, the reference's first.
    pub fn labels(&self) -> Vec<String> {
        self.variants.iter().map(|variant| variant.label.clone()).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub primary: Measure,
    /// One row a variant, in the variants' order.
    pub rows: Vec<Row>,
    /// The confidence of the intervals, all of one measure and of all looks together: 0.99.
    pub confidence: f64,
    /// The look at the runs that made this summary, and its permitted error.
    #[serde(default)]
    pub look: Look,
    /// Warnings that the reader must know before trusting the verdicts, each with advice.
    pub warnings: Vec<String>,
    /// Further remarks that are no reason to doubt anything.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether every run of every variant had the same output and exit code.
    pub repeatable: bool,
}

impl Summary {
    /// Whether every variant's interval of the primary measure lies within `precision` of its estimate,
    /// relative to it: more rounds would then change the knowledge little. A variant without a
    /// valid pair is passed over, because it would never get an interval; a variant with too few pairs for an
    /// interval is not narrow.
    pub fn is_narrow(&self, precision: f64) -> bool {
        let mut ratios =
            self.rows.iter().skip(1).filter_map(|row| row.estimate(self.primary)?.ratio);
        ratios.all(|ratio| ratio.is_within(precision))
    }
}

/// The largest `could_have_seen` of a verdict without a difference, if nothing is undecided.
const HIDDEN_MOST: f64 = 0.02;

/// If nothing is undecided, the interval of a ratio reaches at most this far from its estimate, relative to it, or
/// at most this part of its distance from 1. Nobody needs to know a halved time to 5 %.
const DECIDED_PRECISION: f64 = 0.05;
const DECIDED_PART: f64 = 1.0 / 3.0;

impl Summary {
    /// Whether more rounds would say little: each difference is shown, and its size is known to 5 % or to a third of
    /// it, or it can be no larger than about 2 %. A variant whose runs failed is passed over, because more runs of it
    /// decide nothing.
    pub fn is_decided(&self) -> bool {
        let is_decided = |row: &Row| match row.verdict {
            Verdict::NoDifferenceShown { could_have_seen } => could_have_seen <= HIDDEN_MOST,
            Verdict::TooFewRuns { .. } | Verdict::NoRatio => false,
            Verdict::Faster | Verdict::Slower => {
                let ratio = row.estimate(self.primary).and_then(|estimate| estimate.ratio);
                ratio.is_some_and(|ratio| {
                    let distance = ratio.estimate.ln().abs();
                    ratio.is_within(DECIDED_PRECISION.max((DECIDED_PART * distance).exp_m1()))
                })
            }
            Verdict::Reference | Verdict::RunsFailed { .. } => true,
        };
        self.rows.len() > 1 && self.rows.iter().all(is_decided)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub variant: String,
    pub verdict: Verdict,
    /// One estimate for each measure that some run has, in the order of [`Measure::ALL`].
    pub(crate) estimates: Vec<Estimate>,
    pub(crate) valid_runs: usize,
    /// Runs that waited long for a CPU; they count, with a warning.
    pub(crate) starved_runs: usize,
}

impl Row {
    /// The estimate of `measure`; none where no run has it.
    pub fn estimate(&self, measure: Measure) -> Option<&Estimate> {
        self.estimates.iter().find(|estimate| estimate.measure == measure)
    }
}

/// One line of a results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    Header(Header),
    WarmUp {
        evidence: Evidence,
        /// The run; its times are those of a traced program.
        run: Run,
    },
    Run(Run),
    /// The end of a case.
    Summary {
        case: usize,
        summary: Summary,
    },
}

/// Reads a results file, or standard input where the path is `-`. A last line that was cut off in the middle is
/// ignored. A line that is no record is an error, and so is a file that does not begin with a header, or that a later
/// version wrote.
pub fn read(path: &Path) -> Result<Vec<Record>, Error> {
    understand(path, &contents(path)?)
}

/// The content of the file at `path`, or of standard input where it is `-`.
pub(crate) fn contents(path: &Path) -> Result<Vec<u8>, Error> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.doing(|| format!("reading {}", path.display()))
}

/// A comparison makes its file when it begins, and writes the first line with its first timed run.
const EMPTY: &str = "the file is empty: no timed run was made, or it is no results file; start the comparison again";

/// The first line comes before any run: nothing is lost with a file that was cut off in it.
const CUT: &str =
    "the file was cut off in its first line, before any run; start the comparison again";

pub(crate) fn understand(path: &Path, bytes: &[u8]) -> Result<Vec<Record>, Error> {
    let wrong =
        |line: usize, reason: String| Error::Results { path: path.to_owned(), line, reason };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // The last line was cut off within a letter.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Err(wrong(1, "this is no results file: it is not even text".to_owned())),
    };
    let mut records = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if index == 0 {
            check_version(line).map_err(|reason| wrong(1, reason))?;
        }
        match serde_json::from_str(line) {
            Ok(Record::Header(_)) if index > 0 => {
                return Err(wrong(index + 1, "the file holds a second header".to_owned()));
            }
            Ok(record) => records.push(record),
            Err(_) if line.trim().is_empty() => {}
            Err(_) if index > 0 && !line.ends_with('\n') => {}
            Err(error) => return Err(wrong(index + 1, error.to_string())),
        }
    }
    if records.is_empty() {
        return Err(wrong(1, EMPTY.to_owned()));
    }
    Ok(records)
}

/// Checks the version before the rest, which a later version may have changed.
fn check_version(line: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let version: Version = serde_json::from_str(line).map_err(|error| {
        let is_cut = error.is_eof() && line.as_bytes().starts_with(journal::BEGINNING);
        let other = "this is no results file; `masu compare --json FILE` writes one";
        if is_cut { CUT.to_owned() } else { other.to_owned() }
    })?;
    match version.schema_version {
        SCHEMA_VERSION => Ok(()),
        later if later > SCHEMA_VERSION => Err(format!(
            "written by a later masu (schema {later}, this one reads {SCHEMA_VERSION}); update masu"
        )),
        earlier => Err(format!(
            "written by an earlier masu (schema {earlier}, this one reads {SCHEMA_VERSION}); \
             measure again, or read it with the masu that wrote it"
        )),
    }
}

#[cfg(test)]
mod tests;
