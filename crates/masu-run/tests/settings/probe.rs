//! The C program of these tests: compiled once, run under a variant, its figures read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

// Builds the library that users preload, and C programs; the lab itself links neither.
#[path = "../../../masu-abi/tests/library/mod.rs"]
mod library;

use masu_run::{Catalogue, Input, Libc, Places, Variant, Workload};

/// The program, and the mallocs to run it under.
pub(crate) struct Probe {
    program: Workload,
    catalogue: Catalogue,
}

/// The output of the program.
#[derive(Debug)]
pub(crate) struct Seen {
    figures: BTreeMap<String, u64>,
    /// The text on standard error, from the malloc: the program itself writes nothing there.
    pub(crate) complaints: String,
}

impl Seen {
    /// The figure called `name`.
    #[track_caller]
    pub(crate) fn get(&self, name: &str) -> u64 {
        *self.figures.get(name).unwrap_or_else(|| panic!("no {name} among {self:?}"))
    }
}

impl Probe {
    pub(crate) fn new() -> Probe {
        let program = Workload::new([compiled().to_str().unwrap()], Input::Empty).unwrap();
        let masu_glibc = Some(library::path().to_owned());
        let places = Places { masu_glibc, ..Places::default() };
        Probe { program, catalogue: Catalogue::find(&places) }
    }

    pub(crate) fn library(&self, malloc: &str) -> Option<&Path> {
        self.catalogue.get(malloc, Libc::Glibc).map(|found| found.path.as_path())
    }

    /// The names of every `malloc` there is: `mimalloc2`, `mimalloc3` and `mimalloc2-2.1.4` are all mimalloc.
    pub(crate) fn members(&self, malloc: &str) -> Vec<String> {
        let is_version = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        let is_member = |name: &str| {
            name.strip_prefix(malloc).is_some_and(|rest| {
                rest.is_empty() || is_version(rest.strip_prefix('-').unwrap_or(rest))
            })
        };
        let names = self.catalogue.allocators.iter().map(|one| one.name.clone());
        names.filter(|name| is_member(name)).collect()
    }

    /// True if the kernel gives huge pages to programs that ask, and to no others.
    pub(crate) fn gives_huge_pages_on_advice(&self) -> bool {
        let file = "/sys/kernel/mm/transparent_hugepage/enabled";
        std::fs::read_to_string(file).is_ok_and(|mode| mode.contains("[madvise]"))
    }

    pub(crate) fn variant(&self, text: &str) -> Variant {
        let spec = text.parse().unwrap();
        self.catalogue.resolve(&spec, &self.program.program).unwrap()
    }

    /// The figures when `scene` is played under `variant` in an environment of nothing but `users`.
    pub(crate) fn play(&self, variant: &Variant, scene: &str, users: &[(&str, &str)]) -> Seen {
        let inherited = |name: &str| {
            users.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        };
        let output = Command::new(&self.program.program.path)
            .arg(scene)
            .env_clear()
            .envs(users.iter().copied())
            .envs(variant.changes(inherited))
            .output()
            .unwrap();
        assert!(output.status.success(), "{} in `{scene}`: {output:?}", variant.label);
        let text = String::from_utf8(output.stdout).unwrap();
        let figure = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Seen {
            figures: text.lines().map(|line| figure(line).unwrap()).collect(),
            complaints: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Compiles the program, once.
fn compiled() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/settings.c");
        library::compile_with("cc", &source, "program", &[])
    })
}
