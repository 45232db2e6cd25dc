//! The verdict on a diagnosis: its findings beside the truth, both as numbers. Nothing is run here.

use anyhow::{Context, Result};
use masu_lab::statistics::Ratio;
use serde::Deserialize;
use serde_json::Value;

use super::Half;
use super::diagnosis::Said;
use crate::findings::Finding;

/// A gain of this share of the time must not be missed.
const MUST_BE_SEEN: f64 = 0.08;

/// A remedy gets a gain where it gives this share of the largest one.
const GETS: f64 = 0.5;

/// The finding that memory is not the problem.
pub(super) const FINE: &str = "memory-is-fine";

/// The finding that the diagnosis cannot tell, with the variants that may gain. It promises nothing, so it is neither
/// right nor false.
pub(super) const OPEN: &str = "memory-open";

/// Findings whose remedies make a program smaller and not faster.
pub(super) const OF_SIZE: [&str; 3] = ["retention", "huge-page-waste", "growth"];

/// The effect of a variant on the program, relative to the program as it is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Effect {
    pub(super) label: String,
    /// CPU time; none if the variant could not take part.
    #[serde(rename = "cpu")]
    pub(super) time: Option<Ratio>,
    /// Peak resident memory.
    #[serde(rename = "peak_rss")]
    pub(super) memory: Option<Ratio>,
}

/// Whether all of the interval lies below 1.
fn is_gain(ratio: &Ratio) -> bool {
    ratio.interval.is_some_and(|(_, high)| high < 1.0)
}

/// Whether a gain that must be seen may hide in the ratio: the runs were too few, or too unlike.
fn is_open(ratio: &Ratio) -> bool {
    !is_gain(ratio) && ratio.interval.is_none_or(|(low, _)| low <= 1.0 - MUST_BE_SEEN)
}

/// Which of these ratios need no more rounds: those that gain, and those that surely gain no 8 %.
pub(super) fn decided(ratios: &[Option<Ratio>]) -> Vec<bool> {
    ratios.iter().map(|one| one.as_ref().is_none_or(|ratio| !is_open(ratio))).collect()
}

/// Whether the ratio is no gain, and no large one may hide in it.
fn is_nothing(ratio: &Ratio) -> bool {
    !is_gain(ratio) && !is_open(ratio)
}

/// Whether all of the interval lies above 1.
fn is_loss(ratio: &Ratio) -> bool {
    ratio.interval.is_some_and(|(low, _)| low > 1.0)
}

/// Reads effects from proofs that were kept.
pub(super) fn effects(proofs: &[&Value]) -> Result<Vec<Effect>> {
    let remedies = proofs.iter().filter_map(|proof| proof["remedies"].as_array()).flatten();
    remedies.map(|one| Effect::deserialize(one).context("reading a proof")).collect()
}

pub(super) fn labels(proof: &Value) -> Vec<String> {
    let remedies = proof["remedies"].as_array().into_iter().flatten();
    remedies.filter_map(|one| Some(one["label"].as_str()?.to_owned())).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There was no gain to be seen, or a remedy gets it.
    Right,
    /// No gain was seen, but the runs leave room for one; or the runs leave room for a named remedy that gets the
    /// gain.
    Open,
    /// The diagnosis said that it could not tell, and no gain was seen.
    LeftOpen,
    /// There was a gain, and no remedy gets it.
    Missed,
    /// The same, and the diagnosis said with this confidence that memory is fine.
    Denied(String),
}

#[derive(Debug)]
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) half: Half,
    pub(super) said: Said,
    pub(super) effects: Vec<Effect>,
    /// The program's own CPU time.
    pub(super) own_s: Option<f64>,
    pub(super) verdict: Verdict,
    /// Findings of which no remedy that was run gains anything.
    pub(super) false_ones: Vec<Finding>,
    /// Remedies that were named and gain nothing.
    pub(super) wrong: Vec<String>,
}

impl Judged {
    pub(super) fn new(
        name: &str,
        half: Half,
        said: Said,
        effects: Vec<Effect>,
        own_s: Option<f64>,
    ) -> Judged {
        let promises = |finding: &&Finding| finding.id != OPEN;
        let is_false = |finding: &&Finding| {
            let ratios: Vec<&Ratio> =
                finding.variants.iter().filter_map(|label| of(&effects, finding, label)).collect();
            !ratios.is_empty() && ratios.iter().all(|ratio| is_nothing(ratio))
        };
        let false_ones = said.findings.iter().filter(promises).filter(is_false).cloned().collect();
        let mut wrong: Vec<String> = Vec::new();
        for finding in said.findings.iter().filter(promises) {
            for label in &finding.variants {
                let is_wrong = of(&effects, finding, label).is_some_and(is_nothing);
                if is_wrong && !wrong.contains(label) {
                    wrong.push(label.clone());
                }
            }
        }
        let mut judged = Judged {
            name: name.to_owned(),
            half,
            said,
            effects,
            own_s,
            verdict: Verdict::Right,
            false_ones,
            wrong,
        };
        judged.verdict = judged.of_gains();
        judged
    }

