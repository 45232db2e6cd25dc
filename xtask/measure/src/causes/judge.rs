//! The findings of a diagnosis, and the verdict whether they are the expected ones.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::table::{ACCUSES_NOTHING, Case, Group};
use crate::findings::{Finding, listed};

/// The words of a diagnosis for a program that ended well, and for one that was stopped when its time was over.
const ENDED_WELL: &str = "returned 0";
const CUT_SHORT: &str = "ran out of time and was killed";

/// Causes that show only if two threads run at once, and the words of a diagnosis for a machine where they could not.
const OF_THREADS: [&str; 5] =
    ["malloc-lock", "remote-frees", "one-lock", "serial-phase", "uneven-cores"];
const CANNOT_TELL: &str = "whether threads wait for each other";

#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// The findings, the first one first.
    pub(super) findings: Vec<Finding>,
    /// Whether the diagnosis says that it could not see threads wait for each other.
    pub(super) cannot_tell: bool,
}

/// The parts of a diagnosis that are read.
#[derive(Deserialize)]
struct Diagnosis {
    findings: Vec<Finding>,
    facts: Facts,
    #[serde(default)]
    not_seen: Vec<String>,
}

#[derive(Deserialize)]
struct Facts {
    ending: String,
}

/// The findings of a diagnosis of a program that ends by itself, or `is_cut_short`.
pub(super) fn read(text: &str, is_cut_short: bool) -> Result<Found> {
    let Diagnosis { findings, facts: Facts { ending }, not_seen } =
        serde_json::from_str(text).context("reading the diagnosis")?;
    if ending != if is_cut_short { CUT_SHORT } else { ENDED_WELL } {
        bail!("the program {ending}");
    }
    let cannot_tell = not_seen.iter().any(|one| one.starts_with(CANNOT_TELL));
    Ok(Found { findings, cannot_tell })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The expected findings are there, and no false one.
    Right,
    /// These expected findings are not first, or not there at all.
    Missed(Vec<&'static str>),
    /// The same, and the diagnosis says that it cannot tell on so busy a machine.
    CannotTell(Vec<&'static str>),
    /// Right except for these findings, which are not true.
    False(Vec<String>),
    /// There was no diagnosis.
    Failed(String),
}

#[derive(Debug)]
pub(super) struct Judged {
    pub(super) case: Case,
    pub(super) found: Vec<Finding>,
    /// Findings that are not true of the case.
    pub(super) false_ones: Vec<String>,
    pub(super) verdict: Verdict,
}

impl Judged {
    pub(super) fn new(case: Case, found: Result<Found>) -> Judged {
        let (found, cannot_tell) = match found {
            Ok(found) => (found.findings, found.cannot_tell),
            Err(error) => {
                let verdict = Verdict::Failed(format!("{error:#}"));
                return Judged { case, found: Vec::new(), false_ones: Vec::new(), verdict };
            }
        };
        let false_ones: Vec<String> =
            found.iter().map(|one| one.id.clone()).filter(|id| !may_be_found(&case, id)).collect();
        let missed = missed(&case, &found);
        let is_of_threads = missed.iter().all(|id| OF_THREADS.contains(id));
        let verdict = match (missed.is_empty(), false_ones.is_empty()) {
            (false, _) if cannot_tell && is_of_threads => Verdict::CannotTell(missed),
            (false, _) => Verdict::Missed(missed),
            (true, false) => Verdict::False(false_ones.clone()),
            (true, true) => Verdict::Right,
        };
        Judged { case, found, false_ones, verdict }
    }

    pub(super) fn line(&self) -> String {
        format!("{}: found {}", self.verdict.words(), listed(&self.found, "nothing"))
    }
}

impl Verdict {
    pub(super) fn words(&self) -> String {
        match self {
            Verdict::Right => "right".to_owned(),
            Verdict::Missed(missed) => format!("**missed**: {}", missed.join(", ")),
            Verdict::CannotTell(missed) => {
                format!("not {}, and it says that it cannot tell here", missed.join(", "))
            }
            Verdict::False(ids) => format!("**false**: {}", ids.join(", ")),
            Verdict::Failed(error) => format!("**failed**: {error}"),
        }
    }
}

/// The expected findings that are not at their place.
fn missed(case: &Case, found: &[Finding]) -> Vec<&'static str> {
    let is_there = |id: &str| match case.group {
        Group::Report => found.iter().any(|one| one.id == id),
        _ => found.first().is_some_and(|one| one.id == id),
    };
    case.known.expected.iter().copied().filter(|id| !is_there(id)).collect()
}

/// Whether a finding of this name is true of the case, or accuses nothing.
fn may_be_found(case: &Case, id: &str) -> bool {
    // This finding is the hoped-for one for an ordinary program.
    let is_hoped_for = case.group == Group::Ordinary && id == "memory-is-fine";
    is_hoped_for
        || ACCUSES_NOTHING.contains(&id)
        || case.known.expected.contains(&id)
        || case.known.also.contains(&id)
}
