//! The findings of `masu diagnose --json`, as far as chores judge them.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

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

fn variants<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let remedies = Vec::<Value>::deserialize(from)?;
    let variants = remedies.iter().filter_map(|remedy| remedy["variant"].as_str());
    Ok(variants.map(str::to_owned).collect())
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
