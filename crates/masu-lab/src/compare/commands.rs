//! Commands that run to their end, as the engine measures them: each run starts the program anew.

use super::Executor;
use crate::execute::execute;
use crate::verify::verify;
use crate::{Error, Evidence, Limits, Row, Run, Stop};

/// The rows of one table.
#[derive(Debug)]
pub(crate) struct Commands<'a> {
    rows: &'a [Row],
    limits: &'a Limits,
}

impl<'a> Commands<'a> {
    /// Nothing is started yet.
    pub(crate) fn new(rows: &'a [Row], limits: &'a Limits) -> Commands<'a> {
        Commands { rows, limits }
    }
}

impl Executor for Commands<'_> {
    fn warm_up(&mut self, index: usize, stop: &Stop) -> Result<(Run, Evidence), Error> {
        let Row { variant, workload } = &self.rows[index];
        verify(workload, variant, self.limits, stop)
    }

    fn run(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        let Row { variant, workload } = &self.rows[index];
        execute(workload, variant, self.limits, stop)
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
