//! The facts that only a malloc knows: how much the program holds, which threads free other threads' blocks, how many
//! requests there are and which functions make them. They come from further runs, on masu and on its counting build.
//!
//! Relies on the statistics page that masu keeps (`process`), on the heap profiles that it writes (`heap`) and on the
//! count page (`count`). A program makes the same requests under every malloc, apart from chance. So the facts that
//! masu saw hold for the counted run too.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::facts::{Inside, Site};
use super::repeats::other_run;
use crate::heap::{Frame, Profile, Sums, written_in};
use masu_run::execute::tree::Pid;
use masu_run::execute::{Conditions, Look, execute, execute_watched};
use masu_run::process::{self, Observer};
use masu_run::{CountPage, Error, Run, Scratch, ScratchFolder, Stop, Variant, Workload};

#[derive(Debug, Clone, Default)]
pub struct Means {
    /// masu, ready to run the program.
    pub masu: Option<Variant>,
    /// The counting build's file.
    pub counting: Option<PathBuf>,
}

/// Makes the further runs for which there are means. If one of them does not do the work of `first`, `not_seen` has
/// the reason, and nothing is known.
pub(super) fn look(
    workload: &Workload,
    means: &Means,
    (conditions, stop): (&Conditions, &Stop),
    first: &Run,
    not_seen: &mut Vec<String>,
) -> Result<Option<Inside>, Error> {
    let mut is_other = |run: &Run| {
        let reason = other_run(first, run).filter(|_| !stop.requested());
        let is_other = reason.is_some();
        not_seen.extend(reason.map(|reason| format!("what only a malloc knows: {reason}")));
        is_other
    };
    let mut inside = Inside::default();
    if let Some(masu) = &means.masu {
        let mut masu = masu.clone();
        masu.variables.push((process::VARIABLE.to_owned(), "1".to_owned()));
        let profiles = ScratchFolder::create(&Scratch::Empty)?;
        let mut asking = Asking::default();
        if let Some(folder) = &profiles {
            folder.fresh(stop)?;
            let prefix = folder.path().join("heap");
            masu.variables.push(("MASU_PROFILE".to_owned(), text(&prefix)));
            asking.prefix = Some(prefix);
        }
        let run = execute_watched(workload, &masu, conditions, stop, &mut asking)?;
        if is_other(&run) {
            return Ok(None);
        }
        inside = asking.pages.finish(run.wall_s);
        inside.resident_late_bytes = late_median(&run.rss_over_time, run.wall_s);
        if let Some(folder) = &profiles {
            let files = written_in(folder.path(), 0);
            let profiles: Vec<Profile> =
                files.iter().filter_map(|file| Profile::read(file).ok()).collect();
            inside.sites = by_asking(&profiles, |sums| sums.allocated_blocks);
            inside.held = held(&profiles);
        }
    }
    if let Some(counting) = &means.counting
        && !stop.requested()
    {
        let (run, requests) = count(workload, counting, conditions, stop)?;
        if is_other(&run) {
            return Ok(None);
        }
        inside.requests = requests.map(|requests| (requests, run.user_s + run.sys_s));
    }
    Ok(Some(inside))
}

