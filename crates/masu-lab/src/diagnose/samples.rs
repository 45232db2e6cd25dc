//! Samples of running threads: the CPU time by the file and the function in which it was spent.
//!
//! Relies on the kernel's CPU clock (perf events) and on the memory maps of the processes, which are read when an
//! address lies in no known mapping. The difficulty is that a process may be gone before its map is read: then its
//! samples have no names, and count only for the whole.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::malloc_code::{MallocCode, is_collector_library, is_of_collector};
use crate::heap::names::File;
use masu_run::execute::tree::{Pid, threads};
use masu_run::kernel::sample::{Sampler, Switch};
use masu_run::mapping::Mapping;
use masu_run::proc_files;
use masu_run::quantity::{clipped, percent};

/// The most places that are kept apart, each with its caller.
const KEPT_MAX: usize = 1 << 18;

/// The most places that are reported.
const PLACES_MAX: usize = 8;

/// The most stacks that are kept, and the most that are reported.
const STACKS_MAX: usize = 1 << 15;
const STACKS_SHOWN_MAX: usize = 400;

/// The most letters of a function's name in a sentence.
pub(super) const NAME: usize = 80;

/// A caller is named if it has this share of a place's samples.
const CALLER_SHARE: f64 = 0.5;

/// Samples of a program's own code, by the CPU clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sampled {
    pub samples: u64,
    /// The samples whose place is not known: the process was gone, or the code was made at run time.
    pub unknown: u64,
    /// The samples among these whose process was gone before its map was read: they may be the malloc's.
    pub gone: u64,
    /// Samples that found no room, and are not among the others.
    pub lost: u64,
    /// Threads that lived when sampling began, and found no room either.
    pub threads_left_out: usize,
    /// The share of samples in the malloc, as far as its code is known.
    pub malloc_share: f64,
    pub places: Vec<Place>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
}

/// Functions that called each other, and the number of samples in the last.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stack {
    /// The functions, the outermost first, as far as frame pointers show them. A file replaces its functions without
    /// names.
    pub frames: Vec<String>,
    pub samples: u64,
}

impl Sampled {
    /// Gives the places in `file` the path `name`, if that is a link to it: people know a program by the name that
    /// started it.
    pub(super) fn calling(mut self, file: &Path, name: &Path) -> Sampled {
        if name != file && fs::canonicalize(name).is_ok_and(|linked| linked == file) {
            let own = self.places.iter_mut().filter(|place| place.file == file);
            own.for_each(|place| place.file = name.to_owned());
        }
        self
    }

    /// Fewer samples than this say nothing: with 200 a share is known to about five hundredths.
    pub(crate) const ENOUGH: u64 = 200;

    /// Whether the samples are enough, and nearly all of processes whose map is known.
    pub(crate) fn show_shares(&self) -> bool {
        self.samples >= Sampled::ENOUGH && self.gone <= self.samples / 20
    }

    /// The malloc's share, less the possible error of few samples: two standard errors.
    pub(crate) fn malloc_share_least(&self) -> f64 {
        let (share, samples) = (self.malloc_share, self.samples as f64);
        // Two more samples in the malloc and two more outside are assumed (Agresti and Coull).
        let (share, samples) = ((share * samples + 2.0) / (samples + 4.0), samples + 4.0);
        share - 2.0 * (share * (1.0 - share) / samples).sqrt()
    }

    /// The places with most samples, in words; empty if the samples are scattered.
    #[must_use]
    pub fn listing(&self) -> String {
        /// Places with less than this share are left out.
        const LEAST: f64 = 0.05;
        let listing = |place: &Place| {
            let file = place.file.file_name().unwrap_or_default().to_string_lossy();
            let share = percent(place.share);
            match &place.function {
                Some(function) => format!("`{}` of {file} {share}", clipped(function, NAME)),
                None if place.is_collector() => format!("the collector {file} {share}"),
                None if place.is_malloc => format!("the malloc of {file} {share}"),
                None => format!("functions of {file} without names {share}"),
            }
        };
        let most = self.places.iter().filter(|place| place.share >= LEAST).take(4);
        most.map(listing).collect::<Vec<_>>().join(", ")
    }
}

/// A function with samples in it, or its file if the function has no name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Place {
    /// The function's name; none if the file has no name there.
    pub function: Option<String>,
    pub file: PathBuf,
    pub share: f64,
    /// Whether the function is the malloc's.
    pub is_malloc: bool,
    /// The function of another file that called it in most samples, as far as frame pointers show.
    pub caller: Option<String>,
}

impl Place {
    /// Whether the code is that of a language's run-time, which hands memory out and collects garbage.
    pub(super) fn is_collector(&self) -> bool {
        let file = self.file.file_name().unwrap_or_default().to_string_lossy();
        is_collector_library(&file) || self.function.as_deref().is_some_and(is_of_collector)
    }
}

