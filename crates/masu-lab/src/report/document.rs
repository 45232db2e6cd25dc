//! What a report is made from: one or several comparisons, each with the tables of its cases.
//!
//! Relies on results as they were written. The hard idea is that a comparison may have ended early:
//! each table knows its [`Extent`], and one without a summary gets it from its runs.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::results::{self, Case, Record, Rounds};
use crate::statistics::{Look, Looks};
use crate::summary::{Criterion, Decision, decide, summarise};
use crate::{Comparison, Error, Evidence, Header, Run, Summary};

/// One comparison, or several of the same thing from several machines or days.
#[derive(Debug, Clone)]
pub struct Document {
    /// The comparisons, in the order they were given.
    pub sources: Vec<Source>,
    /// What the reader must know of how they were put together.
    pub notes: Vec<String>,
}

/// One comparison.
#[derive(Debug, Clone)]
pub struct Source {
    /// The results file's name; none for a comparison that was just made.
    pub file: Option<String>,
    /// What was compared, where and how.
    pub header: Header,
    /// One table a case, in the cases' order.
    pub tables: Vec<Table>,
}

/// One case with everything that was measured of it.
#[derive(Debug, Clone)]
pub struct Table {
    /// What was compared.
    pub case: Case,
    /// What the warm-up run of each variant showed, in the variants' order as far as they came.
    pub evidence: Vec<Evidence>,
    /// The timed runs in the order they were made.
    pub runs: Vec<Run>,
    /// What they come to.
    pub summary: Summary,
    /// Whether that is all there was to be.
    pub extent: Extent,
}

/// How much of a case was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// What was asked for.
    Whole,
    /// It was stopped before.
    Stopped,
    /// Its results end without a summary: what wrote them was ended, or still writes.
    CutOff,
}

impl Document {
    /// Reads results files; several must have compared the same thing, at least in part. Of a
    /// comparison that is given twice the longer file is taken, and a note says so.
    ///
    /// # Errors
    ///
    /// Those of [`results::read`]; [`Error::Results`] for a file without a case; [`Error::Report`]
    /// without files, or for files that have nothing in common.
    pub fn read(paths: &[PathBuf]) -> Result<Document, Error> {
        if paths.is_empty() {
            return Err(Error::Report("no results file given".to_owned()));
        }
        let mut document = Document { sources: Vec::new(), notes: Vec::new() };
        for path in paths {
            document.add(Source::read(path)?);
        }
        document.check_common_ground()?;
        Ok(document)
    }

    fn add(&mut self, source: Source) {
        let Some(twin) = self.sources.iter_mut().find(|known| known.is_same(&source)) else {
            self.sources.push(source);
            return;
        };
        if source.runs() > twin.runs() {
            let shorter = std::mem::replace(twin, source);
            self.notes.push(twice(&shorter, twin));
        } else {
            self.notes.push(twice(&source, twin));
        }
    }
}

fn twice(left_out: &Source, taken: &Source) -> String {
    let name = |source: &Source| source.file.clone().unwrap_or_default();
    format!(
        "{} holds the same comparison as {} and is left out: one comparison counts once",
        name(left_out),
        name(taken)
    )
}

impl From<&Comparison> for Document {
    fn from(comparison: &Comparison) -> Document {
        let Comparison { header, tables, .. } = comparison;
        let source = Source { file: None, header: header.clone(), tables: tables.clone() };
        Document { sources: vec![source], notes: Vec::new() }
    }
}

impl Source {
    fn read(path: &Path) -> Result<Source, Error> {
        let source = Source::from_records(results::read(path)?).map_err(|reason| {
            let reason = reason.to_owned();
            Error::Results { path: path.to_owned(), line: 1, reason }
        })?;
        Ok(Source { file: Some(path.display().to_string()), ..source })
    }

    /// What `records` come to, or why they are no comparison.
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

