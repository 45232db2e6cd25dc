//! Claims of a report, and the judgement of today's figures on them.
//!
//! Relies on the intervals of [`statistics`](crate::statistics). The hard idea is the third answer: where an interval
//! reaches over the line that a claim draws, the runs cannot decide, and the page says so rather than taking a side.

use serde::Deserialize;

use crate::statistics::Ratio;
use masu_run::quantity;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim {
    pub says: String,
    pub then: String,
    /// Today's figure, with its interval where it has one.
    pub now: String,
    pub held: Held,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    Yes,
    No,
    Undecided,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Expect {
    Above(f64),
    Below(f64),
    /// The ratio is 1, give or take this factor: `Near(1.1)` is a tenth more or less.
    Near(f64),
}

/// The relation between the author's claims and today's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Every claim that can be decided holds.
    Full,
    Partial,
    None,
    /// No claim can be decided.
    Undecided,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub agreement: Agreement,
    pub sentence: String,
}

impl Held {
    pub(super) fn word(self) -> &'static str {
        match self {
            Held::Yes => "held",
            Held::No => "not held",
            Held::Undecided => "not decidable",
        }
    }
}

impl Expect {
    /// The judgement of a ratio with this interval.
    pub(super) fn judge(self, (low, high): (f64, f64)) -> Held {
        let (holds, fails) = match self {
            Expect::Above(line) => (low > line, high <= line),
            Expect::Below(line) => (high < line, low >= line),
            Expect::Near(factor) => {
                (low >= 1.0 / factor && high <= factor, low > factor || high < 1.0 / factor)
            }
        };
        match (holds, fails) {
            (true, _) => Held::Yes,
            (_, true) => Held::No,
            _ => Held::Undecided,
        }
    }
}

impl Claim {
    pub(super) fn of_ratio(says: &str, then: &str, ratio: Option<&Ratio>, expect: Expect) -> Claim {
        let (now, held) = match ratio {
            None => ("not measured".to_owned(), Held::Undecided),
            Some(Ratio { estimate, interval: None, pairs }) => {
                let s = if *pairs == 1 { "" } else { "s" };
                let runs = format!(
                    "×{} of {pairs} pair{s} of runs, too few for an interval",
                    quantity::ratio(*estimate)
                );
                (runs, Held::Undecided)
            }
            Some(Ratio { interval: Some(interval), .. }) => {
                (written(ratio), expect.judge(*interval))
            }
        };
        Claim { says: says.to_owned(), then: then.to_owned(), now, held }
    }

    /// A claim about a number that was counted and is therefore certain; undecided where it could not
    /// be counted.
    pub(super) fn of_count(
        says: &str,
        then: &str,
        now: &str,
        number: Option<f64>,
        expect: Expect,
    ) -> Claim {
        let held = number.map_or(Held::Undecided, |number| expect.judge((number, number)));
        Claim { says: says.to_owned(), then: then.to_owned(), now: now.to_owned(), held }
    }
}

/// `×0.893 (0.880–0.906)`, as far as it is known: a figure of few runs, one of which may have been starved, says so.
pub(crate) fn written(ratio: Option<&Ratio>) -> String {
    match ratio {
        None => "–".to_owned(),
        Some(ratio @ Ratio { interval: None, pairs, .. }) => {
            format!("{} (too few runs: {pairs})", ratio.written())
        }
        Some(ratio) => ratio.written(),
    }
}

