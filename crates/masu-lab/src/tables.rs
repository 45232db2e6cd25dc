//! The results of a comparison as tables: one table for each case, with everything that was measured of the case.
//!
//! A comparison may have ended early: each table knows its [`Extent`], and a table whose file has no summary
//! computes the summary from its runs.

use serde::Serialize;

use crate::results::{Case, Record, Rounds};
use crate::statistics::{Look, Looks};
use crate::summary::summarize;
use crate::{Header, Summary};
use masu_run::{Evidence, Run};

#[derive(Debug, Clone)]
pub struct Source {
    /// The results file's name; none for a comparison that was just made.
    pub file: Option<String>,
    pub header: Header,
    /// One table a case, in the cases' order.
    pub tables: Vec<Table>,
}

/// One case with everything that was measured of it.
#[derive(Debug, Clone)]
pub struct Table {
    pub case: Case,
    /// The evidence of each variant's warm-up run, in the variants' order, for the warm-ups that were made.
    pub evidence: Vec<Evidence>,
    /// The timed runs in the order they were made.
    pub runs: Vec<Run>,
    pub summary: Summary,
    /// Whether the case was measured to its end.
    pub extent: Extent,
}

/// The measured part of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Every run that was asked for.
    Whole,
    Stopped,
    /// The results end without a summary: the writing process was killed, or still writes.
    CutOff,
}

impl Source {
    /// The source that `records` make up, or the reason why they are no comparison.
    pub(crate) fn from_records(records: Vec<Record>) -> Result<Source, &'static str> {
        let mut records = records.into_iter();
        let Some(Record::Header(header)) = records.next() else {
            return Err("this is no results file: its first line is no header");
        };
        if header.cases.iter().all(|case| case.variants.is_empty()) {
            return Err("nothing was compared: the header names no case with variants");
        }
        let mut tables: Vec<Gathered> = header.cases.iter().map(|_| Gathered::default()).collect();
        for record in records {
            match record {
                Record::Header(_) => return Err("the file holds a second header"),
                Record::WarmUp { evidence, run } => {
                    if let Some(table) = tables.get_mut(run.case) {
                        table.evidence.push(evidence);
                    }
                }
                Record::Run(run) => {
                    if let Some(table) = tables.get_mut(run.case) {
                        table.runs.push(run);
                    }
                }
                Record::Summary { case, summary } => {
                    if let Some(table) = tables.get_mut(case) {
                        table.summary = Some(summary);
                    }
                }
            }
        }
        let cases = header.cases.iter().zip(tables);
        let tables = cases.map(|(case, gathered)| gathered.table(case, &header.rounds)).collect();
        Ok(Source { file: None, header, tables })
    }
}

/// The records of a case as they were read.
#[derive(Debug, Default)]
struct Gathered {
    evidence: Vec<Evidence>,
    runs: Vec<Run>,
    summary: Option<Summary>,
}

impl Gathered {
    fn table(self, case: &Case, rounds: &Rounds) -> Table {
        let Gathered { evidence, runs, summary } = self;
        let extent = match summary {
            None => Extent::CutOff,
            Some(_) if ended_early(case.variants.len(), rounds, &runs) => Extent::Stopped,
            Some(_) => Extent::Whole,
        };
        let look = last_look(case, rounds, &runs);
        let recomputed = || summarize(&case.labels(), case.primary, look, &runs);
        let summary = summary.unwrap_or_else(recomputed);
        Table { case: case.clone(), evidence, runs, summary, extent }
    }
}

/// The look that the comparison would have taken had it ended here: error that earlier looks may have spent is not
/// spent again.
fn last_look(case: &Case, rounds: &Rounds, runs: &[Run]) -> Look {
    match rounds {
        Rounds::Fixed(_) => Look::ONLY,
        Rounds::Budget { .. } | Rounds::UntilDecided { .. } => {
            let mut looks = Looks::new(case.variants.len().saturating_sub(1));
            let last = runs.iter().filter_map(|run| run.round).max();
            // A file may hold anything; there cannot be more rounds than runs.
            let begun = last.map_or(0, |last| last.saturating_add(1)).min(runs.len());
            for round in 1..=begun {
                looks.due(round);
            }
            looks.last()
        }
    }
}

/// Whether rounds are missing: some variant has fewer runs than another, or fewer than were asked for.
fn ended_early(variants: usize, rounds: &Rounds, runs: &[Run]) -> bool {
    let lasting =
        |variant: usize| runs.iter().filter(|run| run.variant == variant && !run.replaced).count();
    let asked = match rounds {
        Rounds::Fixed(rounds) => *rounds,
        Rounds::Budget { .. } | Rounds::UntilDecided { .. } => lasting(0),
    };
    (0..variants).any(|variant| lasting(variant) < asked.max(lasting(0)))
}
