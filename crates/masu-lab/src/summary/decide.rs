//! A criterion that is fixed before the runs: `masu if wall <= 0.97 and peak_rss <= 1.1`.
//!
//! It is written down with the results before anything is measured. The burden of proof is the change's: a condition
//! that is not shown to hold does not hold.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::results::Summary;
use crate::statistics::Ratio;
use crate::{Measure, Verdict};
use masu_run::Error;

/// The criterion that a variant must meet to be taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Criterion {
    pub variant: String,
    /// The conditions, all of which must hold for the variant.
    pub conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Condition {
    /// The measure, as a ratio to that of the reference.
    pub measure: Measure,
    /// Whether the ratio must be at most the bound; otherwise it must be at least the bound.
    pub(crate) is_at_most: bool,
    /// The bound: 0.97 is three per cent less than the reference.
    pub bound: f64,
}

impl FromStr for Criterion {
    type Err = Error;

    /// Parses `VARIANT if MEASURE <= RATIO and MEASURE >= RATIO …`.
    fn from_str(text: &str) -> Result<Criterion, Error> {
        let wrong = |reason: String| {
            Error::Request(format!(
                "the criterion `{text}`: {reason}; write it like `masu if wall <= 0.97 and peak_rss <= 1.1`"
            ))
        };
        let (variant, conditions) =
            text.split_once(" if ").ok_or_else(|| wrong("it has no ` if `".to_owned()))?;
        let variant = variant.trim();
        if variant.is_empty() {
            return Err(wrong("it names no variant".to_owned()));
        }
        let conditions: Result<Vec<Condition>, String> =
            conditions.split(" and ").map(condition).collect();
        Ok(Criterion { variant: variant.to_owned(), conditions: conditions.map_err(wrong)? })
    }
}

fn condition(text: &str) -> Result<Condition, String> {
    let at_most = text.split_once("<=").map(|(name, bound)| (name, bound, true));
    let at_least = || text.split_once(">=").map(|(name, bound)| (name, bound, false));
    let (name, bound, is_at_most) =
        at_most.or_else(at_least).ok_or(format!("`{}` has no <= or >=", text.trim()))?;
    let name = name.trim();
    let measure = name.parse()?;
    let bound = bound.trim().parse::<f64>().ok().filter(|bound| bound.is_finite() && *bound > 0.0);
    let bound = bound.ok_or(format!("`{}` ends in no ratio", text.trim()))?;
    Ok(Condition { measure, is_at_most, bound })
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<String> = self.conditions.iter().map(ToString::to_string).collect();
        write!(f, "{} if {}", self.variant, conditions.join(" and "))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.measure.name(), self.sign(), self.bound)
    }
}

impl Condition {
    pub fn sign(&self) -> &'static str {
        if self.is_at_most { "<=" } else { ">=" }
    }

    fn of(&self, ratio: Option<Ratio>) -> Held {
        let Some((low, high)) = ratio.and_then(|ratio| ratio.interval) else {
            return Held::Unknown;
        };
        // The values are negated if needed, so that the bound is always above.
        let (low, high, bound) =
            if self.is_at_most { (low, high, self.bound) } else { (-high, -low, -self.bound) };
        match () {
            () if high <= bound => Held::Yes,
            () if low > bound => Held::No,
            () => Held::Open,
        }
    }
}

/// Whether a condition holds, by the whole of its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    Yes,
    No,
    /// The runs cannot tell.
    Open,
    /// There is no interval: there were too few runs, or the variant could not take part.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    pub criterion: String,
    pub variant: String,
    /// Whether all conditions hold: *no* if one condition surely does not.
    pub holds: Held,
    pub conditions: Vec<(Condition, Option<Ratio>, Held)>,
}

