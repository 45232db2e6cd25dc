//! Where the CPU time goes: samples of running threads, by the file and the function they were in.
//!
//! Relies on the kernel's CPU clock (perf events) and on the memory maps of the processes, read when an address is
//! met that no known mapping holds. The hard part is that a process may be gone before its map was read: then its
//! samples have no names, and count for nothing but the whole.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::malloc_code::MallocCode;
use crate::heap::names::File;
use masu_run::execute::tree::{Pid, threads};
use masu_run::kernel::sample::{Sampler, Switch};
use masu_run::quantity::percent;

/// So many different places, with who called them, are kept apart.
const KEPT_MAX: usize = 1 << 18;

/// So many places are reported.
const PLACES_MAX: usize = 8;

/// So many different stacks are kept, and so many are reported.
const STACKS_MAX: usize = 1 << 15;
const STACKS_SHOWN_MAX: usize = 400;

/// A caller is named where it has this share of a place's samples.
const CALLER_SHARE: f64 = 0.5;

/// Samples of a program's own code, by the CPU clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sampled {
    /// How many there are.
    pub samples: u64,
    /// Of those, the ones whose place is not known: the process was gone, or the code was made at run time.
    pub unknown: u64,
    /// Samples that found no room, and are none of the above.
    pub lost: u64,
    /// Threads that were there when sampling began, and had no room either.
    pub threads_left_out: usize,
    /// The share that was in the malloc, as far as its code is known.
    pub malloc_share: f64,
    /// Where most were.
    pub places: Vec<Place>,
    /// The stacks that most were in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
}

/// Functions that called each other, and how many samples were in the last.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stack {
    /// The outermost first, as far as frame pointers tell. A file stands for functions of it that have no name.
    pub frames: Vec<String>,
    /// How many.
    pub samples: u64,
}

impl Sampled {
    /// Names places in `file` as in `name`, where that is a link to it: people know a program by the name it was
    /// started by.
    pub(super) fn calling(mut self, file: &Path, name: &Path) -> Sampled {
        if name != file && fs::canonicalize(name).is_ok_and(|linked| linked == file) {
            let own = self.places.iter_mut().filter(|place| place.file == file);
            own.for_each(|place| place.file = name.to_owned());
        }
        self
    }

    /// Fewer samples than this say nothing: at 200 a share is known to about five hundredths.
    pub(crate) const ENOUGH: u64 = 200;

    /// The malloc's share, less what so few samples may be wrong by: two standard errors.
    pub(crate) fn malloc_share_least(&self) -> f64 {
        let (share, samples) = (self.malloc_share, self.samples as f64);
        // As if two more samples had met it, and two more had not (Agresti and Coull).
        let (share, samples) = ((share * samples + 2.0) / (samples + 4.0), samples + 4.0);
        share - 2.0 * (share * (1.0 - share) / samples).sqrt()
    }

    /// Where most were, in words; empty where they are scattered.
    #[must_use]
    pub fn listing(&self) -> String {
        /// Places with less than this share are left out.
        const LEAST: f64 = 0.05;
        /// Names of C++ may be longer than a page.
        const MOST: usize = 80;
        let listing = |place: &Place| {
            let file = place.file.file_name().unwrap_or_default().to_string_lossy();
            let share = percent(place.share);
            match &place.function {
                Some(function) => {
                    let mut name: String = function.chars().take(MOST).collect();
                    if name.len() < function.len() {
                        name.push('…');
                    }
                    format!("`{name}` of {file} {share}")
                }
                None if place.is_malloc => format!("the malloc of {file} {share}"),
                None => format!("functions of {file} without names {share}"),
            }
        };
        let most = self.places.iter().filter(|place| place.share >= LEAST).take(4);
        most.map(listing).collect::<Vec<_>>().join(", ")
    }
}

/// A function with samples in it, or what is known in its place.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Place {
    /// The function's name; none where the file tells of none there.
    pub function: Option<String>,
    /// The file it is in.
    pub file: PathBuf,
    /// Of all samples.
    pub share: f64,
    /// Whether it is of the malloc.
    pub is_malloc: bool,
    /// A function of another file on whose behalf most of it was, as far as frame pointers tell.
    pub caller: Option<String>,
}

