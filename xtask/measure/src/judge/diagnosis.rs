//! The command's diagnosis of a program, called as a user types it.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use masu_lab::Workload;
use serde::Deserialize;
use serde_json::Value;

use super::verdict::labels;
use crate::findings::{self, Finding, listed};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    pub(super) findings: Vec<Finding>,
    /// The duration of the diagnosis, including all its runs.
    pub(super) seconds: f64,
    /// The load average before the diagnosis.
    pub(super) load: String,
    /// Whether the runs of a round shared a CPU in the trial, as the program allows.
    pub(super) took_turns: bool,
    pub(super) failure: Option<String>,
}

/// Diagnoses the workload; returns the printed diagnosis and its duration in seconds.
pub(super) fn diagnose(masu: &Path, workload: &Workload) -> Result<(Value, f64)> {
    let began = Instant::now();
    Ok((ask(masu, &["diagnose"], workload)?, began.elapsed().as_secs_f64()))
}

/// The command's answer about the workload as JSON, to the request in `words`.
pub(super) fn ask(masu: &Path, words: &[&str], workload: &Workload) -> Result<Value> {
    let folder = workload.folder.as_deref().context("a program without a folder")?;
    let answer = findings::ask(masu, words, &workload.arguments, folder)?;
    serde_json::from_str(&answer).context("what masu printed is no JSON")
}

/// The reason of a program's failure, with its last line of output; none for a program that did not fail.
fn failure(facts: &Value) -> Option<String> {
    let how = facts["how"].as_str()?;
    let last = facts["last_lines"].as_array().and_then(|lines| lines.last()?.as_str());
    Some(format!("{how}: {}", last.unwrap_or("without a word")))
}

impl Said {
    pub(super) fn read(kept: &Value) -> Result<Said> {
        let diagnosis = &kept["diagnosis"];
        let findings = Vec::deserialize(&diagnosis["findings"]).context("reading the diagnosis")?;
        Ok(Said {
            findings,
            seconds: kept["seconds"].as_f64().unwrap_or_default(),
            load: kept["load"].as_str().unwrap_or("unknown").to_owned(),
            took_turns: diagnosis["trial"]["side_by_side"].as_bool().unwrap_or(false),
            failure: failure(&diagnosis["facts"]["failure"]),
        })
    }

    /// A program that fails here is no case: something that it needs is missing.
    pub(super) fn succeeded(&self) -> Result<()> {
        self.failure.as_ref().map_or(Ok(()), |how| bail!("the program {how}"))
    }

    /// The variants that the diagnosis names, each once.
    pub(super) fn named(&self) -> Vec<String> {
        let mut named: Vec<String> = Vec::new();
        for variant in self.findings.iter().flat_map(|finding| &finding.variants) {
            if !named.contains(variant) {
                named.push(variant.clone());
            }
        }
        named
    }

    /// The named variants that are not in `truth`; none if all of these are in `beside` already.
    pub(super) fn named_beside(&self, truth: &Value, beside: &Value) -> Vec<String> {
        let (truth, beside) = (labels(truth), labels(beside));
        let others: Vec<String> =
            self.named().into_iter().filter(|label| !truth.contains(label)).collect();
        if others.iter().all(|label| beside.contains(label)) { Vec::new() } else { others }
    }

    pub(super) fn line(&self) -> String {
        listed(&self.findings, "nothing")
    }
}
