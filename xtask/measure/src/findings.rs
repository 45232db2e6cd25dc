//! The answers of `masu` as JSON, and the findings of `masu diagnose` among them, as far as chores judge them.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use xtask::commands;

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Finding {
    pub(crate) id: String,
    pub(crate) confidence: String,
    /// The finding's share of the time, if that is known.
    pub(crate) share: Option<f64>,
    #[serde(default)]
    pub(crate) evidence: Vec<String>,
    /// The variants that it names as remedies.
    #[serde(default, rename = "remedies", deserialize_with = "variants")]
    pub(crate) variants: Vec<String>,
}

fn variants<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<String>, D::Error> {
    let remedies = Vec::<Value>::deserialize(from)?;
    let variants = remedies.iter().filter_map(|remedy| remedy["variant"].as_str());
    Ok(variants.map(str::to_owned).collect())
}

/// The answer of `masu` to these words about a program, as JSON.
pub(crate) fn ask(
    masu: &Path,
    words: &[&str],
    program: &[impl AsRef<OsStr>],
    folder: &Path,
) -> Result<String> {
    let mut command = Command::new(masu);
    command.args(words).args(["--json", "--"]).args(program).current_dir(folder);
    commands::unset_malloc_variables(&mut command);
    commands::output(&mut command)
}

impl Finding {
    /// The finding with how sure it is and how much of the time it explains.
    pub(crate) fn short(&self) -> String {
        match self.share {
            Some(share) => format!("{} ({}, {:.0} %)", self.id, self.confidence, share * 100.0),
            None => format!("{} ({})", self.id, self.confidence),
        }
    }
}

/// The findings in a line; `none` where there are none.
pub(crate) fn listed(findings: &[Finding], none: &str) -> String {
    let all: Vec<String> = findings.iter().map(Finding::short).collect();
    if all.is_empty() { none.to_owned() } else { all.join(", ") }
}
