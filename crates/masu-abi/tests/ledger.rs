//! The library's cost in a program that hardly allocates: a ledger of OS pages, by owner.
//!
//! It relies on `tests/c/ledger.c`, which prints the kernel's list of its mappings before it ends. The kernel maps
//! sixteen OS pages of a file around each fault, from an address that is random in each run, so a program's size varies
//! by dozens of OS pages without any malloc. The library's own mappings do not vary, so only they have a bound; the
//! whole program's size is printed beside them, as the median of several runs.
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

/// What a run printed.
struct Run {
    mappings: Vec<Mapping>,
    peak_kb: usize,
    page_tables_kb: usize,
}

fn kilobytes(line: &str, name: &str) -> Option<usize> {
    let number = line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB")?;
    Some(number.parse().expect("a number of kB"))
}

fn parse(text: &str) -> Run {
    let mut run = Run { mappings: Vec::new(), peak_kb: 0, page_tables_kb: 0 };
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
        let bounds = first.split_once('-').and_then(|(a, b)| hexadecimal(a).zip(hexadecimal(b)));
        if let Some((start, end)) = bounds {
            let rights = words.next().unwrap_or_default().to_owned();
            let path = words.nth(3).unwrap_or_default().to_owned();
            run.mappings.push(Mapping { start, end, rights, path, resident_kb: 0, copied_kb: 0 });
        } else if let Some(last) = run.mappings.last_mut() {
            last.resident_kb += kilobytes(line, "Rss").unwrap_or(0);
            last.copied_kb += kilobytes(line, "Anonymous").unwrap_or(0);
            run.peak_kb += kilobytes(line, "VmHWM").unwrap_or(0);
            run.page_tables_kb += kilobytes(line, "VmPTE").unwrap_or(0);
        }
    }
    run
}

/// The library's rows, as they are printed.
const TEXT: &str = "libmasu.so: text and constants";
const DATA: &str = "libmasu.so: relocated constants and data";
const ZEROED: &str = "libmasu.so: zeroed data";
const HEAD: &str = "arena head: slices and bitmaps";
const ARENA: &str = "thread cache, its arrays, blocks";
const MAP: &str = "class map";
const OWN: [&str; 6] = [TEXT, DATA, ZEROED, HEAD, ARENA, MAP];
/// The others'.
const HEAP: &str = "the C library's heap";
const ANONYMOUS: &str = "the dynamic linker's and the program's memory";
const FILES: &str = "the program, the C library and the like";

/// The owner of the mapping at `index`.
fn owner(mappings: &[Mapping], index: usize) -> &'static str {
    let this = &mappings[index];
    let is_anonymous = |mapping: &Mapping| mapping.path.is_empty();
    let of_library = |mapping: &Mapping| mapping.path.ends_with("/libmasu.so");
    if of_library(this) {
        return if this.copied_kb > 0 { DATA } else { TEXT };
    }
    if this.path == "[heap]" {
        return HEAP;
    }
    if !is_anonymous(this) {
        return FILES;
    }
    let before = index.checked_sub(1).map(|index| &mappings[index]);
    let touches = |a: &Mapping, b: &Mapping| a.end == b.start;
    // Other memory may begin where the library ends, with its unwind tables.
    let is_its_data = |mapping: &Mapping| of_library(mapping) && mapping.rights.starts_with("rw");
    if before.is_some_and(|before| is_its_data(before) && touches(before, this)) {
        return ZEROED;
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
        return MAP;
    }
    // An arena starts at a multiple of 1 GiB, with its head.
    let starts = |mapping: &Mapping| is_anonymous(mapping) && mapping.start.is_multiple_of(GIB);
    if starts(this) {
        return HEAD;
    }
    let arena =
        mappings.iter().find(|mapping| starts(mapping) && mapping.start == this.start & !(GIB - 1));
    if arena.is_some() { ARENA } else { ANONYMOUS }
}

type Ledger = BTreeMap<&'static str, usize>;

/// OS pages by owner in one run.
fn ledger(run: &Run) -> Ledger {
    let mut ledger = Ledger::new();
    for (index, mapping) in run.mappings.iter().enumerate() {
        *ledger.entry(owner(&run.mappings, index)).or_default() += mapping.resident_kb / OS_PAGE_KB;
    }
    ledger
}

fn median(values: impl Iterator<Item = usize>) -> usize {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}

/// The ledger of several runs, owner by owner, with the peak and the page tables in OS pages.
fn measured(program: &Path, classes: &str, preloads: bool) -> (Ledger, usize, usize) {
    let runs: Vec<_> = (0..RUNS)
        .map(|_| {
            let mut command =
                if preloads { library::preloaded(program) } else { Command::new(program) };
            parse(&library::succeeds(command.arg(classes)))
        })
        .collect();
    let ledgers: Vec<_> = runs.iter().map(ledger).collect();
    let owners = OWN.into_iter().chain([HEAP, ANONYMOUS, FILES]);
    let of = |owner| median(ledgers.iter().map(|one| one.get(owner).copied().unwrap_or(0)));
    let middle = owners.map(|owner| (owner, of(owner))).collect();
    let peak = median(runs.iter().map(|run| run.peak_kb / OS_PAGE_KB));
    (middle, peak, median(runs.iter().map(|run| run.page_tables_kb / OS_PAGE_KB)))
}

/// Prints the ledger of a program that uses `classes` size classes; returns the library's own OS
/// pages. `None` where OS pages are of another size.
fn own_pages(classes: &str) -> Option<usize> {
    let program = library::compile("ledger.c", "program", &[]);
    let (without, peak_without, tables_without) = measured(&program, classes, false);
    let (with, peak, tables) = measured(&program, classes, true);
    println!("{classes} size classes, OS pages (medians of {RUNS} runs)      with   without");
    for (owner, pages) in &with {
        println!("  {owner:48} {pages:6}  {:6}", without[owner]);
    }
    println!("  {:48} {tables:6}  {tables_without:6}", "page tables, not in the sum");
    println!("  {:48} {peak:6}  {peak_without:6}", "peak RSS");
    let allocates = classes != "0";
    assert!(with[TEXT] > 0 && with[DATA] > 0, "the library is found");
    assert!(
        [HEAD, ARENA, MAP].iter().all(|owner| (with[owner] > 0) == allocates),
        "so is its memory"
    );
    assert!(OWN.iter().all(|owner| without[owner] == 0), "without the library nothing is its own");
    let kernel = library::succeeds(Command::new("getconf").arg("PAGESIZE"));
    (kernel.trim() == "4096").then(|| OWN.iter().map(|owner| with[owner]).sum())
}

#[test]
fn a_program_that_does_not_allocate_pays_little() {
    let Some(pages) = own_pages("0") else { return };
    assert!(
        pages <= BOUND_NONE,
        "{pages} OS pages are the library's, at most {BOUND_NONE} should be"
    );
}

#[test]
fn a_program_of_twenty_size_classes_pays_little() {
    let Some(pages) = own_pages("20") else { return };
    assert!(
        pages <= BOUND_TWENTY,
        "{pages} OS pages are the library's, at most {BOUND_TWENTY} should be"
    );
}

/// The measured numbers.
const BOUND_NONE: usize = 18;
const BOUND_TWENTY: usize = 48;
