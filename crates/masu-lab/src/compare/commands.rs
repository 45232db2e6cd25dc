//! Commands that run to their end, as the engine measures them: each run starts the program again,
//! in a folder and after preparations of its own where the plan asks for these.

use std::borrow::Cow;
use std::ffi::OsStr;

use crate::plan::Prepared;
use masu_run::execute::{Conditions, Fresh, Offsets, execute, execute_beside};
use masu_run::executor::Executor;
use masu_run::hooks::Hook;
use masu_run::parameter::{self, Values};
use masu_run::verify::{accuse_pair, bound_deep, verify};
use masu_run::{Ending, Error, Evidence, Hooks, Limits, Row, Run, ScratchFolder, Stop};

#[derive(Debug)]
pub(crate) struct Commands<'a> {
    rows: Cow<'a, [Row]>,
    limits: &'a Limits,
    offsets: Offsets,
    hooks: Hooks,
    scratch: Option<ScratchFolder>,
    /// Whether the setup was begun, so that there is something to clean up.
    is_set_up: bool,
    /// The ending of the first warm-up, which is the reference's.
    reference: Option<Ending>,
    fresh: Fresh,
    /// Whether the runs of a round are made at the same time, the rows of the round, and those of its runs that
    /// the engine has not taken yet.
    is_side_by_side: bool,
    round: Vec<usize>,
    made: Vec<(usize, Run)>,
}

impl<'a> Commands<'a> {
    /// The rows of `prepared`; nothing is started yet. Every run, the warm-ups too, has the next of
    /// `offsets`.
    pub(crate) fn new(prepared: &'a Prepared, offsets: Offsets) -> Result<Commands<'a>, Error> {
        let Prepared { limits, hooks, .. } = prepared;
        let scratch = ScratchFolder::create(&prepared.scratch)?;
        let mut rows = Cow::Borrowed(prepared.rows.as_slice());
        if let Some(scratch) = &scratch {
            let path = scratch.path().to_string_lossy().into_owned();
            let values = [("scratch".to_owned(), path)];
            for row in rows.to_mut() {
                for argument in &mut row.workload.arguments {
                    *argument = parameter::substitute(argument, &values);
                }
            }
        }
        let (hooks, is_set_up, reference) = (hooks.clone(), false, None);
        let fresh = Fresh::here();
        Ok(Commands {
            rows,
            limits,
            offsets,
            hooks,
            scratch,
            is_set_up,
            reference,
            fresh,
            is_side_by_side: prepared.is_side_by_side,
            round: Vec::new(),
            made: Vec::new(),
        })
    }

    /// The run of a row, made beside those of the other rows of the round, unless it was made with theirs.
    fn beside(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        if !self.made.iter().any(|(row, _)| *row == index) {
            self.fresh.touch(self.round.len())?;
            let one = |row: &usize| {
                let Row { variant, workload, .. } = &self.rows[*row];
                let limits = self.limits.clone();
                let offset_bytes = self.offsets.draw();
                (workload, variant, Conditions { offset_bytes, ..Conditions::from(limits) })
            };
            let round: Vec<_> = self.round.iter().map(one).collect();
            let runs = execute_beside(&round, stop)?;
            self.made = self.round.iter().copied().zip(runs).collect();
        }
        let place = self.made.iter().position(|(row, _)| *row == index);
        let missing = || Error::Request("a run that its round does not have".to_owned());
        Ok(self.made.swap_remove(place.ok_or_else(missing)?).1)
    }

    /// Makes one run of a row, with everything around it.
    fn make<T>(
        &mut self,
        index: usize,
        stop: &Stop,
        run: impl FnOnce(&Row, &Conditions) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if !self.is_set_up {
            self.is_set_up = true;
            self.call(Hook::Setup, self.hooks.setup.as_deref(), stop)?;
        }
        let folder = self.scratch.as_ref().map(|scratch| scratch.path().to_owned());
        let conditions = Conditions {
            limits: self.limits.clone(),
            folder,
            offset_bytes: self.offsets.draw(),
            terminal: false,
        };
        let Some(scratch) = &self.scratch else {
            self.prepare(index, stop)?;
            self.fresh.touch(1)?;
            return run(&self.rows[index], &conditions);
        };
        scratch.fresh(stop)?;
        let prepared = self.prepare(index, stop).and_then(|()| self.fresh.touch(1));
        let made = prepared.and_then(|()| run(&self.rows[index], &conditions));
        let removed = scratch.remove();
        let made = made?;
        removed?;
        Ok(made)
    }

    fn prepare(&self, index: usize, stop: &Stop) -> Result<(), Error> {
        let Some(command) = &self.hooks.prepare else { return Ok(()) };
        let command = parameter::substitute(command, &self.values(index));
        let own_folder = self.rows[index].workload.folder.as_deref();
        let folder = self.scratch.as_ref().map(ScratchFolder::path).or(own_folder);
        Hook::Prepare.run(&command, folder, stop)
    }

    /// The values of the placeholders in a row's preparation.
    fn values(&self, index: usize) -> Values {
        let variant = &self.rows[index].variant;
        let mut values = variant.parameters.clone();
        values.push(("variant".to_owned(), variant.label.clone()));
        if let Some(scratch) = &self.scratch {
            values.push(("scratch".to_owned(), scratch.path().to_string_lossy().into_owned()));
        }
        values
    }

    /// Runs the setup or the cleanup, which belong to the table, so they run in the folder of its first row.
    fn call(&self, hook: Hook, command: Option<&OsStr>, stop: &Stop) -> Result<(), Error> {
        let Some(command) = command else { return Ok(()) };
        let folder = self.rows.first().and_then(|row| row.workload.folder.as_deref());
        hook.run(command, folder, stop)
    }
}

impl Executor for Commands<'_> {
    fn warm_up(&mut self, index: usize, stop: &Stop) -> Result<(Run, Evidence), Error> {
        let (run, evidence) =
            self.make(index, stop, |Row { variant, workload, .. }, conditions| {
                verify(workload, variant, conditions, stop)
            })?;
        self.fresh.note(run.peak_rss_bytes);
        match &self.reference {
            None => self.reference = Some(run.ending.clone()),
            Some(ending) => {
                let reference = (self.rows[0].variant.label.as_str(), ending);
                let Row { variant, workload, .. } = &self.rows[index];
                let deep = || bound_deep(workload, variant, self.limits, stop);
                accuse_pair(variant, &run, reference, deep)?;
            }
        }
        Ok((run, evidence))
    }

    fn begin_round(&mut self, rows: &[usize]) {
        self.round = rows.to_vec();
        self.made.clear();
    }

    fn run(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        if self.is_side_by_side {
            return self.beside(index, stop);
        }
        let made = self.make(index, stop, |Row { variant, workload, .. }, conditions| {
            execute(workload, variant, conditions, stop)
        });
        match made {
            // The stop came during the preparation; the runs before it must not be lost.
            Err(Error::Stopped) => Ok(Run { ending: Ending::Stopped, ..Run::default() }),
            Ok(run) => {
                self.fresh.note(run.peak_rss_bytes);
                Ok(run)
            }
            made => made,
        }
    }

    fn recall(&mut self, peak_rss_bytes: u64) {
        self.fresh.note(peak_rss_bytes);
    }

    fn finish(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_set_up) {
            return Ok(());
        }
        self.call(Hook::Cleanup, self.hooks.cleanup.as_deref(), &Stop::never())
    }
}

#[cfg(test)]
mod tests;
