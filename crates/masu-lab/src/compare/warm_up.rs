//! Warm-ups: one verified run of each row, and the rows that cannot take part.
//!
//! A malloc that was found by the lab is left out with its reason; a malloc that the user named must work, and so must
//! the reference.

use super::Event;
use crate::plan::Prepared;
use crate::results::{LeftOut, Record};
use crate::statistics;
use masu_run::executor::Executor;
use masu_run::{Ending, Error, Evidence, Run, Stop};

pub(super) struct Warm {
    pub(super) wall_s: f64,
    pub(super) user_s: f64,
    pub(super) peak_rss_bytes: u64,
    /// The hash of the run's standard output; empty for a server, which was not read to its end.
    pub(super) output: String,
    pub(super) evidence: Evidence,
}

impl Warm {
    pub(super) fn of(run: &Run, evidence: Evidence) -> Warm {
        let Run { wall_s, user_s, peak_rss_bytes, .. } = *run;
        Warm { wall_s, user_s, peak_rss_bytes, output: run.stdout.hash.clone(), evidence }
    }
}

/// A warm-up may use this many times the CPU time of later runs, and this many seconds more, without a warning.
const WORK_TIMES: f64 = 5.0;
const WORK_BEYOND_S: f64 = 0.05;

/// Warnings of warm-ups that did work which the `runs` after them did not: a build that is up
/// to date, or an answer from a cache, is equal under all variants and is not the intended work.
pub(super) fn found_done(labels: &[String], warm_ups: &[Warm], runs: &[Run]) -> Vec<String> {
    let said = |(variant, warm): (usize, &Warm)| {
        let own: Vec<&Run> =
            runs.iter().filter(|run| run.variant == variant && !run.replaced).collect();
        let first = own.first()?;
        let is_one = own.iter().all(|run| run.stdout.hash == first.stdout.hash);
        let is_other = is_one && !warm.output.is_empty() && warm.output != first.stdout.hash;
        let times: Vec<f64> = own.iter().map(|run| run.user_s).collect();
        let usual_s = statistics::median(&times)?;
        let is_more = warm.user_s > WORK_TIMES * usual_s + WORK_BEYOND_S;
        let what = match (is_other, is_more) {
            (false, false) => return None,
            (true, false) => "wrote something else than each run after it".to_owned(),
            (is_other, true) => format!(
                "{}used {:.2} s of CPU where the runs after it used {usual_s:.3} s",
                if is_other { "wrote something else and " } else { "" },
                warm.user_s,
            ),
        };
        Some(format!(
            "not repeatable: the warm-up of `{}` {what}; if these found its work done (a build, a \
             cache), let each start from the same state (--prepare, --scratch)",
            labels.get(variant)?
        ))
    };
    warm_ups.iter().enumerate().filter_map(said).collect()
}

pub(super) struct WarmUps<'a, 'o> {
    pub(super) executor: &'a mut (dyn Executor + 'o),
    pub(super) stop: &'a Stop,
    pub(super) observe: &'a mut (dyn FnMut(Event<'_>) + 'o),
    pub(super) done: usize,
    pub(super) of: usize,
}

impl WarmUps<'_, '_> {
    /// Warms up every row of `prepared`, the case at `case`; removes the rows that cannot take part, and
    /// appends the records of the others to `records`. Returns the others' warm-ups, with the rows' indices before the
    /// removal.
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
            (self.observe)(Event::WarmUp {
                case: &prepared.name,
                variant,
                is_server: prepared.server.is_some(),
                has_hooks: prepared.hooks.setup.is_some() || prepared.hooks.prepare.is_some(),
                done,
                of: self.of,
            });
            match self.row(index, &variant.label) {
                Ok((mut run, evidence)) => {
                    (run.case, run.variant) = (case, there.len());
                    warm.push(Warm::of(&run, evidence.clone()));
                    records.push(Record::WarmUp { evidence, run });
                    there.push(row);
                    places.push(index);
                }
                Err(error) => {
                    // The reference alone shows nothing.
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
                let advice = match cut_short {
                    Ending::TimedOut => {
                        "allow more time; a warm-up under a preloaded malloc is traced, and slower"
                    }
                    _ => "allow more memory, or give it less to do",
                };
                let (variant, reason) = (label.to_owned(), format!("{cut_short}; {advice}"));
                Err(Error::WarmUp { variant, reason })
            }
        }
    }
}

/// The reason why a variant is left out, if `error` is about the variant alone.
fn reason(error: &Error) -> Option<String> {
    match error {
        Error::NotInEffect { reason, .. } | Error::CannotRun { reason, .. } => Some(reason.clone()),
        Error::Server { reason, .. } => Some(format!("its server {reason}")),
        Error::WarmUp { reason, .. } => Some(format!("its warm-up run {reason}")),
        _ => None,
    }
}

pub(super) fn again(executor: &mut dyn Executor, rows: usize, stop: &Stop) -> Result<(), Error> {
    for index in 0..rows {
        let (run, _) = executor.warm_up(index, stop)?;
        if run.ending == Ending::Stopped {
            return Err(Error::Stopped);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use masu_run::execute::Output;

    fn run(output: &str, user_s: f64) -> Run {
        let stdout = Output { bytes: 1, hash: output.to_owned(), tail: String::new() };
        Run { user_s, stdout, ..Run::default() }
    }

    fn said(warm_up: &Run, runs: &[Run]) -> Vec<String> {
        let warm_up = Warm::of(warm_up, Evidence::default());
        found_done(&["a".to_owned()], &[warm_up], runs)
    }

    #[test]
    fn runs_that_find_the_work_of_the_warm_up_done_are_named() {
        let runs = vec![run("up to date", 0.001); 5];
        let all = said(&run("built", 2.0), &runs);
        assert!(all[0].contains("`a` wrote something else and used 2.00 s of CPU"), "{all:?}");
        assert!(said(&run("built", 0.001), &runs)[0].contains("wrote something else than"));
        assert!(said(&run("up to date", 2.0), &runs)[0].contains("of `a` used 2.00 s"));
    }

    #[test]
    fn warm_ups_that_did_the_same_are_not() {
        let runs = vec![run("x", 0.1); 5];
        assert!(said(&run("x", 0.4), &runs).is_empty());
        assert!(said(&run("x", 0.04), &[run("x", 0.001)]).is_empty());
        // A server, and a program that writes something else every time, for which another warning exists.
        assert!(said(&run("", 0.1), &runs).is_empty());
        assert!(said(&run("x", 0.1), &[run("y", 0.1), run("z", 0.1)]).is_empty());
        assert!(said(&run("x", 0.1), &[]).is_empty());
    }
}
