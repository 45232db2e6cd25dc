//! Results: a header, one line a run, a summary; JSON lines that later versions can still read.

use serde::{Deserialize, Serialize};

use crate::statistics::{Estimate, Verdict};
use crate::{Machine, Variant};

/// The version of the lines this module writes. It grows when a reader would misread them.
pub const SCHEMA_VERSION: u32 = 1;

/// What was compared, where and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The version of the lab that wrote it.
    pub masu_version: String,
    /// When it began, in UTC: `2026-11-20T10:00:00Z`.
    pub began: String,
    /// The command; bytes that are no UTF-8 are replaced.
    pub command: Vec<String>,
    /// The program's file.
    pub program: String,
    /// The variants; the first is the reference. Of the environment only what they change.
    pub variants: Vec<Variant>,
    /// Runs asked for, of each variant.
    pub runs: usize,
    /// The seed of the order of runs.
    pub seed: u64,
    /// The machine.
    pub machine: Machine,
}

/// Medians, ratios, verdicts and warnings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// One row a variant, in the variants' order.
    pub rows: Vec<Row>,
    /// How sure the intervals are, all of one measure together: 0.99.
    pub confidence: f64,
    /// What the reader must know before trusting the verdicts, each with advice.
    pub warnings: Vec<String>,
    /// Whether every run of every variant had the same output and exit code.
    pub repeatable: bool,
}

/// What a comparison says about one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The variant's label.
    pub variant: String,
    /// What the primary measure (wall-clock time) says.
    pub verdict: Verdict,
    /// One estimate a measure, in the order of [`Measure::ALL`](crate::Measure::ALL).
    pub estimates: Vec<Estimate>,
    /// Runs that count.
    pub valid_runs: usize,
    /// Runs that waited long for a CPU; they count, with a warning.
    pub starved_runs: usize,
}
