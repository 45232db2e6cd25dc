//! What only a malloc knows: how much the program holds, who frees whose blocks, how often and who asks. Further
//! runs tell, on masu and on its counting build.
//!
//! Relies on the statistics page that masu keeps (`process`), on the heap profiles that it writes (`heap`) and on the
//! count page (`count`). The hard idea is
//! that what a program asks for is the same under every malloc, but for luck; so what masu saw of it holds for
//! the run that was counted too.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::facts::{Inside, Site};
use crate::execute::tree::Pid;
use crate::execute::{Conditions, Look, execute_under, execute_watched};
use crate::heap::{Frame, Profile};
use crate::process::{self, Observer};
use crate::{CountPage, Error, Scratch, ScratchFolder, Stop, Variant, Workload};

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
        let profiles = ScratchFolder::create(&Scratch::Empty)?;
        if let Some(folder) = &profiles {
            folder.fresh(stop)?;
            masu.variables.push(("MASU_PROFILE".to_owned(), text(&folder.path().join("heap"))));
        }
        let mut pages = Pages::default();
        let run = execute_watched(workload, &masu, conditions, stop, &mut pages)?;
        inside = pages.finish(run.wall_s);
        inside.sites = profiles.map_or_else(Vec::new, |folder| sites(folder.path()));
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

/// So many sites are told of.
const SITES: usize = 8;

/// Who asked for most blocks, by the profiles in a folder.
fn sites(folder: &Path) -> Vec<Site> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let profiles = files.filter_map(|file| Profile::read(&file).ok());
    let mut blocks: HashMap<Frame, i64> = HashMap::new();
    for (frames, sums) in profiles.flat_map(|profile| profile.stacks) {
        let Some(asking) = asking(&frames) else { continue };
        *blocks.entry(asking.clone()).or_default() += sums.allocated_blocks;
    }
    let whole: i64 = blocks.values().sum();
    let mut most: Vec<(Frame, i64)> = blocks.into_iter().collect();
    most.sort_by(|(one, first), (other, second)| (second, one).cmp(&(first, other)));
    most.truncate(SITES);
    let site = |(frame, blocks): (Frame, i64)| Site {
        place: frame
            .file
            .as_deref()
            .filter(|_| frame.line > 0)
            .map(|file| format!("{}:{}", file.rsplit('/').next().unwrap_or(file), frame.line)),
        function: frame.function,
        share: blocks as f64 / whole.max(1) as f64,
    };
    most.into_iter().map(site).collect()
}

/// The function that a stack's blocks are asked for by: the innermost that is none of a language's own library.
fn asking(frames: &[Frame]) -> Option<&Frame> {
    const LIBRARIES: [&str; 10] = [
        "std::",
        "<std::",
        "alloc::",
        "<alloc::",
        "core::",
        "<core::",
        "hashbrown::",
        "<hashbrown::",
        "__gnu_cxx::",
        "<T as ",
    ];
    let is_own = |frame: &&Frame| !LIBRARIES.iter().any(|start| frame.function.starts_with(start));
    frames.iter().rev().find(is_own).or(frames.last())
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
        Inside { fetched_blocks, remote_blocks, live_late_bytes, ..Inside::default() }
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
    fn a_languages_own_library_asks_on_behalf_of_who_calls_it() {
        let frame = |name: &str| Frame { function: name.to_owned(), file: None, line: 0 };
        let stack =
            ["main", "parse", "alloc::vec::Vec<T>::push", "alloc::raw_vec::grow"].map(frame);
        assert_eq!(asking(&stack).map(|it| it.function.as_str()), Some("parse"));
        assert_eq!(asking(&stack[2..]), Some(&stack[3]));
        assert_eq!(asking(&[]), None);
        assert_eq!(sites(Path::new("/no/such/folder")), []);
    }

    #[test]
    fn the_second_half_counts() {
        let points = [(0.1, 1), (0.2, 2), (0.6, 30), (0.7, 10), (0.9, 20)];
        assert_eq!(late_median(&points, 1.0), Some(20));
        assert_eq!(late_median(&points, 10.0), None);
        assert_eq!(late_median(&[], 0.0), None);
    }
}
