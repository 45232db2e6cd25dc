//! Records of results without the words that are to be taken out.
//!
//! Relies on [`Redact`] to take them out of a text. Each record's free text is named here; what machines read is left alone.

use std::path::PathBuf;

use super::{Case, FileMark, Header, LeftOut, Record, Row, Summary};
use crate::execute::Output;
use crate::{Ending, Evidence, Redact, Run, Variant};

impl Redact {
    /// Takes the words out of a line of results.
    pub fn record(&self, record: &mut Record) {
        match record {
            Record::Header(header) => self.header(header),
            Record::WarmUp { evidence, run } => {
                self.evidence(evidence);
                self.run(run);
            }
            Record::Run(run) => self.run(run),
            Record::Summary { case: _, summary } => self.summary(summary),
        }
    }

    /// Takes the words out of a header. The machine's description is kept: it names a model of CPU
    /// and a kernel, not a host.
    pub fn header(&self, header: &mut Header) {
        self.all(&mut header.suite);
        self.all(&mut header.decide);
        self.all(&mut header.asked);
        header.cases.iter_mut().for_each(|case| self.case(case));
        for FileMark { path, .. } in &mut header.files {
            self.one(path);
        }
    }

    /// Takes the words out of the description of a table.
    pub fn case(&self, case: &mut Case) {
        self.one(&mut case.name);
        self.all(&mut case.command);
        self.pairs(&mut case.settings);
        case.variants.iter_mut().for_each(|variant| self.variant(variant));
        for LeftOut { label, reason } in &mut case.left_out {
            self.one(label);
            self.one(reason);
        }
    }

    fn variant(&self, variant: &mut Variant) {
        self.one(&mut variant.label);
        self.one(&mut variant.allocator);
        self.all(&mut variant.version);
        if let Some(library) = &mut variant.library {
            *library = PathBuf::from(self.text(&library.to_string_lossy()));
        }
        for pairs in [&mut variant.tunables, &mut variant.variables, &mut variant.parameters] {
            self.pairs(pairs);
        }
    }

    /// Takes the words out of what a warm-up showed.
    pub fn evidence(&self, evidence: &mut Evidence) {
        let Evidence { served, idle, not_served, notes, .. } = evidence;
        for list in [served, idle, not_served, notes] {
            self.all(list);
        }
    }

    /// Takes the words out of a run: what it said, and the names of its processes.
    pub fn run(&self, run: &mut Run) {
        for output in [&mut run.stdout, &mut run.stderr] {
            if output.bytes > Output::TAIL_BYTES as u64 {
                output.tail = self.without_end(&output.tail).to_owned();
            }
            self.one(&mut output.tail);
        }
        self.all(&mut run.left_behind);
        if let Ending::OutOfMemory { process, .. } = &mut run.ending {
            self.one(process);
        }
    }

    /// Takes the words out of a summary.
    pub fn summary(&self, summary: &mut Summary) {
        self.all(&mut summary.warnings);
        self.all(&mut summary.notes);
        for Row { variant, .. } in &mut summary.rows {
            self.one(variant);
        }
    }
}
