//! Compares the diagnoses of each program by `masu diagnose`, alone and beside busy loops: a busy machine may change
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use masu_lab::{Stop, Workload};
use serde_json::json;

use super::diagnosis::{Said, diagnose};
use super::verdict::{FINE, OF_SIZE, OPEN};
use super::{Bench, Half, read};
use crate::findings::Finding;

/// Prints the change of each program, and counts the changes. With `kept`, the diagnosis alone is the earlier one.
pub(super) fn run(
    bench: &Bench,
    names: Vec<(String, Half)>,
    loops: usize,
    kept: bool,
    stop: &Stop,
) -> Result<()> {
    let mut changes = Vec::new();
    for (name, _) in names {
        let workload = bench.programs.workload(&name)?;
        let alone = if kept { said_before(bench, &name) } else { said(bench, &workload) };
        let both = alone.and_then(|alone| Ok((alone, busy(loops, || said(bench, &workload))?)));
        if stop.requested() {
            bail!("stopped");
        }
        match both {
            Ok((alone, beside)) => {
                let change = Change::of(&alone, &beside);
                println!("{name}: {}; beside them {}: {change:?}", alone.line(), beside.line());
                changes.push(change);
            }
            Err(error) => println!("{name}: left out: {error:#}"),
        }
    }
    let of = |wanted: &[Change]| changes.iter().filter(|one| wanted.contains(one)).count();
    println!(
        "beside {loops} busy loops: {} programs, {} first findings of another name and the same answer, {} left open, {} changed, {} of them high",
        changes.len(),
        of(&[Change::Answer]),
        of(&[Change::Open]),
        of(&[Change::Changed, Change::High]),
        of(&[Change::High])
    );
    Ok(())
}

fn said_before(bench: &Bench, name: &str) -> Result<Said> {
    let kept = read(&bench.file(name)).context("it was not diagnosed yet")?;
    Said::read(&kept["said"])
}

fn said(bench: &Bench, workload: &Workload) -> Result<Said> {
    let (diagnosis, seconds) = diagnose(&bench.masu, workload)?;
    let said = Said::read(&json!({ "diagnosis": diagnosis, "seconds": seconds }))?;
    said.succeeded()?;
    Ok(said)
}

/// The result of `work` while so many threads do nothing but run. The threads end if `work` panics too.
fn busy<T>(loops: usize, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = End(&is_done);
        // ORDERING: Relaxed; nothing is handed over with it.
        let spin = || {
            while !is_done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        (0..loops).for_each(|_| drop(scope.spawn(spin)));
        work()
    })
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // ORDERING: Relaxed; nothing is handed over with it.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The change of the first finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Same,
    /// The finding is another with the same answer for a user: memory is fine in both, or it costs time in both, or
    /// both name the same malloc or setting.
    Answer,
    /// The diagnosis beside the loops says that it cannot tell.
    Open,
    /// The finding is another, and the diagnosis beside the loops is not sure of its own; or only one diagnosis has a
    /// finding.
    Changed,
    /// The finding is another, and the diagnosis beside the loops is sure of its own.
    High,
}

impl Change {
    pub(super) fn of(alone: &Said, beside: &Said) -> Change {
        let (Some(first), Some(other)) = (alone.findings.first(), beside.findings.first()) else {
            let is_same = alone.findings.is_empty() == beside.findings.is_empty();
            return if is_same { Change::Same } else { Change::Changed };
        };
        let is_shared = |variant: &String| other.variants.contains(variant);
        let shares_remedy = first.id != OPEN && first.variants.iter().any(is_shared);
        let is_answer = shares_remedy
            || costs_time(first) && costs_time(other)
            || is_clear(alone) && is_clear(beside);
        match first.id == other.id {
            true => Change::Same,
            false if other.id == OPEN => Change::Open,
            false if is_answer => Change::Answer,
            false if other.confidence == "high" => Change::High,
            false => Change::Changed,
        }
    }
}

/// Whether the finding says that memory costs time, and names a malloc or a setting against that. A finding that is
/// left open says nothing.
fn costs_time(finding: &Finding) -> bool {
    finding.id != OPEN && !OF_SIZE.contains(&finding.id.as_str()) && !finding.variants.is_empty()
}

/// Whether the diagnosis calls memory fine before any cause. A program that computes and memory that is fine are one
/// answer.
fn is_clear(said: &Said) -> bool {
    let is_fine = said.findings.iter().any(|one| one.id == FINE);
    is_fine && said.findings.first().is_some_and(|one| one.id == FINE || one.id == "cpu-bound")
}
