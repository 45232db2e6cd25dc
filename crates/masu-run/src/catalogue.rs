//! Every malloc on this machine, with its name, file and version.
//!
//! Known libraries are found by their file names (`known.rs`). A library counts only if it is a 64-bit ELF file of
//! this architecture that defines `malloc`; a version is given only where the file or the package database has one.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::elf::{Image, NO_ELF, malloc_of};
use crate::variant::{Settled, Target, settle};
use crate::{Error, Libc, Program, Spec, Variant};

mod known;
mod version;

use known::Known;

pub(crate) const HARDENED: &str = "masu-secure";

/// The names that a variant may begin with, whether the malloc is on this machine or not.
pub fn known_names() -> Vec<&'static str> {
    ["system", "glibc", "musl"].into_iter().chain(known::names()).collect()
}

/// The folders to search besides the loader's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    pub masu_glibc: Option<PathBuf>,
    pub masu_musl: Option<PathBuf>,
    pub secure_glibc: Option<PathBuf>,
    pub secure_musl: Option<PathBuf>,
    /// Folders in which every library that defines `malloc` is an allocator.
    pub folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocator {
    /// The malloc's name in variants: `jemalloc`, or `jemalloc-5.3.0` where another release has that name.
    /// Unique in the catalogue, except that `masu` and `masu-secure` appear once for each C library they are there for.
    pub name: String,
    /// The malloc's file; for the system's malloc the C library's file.
    pub path: PathBuf,
    /// True if the library has to be preloaded; the system's malloc is there anyway.
    pub preloaded: bool,
    pub libc: Libc,
    /// The malloc's version, if the file or the package database has it.
    pub version: Option<String>,
    /// Notes to read before the malloc's figures.
    pub notes: Vec<String>,
    /// Tunables of the C library that the malloc needs.
    pub tunables: Vec<(String, String)>,
}

/// The allocators of this machine: the system's first, then masu, then the others by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    pub allocators: Vec<Allocator>,
}

impl Catalogue {
    /// Searches the loader's folders and `places`. Unreadable folders and files are left out.
    pub fn find(places: &Places) -> Catalogue {
        let mut finder = Finder::default();
        finder.add_system();
        let carried = [
            (&places.masu_glibc, "masu", Libc::Glibc),
            (&places.masu_musl, "masu", Libc::Musl),
            (&places.secure_glibc, HARDENED, Libc::Glibc),
            (&places.secure_musl, HARDENED, Libc::Musl),
        ];
        for (path, name, libc) in carried {
            if let Some(path) = path
                && let Ok(mut allocator) = by_path(path)
            {
                name.clone_into(&mut allocator.name);
                allocator.libc = libc;
                allocator.notes = known::notes_of(name);
                finder.add(allocator);
            }
        }
        let ours = finder.found.len();
        for folder in &places.folders {
            finder.add_folder(folder, |_| true);
        }
        for folder in known::folders() {
            finder.add_folder(&folder, |file| known::of_file(file).is_some());
        }
        finder.found[ours..].sort_by(|a, b| a.name.cmp(&b.name));
        Catalogue { allocators: finder.found }
    }

    /// The allocator called `name` that works with `libc`; `system` is the C library's own, and
    /// `mimalloc` the newest of `mimalloc2`, `mimalloc3` and so on.
    pub fn get(&self, name: &str, libc: Libc) -> Option<&Allocator> {
        let fits = |allocator: &&Allocator| {
            allocator.libc == libc || libc == Libc::Static || allocator.libc == Libc::Static
        };
        if name == "system" {
            return self.allocators.iter().find(|one| !one.preloaded && fits(one));
        }
        let exact = self.allocators.iter().find(|one| one.name == name && fits(one));
        exact.or_else(|| {
            let family = |one: &&Allocator| {
                one.name.strip_prefix(name).is_some_and(|rest| {
                    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
                })
            };
            self.allocators.iter().rfind(|one| family(one) && fits(one))
        })
    }

