//! The source of a report: one or several comparisons, each with the tables of its cases.

use super::Content;
use crate::page::width;
use crate::results::{self, Rounds};
use crate::summary::{Criterion, Decision, decide};
use crate::tables::{Extent, Source, Table};
use crate::{Comparison, Header};
use masu_run::Error;
use masu_run::workload::{COMMAND_LINES, shortened};

/// The amount of detail on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// As much as fits a screen.
    Brief,
    /// Every table and plot.
    Full,
}

/// One comparison, or several comparisons of the same thing from several machines or days.
#[derive(Debug, Clone)]
pub struct Document {
    /// The comparisons, in the order in which they were given.
    pub sources: Vec<Source>,
    /// The notes on how the comparisons were put together.
    pub notes: Vec<String>,
}

impl Document {
    /// The comparisons in `files`; several must have compared the same thing, at least in part. If a comparison is given
    /// twice, the longer file is taken, and a note says so.
    pub(super) fn of(files: &[Content]) -> Result<Document, Error> {
        if files.is_empty() {
            return Err(Error::Request("no results file given".to_owned()));
        }
        let mut document = Document { sources: Vec::new(), notes: Vec::new() };
        for file in files {
            document.add(Source::of(file)?);
        }
        document.check_common_ground()?;
        Ok(document)
    }

    fn add(&mut self, mut source: Source) {
        let Some(twin) = self.sources.iter_mut().find(|known| known.is_same(&source)) else {
            self.sources.push(source);
            return;
        };
        if source.runs() > twin.runs() {
            std::mem::swap(twin, &mut source);
        }
        let name = |source: &Source| source.file.clone().unwrap_or_default();
        self.notes.push(format!(
            "{} holds the same comparison as {} and is left out: one comparison counts once",
            name(&source),
            name(twin)
        ));
    }
}

impl From<&Comparison> for Document {
    fn from(comparison: &Comparison) -> Document {
        let Comparison { header, tables, .. } = comparison;
        let source = Source { file: None, header: header.clone(), tables: tables.clone() };
        Document { sources: vec![source], notes: Vec::new() }
    }
}

impl Source {
    fn of((path, bytes): &Content) -> Result<Source, Error> {
        let source = Source::from_records(results::understand(path, bytes)?).map_err(|reason| {
            let reason = reason.to_owned();
            Error::Results { path: path.clone(), line: 1, reason }
        })?;
        Ok(Source { file: Some(path.display().to_string()), ..source })
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

    /// The machine of the comparison, on one line: CPU, system, kernel.
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

impl Table {
    /// The reason why the table shows less than was requested, if it does.
    pub(super) fn shortfall(&self, header: &Header) -> Option<(&'static str, String)> {
        let lasting = self.runs.iter().filter(|run| !run.replaced).count();
        let made = match header.rounds {
            Rounds::Fixed(rounds) => {
                format!(
                    "{lasting} of {} runs were made",
                    rounds.saturating_mul(self.case.variants.len())
                )
            }
            Rounds::Budget { .. } | Rounds::UntilDecided { .. } => {
                format!("{lasting} runs were made")
            }
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

    /// The table's decision by the criterion that was fixed in advance; none if there was none, or if the table has
    /// nothing to do with it.
    pub(super) fn decision(&self, header: &Header) -> Option<Decision> {
        let criterion: Criterion = header.decide.as_ref()?.parse().ok()?;
        let labels = self.case.labels();
        let left_out = self.case.left_out.iter().map(|one| &one.label);
        let is_here = labels.iter().skip(1).chain(left_out).any(|one| *one == criterion.variant);
        is_here.then(|| decide(&self.summary, &criterion))
    }

    /// The other options of the case, on one line: `timeout 30s, folder data`; none if there are none.
    pub(super) fn settings(&self) -> Option<String> {
        let settings: Vec<String> =
            self.case.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        (!settings.is_empty()).then(|| format!("with {}", settings.join(", ")))
    }

    /// The values of `--each` that the case was made for, `threads=2`: the name of a case without a suite is the
    /// program with those.
    pub(super) fn values(&self) -> Option<&str> {
        let values = self.case.name.strip_prefix(self.case.command.first()?)?.trim_start();
        (!values.is_empty()).then_some(values)
    }

    pub(super) fn command(&self) -> String {
        shortened(&self.case.command, usize::MAX)
    }

    /// The case's command, cut to some lines of a page if only a `Brief` one is wanted.
    pub(super) fn headed(&self, detail: Detail) -> String {
        let columns = if detail == Detail::Full { usize::MAX } else { COMMAND_LINES * width() };
        shortened(&self.case.command, columns)
    }
}

#[cfg(test)]
mod tests;
