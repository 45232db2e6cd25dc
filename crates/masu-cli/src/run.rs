//! `masu run`: a program under one variant, in masu's own place.
//!
//! Relies on the lab's `launch`, which is an `exec`: exit code, signals and streams need no care.

use anyhow::Result;
use masu_lab::{Input, Variant, Workload, launch};

use crate::arguments;
use crate::embedded;

pub(crate) struct Request {
    workload: Workload,
    variant: Variant,
}

impl Request {
    pub(crate) fn prepare(arguments: arguments::Run) -> Result<Self> {
        let arguments::Run { variant, program } = arguments;
        let workload = Workload::new(program.words, Input::Empty)?;
        let specs = std::slice::from_ref(&variant);
        let catalogue = embedded::catalogue_for(specs, &workload.program)?;
        let variant = catalogue.resolve(&variant, &workload.program)?;
        Ok(Self { workload, variant })
    }

    /// Becomes the program; returns only where that fails.
    pub(crate) fn perform(self) -> anyhow::Error {
        match launch(&self.workload, &self.variant) {
            Err(error) => error.into(),
        }
    }
}