    /// Makes the variant that `spec` describes ready to run `program`. Where the program is linked with a malloc,
    /// `system` is the program as it is, and the C library's malloc by its name (`glibc`) is the C library preloaded.
    /// An error for an allocator that is not here or no malloc, for settings it does not have, and where `program`
    /// takes no preload or runs on a C library the allocator is not made for.
    pub fn resolve(&self, spec: &Spec, program: &Program) -> Result<Variant, Error> {
        let by_path_found;
        let allocator = if spec.allocator.contains('/') {
            by_path_found = by_path(Path::new(&spec.allocator))?;
            &by_path_found
        } else if let Some(found) = self.get(&spec.allocator, program.libc) {
            found
        } else if self.allocators.iter().any(|one| one.name == spec.allocator) {
            return Err(wrong_libc(&spec.allocator, program));
        } else if spec.allocator == "system" && spec.settings.is_empty() {
            // If no C library is found, as in a container that holds a static program alone, that program runs as it
            // is.
            let (label, allocator) = (spec.to_string(), spec.allocator.clone());
            return Ok(Variant { label, spec: spec.clone(), allocator, ..Variant::default() });
        } else {
            return Err(self.unknown(&spec.allocator));
        };
        let target = Target {
            name: &allocator.name,
            version: allocator.version.as_deref(),
            library: &allocator.path,
        };
        let Settled { tunables, variables } = settle(spec, target)?;
        // If the C library is preloaded, it goes before the malloc that the program is linked with.
        let goes_before = program.linked_malloc.is_some()
            && spec.allocator != "system"
            && allocator.libc == Libc::Glibc;
        let preloaded = allocator.preloaded || goes_before;
        if preloaded {
            program.preloadable()?;
            if allocator.libc != program.libc && allocator.libc != Libc::Static {
                return Err(wrong_libc(&spec.allocator, program));
            }
        } else if allocator.libc != program.libc && !tunables.is_empty() {
            return Err(Error::Variant {
                variant: spec.to_string(),
                reason: format!(
                    "{} does not run on {}, so its settings change nothing",
                    program.path.display(),
                    allocator.name
                ),
            });
        }
        let linked = program.linked_malloc.as_deref().filter(|_| spec.allocator == "system");
        Ok(Variant {
            label: spec.label(),
            spec: spec.clone(),
            allocator: linked.map_or_else(|| allocator.name.clone(), malloc_of),
            version: allocator.version.clone().filter(|_| linked.is_none()),
            library: preloaded.then(|| allocator.path.clone()),
            tunables: allocator.tunables.iter().cloned().chain(tunables).collect(),
            variables,
            parameters: Vec::new(),
        })
    }

    /// Every allocator of the catalogue that can run `program`, without settings: the variants to compare when the user
    /// names none. The system's malloc comes first; it is the only one for a program that takes no preload. The
    /// hardened build, which costs time on purpose, must be named.
    pub fn variants_for(&self, program: &Program) -> Vec<Variant> {
        let mut variants: Vec<Variant> = Vec::new();
        if program.linked_malloc.is_some() {
            // The program as it is, which is not the C library's malloc.
            variants.extend(self.resolve(&Spec::bare("system"), program));
        }
        for allocator in self.allocators.iter().filter(|allocator| allocator.name != HARDENED) {
            if !allocator.preloaded
                && allocator.libc != program.libc
                && program.libc != Libc::Static
            {
                continue;
            }
            if let Ok(variant) = self.resolve(&Spec::bare(&*allocator.name), program)
                && !variants.iter().any(|known| known.label == variant.label)
                && (variant.library.is_some() || variants.is_empty())
            {
                variants.push(variant);
            }
        }
        variants
    }

    fn unknown(&self, name: &str) -> Error {
        let mut names: Vec<&str> = vec!["system"];
        names.extend(self.allocators.iter().map(|one| one.name.as_str()));
        names.dedup();
        Error::UnknownAllocator { name: name.to_owned(), known: names.join(", ") }
    }
}

fn wrong_libc(allocator: &str, program: &Program) -> Error {
    if let Err(error) = program.preloadable() {
        return error;
    }
    let runs_on = match program.libc {
        Libc::Glibc => "glibc",
        Libc::Musl => "musl",
        Libc::Static => "no C library",
    };
    Error::NoPreload {
        program: program.path.clone(),
        reason: format!(
            "it runs on {runs_on} and `{allocator}` is built for another C library; \
             choose one built for {runs_on}"
        ),
    }
}