impl Verdict {
    /// The verdict of `claims`; `figures` follow in the same sentence.
    pub(super) fn of(claims: &[Claim], figures: &str) -> Verdict {
        let count = |held: Held| claims.iter().filter(|claim| claim.held == held).count();
        let (held, failed, open) = (count(Held::Yes), count(Held::No), count(Held::Undecided));
        let agreement = match (held, failed) {
            (0, 0) => Agreement::Undecided,
            (_, 0) => Agreement::Full,
            (0, _) => Agreement::None,
            _ => Agreement::Partial,
        };
        let decided = held + failed;
        let lead = match agreement {
            Agreement::Undecided => {
                "Today's machine neither agrees with the author nor contradicts, because no claim could be decided"
                    .to_owned()
            }
            Agreement::Full => format!("Today's machine agrees with the author in {}", all(held)),
            Agreement::None => {
                format!("Today's machine does not agree with the author in {}", all(failed))
            }
            Agreement::Partial => {
                format!("Today's machine agrees with the author in {held} of {decided} claims")
            }
        };
        let open = match open {
            0 => String::new(),
            _ if decided == 0 => String::new(),
            1 => " (1 more could not be decided)".to_owned(),
            more => format!(" ({more} more could not be decided)"),
        };
        let figures = figures.trim_end_matches('.');
        let figures = if figures.is_empty() { String::new() } else { format!(": {figures}") };
        Verdict { agreement, sentence: format!("{lead}{open}{figures}.") }
    }
}

fn all(count: usize) -> String {
    if count == 1 { "its one claim".to_owned() } else { format!("all {count} claims") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_held_only_where_the_whole_interval_is_on_its_side() {
        let judge = |expect: Expect, low, high| expect.judge((low, high));
        assert_eq!(judge(Expect::Above(1.0), 1.01, 1.2), Held::Yes);
        assert_eq!(judge(Expect::Above(1.0), 0.99, 1.2), Held::Undecided);
        assert_eq!(judge(Expect::Above(1.0), 0.8, 0.99), Held::No);
        assert_eq!(judge(Expect::Below(0.5), 0.3, 0.4), Held::Yes);
        assert_eq!(judge(Expect::Below(0.5), 0.6, 0.7), Held::No);
        assert_eq!(judge(Expect::Near(1.1), 0.95, 1.05), Held::Yes);
        assert_eq!(judge(Expect::Near(1.1), 1.2, 1.3), Held::No);
        assert_eq!(judge(Expect::Near(1.1), 1.0, 1.2), Held::Undecided);
    }

    #[test]
    fn a_ratio_without_an_interval_decides_nothing() {
        let few = Ratio { estimate: 3.0, interval: None, pairs: 4 };
        let claim = Claim::of_ratio("a", "b", Some(&few), Expect::Above(1.0));
        assert_eq!(claim.held, Held::Undecided);
        assert!(claim.now.contains("4 pairs"), "{}", claim.now);
        assert_eq!(Claim::of_ratio("a", "b", None, Expect::Near(2.0)).held, Held::Undecided);
        let counted = |number| Claim::of_count("a", "b", "c", number, Expect::Above(9.0)).held;
        assert_eq!(
            [Some(9.0), Some(10.0), None].map(counted),
            [Held::No, Held::Yes, Held::Undecided]
        );
    }

    #[test]
    fn the_verdict_counts_the_claims() {
        let claim =
            |held| Claim { says: String::new(), then: String::new(), now: String::new(), held };
        let verdict = |held: &[Held]| {
            Verdict::of(&held.iter().map(|held| claim(*held)).collect::<Vec<_>>(), "1 s, not 2 s")
        };
        let full = verdict(&[Held::Yes, Held::Yes, Held::Undecided]);
        assert_eq!(full.agreement, Agreement::Full);
        assert_eq!(
            full.sentence,
            "Today's machine agrees with the author in all 2 claims (1 more could not be decided): 1 s, not 2 s."
        );
        let partial = verdict(&[Held::Yes, Held::No]);
        assert_eq!(partial.agreement, Agreement::Partial);
        assert!(partial.sentence.contains("in 1 of 2 claims: 1 s"), "{}", partial.sentence);
        assert_eq!(verdict(&[Held::No]).agreement, Agreement::None);
        assert_eq!(verdict(&[]).agreement, Agreement::Undecided);
        assert_eq!(verdict(&[Held::Undecided]).agreement, Agreement::Undecided);
    }
}
