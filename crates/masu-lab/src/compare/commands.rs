//! Commands that run to their end, as the engine measures them: each run starts the program anew.

use super::Executor;
use crate::execute::{Conditions, Offsets, execute_under};
use crate::verify::verify_under;
use crate::{Error, Evidence, Limits, Row, Run, Stop};

/// The rows of one table.
#[derive(Debug)]
pub(crate) struct Commands<'a> {
    rows: &'a [Row],
    limits: &'a Limits,
    offsets: Offsets,
}

impl<'a> Commands<'a> {
    /// Nothing is started yet. Every run, the warm-ups too, has the next of `offsets`.
    pub(crate) fn new(rows: &'a [Row], limits: &'a Limits, offsets: Offsets) -> Commands<'a> {
        Commands { rows, limits, offsets }
    }

    fn conditions(&mut self) -> Conditions {
        let offset_bytes = self.offsets.draw();
        Conditions { limits: self.limits.clone(), offset_bytes, folder: None }
    }
}

impl Executor for Commands<'_> {
    fn warm_up(&mut self, index: usize, stop: &Stop) -> Result<(Run, Evidence), Error> {
        let conditions = self.conditions();
        let Row { variant, workload } = &self.rows[index];
        verify_under(workload, variant, &conditions, stop)
    }

    fn run(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        let conditions = self.conditions();
        let Row { variant, workload } = &self.rows[index];
        execute_under(workload, variant, &conditions, stop)
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