/// A run on the counting build, and its requests if that was in effect.
fn count(
    workload: &Workload,
    counting: &Path,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<(Run, Option<u64>), Error> {
    let name = format!("masu-requests-{}", std::process::id());
    let page = CountPage::create(&std::env::temp_dir().join(name))?;
    let run = execute(workload, &page.variant(counting), conditions, stop)?;
    let totals = page.totals()?;
    Ok((run, (totals.programs > 0).then_some(totals.requests)))
}

/// The most sites that are reported.
const SITES: usize = 8;

/// The function that requested most of the bytes that lived at the end.
pub(super) fn held(profiles: &[Profile]) -> Option<Site> {
    by_asking(profiles, |sums| sums.live_bytes).into_iter().next()
}

/// The functions that requested most, by `of`.
fn by_asking(profiles: &[Profile], of: fn(&Sums) -> i64) -> Vec<Site> {
    let mut asked: HashMap<Frame, i64> = HashMap::new();
    for (frames, sums) in profiles.iter().flat_map(|profile| &profile.stacks) {
        let Some(asking) = asking(frames) else { continue };
        *asked.entry(asking.clone()).or_default() += of(sums);
    }
    let whole: i64 = asked.values().sum();
    let mut most: Vec<(Frame, i64)> = asked.into_iter().filter(|(_, number)| *number > 0).collect();
    most.sort_by(|(one, first), (other, second)| (second, one).cmp(&(first, other)));
    most.truncate(SITES);
    let site = |(frame, number): (Frame, i64)| Site {
        place: frame
            .file
            .as_deref()
            .filter(|_| frame.line > 0)
            .map(|file| format!("{}:{}", file.rsplit('/').next().unwrap_or(file), frame.line)),
        function: readable(&frame.function),
        share: number as f64 / whole.max(1) as f64,
    };
    most.into_iter().map(site).collect()
}

/// The function that requests the blocks of a stack: the innermost one outside a language's own library and its
/// wrappers.
fn asking(frames: &[Frame]) -> Option<&Frame> {
    let named = |frame: &&Frame| {
        !is_of_language(frame) && !is_wrapper(&frame.function) && !frame.function.starts_with('[')
    };
    frames.iter().rev().find(named).or(frames.last())
}

/// Whether a function requests memory only for its callers, by its name: `xmalloc`, `safesysrealloc`, `g_malloc0`.
fn is_wrapper(function: &str) -> bool {
    let mut path = without_arguments(function);
    // The arguments of a template say nothing about the function's work.
    while let Some(before) = before_last(path, '<', '>') {
        path = before.trim_end_matches("::");
    }
    let name = path.rsplit("::").next().unwrap_or(path);
    name.to_ascii_lowercase().contains("alloc")
}

/// Whether a function belongs to the library that comes with a language, by its name, by the place of its source, or by
/// its file.
fn is_of_language(frame: &Frame) -> bool {
    const NAMES: [&str; 10] = [
        "std::", "<std::", "alloc::", "<alloc::", "core::", "<core::", "hashbrown::",
        "<hashbrown::", "__gnu_cxx::", "<T as ",
    ];
    const SOURCES: [&str; 3] = ["/rustc/", "/include/c++/", "/lib/rustlib/src/"];
    const FILES: [&str; 7] =
        ["libc.so", "libc-2.", "ld-linux", "ld-musl", "libstdc++.so", "libc++.so", "libgcc_s.so"];
    let file = frame.file.as_deref().unwrap_or_default();
    NAMES.iter().any(|start| frame.function.starts_with(start))
        || SOURCES.iter().any(|part| file.contains(part))
        || FILES.iter().any(|start| file.starts_with(start))
}

/// A function's name as it is shown.
fn readable(name: &str) -> String {
    const TEXT: &str =
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    without_arguments(name).replace(TEXT, "std::string")
}

/// A function's name without its list of parameters, which in C++ may be longer than all else.
fn without_arguments(name: &str) -> &str {
    before_last(name.strip_suffix(" const").unwrap_or(name), '(', ')').unwrap_or(name)
}

/// The text before its last list in brackets; none if it does not end with such a list, or has nothing else.
fn before_last(text: &str, opens: char, closes: char) -> Option<&str> {
    let list = text.strip_suffix(closes)?;
    let mut depth = 1;
    for (at, letter) in list.char_indices().rev() {
        if letter == closes {
            depth += 1;
        } else if letter == opens {
            depth -= 1;
        }
        if depth == 0 {
            return list.get(..at).filter(|before| !before.is_empty());
        }
    }
    None
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Reads the statistics pages of a process tree.
#[derive(Debug, Default)]
pub(super) struct Pages {
    observers: HashMap<Pid, Option<Observer>>,
    /// The blocks that the threads of each process fetched, and those that they freed beyond that.
    threads: HashMap<Pid, (u64, u64)>,
    /// Seconds since the start, and the bytes that were handed out then.
    live: Vec<(f64, u64)>,
}

/// The number of looks, from the first on, at which a process without a page is asked again.
const TRIES: usize = 64;

/// Looks at pages, and asks each process for a profile now and then: a process that is killed writes none at its end.
#[derive(Debug, Default)]
struct Asking {
    pages: Pages,
    /// The beginning of the profiles' names; none if there are no profiles.
    prefix: Option<PathBuf>,
    /// The time of the last request for profiles.
    asked: Duration,
}

impl Look for Asking {
    fn look(&mut self, at: Duration, members: &[Pid]) {
        self.pages.look(at, members);
        let Some(prefix) = self.prefix.as_ref().filter(|_| at >= self.asked + ASK_EVERY) else {
            return;
        };
        self.asked = at;
        for process in members {
            // If the file cannot be made, no profile is requested.
            let _ = fs::File::create(format!("{}.{process}.ask", prefix.display()));
        }
    }
}

/// The time between two requests: a profile of a large heap takes tenths of a second.
const ASK_EVERY: Duration = Duration::from_secs(1);

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
    /// The facts from all looks; the run took `wall_s`.
    pub(super) fn finish(self, wall_s: f64) -> Inside {
        let (fetched_blocks, remote_blocks) =
            self.threads.values().fold((0_u64, 0_u64), |(all, far), (fetched, remote)| {
                (all.saturating_add(*fetched), far.saturating_add(*remote))
            });
        let live_late_bytes = late_median(&self.live, wall_s);
        Inside { fetched_blocks, remote_blocks, live_late_bytes, ..Inside::default() }
    }
}

/// The median of the values in the second half of a run; none if there are no values.
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
        let of = |name: &str, file: &str| Frame { file: Some(file.to_owned()), ..frame(name) };
        let own = of("main(int, char**)", "/home/a/main.cpp");
        for inner in [
            frame("xmalloc"),
            frame("sqlite3DbMallocRaw"),
            frame("Arena::reallocate(unsigned long)"),
            frame("[program]"),
            of("allocator_traits<int>::allocate(unsigned long)", "/usr/include/c++/12/bits/a.h"),
            of("strdup", "libc.so.6"),
            of("[libstdc++.so.6]", "libstdc++.so.6"),
            of("run<f>", "/rustc/0123/library/test/src/lib.rs"),
        ] {
            assert_eq!(asking(&[own.clone(), inner]), Some(&own));
        }
        for inner in ["Reader::copy<std::allocator<char> >(int)", "work::read::<alloc::Text>"] {
            let inner = frame(inner);
            assert_eq!(asking(&[own.clone(), inner.clone()]), Some(&inner));
        }
        assert_eq!(asking(&stack).map(|it| it.function.as_str()), Some("parse"));
        assert_eq!(asking(&stack[2..]), Some(&stack[3]));
        assert_eq!(asking(&[]), None);
        assert!(written_in(Path::new("/no/such/folder"), 0).is_empty());
    }

    #[test]
    fn live_bytes_are_another_question_than_requests() {
        let frame = |name: &str| Frame { function: name.to_owned(), file: None, line: 0 };
        let sums =
            |allocated_blocks, live_bytes| Sums { allocated_blocks, live_bytes, ..Sums::default() };
        let mut profile = Profile::default();
        profile.stacks.insert(vec![frame("main"), frame("drop")], sums(900, 0));
        profile.stacks.insert(vec![frame("main"), frame("keep")], sums(100, 5_000));
        let profiles = [profile];
        assert_eq!(by_asking(&profiles, |sums| sums.allocated_blocks)[0].function, "drop");
        assert_eq!(held(&profiles).unwrap().function, "keep");
        assert_eq!(held(&[]), None);
    }

    #[test]
    fn a_name_is_shown_without_the_parameters_of_the_function() {
        let text = "basic_string<char, std::char_traits<char>, std::allocator<char> >";
        let of_text = format!("join<std::__cxx11::{text} >(std::__cxx11::{text})");
        assert_eq!(readable(&of_text), "join<std::string >");
        for (name, expected) in [
            ("read(std::vector<int> (*)(int), char)", "read"),
            ("Table<int>::insert(int) const", "Table<int>::insert"),
            ("Sum::operator()(int)", "Sum::operator()"),
            ("(anonymous namespace)::read(int)", "(anonymous namespace)::read"),
            ("<work::Parser as work::Parse>::next", "<work::Parser as work::Parse>::next"),
            ("(int)", "(int)"),
            ("a)", "a)"),
            ("read", "read"),
        ] {
            assert_eq!(without_arguments(name), expected);
        }
    }

    #[test]
    fn the_second_half_counts() {
        let points = [(0.1, 1), (0.2, 2), (0.6, 30), (0.7, 10), (0.9, 20)];
        assert_eq!(late_median(&points, 1.0), Some(20));
        assert_eq!(late_median(&points, 10.0), None);
        assert_eq!(late_median(&[], 0.0), None);
    }
}
