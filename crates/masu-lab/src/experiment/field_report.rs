//! What a field report says, as data: its story and its table, its claims, the commands to do it by hand.
//!
//! Relies on a file of each experiment in `experiments/reports`. A claim names there which of today's figures it is about;
//! the experiment's code knows its figures by these names, and nothing of what is claimed of them.

use serde::Deserialize;

use super::{Block, Claim, Expect, Outcome, Sheet, Verdict};
use crate::statistics::Ratio;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldReport {
    by_hand: String,
    then: Then,
    claims: Vec<Reported>,
}

/// What the author saw.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Then {
    story: String,
    /// Of the table, whose first line has the headings.
    caption: String,
    table: String,
    /// What stands below the table.
    later: Option<String>,
}

/// A claim of the author's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reported {
    /// The sentence.
    says: String,
    /// The author's figure.
    then: String,
    /// Which figure of today's it is about, and over which other one.
    of: String,
    #[serde(default)]
    over: String,
    expect: Expect,
}

/// Today's figure for a claim.
pub(super) enum Today {
    /// One over the other, in pairs of runs.
    Ratio(Option<Ratio>),
    /// Counted once, so that there is nothing to be unsure of: in words, and the number that decides.
    Count(String, Option<f64>),
}

impl FieldReport {
    /// Reads the file of an experiment, which is part of this program.
    pub(super) fn parse(text: &str) -> FieldReport {
        toml::from_str(text).expect("a test of each experiment reads its report")
    }

    /// The claims, held against what `today` knows of the figures `of` and `over`; those of which it knows nothing are left
    /// out. `values` are put in the place of their names: `{threads}`.
    pub(super) fn claims(
        &self,
        values: &[(&str, &str)],
        today: impl Fn(&str, &str) -> Option<Today>,
    ) -> Vec<Claim> {
        let filled = |text: &str| {
            values.iter().fold(text.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), value)
            })
        };
        let claim = |reported: &Reported| {
            let Reported { says, then, of, over, expect } = reported;
            let says = filled(says);
            Some(match today(&filled(of), &filled(over))? {
                Today::Ratio(ratio) => Claim::of_ratio(&says, then, ratio.as_ref(), *expect),
                Today::Count(now, number) => Claim::of_count(&says, then, &now, number, *expect),
            })
        };
        self.claims.iter().filter_map(claim).collect()
    }

    /// What came of the experiment, as far as it follows from the claims; `figures` are those of the verdict's sentence.
    pub(super) fn outcome(&self, claims: Vec<Claim>, figures: &str) -> Outcome {
        let Then { story, caption, table, later } = &self.then;
        let (headings, rows) = table.split_once('\n').unwrap_or((table, ""));
        let mut then = vec![
            Block::marked(story.clone()),
            Block::Sheet(Sheet::printed(caption, headings, rows)),
        ];
        then.extend(later.clone().map(Block::marked));
        Outcome {
            verdict: Verdict::of(&claims, figures),
            then,
            now: Vec::new(),
            claims,
            diagnosis: Vec::new(),
            change: Vec::new(),
            by_hand: self.by_hand.lines().map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
impl FieldReport {
    /// Fails unless `today` knows every figure that a claim is about.
    pub(super) fn check(
        &self,
        values: &[(&str, &str)],
        today: impl Fn(&str, &str) -> Option<Today>,
    ) {
        assert_eq!(self.claims(values, today).len(), self.claims.len());
        let outcome = self.outcome(Vec::new(), "");
        let [Block::Text(..), Block::Sheet(table), ..] = &outcome.then[..] else { panic!() };
        assert!(
            table.rows.iter().all(|row| row.cells.len() + 1 == table.columns.len()),
            "{table:?}"
        );
        assert!(outcome.by_hand.len() > 3);
    }
}