/// The samples of a run, as they come.
#[derive(Debug, Default)]
pub(super) struct Samples {
    state: State,
    pub(super) switch: Switch,
    maps: HashMap<Pid, Vec<Code>>,
    /// Names of files as written in the maps.
    files: Vec<String>,
    /// The number of samples at each place, by the caller in another file.
    found: HashMap<(Spot, Option<Spot>), u64>,
    /// The number of samples with each stack, the innermost function first.
    stacks: HashMap<Vec<Spot>, u64>,
    samples: u64,
    unknown: u64,
    gone: u64,
}

#[derive(Debug, Default)]
enum State {
    /// There was no thread to sample so far.
    #[default]
    Before,
    Sampling(Sampler),
    Refused(io::Error),
}

/// A place in a file: the file's index, and the offset into the file.
type Spot = (usize, u64);

/// A mapping of code.
#[derive(Debug, Clone, Copy)]
struct Code {
    start: u64,
    end: u64,
    offset: u64,
    file: usize,
}

impl Samples {
    /// Samples `processes` and their children from the first call on, and takes the samples since the last call.
    pub(super) fn look(&mut self, processes: &[Pid]) {
        if let State::Before = self.state {
            let all: Vec<Pid> = processes.iter().flat_map(|process| threads(*process)).collect();
            if all.is_empty() {
                return;
            }
            match Sampler::start(&all, &self.switch) {
                Ok(Some(sampler)) => {
                    self.state = State::Sampling(sampler);
                    // A short program is gone before the next look.
                    for process in processes {
                        let map = map_of(*process, &mut self.files);
                        self.maps.extend(map.map(|map| (*process, map)));
                    }
                }
                // All of the threads have ended since.
                Ok(None) => return,
                Err(error) => self.state = State::Refused(error),
            }
        }
        self.take();
    }

    fn take(&mut self) {
        let Samples { state, maps, files, found, stacks, samples, unknown, gone, .. } = self;
        let State::Sampling(sampler) = state else { return };
        // A map is read at most once a look: a second read would not show more. The value is false if there was none.
        let mut read: HashMap<Pid, bool> = HashMap::new();
        sampler.read(&mut |sample| {
            *samples += 1;
            let process = sample.process;
            let mut spot = |address: u64, may_read: bool| -> Option<Spot> {
                let known = maps.get(&process).and_then(|mappings| holds(mappings, address));
                if known.is_some() || !may_read || read.contains_key(&process) {
                    return known;
                }
                let map = map_of(process, files);
                read.insert(process, map.is_some());
                let mappings = map?;
                let place = holds(&mappings, address);
                maps.insert(process, mappings);
                place
            };
            let Some((first, callers)) = sample.stack.split_first() else { return };
            let Some(place) = spot(*first, true) else {
                *unknown += 1;
                *gone += u64::from(read.get(&process) == Some(&false));
                return;
            };
            // A return address may lie behind the end of the calling function.
            let callers = callers.iter().filter_map(|it| spot(it.saturating_sub(1), false));
            let stack: Vec<Spot> = std::iter::once(place).chain(callers).collect();
            let caller = stack.iter().copied().find(|(file, _)| *file != place.0);
            if stacks.len() < STACKS_MAX || stacks.contains_key(&stack) {
                *stacks.entry(stack).or_default() += 1;
            }
            if found.len() < KEPT_MAX || found.contains_key(&(place, caller)) {
                *found.entry((place, caller)).or_default() += 1;
            } else {
                *unknown += 1;
            }
        });
    }

    /// The result of all samples; the reason if none could be taken.
    pub(super) fn finish(mut self) -> Result<Sampled, String> {
        self.take();
        let (lost, left_out) = match &self.state {
            State::Before => return Ok(Sampled::default()),
            State::Sampling(sampler) => (sampler.lost, sampler.left_out),
            State::Refused(error) => return Err(error.to_string()),
        };
        let mut named: Vec<Named> = self.files.iter().map(|file| Named::open(file)).collect();
        let mut places: HashMap<Function, Tally> = HashMap::new();
        let mut of_malloc = 0;
        for (((file, at), caller), count) in self.found {
            let (function, is_malloc) = named[file].at(at);
            of_malloc += if is_malloc { count } else { 0 };
            let tally = places.entry(Function { file, name: function, is_malloc }).or_default();
            tally.samples += count;
            if let Some((file, at)) = caller
                && let (Some(name), _) = named[file].at(at)
            {
                *tally.callers.entry(name).or_default() += count;
            }
        }
        let stacks = named_stacks(&self.stacks, &self.files, &mut named);
        let share = |count: u64| count as f64 / self.samples.max(1) as f64;
        let mut places: Vec<(Function, Tally)> = places.into_iter().collect();
        places.sort_by(|(one, first), (other, second)| {
            (second.samples, &one.name, one.file).cmp(&(first.samples, &other.name, other.file))
        });
        places.truncate(PLACES_MAX);
        let places = places.into_iter().map(|(Function { file, name, is_malloc }, tally)| Place {
            function: name,
            file: PathBuf::from(&self.files[file]),
            share: share(tally.samples),
            is_malloc,
            caller: tally.caller(),
        });
        Ok(Sampled {
            samples: self.samples,
            unknown: self.unknown,
            gone: self.gone,
            lost,
            threads_left_out: left_out,
            malloc_share: share(of_malloc),
            places: places.collect(),
            stacks,
        })
    }
}

