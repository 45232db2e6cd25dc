//! What only a malloc knows: how much the program holds, who frees whose blocks, how often it asks. Further runs
//! tell, on masu and on its counting build.
//!
//! Relies on the statistics page that masu keeps (`process`) and on the count page (`count`). The hard idea is
//! that what a program asks for is the same under every malloc, but for luck; so what masu saw of it holds for
//! the run that was counted too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::facts::Inside;
use crate::execute::tree::Pid;
use crate::execute::{Conditions, Look, execute_under, execute_watched};
use crate::process::{self, Observer};
use crate::{CountPage, Error, Stop, Variant, Workload};

/// What the runs need.
#[derive(Debug, Clone, Default)]
pub struct Means {
    /// masu, ready to run the program.
    pub masu: Option<Variant>,
    /// The counting build's file.
    pub counting: Option<PathBuf>,
}

/// Makes the runs that there are means for.
pub(super) fn look(
    workload: &Workload,
    means: &Means,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<Inside, Error> {
    let mut inside = Inside::default();
    if let Some(masu) = &means.masu {
        let mut masu = masu.clone();
        masu.variables.push((process::VARIABLE.to_owned(), "1".to_owned()));
        let mut pages = Pages::default();
        let run = execute_watched(workload, &masu, conditions, stop, &mut pages)?;
        inside = pages.finish(run.wall_s);
    }
    if let Some(counting) = &means.counting
        && !stop.requested()
    {
        inside.requests = count(workload, counting, conditions, stop)?;
    }
    Ok(inside)
}

fn count(
    workload: &Workload,
    counting: &Path,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<Option<(u64, f64)>, Error> {
    let name = format!("masu-requests-{}", std::process::id());
    let page = CountPage::create(&std::env::temp_dir().join(name))?;
    let variables = page.variables().map(|(name, path)| (name.to_owned(), text(path)));
    let variant = Variant {
        label: "counting".to_owned(),
        allocator: "masu".to_owned(),
        library: Some(counting.to_owned()),
        variables: variables.to_vec(),
        ..Variant::default()
    };
    let run = execute_under(workload, &variant, conditions, stop)?;
    let totals = page.totals()?;
    let requests = totals.allocations + totals.reallocations;
    Ok((totals.programs > 0).then_some((requests, run.user_s + run.sys_s)))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Reads the statistics pages of a tree.
#[derive(Debug, Default)]
pub(super) struct Pages {
    observers: HashMap<Pid, Option<Observer>>,
    /// Of each process, what its threads fetched and what they freed beyond that.
    threads: HashMap<Pid, (u64, u64)>,
    /// Seconds since the start, and bytes that were handed out.
    live: Vec<(f64, u64)>,
}

/// A process that has no page yet is asked again so often.
const TRIES: usize = 64;

impl Look for Pages {
    fn look(&mut self, at: Duration, members: &[Pid]) {
        let mut live = 0;
        for &pid in members {
            let Ok(number) = u32::try_from(pid) else { continue };
            let slot = self.observers.entry(pid).or_default();
            if slot.is_none() && self.live.len() < TRIES {
                *slot = Observer::new(number).ok();
            }
            let Some(Ok(seen)) = slot.as_mut().map(Observer::observe) else { continue };
            live += seen.total.live_bytes;
            let caches = seen.threads.iter().map(|thread| &thread.cache);
            let (mut fetched, mut remote) = (0_u64, 0_u64);
            for cache in caches {
                fetched = fetched.saturating_add(cache.refilled_blocks);
                let more = cache.flushed_blocks.saturating_sub(cache.refilled_blocks);
                remote = remote.saturating_add(more);
            }
            let known = self.threads.entry(pid).or_default();
            if fetched >= known.0 {
                *known = (fetched, remote);
            }
        }
        self.live.push((at.as_secs_f64(), live));
    }
}

impl Pages {
    /// What all looks come to; the run took `wall_s`.
    pub(super) fn finish(self, wall_s: f64) -> Inside {
        let (fetched_blocks, remote_blocks) =
            self.threads.values().fold((0_u64, 0_u64), |(all, far), (fetched, remote)| {
                (all.saturating_add(*fetched), far.saturating_add(*remote))
            });
        let live_late_bytes = late_median(&self.live, wall_s);
        Inside { fetched_blocks, remote_blocks, live_late_bytes, requests: None }
    }
}

/// The median of what was seen in the second half of a run; none where nothing was.
pub(super) fn late_median(points: &[(f64, u64)], wall_s: f64) -> Option<u64> {
    let mut late: Vec<u64> =
        points.iter().filter(|(at, _)| *at >= wall_s / 2.0).map(|(_, value)| *value).collect();
    late.sort_unstable();
    late.get(late.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_half_counts() {
        let points = [(0.1, 1), (0.2, 2), (0.6, 30), (0.7, 10), (0.9, 20)];
        assert_eq!(late_median(&points, 1.0), Some(20));
        assert_eq!(late_median(&points, 10.0), None);
        assert_eq!(late_median(&[], 0.0), None);
    }
}
