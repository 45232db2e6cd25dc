//! Warm-ups: one verified run of each row, and who cannot take part.
//!
//! Relies on the executor for the proof that a variant is in effect. What is decided here is who may
//! be missing: a malloc that was merely found is left out with its reason, one that was named must
//! work, and so must the reference, with which the others are compared.

use super::{Event, Executor, Remarks};
use crate::plan::Prepared;
use crate::results::{LeftOut, Record};
use crate::{Ending, Error, Evidence, Run, Stop};

/// What the warm-up of a row showed.
pub(super) struct Warm {
    pub(super) wall_s: f64,
    pub(super) evidence: Evidence,
}

/// The warm-ups of one case.
pub(super) struct WarmUps<'a, 'o> {
    pub(super) executor: &'a mut (dyn Executor + 'o),
    pub(super) stop: &'a Stop,
    pub(super) observe: &'a mut (dyn FnMut(Event<'_>) + 'o),
    /// Warm-ups of earlier cases.
    pub(super) done: usize,
    /// Warm-ups of all cases.
    pub(super) of: usize,
}

impl WarmUps<'_, '_> {
    /// Warms up every row of `prepared`, the case at `case`; takes those out that cannot take part, and
    /// appends to `records` what the others showed. Returns that too, with the rows' indices as they
    /// were.
    pub(super) fn make(
        &mut self,
        case: usize,
        prepared: &mut Prepared,
        records: &mut Vec<Record>,
    ) -> Result<(Vec<Warm>, Vec<usize>), Error> {
        let (mut warm, mut places) = (Vec::new(), Vec::new());
        let mut there = Vec::new();
        let rows = std::mem::take(&mut prepared.rows);
        let count = rows.len();
        for (index, row) in rows.into_iter().enumerate() {
            let variant = &row.variant;
            let done = self.done + index;
            (self.observe)(Event::WarmUp { case: &prepared.name, variant, done, of: self.of });
            match self.row(index, &variant.label) {
                Ok((mut run, evidence)) => {
                    (run.case, run.variant) = (case, there.len());
                    (self.observe)(Event::Verified { variant, evidence: &evidence, run: &run });
                    warm.push(Warm { wall_s: run.wall_s, evidence: evidence.clone() });
                    records.push(Record::WarmUp { evidence, run });
                    there.push(row);
                    places.push(index);
                }
                Err(error) => {
                    // Alone the reference says nothing.
                    let others = there.len() + count - index - 1;
                    let may = row.optional && !there.is_empty() && others > 1;
                    let reason = reason(&error).filter(|_| may);
                    let Some(reason) = reason else { return Err(error) };
                    let left_out = LeftOut { label: row.variant.label, reason };
                    (self.observe)(Event::LeftOut { case: &prepared.name, left_out: &left_out });
                    prepared.left_out.push(left_out);
                }
            }
        }
        prepared.rows = there;
        Ok((warm, places))
    }

    fn row(&mut self, index: usize, label: &str) -> Result<(Run, Evidence), Error> {
        let (run, evidence) = self.executor.warm_up(index, self.stop)?;
        match &run.ending {
            Ending::Stopped => Err(Error::Stopped),
            Ending::Exited(_) | Ending::Signalled(_) => Ok((run, evidence)),
            cut_short => {
                let (variant, reason) = (label.to_owned(), cut_short.to_string());
                Err(Error::WarmUp { variant, reason })
            }
        }
    }
}

/// Why a variant is left out, if `error` is about the variant alone.
fn reason(error: &Error) -> Option<String> {
    match error {
        Error::NotInEffect { reason, .. } | Error::CannotRun { reason, .. } => Some(reason.clone()),
        Error::Server { reason, .. } => Some(format!("its server {reason}")),
        Error::WarmUp { reason, .. } => Some(format!("its warm-up run {reason}")),
        _ => None,
    }
}

/// An executor of rows some of which were left out.
pub(super) struct Remaining<'a> {
    pub(super) executor: Box<dyn Executor + 'a>,
    /// The executor's index of each row that is left.
    pub(super) places: Vec<usize>,
}

impl Executor for Remaining<'_> {
    fn warm_up(&mut self, index: usize, stop: &Stop) -> Result<(Run, Evidence), Error> {
        self.executor.warm_up(self.places[index], stop)
    }

    fn run(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        self.executor.run(self.places[index], stop)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.executor.finish()
    }

    fn remarks(&self) -> Remarks {
        self.executor.remarks()
    }

    fn is_kept_warm(&self) -> bool {
        self.executor.is_kept_warm()
    }
}

/// Warms up again what was verified before.
pub(super) fn again(executor: &mut dyn Executor, rows: usize, stop: &Stop) -> Result<(), Error> {
    for index in 0..rows {
        let (run, _) = executor.warm_up(index, stop)?;
        if run.ending == Ending::Stopped {
            return Err(Error::Stopped);
        }
    }
    Ok(())
}
