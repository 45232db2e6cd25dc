//! Proof that a variant's malloc serves a server: a traced start before the measured one.
//!
//! Breakpoints leave copied pages of code behind, and detaching interrupts system calls. So the traced server has a
//! folder and a port of its own and ends when it is ready. In the measured server only the mapping of the
//! library is checked.

use std::fs;

use super::ready::NotReady;
use super::running::Running;
use super::{Servers, ready};
use masu_run::execute::last_error::last_error;
use masu_run::execute::{Conditions, Ending};
use masu_run::proc_files;
use masu_run::program::elf::is_malloc_library;
use masu_run::verify::verify;
use masu_run::{Error, Evidence, Limits, Row, Run, Stop};

impl Servers<'_> {
    /// The evidence of a traced start of `row`. A variant without a library needs no proof.
    pub(super) fn prove(&mut self, row: &Row, stop: &Stop) -> Result<Evidence, Error> {
        let variant = &row.variant;
        if variant.library.is_none() {
            return Ok(Evidence::default());
        }
        let place = self.place(row, stop)?;
        let workload = place.workload(row);
        let (enough, over) = (Stop::never(), Stop::never());
        // The time limit is for a load command: the wait for the server has its own.
        let limits = Limits { time: None, ..self.limits.clone() };
        let conditions = Conditions::from(limits);
        let (turn, plan) = (&self.turn, self.plan);
        let (seen, ready) = std::thread::scope(|scope| {
            // The tracer has a thread of its own, because it receives the events of all children of its thread.
            let tracing = scope.spawn(|| {
                turn.lend();
                let seen = verify(&workload, variant, &conditions, &enough);
                over.request();
                seen
            });
            let mut sooner = || over.requested() || stop.requested();
            let ready = ready::wait(plan, &place, row, &mut sooner);
            enough.request();
            (tracing.join(), ready)
        });
        let Ok(seen) = seen else { unreachable!("the tracer does not panic") };
        let (run, evidence) = seen?;
        if stop.requested() {
            return Err(Error::Stopped);
        }
        judge(row, &run, ready, evidence)
    }
}

/// The evidence of a traced server that was ended because it was ready or never was, or that ended itself.
fn judge(
    row: &Row,
    run: &Run,
    ready: Result<bool, NotReady>,
    mut evidence: Evidence,
) -> Result<Evidence, Error> {
    let variant = row.variant.label.clone();
    let said = last_error(&run.stderr.tail).map(|said| format!("; it said: {said}"));
    let said = said.unwrap_or_default();
    match (&run.ending, ready) {
        (Ending::Stopped, Err(NotReady { reason, is_impossible })) => {
            let said = if is_impossible { "" } else { said.as_str() };
            let reason = format!("was not ready {reason}{said}");
            return Err(Error::Server { variant, reason });
        }
        (Ending::Stopped, Ok(_)) => {}
        // The tracer's run ends with the first process; the measured start will show
        // whether the server gets ready, and whether the library is mapped.
        (Ending::Exited(0), _) => evidence.notes.push(
            "the server goes into the background, where only the mapping of the library is seen, \
             not that it serves; let it stay in the foreground"
                .to_owned(),
        ),
        (ending, _) => {
            let reason = format!("ended before it was ready: it {ending}{said}");
            return Err(Error::Server { variant, reason });
        }
    }
    if evidence.served.is_empty() && !evidence.not_served.is_empty() {
        return Err(Error::NotInEffect { variant, reason: evidence.not_served.join("; ") });
    }
    Ok(evidence)
}

/// A remark on processes of the server without the variant's library, or with a malloc in its place.
pub(super) fn is_mapped(row: &Row, running: &Running) -> Result<Option<String>, Error> {
    let maps = |pid: &i32| proc_files::text(format!("/proc/{pid}/maps"));
    let maps: Vec<String> = running.family.alive().iter().filter_map(maps).collect();
    let Some(library) = &row.variant.library else {
        // Another remark already covers a program that is itself linked with the malloc.
        let brought = maps.iter().find_map(|maps| malloc_library(maps));
        return Ok(brought.filter(|_| row.workload.program.linked_malloc.is_none()).map(|file| {
            format!("the server loads {file}, so it runs that and not the C library's malloc")
        }));
    };
    let library = fs::canonicalize(library).unwrap_or_else(|_| library.clone());
    let library = library.to_string_lossy();
    let without = maps.iter().filter(|maps| !maps.contains(&*library)).count();
    if !maps.is_empty() && without == maps.len() {
        return Err(Error::NotInEffect {
            variant: row.variant.label.clone(),
            reason: "its library is mapped into no process of the server".to_owned(),
        });
    }
    Ok((without > 0).then(|| {
        format!("{without} of {} processes of the server run without its library", maps.len())
    }))
}

fn malloc_library(maps: &str) -> Option<String> {
    let files = maps.lines().filter_map(|line| line.rsplit_once('/'));
    files.map(|(_, file)| file).find(|file| is_malloc_library(file)).map(str::to_owned)
}
