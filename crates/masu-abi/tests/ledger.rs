//! The library's cost in a program that hardly allocates: OS pages, by their contents.
//!
//! It relies on `tests/c/ledger.c`, which prints the kernel's list of its own mappings before it ends. The kernel maps
//! sixteen OS pages of a file around each fault, from an address that is random in each run, so a program's size varies
//! by dozens of OS pages without any malloc. The library's own mappings vary little, so they have a bound.
//!
//! `cargo test -p masu-abi --test ledger -- --nocapture` prints the ledgers.

mod library;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The bounds were found with this OS page.
const OS_PAGE_KB: usize = 4;
const RUNS: usize = 9;
const GIB: usize = 1 << 30;

/// A mapping, as `/proc/self/smaps` has it.
struct Mapping {
    start: usize,
    end: usize,
    rights: String,
    path: String,
    resident_kb: usize,
    copied_kb: usize,
}

fn kilobytes(line: &str, name: &str) -> Option<usize> {
    let number = line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB")?;
    Some(number.parse().expect("a number of kB"))
}

fn parse(text: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
        let bounds = first.split_once('-').and_then(|(a, b)| hexadecimal(a).zip(hexadecimal(b)));
        if let Some((start, end)) = bounds {
            let rights = words.next().unwrap_or_default().to_owned();
            let path = words.nth(3).unwrap_or_default().to_owned();
            mappings.push(Mapping { start, end, rights, path, resident_kb: 0, copied_kb: 0 });
        } else if let Some(last) = mappings.last_mut() {
            last.resident_kb += kilobytes(line, "Rss").unwrap_or(0);
            last.copied_kb += kilobytes(line, "Anonymous").unwrap_or(0);
        }
    }
    mappings
}

/// The names of the library's rows, as they are printed.
const TEXT: &str = "libmasu.so: text and constants";
const DATA: &str = "libmasu.so: relocated constants and data";
const ZEROED: &str = "libmasu.so: zeroed data";
const HEAD: &str = "arena head: slices and bitmaps";
const ARENA: &str = "thread cache, its arrays, blocks";
const MAP: &str = "class map";
/// The row of the library's ledger that the mapping at `index` belongs to; `None` for a mapping that is not the
/// library's.
fn row(mappings: &[Mapping], index: usize) -> Option<&'static str> {
    let this = &mappings[index];
    let is_anonymous = |mapping: &Mapping| mapping.path.is_empty();
    let of_library = |mapping: &Mapping| mapping.path.ends_with("/libmasu.so");
    if of_library(this) {
        return Some(if this.copied_kb > 0 { DATA } else { TEXT });
    }
    if !is_anonymous(this) {
        return None;
    }
    let before = index.checked_sub(1).map(|index| &mappings[index]);
    let touches = |a: &Mapping, b: &Mapping| a.end == b.start;
    // Other memory may begin where the library ends, with its unwind tables.
    let is_its_data = |mapping: &Mapping| of_library(mapping) && mapping.rights.starts_with("rw");
    if before.is_some_and(|before| is_its_data(before) && touches(before, this)) {
        return Some(ZEROED);
    }
    // The class map is far longer than its writable part.
    let is_map = |mapping: &Mapping| {
        is_anonymous(mapping)
            && mapping.rights.starts_with("r--")
            && mapping.end - mapping.start > 1 << 20
    };
    let after = mappings.get(index + 1);
    if is_map(this)
        || before.is_some_and(|before| is_map(before) && touches(before, this))
        || after.is_some_and(|after| is_map(after) && touches(this, after))
    {
        return Some(MAP);
    }
    // An arena starts at a multiple of 1 GiB, with its head.
    let starts = |mapping: &Mapping| is_anonymous(mapping) && mapping.start.is_multiple_of(GIB);
    if starts(this) {
        return Some(HEAD);
    }
    let arena =
        mappings.iter().find(|mapping| starts(mapping) && mapping.start == this.start & !(GIB - 1));
    arena.map(|_| ARENA)
}

/// The library's OS pages, by their contents, in a run with this many size classes.
fn ledger(program: &Path, classes: &str) -> BTreeMap<&'static str, usize> {
    let mappings = parse(&library::succeeds(library::preloaded(program).arg(classes)));
    let mut ledger = BTreeMap::new();
    for (index, mapping) in mappings.iter().enumerate() {
        if let Some(row) = row(&mappings, index) {
            *ledger.entry(row).or_default() += mapping.resident_kb / OS_PAGE_KB;
        }
    }
    ledger
}

/// Checks that the library has no more than `most` OS pages in a program that uses this many size classes. The median
/// of several runs counts.
fn costs_at_most(most: usize, classes: &str) {
    let program = library::compile("ledger.c", "program", &[]);
    let mut ledgers: Vec<_> = (0..RUNS).map(|_| ledger(&program, classes)).collect();
    ledgers.sort_by_key(|ledger| ledger.values().sum::<usize>());
    let middle = &ledgers[RUNS / 2];
    println!("{classes} size classes, OS pages: {middle:#?}");
    let has = |row: &str| middle.get(row).is_some_and(|pages| *pages > 0);
    assert!(has(TEXT) && has(DATA), "the library is found");
    assert!([HEAD, ARENA, MAP].iter().all(|row| has(row) == (classes != "0")), "so is its memory");
    let kernel = library::succeeds(Command::new("getconf").arg("PAGESIZE"));
    let pages: usize = middle.values().sum();
    let is_as_found = kernel.trim() != "4096" || pages <= most;
    assert!(is_as_found, "{pages} OS pages are the library's, at most {most} should be");
}

#[test]
fn a_program_that_does_not_allocate_pays_little() {
    costs_at_most(14, "0");
}

#[test]
fn a_program_of_twenty_size_classes_pays_little() {
    costs_at_most(44, "20");
}
