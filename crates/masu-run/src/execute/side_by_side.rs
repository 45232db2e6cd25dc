//! Runs side by side: several programs share one CPU, and the CPU time of each is compared.
//!
//! The kernel gives each program a few milliseconds in turn and accounts CPU time to each. On most machines a program
//! takes a tenth more or less from one second to the next, because of clock rates and other guests; programs that take
//! turns meet the same conditions. On a machine that did other things too, pairs of equal runs of 0.15 s differed by 23
//! % (standard deviation) one after the other and by 1.4 % side by side.

use std::sync::mpsc;
use std::thread;

use super::{Alone, Conditions, Run, Started, Tree, Unseen, alone, start, watch_to_end};
use crate::error::Doing;
use crate::kernel::prices;
use crate::{Error, Stop, Variant, Workload};

type Wanted<'a> = (&'a Workload, &'a Variant, Conditions);

/// Runs all of `wanted` at the same time on one CPU, as [`execute`](super::execute()) runs one, and returns
/// their runs in the same order. CPU times count; wall-clock times are those of programs that wait for each other,
/// and nothing is said of waiting or of neighbors.
pub fn execute_beside(wanted: &[Wanted<'_>], stop: &Stop) -> Result<Vec<Run>, Error> {
    let alone = &alone();
    thread::scope(|scope| {
        let (hand_over, started) = mpsc::channel();
        let (is_over, end) = mpsc::channel::<()>();
        // Programs that a thread starts stay on its CPU, and are killed when that thread ends; the watch is better on
        // another CPU.
        scope.spawn(move || {
            let _ = hand_over.send(start_all(wanted, alone));
            let _ = end.recv();
        });
        let gone = |_| Error::Request("the thread that starts programs is gone".to_owned());
        let runs =
            started.recv().map_err(gone).and_then(|started| watch_all(started?, alone, stop));
        drop(is_over);
        runs
    })
}

fn watch_all(started: Vec<(Started, Tree)>, alone: &Alone, stop: &Stop) -> Result<Vec<Run>, Error> {
    thread::scope(|scope| {
        let watch = |(started, tree): (Started, Tree)| {
            scope.spawn(move || {
                alone.lend();
                watch_to_end(started, &tree, stop, &mut Unseen)
            })
        };
        let watches: Vec<_> = started.into_iter().map(watch).collect();
        let joined = watches.into_iter().map(|watch| {
            let run = watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            run.map(|run| {
                // The notes of a thread that stays on one CPU are about that CPU alone.
                let (starved, queued_s, others_s, steal_s) = (false, None, None, None);
                Run { starved, queued_s, others_s, steal_s, ..run }
            })
        });
        // All programs have ended before the first error is returned.
        joined.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Starts all programs on the CPU of this thread. If one cannot be started, the others are ended.
fn start_all(wanted: &[Wanted<'_>], alone: &Alone) -> Result<Vec<(Started, Tree)>, Error> {
    alone.lend();
    prices::stay_on(prices::current_cpu()).doing(|| "keeping programs on one CPU")?;
    let mut all: Vec<(Started, Tree)> = Vec::new();
    for (workload, variant, conditions) in wanted {
        match start(workload, variant, conditions, false) {
            Ok((started, tree)) => {
                all.iter_mut().for_each(|(_, other)| other.leave_alone(tree.root));
                all.push((started, tree));
            }
            Err(error) => {
                all.iter().for_each(|(_, tree)| tree.end());
                return Err(error);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ending, Input};

    fn workload(script: &str) -> Workload {
        Workload::new(["sh", "-c", script], Input::Empty).unwrap()
    }

    fn run_all(scripts: &[&str]) -> Vec<Run> {
        let workloads: Vec<Workload> = scripts.iter().map(|script| workload(script)).collect();
        let variant = Variant::default();
        let wanted: Vec<Wanted<'_>> =
            workloads.iter().map(|one| (one, &variant, Conditions::default())).collect();
        execute_beside(&wanted, &Stop::never()).unwrap()
    }

    #[test]
    fn each_has_its_own_end_its_own_output_and_nothing_of_the_others() {
        let runs = run_all(&["echo one; exit 3", "sleep 0.05; echo second", "true"]);
        let endings: Vec<&Ending> = runs.iter().map(|run| &run.ending).collect();
        assert_eq!(endings, [&Ending::Exited(3), &Ending::Exited(0), &Ending::Exited(0)]);
        let bytes: Vec<u64> = runs.iter().map(|run| run.stdout.bytes).collect();
        assert_eq!(bytes, [4, 7, 0]);
        assert!(runs.iter().all(|run| run.left_behind.is_empty() && !run.starved), "{runs:?}");
        assert!(runs.iter().all(|run| run.steal_s.is_none() && run.others_s.is_none()));
    }

    #[test]
    fn what_one_leaves_behind_is_its_own() {
        let runs = run_all(&["sleep 0.2", "sleep 1000 > /dev/null 2>&1 &", "sleep 0.2"]);
        assert!(runs.iter().all(|run| run.ending == Ending::Exited(0)), "{runs:?}");
        let left: Vec<usize> = runs.iter().map(|run| run.left_behind.len()).collect();
        assert_eq!(left, [0, 1, 0]);
    }

    #[test]
    fn all_of_them_share_one_cpu() {
        let runs = run_all(&["grep Cpus_allowed_list: /proc/self/status"; 3]);
        assert!(runs.iter().all(|run| run.stdout == runs[0].stdout), "{runs:?}");
    }
}
