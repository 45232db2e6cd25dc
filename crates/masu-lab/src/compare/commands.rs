//! Commands that run to their end, as the engine measures them: each run starts the program anew.

use super::Executor;
use crate::execute::execute;
use crate::verify::verify;
use crate::{Error, Evidence, Limits, Run, Stop, Variant, Workload};

/// One workload under several variants.
#[derive(Debug)]
pub(crate) struct Commands<'a> {
    workload: &'a Workload,
    variants: &'a [Variant],
    limits: &'a Limits,
}

impl<'a> Commands<'a> {
    /// Nothing is started yet.
    pub(crate) fn new(
        workload: &'a Workload,
        variants: &'a [Variant],
        limits: &'a Limits,
    ) -> Commands<'a> {
        Commands { workload, variants, limits }
    }
}

impl Executor for Commands<'_> {
    fn warm_up(&mut self, index: usize, stop: &Stop) -> Result<(Run, Evidence), Error> {
        verify(self.workload, &self.variants[index], self.limits, stop)
    }

    fn run(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        execute(self.workload, &self.variants[index], self.limits, stop)
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