/// Samples as they come.
#[derive(Debug, Default)]
pub(super) struct Samples {
    state: State,
    /// Turns it off and on.
    pub(super) switch: Switch,
    maps: HashMap<Pid, Vec<Mapping>>,
    /// Names of files as the maps have them.
    files: Vec<String>,
    /// How many samples were at a place, on behalf of a caller in another file.
    found: HashMap<(Spot, Option<Spot>), u64>,
    /// Where they were and who had called, the innermost first.
    stacks: HashMap<Vec<Spot>, u64>,
    samples: u64,
    unknown: u64,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing was to be sampled so far.
    #[default]
    Before,
    Sampling(Sampler),
    Refused(io::Error),
}

/// So far into this one of the files.
type Spot = (usize, u64);

/// A mapping of code.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    file: usize,
}

impl Samples {
    /// Samples `processes` and what they start, from the first time on, and takes what has come since the last.
    pub(super) fn look(&mut self, processes: &[Pid]) {
        if let State::Before = self.state {
            let all: Vec<Pid> = processes.iter().flat_map(|process| threads(*process)).collect();
            if all.is_empty() {
                return;
            }
            match Sampler::start(&all, &self.switch) {
                Ok(Some(sampler)) => self.state = State::Sampling(sampler),
                // All of them have ended since.
                Ok(None) => return,
                Err(error) => self.state = State::Refused(error),
            }
        }
        self.take();
    }

    fn take(&mut self) {
        let Samples { state, maps, files, found, stacks, samples, unknown, .. } = self;
        let State::Sampling(sampler) = state else { return };
        // A map is read once a look at most: what it does not hold then it does not hold.
        let mut read = Vec::new();
        sampler.read(&mut |sample| {
            *samples += 1;
            let process = sample.process;
            let mut spot = |address: u64, may_read: bool| -> Option<Spot> {
                let known = maps.get(&process).and_then(|mappings| holds(mappings, address));
                if known.is_some() || !may_read || read.contains(&process) {
                    return known;
                }
                read.push(process);
                let map = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
                let mappings = code(&map, files);
                if mappings.is_empty() {
                    return None;
                }
                let place = holds(&mappings, address);
                maps.insert(process, mappings);
                place
            };
            let Some((first, callers)) = sample.stack.split_first() else { return };
            let Some(place) = spot(*first, true) else {
                *unknown += 1;
                return;
            };
            // A return address may lie behind the function that called last.
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

    /// What all samples come to; the reason where there could be none.
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
            lost,
            threads_left_out: left_out,
            malloc_share: share(of_malloc),
            places: places.collect(),
            stacks,
        })
    }
}

/// The stacks that most samples were in, by the names of functions.
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

/// A function of a file; all those without names are one.
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
    /// The caller of most of it, if there is one.
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

    /// The function so far into the file, and whether it is of the malloc.
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

/// Where an address lies, if one of the mappings holds it.
fn holds(mappings: &[Mapping], address: u64) -> Option<Spot> {
    let mapping = mappings.iter().find(|it| (it.start..it.end).contains(&address))?;
    Some((mapping.file, address - mapping.start + mapping.offset))
}

/// The mappings of files' code in a memory map; files that are new are added.
fn code(map: &str, files: &mut Vec<String>) -> Vec<Mapping> {
    let mapping = |line: &str| {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let access = fields.next()?;
        let offset = fields.next()?;
        let name = fields.nth(2)?.trim_start();
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        if !access.contains('x') || !name.starts_with('/') {
            return None;
        }
        let file = files.iter().position(|known| known == name).unwrap_or_else(|| {
            files.push(name.to_owned());
            files.len() - 1
        });
        Some(Mapping { start: hex(start)?, end: hex(end)?, offset: hex(offset)?, file })
    };
    map.lines().filter_map(mapping).collect()
}

#[cfg(test)]
mod tests;
