//! The content of a field report, as data: its story and its table, its claims, the parts of the page about today, the
//! commands to do it by hand.
//!
//! Relies on a file of each experiment in `experiments/reports`. The experiment's code knows its figures by the names
//! that the file uses, and does not know the claims or the parts of the page.

use serde::Deserialize;

use super::page_file::{Figures, Known, Part, Shown, written};
use super::{Block, Claim, Expect, Outcome, Sheet, Verdict};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldReport {
    by_hand: String,
    /// The figures of the verdict's sentence, in parts.
    verdict: Vec<String>,
    then: Then,
    claims: Vec<Reported>,
    now: Vec<Part>,
    change: Vec<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Then {
    story: String,
    /// The table's caption; the table's first line has the headings.
    caption: String,
    table: String,
    /// The text below the table.
    later: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reported {
    says: String,
    then: String,
    /// The name of today's figure that the claim is about, and of the figure that it is divided by.
    of: String,
    #[serde(default)]
    over: String,
    expect: Expect,
    /// The unit of figures that are counted once and are therefore certain.
    #[serde(default)]
    unit: String,
}

impl FieldReport {
    pub(super) fn parse(text: &str) -> FieldReport {
        toml::from_str(text).expect("a test of each experiment reads its report")
    }

    /// The claims, compared with today's figures; a claim that equals an earlier one is left out.
    pub(super) fn claims(&self, figures: &dyn Figures) -> Vec<Claim> {
        let shown = Shown::new(figures);
        let mut said: Vec<(String, String, Expect)> = Vec::new();
        let mut claims = Vec::new();
        for Reported { says, then, of, over, expect, unit } in &self.claims {
            let (says, of, over) = (shown.put(says), shown.put(of), shown.put(over));
            if said.iter().any(|one| *one == (of.clone(), over.clone(), *expect)) {
                continue;
            }
            claims.push(if unit.is_empty() {
                Claim::of_ratio(&says, then, figures.ratio(&of, &over).as_ref(), *expect)
            } else {
                let (now, number) = counted(figures, &of, &over, written(unit));
                Claim::of_count(&says, then, &now, number, *expect)
            });
            said.push((of, over, *expect));
        }
        claims
    }

    pub(super) fn outcome(
        &self,
        experiment: &str,
        figures: &dyn Figures,
        diagnosis: Vec<Block>,
    ) -> Outcome {
        let Then { story, caption, table, later } = &self.then;
        let (headings, rows) = table.split_once('\n').unwrap_or((table, ""));
        let mut then = vec![
            Block::marked(story.clone()),
            Block::Sheet(Sheet::printed(caption, headings, rows)),
        ];
        then.extend(later.clone().map(Block::marked));
        let shown = Shown::new(figures);
        let (mut claims, mut said) = (Vec::new(), "nothing could be measured here".to_owned());
        if !figures.is_empty() {
            claims = self.claims(figures);
            let texts: Vec<String> =
                self.verdict.iter().filter_map(|text| shown.fill(text)).collect();
            said = texts.join("; ");
        }
        Outcome {
            verdict: Verdict::of(&claims, &said),
            then,
            now: shown.parts(experiment, &self.now),
            claims,
            diagnosis,
            change: shown.parts(experiment, &self.change),
            by_hand: self.by_hand.lines().map(|line| shown.put(line)).collect(),
        }
    }
}

/// A number in words, beside another number if there is one, and the number that decides.
fn counted(
    figures: &dyn Figures,
    of: &str,
    over: &str,
    unit: fn(f64) -> String,
) -> (String, Option<f64>) {
    let number = |name: &str| match figures.known(name)? {
        Known::Number(number) => number,
        Known::Runs(series) => series.median(),
    };
    let unknown = || "not counted".to_owned();
    let Some(one) = number(of) else { return (unknown(), None) };
    if over.is_empty() {
        return (unit(one), Some(one));
    }
    let Some(other) = number(over) else { return (unknown(), None) };
    // Beside nothing, a number is neither more nor less by any factor.
    let times = (other > 0.0).then_some(one / other);
    (format!("{} instead of {}", unit(one), unit(other)), times)
}

#[cfg(test)]
impl FieldReport {
    /// Fails unless `figures` has the names of every claim and of the verdict, and the author's table is whole.
    pub(super) fn check(&self, figures: &dyn Figures) {
        let shown = Shown::new(figures);
        for claim in &self.claims {
            for name in [&claim.of, &claim.over].map(|name| shown.put(name)) {
                assert!(name.is_empty() || figures.known(&name).is_some(), "{name}");
            }
        }
        for text in &self.verdict {
            let _ = shown.fill(text);
        }
        let outcome = self.outcome("test", figures, Vec::new());
        let [Block::Text(..), Block::Sheet(table), ..] = &outcome.then[..] else { panic!() };
        let is_whole = |row: &crate::page::SheetRow| row.cells.len() + 1 == table.columns.len();
        assert!(table.rows.iter().all(is_whole), "{table:?}");
        assert!(outcome.by_hand.len() > 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures whose names are numbers.
    struct Numbers;

    impl Figures for Numbers {
        fn known(&self, name: &str) -> Option<Known> {
            Some(Known::Number(name.parse().ok()))
        }
    }

    #[test]
    fn a_count_beside_none_decides_nothing() {
        let number = |of, over| counted(&Numbers, of, over, written("count")).1;
        assert_eq!(
            [number("3", ""), number("3", "6"), number("3", "?")],
            [Some(3.0), Some(0.5), None]
        );
        assert_eq!([number("3", "0"), number("0", "0")], [None, None]);
    }
}
