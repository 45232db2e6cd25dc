//! The counting build of the library counts every request of a program.
//!
//! It relies on `tests/c/counted.c`, whose requests are known, and reads the page in the layout of
//! `masu-lab`'s `count.rs`. The C library's own requests are the same in every run of a program, so a
//! run of no rounds is subtracted.

mod library;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use library::{once, program};
use tempfile::TempDir;

// COUPLING: sums over `one_round` of `tests/c/counted.c`.
const REQUESTS: u64 = 11;
const BYTES: u64 = 100 + 100_000 + 21 + 128 + 10 + 5 + 9 + 50 + 5_000 + 60 + 33;

/// The counting library for `target`, in a folder of its own, because it has the same name as the plain library.
fn counting(target: Option<&str>) -> PathBuf {
    let folder = format!("{}/count", env!("CARGO_TARGET_TMPDIR"));
    let mut arguments = vec!["--features", "count", "--target-dir", &folder];
    arguments.extend(target.iter().flat_map(|target| ["--target", target]));
    // The Rust target for musl is static by default; for glibc this changes nothing.
    let flags = ("RUSTFLAGS", "-C target-feature=-crt-static");
    library::build("libmasu.so", &arguments, &[flags])
}

once! { fn glibc() => counting(None) }

// The program gets the operators of C++ from the library.
program!("counted.c", &[library::text(glibc())]);

/// The counters of a page: programs, requests, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Totals([u64; 3]);

impl Totals {
    fn of_rounds(rounds: u64) -> Totals {
        Totals([0, REQUESTS * rounds, BYTES * rounds])
    }

    fn minus(self, other: Totals) -> Totals {
        Totals(std::array::from_fn(|n| self.0[n] - other.0[n]))
    }
}

struct Page {
    folder: TempDir,
}

impl Page {
    fn new(version: u64) -> Page {
        let page = Page { folder: tempfile::tempdir().expect("a folder") };
        let mut content = [0; 4096];
        content[..8].copy_from_slice(b"masucnt\0");
        content[8..16].copy_from_slice(&version.to_ne_bytes());
        fs::write(page.path(), content).expect("the folder is writable");
        page
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("page")
    }

    fn totals(&self) -> Totals {
        let content = fs::read(self.path()).expect("the page is there");
        let word = |n: usize| content[8 * n..8 * n + 8].try_into().expect("eight bytes");
        Totals(std::array::from_fn(|n| u64::from_ne_bytes(word(n + 2))))
    }
}

fn counted(library: &Path, program: &Path, way: &str, rounds: u64) -> Totals {
    let page = Page::new(2);
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library).env("MASU_COUNT_FILE", page.path());
    let output = library::success(command.args([way, &rounds.to_string()]));
    assert_eq!(library::printed(&output), "");
    page.totals()
}

/// Compares the counts of a way to run the rounds with those of `workers`.
fn counts_exactly(library: &Path, program: &Path, way: &str, workers: u64) {
    let (none, some) = (counted(library, program, way, 0), counted(library, program, way, 1_000));
    assert_eq!(none.0[0], 1, "one program was started: {none:?}");
    assert_eq!(some.minus(none), Totals::of_rounds(1_000 * workers), "{way}");
}

#[test]
fn every_request_is_counted() {
    counts_exactly(glibc(), program(), "alone", 1);
}

#[test]
fn requests_of_threads_are_counted() {
    counts_exactly(glibc(), program(), "threads", 4);
}

#[test]
fn requests_of_forked_processes_are_counted() {
    counts_exactly(glibc(), program(), "fork", 4);
}

#[test]
fn every_program_of_a_tree_counts_into_the_same_page() {
    let page = Page::new(2);
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" alone 100; \"$0\" alone 100; :"]).arg(program());
    library::success(shell.env("LD_PRELOAD", glibc()).env("MASU_COUNT_FILE", page.path()));
    let totals = page.totals();
    assert_eq!(totals.0[0], 3, "a shell and two programs: {totals:?}");
    assert!(totals.0[1] >= 200 * REQUESTS, "{totals:?}");
}

#[test]
fn musl_programs_are_counted() {
    let Some(compiler) = library::musl_compiler() else { return };
    let library = counting(Some(library::MUSL));
    let source = library::source("counted.c");
    let program = library::compile_with(compiler, &source, "musl", &[library::text(&library)]);
    let folder = library.parent().expect("a file is in a folder").to_owned();
    let run = |rounds: &str| {
        let page = Page::new(2);
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", &folder).env("LD_PRELOAD", &library);
        library::success(command.env("MASU_COUNT_FILE", page.path()).args(["fork", rounds]));
        page.totals()
    };
    assert_eq!(run("1000").minus(run("0")), Totals::of_rounds(4_000));
}

#[test]
fn without_the_variable_nothing_is_counted() {
    let page = Page::new(2);
    let mut command = Command::new(program());
    let output = library::success(command.env("LD_PRELOAD", glibc()).args(["fork", "100"]));
    assert_eq!(library::printed(&output), "");
    assert_eq!(page.totals(), Totals([0; 3]));
}

#[test]
fn a_page_of_another_version_is_reported_and_left_alone() {
    let older = Page::new(1);
    let short = Page::new(2);
    fs::write(short.path(), b"masucnt\0\x02\0\0\0\0\0\0\0").expect("writable");
    let absent = Page::new(2);
    fs::remove_file(absent.path()).expect("it is there");
    for page in [older, short, absent] {
        let before = fs::read(page.path()).ok();
        let mut command = Command::new(program());
        command.env("LD_PRELOAD", glibc()).env("MASU_COUNT_FILE", page.path());
        let output = library::success(command.args(["alone", "10"]));
        let said = library::printed(&output);
        assert!(said.starts_with("masu: MASU_COUNT_FILE names no count page"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(fs::read(page.path()).ok(), before);
    }
}

#[test]
fn the_plain_library_does_not_count() {
    let has = |library: &Path| {
        let bytes = fs::read(library).expect("the library was built");
        bytes.windows(15).any(|window| window == b"MASU_COUNT_FILE")
    };
    assert!(has(glibc()));
    assert!(!has(library::path()));
}