/// The stacks with most samples, as names of functions.
fn named_stacks(
    stacks: &HashMap<Vec<Spot>, u64>,
    files: &[String],
    named: &mut [Named],
) -> Vec<Stack> {
    let mut merged: HashMap<Vec<String>, u64> = HashMap::new();
    for (stack, samples) in stacks {
        let frames = stack.iter().rev().map(|(file, at)| {
            let unnamed = || files[*file].rsplit('/').next().unwrap_or_default().to_owned();
            named[*file].at(*at).0.unwrap_or_else(unnamed)
        });
        *merged.entry(frames.collect()).or_default() += samples;
    }
    let mut stacks: Vec<Stack> =
        merged.into_iter().map(|(frames, samples)| Stack { frames, samples }).collect();
    stacks.sort_by(|one, other| (other.samples, &one.frames).cmp(&(one.samples, &other.frames)));
    stacks.truncate(STACKS_SHOWN_MAX);
    stacks
}

/// A function of a file; all functions without names are one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    file: usize,
    name: Option<String>,
    is_malloc: bool,
}

#[derive(Debug, Default)]
struct Tally {
    samples: u64,
    /// Functions of other files that called it, directly or not.
    callers: HashMap<String, u64>,
}

impl Tally {
    /// The caller of most samples, if there is one.
    fn caller(self) -> Option<String> {
        let most = self
            .callers
            .into_iter()
            .max_by(|(one, first), (other, second)| (first, other).cmp(&(second, one)));
        let of_most = |count: u64| count as f64 >= CALLER_SHARE * self.samples as f64;
        most.filter(|(_, count)| of_most(*count)).map(|(name, _)| name)
    }
}

/// A file whose names are known.
struct Named {
    file: File,
    malloc: MallocCode,
    known: HashMap<u64, (Option<String>, bool)>,
}

impl Named {
    fn open(name: &str) -> Named {
        let file = File::open(name, &mut Vec::new());
        Named { file, malloc: MallocCode::of(Path::new(name)), known: HashMap::new() }
    }

    /// The name of the function at this offset, and whether it is the malloc's.
    fn at(&mut self, offset: u64) -> (Option<String>, bool) {
        let Named { file, malloc, known } = self;
        let found = known.entry(offset).or_insert_with(|| {
            let Some(linked) = file.linked(offset) else { return (None, false) };
            let function = file.symbol(linked);
            let is_malloc = malloc.holds(linked, function.as_deref());
            (function, is_malloc)
        });
        found.clone()
    }
}

/// The place of an address, if one of the mappings holds it.
fn holds(mappings: &[Code], address: u64) -> Option<Spot> {
    let mapping = mappings.iter().find(|it| (it.start..it.end).contains(&address))?;
    Some((mapping.file, address - mapping.start + mapping.offset))
}

/// The mappings of files' code in a process's memory map; none if the process is gone.
fn map_of(process: Pid, files: &mut Vec<String>) -> Option<Vec<Code>> {
    let map = proc_files::text(format!("/proc/{process}/maps"))?;
    Some(code(&map, &root_of(process), files)).filter(|mappings| !mappings.is_empty())
}

/// The mappings of files' code in a memory map; files that are new are added, with their paths behind `root`.
fn code(map: &str, root: &str, files: &mut Vec<String>) -> Vec<Code> {
    let of_files =
        Mapping::all(map).filter(|one| one.access.contains('x') && one.path.starts_with('/'));
    let code = |Mapping { start, end, offset, path, .. }: Mapping| {
        let name = format!("{root}{path}");
        let file = files.iter().position(|known| *known == name).unwrap_or_else(|| {
            files.push(name);
            files.len() - 1
        });
        Code { start, end, offset, file }
    };
    of_files.map(code).collect()
}

/// The folder below which this process finds the files of another one; empty where both have the same files. In a
/// container the same path leads to another file.
fn root_of(process: Pid) -> String {
    let differs = |what: &str| {
        let link = |of: &str| fs::read_link(format!("/proc/{of}/{what}")).ok();
        link(&process.to_string()).is_some_and(|its| link("self") != Some(its))
    };
    let differs = differs("ns/mnt") || differs("root");
    if differs { format!("/proc/{process}/root") } else { String::new() }
}

#[cfg(test)]
mod tests;
