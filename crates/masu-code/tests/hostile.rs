//! Objects that are cut off, broken at random, or malicious: an error or a load, never a crash.
//!
//! Bounded in CI, long with `MASU_SOAK=1`. `fuzz/` has the same as a target for libFuzzer, which found the files in
//! `corpus/`: objects that compilers write, and those that once broke the loader. `MASU_SEED=N` gives other changes. A
//! panic writes the object at fault to a file, under the name that it prints.

#[path = "fixture/attempt.rs"]
mod attempt;
mod fixture;
#[path = "fixture/mutation.rs"]
mod mutation;

use std::ops::Range;
use std::path::Path;

use attempt::Attempts;
use fixture::{CC, CXX, Workshop, quiet, text};
use mutation::{Random, change};

/// What is kept: compilers' objects, and what broke the loader before.
fn kept() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = std::fs::read_dir(&folder).expect("the corpus");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).expect("it is read")).collect()
}

/// The same and larger ones that today's compilers make.
fn corpus(workshop: &Workshop) -> Vec<Vec<u8>> {
    std::fs::write(workshop.path("shapes.h"), text("shapes.h")).unwrap();
    let mut corpus = kept();
    let mut add = |path| corpus.push(std::fs::read(path).unwrap());
    add(workshop.compile(
        CC,
        "a.c",
        &text("constructs.c"),
        &["-O2", "-fPIC", "-ffunction-sections", "-fcommon"],
    ));
    add(workshop.compile(CXX, "c.cpp", &text("shapes.cpp"), &["-O1", "-fPIC", "-DPART=2"]));
    corpus
}

/// An attempt whose object is kept where it panics.
fn attempt(attempts: &mut Attempts, object: &[u8], what: &str) -> bool {
    let load = || attempts.load(object);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).unwrap_or_else(|panic| {
        let file = std::env::temp_dir().join(format!("masu-code-{}.o", std::process::id()));
        std::fs::write(&file, object).expect("the object is kept");
        println!("{what}: the object is kept in {}", file.display());
        std::panic::resume_unwind(panic)
    })
}

#[test]
fn what_is_kept_is_an_error_or_loads() {
    let mut attempts = Attempts::new();
    let kept = kept();
    let loaded = kept.iter().filter(|object| attempt(&mut attempts, object, "kept")).count();
    // Some need symbols of a linked program; those of another CPU never load.
    assert!(loaded >= 5 || cfg!(target_arch = "aarch64"), "{loaded} of {} load", kept.len());
}

#[test]
fn objects_cut_off_anywhere_are_refused() {
    let workshop = Workshop::open();
    let mut attempts = Attempts::new();
    for object in corpus(&workshop) {
        let step = object.len() / 300 + 1;
        for length in (0..object.len()).step_by(step) {
            attempt(&mut attempts, &object[..length], &format!("cut at {length}"));
        }
    }
}

#[test]
fn objects_broken_at_random_are_an_error_or_load() {
    let soak = std::env::var_os("MASU_SOAK").is_some();
    let rounds = if soak { 2_000_000 } else { 20_000 };
    let seed = std::env::var("MASU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let workshop = Workshop::open();
    let (mut attempts, corpus) = (Attempts::new(), corpus(&workshop));
    let mut random = Random(seed);
    let mut loaded = 0;
    for round in 0..rounds {
        let mut object = corpus[random.below(corpus.len())].clone();
        for _ in 0..random.below(4) {
            change(&mut object, &mut random);
        }
        // How it is loaded.
        if object.starts_with(b"\x7fELF") {
            object[attempt::CHOICE] = random.next() as u8;
        }
        if random.below(8) == 0 {
            object.truncate(random.below(object.len()).max(48));
        }
        let what = format!("seed {seed}, round {round}");
        loaded += usize::from(attempt(&mut attempts, &object, &what));
    }
    // Both happen often, or the test tests nothing.
    assert!(loaded > rounds / 100 && loaded < rounds * 99 / 100, "{loaded} of {rounds}");
}

/// Where the relocations of the unwind table are in an object's file.
fn relocations_of_frames(object: &[u8]) -> Vec<Range<usize>> {
    use object::{Object as _, ObjectSection as _};
    let Ok(file) = object::File::parse(object) else { return Vec::new() };
    let tables = file.sections().filter(|section| section.name() == Ok(".rela.eh_frame"));
    let ranges = tables.filter_map(|table| table.file_range());
    ranges.map(|(start, size)| start as usize..(start + size) as usize).collect()
}

#[test]
fn unwind_tables_about_other_code_are_refused_before_an_exception_meets_them() {
    let workshop = Workshop::open();
    let (mut attempts, mut random) = (Attempts::new(), Random(1));
    let (mut loaded, mut refused) = (0, 0);
    for object in corpus(&workshop) {
        for at in relocations_of_frames(&object).into_iter().flatten() {
            let mut object = object.clone();
            object[at] ^= 1 << random.below(8);
            object[attempt::CHOICE] = random.next() as u8;
            let is_loaded = attempt(&mut attempts, &object, &format!("byte {at}"));
            *if is_loaded { &mut loaded } else { &mut refused } += 1;
        }
    }
    // Nearly each change leads a frame to code of others.
    assert!(loaded > 0 && refused > loaded, "{loaded} loaded, {refused} refused");
}

#[test]
fn an_unwind_table_without_an_end_is_refused_whatever_lies_behind_it() {
    let mut attempts = Attempts::new();
    for before in kept() {
        attempt(&mut attempts, &before, "before");
        // Its last entry reaches over the zeros that follow the section.
        let table = include_bytes!("corpus/found-table-without-end.o");
        assert!(!attempt(&mut attempts, table, "without an end"));
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "char huge[1ull << 40]; long f(void) { return huge[5]; }";
    let huge = workshop.source(CC, "huge.c", text, &["-O2", "-fPIC"]);
    // SAFETY: No initializers.
    let error = unsafe { arena.load(&huge) }.unwrap_err();
    assert!(matches!(error, masu_code::Error::Full { .. }), "{error}");
}