    fn of_gains(&self) -> Verdict {
        let largest = self.best().map_or(0.0, gain);
        let may_hide = self.effects.iter().filter_map(|one| one.time.as_ref()).any(is_open);
        if largest < MUST_BE_SEEN && may_hide {
            return Verdict::Open;
        }
        if largest < MUST_BE_SEEN && self.said.findings.iter().any(|one| one.id == OPEN) {
            return Verdict::LeftOpen;
        }
        if largest < MUST_BE_SEEN || self.named_best().map_or(0.0, gain) >= GETS * largest {
            return Verdict::Right;
        }
        // A named remedy may gain as much, as far as such unlike runs can show.
        let named = self.said.named();
        let may_get = |one: &&Effect| {
            let ratio = one.time.as_ref().filter(|ratio| is_open(ratio));
            ratio.is_some_and(|ratio| 1.0 - ratio.estimate >= GETS * largest)
        };
        if self.effects.iter().filter(|one| named.contains(&one.label)).any(|one| may_get(&one)) {
            return Verdict::Open;
        }
        match self.said.findings.iter().find(|finding| finding.id == FINE) {
            Some(finding) => Verdict::Denied(finding.confidence.clone()),
            None => Verdict::Missed,
        }
    }

    pub(super) fn best(&self) -> Option<&Effect> {
        best(self.effects.iter())
    }

    pub(super) fn named_best(&self) -> Option<&Effect> {
        let named = self.said.named();
        best(self.effects.iter().filter(|effect| named.contains(&effect.label)))
    }

    /// Whether the diagnosis has no error.
    pub(super) fn is_right(&self) -> bool {
        self.verdict == Verdict::Right && self.false_ones.is_empty() && self.wrong.is_empty()
    }

    pub(super) fn words(&self) -> String {
        let mut parts = match &self.verdict {
            Verdict::Right => Vec::new(),
            Verdict::Open => vec!["not decided".to_owned()],
            Verdict::LeftOpen => vec!["left open".to_owned()],
            Verdict::Missed => vec!["**missed**".to_owned()],
            Verdict::Denied(confidence) => vec![format!("**denied** ({confidence})")],
        };
        let said = |one: &Finding| format!("**false**: {} ({})", one.id, one.confidence);
        parts.extend(self.false_ones.iter().map(said));
        if !self.wrong.is_empty() {
            parts.push(format!("wrong remedy: {}", self.wrong.join(" and ")));
        }
        if parts.is_empty() { "right".to_owned() } else { parts.join(", ") }
    }

    pub(super) fn line(&self) -> String {
        let best = self.best().map_or("nothing".to_owned(), |effect| {
            format!("{} {}", effect.label, effect.time.as_ref().map_or(String::new(), figure))
        });
        format!("{}; best of all: {best}", self.words())
    }
}

/// The ratio that a finding promises for a variant: of time, or of memory.
fn of<'a>(effects: &'a [Effect], finding: &Finding, label: &str) -> Option<&'a Ratio> {
    let effect = effects.iter().find(|effect| effect.label == label)?;
    if OF_SIZE.contains(&finding.id.as_str()) {
        effect.memory.as_ref()
    } else {
        effect.time.as_ref()
    }
}

/// The share of the time that it takes off, where that was shown.
fn gain(effect: &Effect) -> f64 {
    effect.time.filter(is_gain).map_or(0.0, |ratio| 1.0 - ratio.estimate)
}

fn best<'a>(effects: impl Iterator<Item = &'a Effect>) -> Option<&'a Effect> {
    effects.filter(|one| gain(one) > 0.0).max_by(|a, b| gain(a).total_cmp(&gain(b)))
}

pub(super) fn figure(ratio: &Ratio) -> String {
    let worse = if is_loss(ratio) { ", slower" } else { "" };
    match ratio.interval {
        Some((low, high)) => format!("×{:.2} ({low:.2}–{high:.2}{worse})", ratio.estimate),
        None => format!("×{:.2}", ratio.estimate),
    }
}