    /// Whether both hold one comparison: begun in the same second, with the same seed, of the same
    /// cases, on the same machine.
    fn is_same(&self, other: &Source) -> bool {
        let key = |source: &Source| {
            let Header { began, seed, machine, cases, .. } = &source.header;
            (began.clone(), *seed, machine.clone(), cases.clone())
        };
        key(self) == key(other)
    }

    fn runs(&self) -> usize {
        self.tables.iter().map(|table| table.runs.len()).sum()
    }

    /// Where it was made, on one line: CPU, system, kernel.
    pub(super) fn place(&self) -> String {
        let machine = &self.header.machine;
        let cpus =
            if machine.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", machine.cpus) };
        let cpu = machine.cpu.as_deref().unwrap_or(&machine.architecture);
        let mut parts = vec![format!("{cpu}, {cpus}")];
        parts.extend(machine.system.clone());
        parts.extend(machine.kernel.as_ref().map(|kernel| format!("kernel {kernel}")));
        parts.join(", ")
    }
}

/// A case's records as they were read.
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
        let recomputed = || summarise(&case.labels(), case.primary, look, &runs);
        let summary = summary.unwrap_or_else(recomputed);
        Table { case: case.clone(), evidence, runs, summary, extent }
    }
}

/// The look that the comparison would have taken had it ended here: what looks before it may have
/// spent of the error is not spent again.
fn last_look(case: &Case, rounds: &Rounds, runs: &[Run]) -> Look {
    match rounds {
        Rounds::Fixed(_) => Look::ONLY,
        Rounds::Budget { .. } => {
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

/// Whether rounds are missing: some variant has fewer runs than another, or than were asked for.
fn ended_early(variants: usize, rounds: &Rounds, runs: &[Run]) -> bool {
    let lasting =
        |variant: usize| runs.iter().filter(|run| run.variant == variant && !run.replaced).count();
    let asked = match rounds {
        Rounds::Fixed(rounds) => *rounds,
        Rounds::Budget { .. } => lasting(0),
    };
    (0..variants).any(|variant| lasting(variant) < asked.max(lasting(0)))
}

impl Table {
    /// Why the table shows less than was asked for, if it does.
    pub(super) fn shortfall(&self, header: &Header) -> Option<(&'static str, String)> {
        let lasting = self.runs.iter().filter(|run| !run.replaced).count();
        let made = match header.rounds {
            Rounds::Fixed(rounds) => {
                format!(
                    "{lasting} of {} runs were made",
                    rounds.saturating_mul(self.case.variants.len())
                )
            }
            Rounds::Budget { .. } => format!("{lasting} runs were made"),
        };
        match self.extent {
            Extent::Whole => None,
            Extent::Stopped => Some(("Stopped", format!("{made}; they are what is shown"))),
            Extent::CutOff => Some((
                "Cut off",
                format!("the results end without a summary: {made}; it is drawn from those"),
            )),
        }
    }

    /// What the table says about the criterion that was fixed before it; none where none was, or where the table has
    /// nothing to do with it.
    pub(super) fn decision(&self, header: &Header) -> Option<Decision> {
        let criterion: Criterion = header.decide.as_ref()?.parse().ok()?;
        let labels = self.case.labels();
        let left_out = self.case.left_out.iter().map(|one| &one.label);
        let is_here = labels.iter().skip(1).chain(left_out).any(|one| *one == criterion.variant);
        is_here.then(|| decide(&self.summary, &criterion))
    }

    /// What else was asked for, on one line: `timeout 30s, folder data`; none for nothing.
    pub(super) fn settings(&self) -> Option<String> {
        let settings: Vec<String> =
            self.case.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        (!settings.is_empty()).then(|| format!("with {}", settings.join(", ")))
    }

    /// The command on one line, quoted for a shell.
    pub(super) fn command(&self) -> String {
        let words: Vec<String> = self.case.command.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }
}

/// `word` as a POSIX shell would have to read it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+{}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests;