fn by_path(path: &Path) -> Result<Allocator, Error> {
    let wrong = |reason: String| Error::Library { path: path.to_owned(), reason };
    let whole =
        fs::canonicalize(path).map_err(|error| wrong(format!("{error}; check the path")))?;
    let image = Image::read(&whole).map_err(|reason| {
        let is_program_wanted = reason == NO_ELF;
        wrong(if is_program_wanted {
            "no ELF file; name a malloc's .so file".to_owned()
        } else {
            reason
        })
    })?;
    if !image.defines("malloc") {
        return Err(wrong("it defines no `malloc`, so preloading it changes nothing".to_owned()));
    }
    let text = whole.to_str().unwrap_or(" ");
    if text.contains([' ', ':', ';']) {
        // The loader splits LD_PRELOAD at spaces and colons and knows no escape.
        return Err(wrong(
            "a path with spaces, colons or odd bytes cannot be preloaded; move the library"
                .to_owned(),
        ));
    }
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entry = known::of_file(&file);
    Ok(Allocator {
        name: entry.map_or_else(|| stem(&file), |entry| entry.name.to_owned()),
        version: version::of_library(&whole, entry.map_or(&[], |entry| entry.packages)),
        path: whole,
        preloaded: true,
        libc: image.libc,
        notes: entry.map(Known::notes).unwrap_or_default(),
        tunables: entry
            .and_then(|entry| entry.tunable)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
    })
}

/// The name of `libfoo-2.so.1` without the parts that every library's name has: `foo-2`.
fn stem(file: &str) -> String {
    let name = file.split(".so").next().unwrap_or(file);
    name.strip_prefix("lib").unwrap_or(name).to_owned()
}

/// Collects allocators, each file and each name once; the first allocator keeps the name.
#[derive(Debug, Default)]
struct Finder {
    found: Vec<Allocator>,
    files: HashSet<PathBuf>,
}

impl Finder {
    fn add(&mut self, mut allocator: Allocator) {
        if let Some(same) = self.of_name(&allocator)
            && let Some(version) = allocator.version.clone()
            && same.version.as_ref().is_some_and(|known| *known != version)
        {
            // This is another release of a malloc that is there: both stay in sight.
            allocator.name = format!("{}-{version}", allocator.name);
        }
        if self.of_name(&allocator).is_none() && self.files.insert(allocator.path.clone()) {
            self.found.push(allocator);
        }
    }

    fn of_name(&self, allocator: &Allocator) -> Option<&Allocator> {
        let same = |one: &&Allocator| one.name == allocator.name && one.libc == allocator.libc;
        self.found.iter().find(same)
    }

    fn add_system(&mut self) {
        let candidates =
            known::folders().into_iter().map(|folder| (folder.join("libc.so.6"), Libc::Glibc));
        // musl's loader is its C library too.
        let musl = format!("/lib/ld-musl-{}.so.1", std::env::consts::ARCH);
        for (path, libc) in candidates.chain([(PathBuf::from(musl), Libc::Musl)]) {
            if Image::read(&path).is_ok_and(|image| image.defines("malloc")) {
                let name = if libc == Libc::Glibc { "glibc" } else { "musl" };
                self.add(Allocator {
                    name: name.to_owned(),
                    version: version::of_c_library(&path, libc),
                    path: fs::canonicalize(&path).unwrap_or(path),
                    libc,
                    ..Allocator::default()
                });
            }
        }
    }

    /// The libraries of `folder` that define `malloc` and whose names are wanted.
    fn add_folder(&mut self, folder: &Path, is_wanted: impl Fn(&str) -> bool) {
        for path in libraries(folder) {
            if is_wanted(&path.file_name().unwrap_or_default().to_string_lossy())
                && let Ok(allocator) = by_path(&path)
            {
                self.add(allocator);
            }
        }
    }
}

/// The files of `folder` that are named like libraries, in alphabetical order.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().contains(".so"))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests;