/// The decision on `criterion` by the figures of `summary`.
pub fn decide(summary: &Summary, criterion: &Criterion) -> Decision {
    let row = summary.rows.iter().skip(1).find(|row| row.variant == criterion.variant);
    let has_verdict = row.is_some_and(|row| {
        !matches!(row.verdict, Verdict::TooFewRuns { .. } | Verdict::RunsFailed { .. })
    });
    let conditions: Vec<(Condition, Option<Ratio>, Held)> = criterion
        .conditions
        .iter()
        .map(|condition| {
            let ratio = row.and_then(|row| row.estimate(condition.measure)?.ratio);
            let held = if has_verdict { condition.of(ratio) } else { Held::Unknown };
            (*condition, ratio, held)
        })
        .collect();
    let has = |held: Held| conditions.iter().any(|(_, _, one)| *one == held);
    let holds = [Held::No, Held::Unknown, Held::Open].into_iter().find(|held| has(*held));
    Decision {
        criterion: criterion.to_string(),
        variant: criterion.variant.clone(),
        holds: holds.unwrap_or(Held::Yes),
        conditions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Look;
    use crate::summary::simulation::labels;
    use crate::summary::summarize;
    use masu_run::Run;

    /// A table in which `b` takes 0.9 of the time, within 1 %, and 1.05 times the memory.
    fn table(rounds: usize) -> Summary {
        let run = |round: usize, variant: usize| {
            let off = if round.is_multiple_of(2) { 0.99 } else { 1.01 };
            let (wall_s, peak_rss_bytes) =
                if variant == 0 { (1.0, 100_000_000) } else { (0.9 * off, 105_000_000) };
            Run { round: Some(round), variant, wall_s, peak_rss_bytes, ..Run::default() }
        };
        let runs: Vec<Run> = (0..rounds).flat_map(|round| [run(round, 0), run(round, 1)]).collect();
        summarize(&labels(2), Measure::Wall, Look::ONLY, &runs)
    }

    #[test]
    fn a_criterion_is_written_as_it_is_read() {
        let text = "glibc:top_pad=64M if wall <= 0.97 and peak_rss <= 1.1 and throughput >= 1";
        assert_eq!(text.parse::<Criterion>().unwrap().to_string(), text);
        let loose = "masu  if wall<=0.97 and peak_rss  <=  1.10".parse::<Criterion>().unwrap();
        assert_eq!(loose.to_string(), "masu if wall <= 0.97 and peak_rss <= 1.1");
        for (text, word) in [
            ("masu", "` if `"),
            (" if wall <= 1", "names no variant"),
            ("masu if wall", "no <= or >="),
            ("masu if wall < 1", "no <= or >="),
            ("masu if speed <= 1", "there are wall, "),
            ("masu if wall <= fast", "no ratio"),
            ("masu if wall <= -1", "no ratio"),
        ] {
            let error = text.parse::<Criterion>().unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("masu if wall <= 0.97"), "{error}");
        }
    }

    #[test]
    fn all_must_be_shown_and_one_that_fails_decides() {
        let summary = table(20);
        let holds = |text: &str| decide(&summary, &text.parse().unwrap()).holds;
        assert_eq!(holds("b if wall <= 0.95 and peak_rss <= 1.1"), Held::Yes);
        assert_eq!(holds("b if wall <= 0.95 and peak_rss <= 1.01"), Held::No);
        assert_eq!(holds("b if wall <= 0.9 and peak_rss <= 1.1"), Held::Open, "not shown");
        assert_eq!(holds("b if wall <= 0.9 and peak_rss <= 1.01"), Held::No);
        assert_eq!(holds("b if wall >= 0.8"), Held::Yes);
        assert_eq!(holds("b if wall >= 0.95"), Held::No);
    }

    #[test]
    fn without_a_verdict_nothing_is_decided() {
        let decided = |summary: &Summary, text: &str| decide(summary, &text.parse().unwrap()).holds;
        assert_eq!(decided(&table(3), "b if wall <= 0.95"), Held::Unknown);
        assert_eq!(decided(&table(20), "c if wall <= 0.95"), Held::Unknown);
        assert_eq!(decided(&table(20), "b if throughput >= 1"), Held::Unknown);
        assert_eq!(decided(&table(20), "a if wall <= 2"), Held::Unknown, "the reference itself");
    }
}
