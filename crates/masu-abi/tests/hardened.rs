//! The hardened build, `libmasu-secure.so`, ends each kind of misuse at the call, and no correct program.
//!
//! It relies on `tests/c/hardened.c`, which prints the pointer first, one kind of misuse a run, with small, middle and
//! large blocks. Under the plain build the same program continues or ends differently, which shows that these tests can
//! fail.

mod library;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use library::{hardened, program};

const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;

/// Sizes of blocks: of laned and plain classes, of several OS pages, and large.
const SIZES: [usize; 6] = [20, 200, 5_000, 40_000, 100_000, 3_000_000];
/// The sizes of blocks that have pages of their class.
const SMALL: [usize; 4] = [20, 200, 5_000, 40_000];
const LARGE: [usize; 2] = [100_000, 3_000_000];

program!("hardened.c", &[]);

/// Standard output, which has the misused pointer, and standard error.
fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).trim().to_owned())
}

fn under(preload: &Path, kind: &str, size: usize) -> Command {
    let mut command = Command::new(program());
    command.args([kind, &size.to_string()]).env("LD_PRELOAD", preload);
    command
}

fn run_under(preload: &Path, kind: &str, size: usize) -> Output {
    under(preload, kind, size).output().expect("the program starts")
}

/// Checks that the misuse ends in `SIGABRT` at `call`, with a message that has the pointer and `what`.
fn is_stopped(kind: &str, size: usize, call: &str, what: &str) {
    let output = run_under(hardened(), kind, size);
    let [pointer, said] = texts(&output);
    assert_eq!(output.status.signal(), Some(SIGABRT), "{kind} {size}: {}\n{said}", output.status);
    let start = format!("masu: {call}({pointer}): ");
    let is_right = said.starts_with(&start) && said.contains(what);
    assert!(is_right, "{kind} {size}: {start}, {what}\n{said}");
    assert!(!said.contains("survived"), "{kind} {size}");
}

/// One test for each kind of misuse, with blocks of these sizes.
macro_rules! stopped {
    ($($kind:ident of $sizes:expr, at $call:literal: $what:literal;)*) => {$(
        #[test]
        fn $kind() {
            for size in $sizes {
                is_stopped(stringify!($kind), size, $call, $what);
            }
        }
    )*};
}

stopped! {
    twice of SIZES, at "free": "freed twice: a block of at most ";
    twice_later of SIZES, at "free": "freed twice: a block of at most ";
    twice_by_threads of SIZES, at "free": "freed twice: a block of at most ";
    realloc_freed of SIZES, at "realloc": "freed twice";
    usable_freed of SIZES, at "malloc_usable_size": "freed twice";
    free_after_realloc of SIZES, at "free": "freed twice";
    page_freed of SMALL, at "free": "by an earlier free";
    interior of SIZES, at "free": "lies 16 bytes into a block of ";
    far_inside of [0], at "free": "lies more than a GiB into a block";
    far_inside_of_a_heap of [3_000_000], at "free": "it lies in a heap of the program's";
    never_handed_out of [20], at "free": "it lies in memory never handed out";
    misaligned of SIZES, at "free": "lies 1 byte into a block of ";
    last_byte of SIZES, at "free": " into a block of ";
    realloc_interior of SIZES, at "realloc": "lies 16 bytes into a block of ";
    usable_interior of SIZES, at "malloc_usable_size": "lies 16 bytes into a block of ";
    stack of [20], at "free": "is no block of masu's: it lies on this thread's stack";
    global_variable of [20], at "free": "is no block of masu's: it lies in the program";
    literal of [20], at "free": "is no block of masu's: it lies in the program";
    mapping of [20], at "free": "is no block of masu's: another malloc's, or a mapping";
    unmapped of [20], at "free": "is no block of masu's: nothing is mapped there";
    glibc_block of SMALL, at "free": "is no block of masu's: another malloc's, or a mapping";
    overflow of SIZES, at "free": "written beyond its end: a block of ";
    overflow_zero of SIZES, at "free": "written beyond its end: a block of ";
    overflow_usable of SIZES, at "free": "written beyond its end: a block of ";
    overflow_realloc of SIZES, at "realloc": "written beyond its end: a block of ";
    sized of SIZES, at "sized free": ": a block of ";
    aligned_sized of SIZES, at "sized free": ": a block of ";
}

#[test]
fn a_write_after_free_is_found_when_the_block_leaves_quarantine() {
    for size in SMALL {
        let output = run_under(hardened(), "write_after_free", size);
        let [pointer, said] = texts(&output);
        assert_eq!(output.status.signal(), Some(SIGABRT), "{size}: {}\n{said}", output.status);
        let what = format!("a free block was written to, {} bytes into it: ", size / 2);
        assert!(said.contains(&what) && said.contains(&pointer), "{size}: {what}\n{said}");
    }
}

#[test]
fn a_large_block_has_guards_and_is_inaccessible_once_freed() {
    for size in LARGE {
        for kind in ["large_guard", "large_before", "large_after_free", "write_after_free"] {
            let output = run_under(hardened(), kind, size);
            assert_eq!(output.status.signal(), Some(SIGSEGV), "{kind} {size}: {}", output.status);
        }
    }
}

#[test]
fn the_plain_build_does_not_stop_these() {
    for kind in ["overflow", "sized"] {
        library::success(&mut under(library::path(), kind, 200));
    }
}

#[test]
fn a_freed_block_is_cleared() {
    let left = |library| texts(&run_under(library, "cleared", 5_000));
    assert_eq!(left(hardened())[0], "0");
    assert_ne!(left(library::path())[0], "0", "the ordinary build clears nothing");
}

#[test]
fn addresses_differ_between_processes() {
    let places = |library| run_under(library, "places", 0).stdout;
    assert_ne!(places(hardened()), places(hardened()));
    let plain = [(); 2].map(|()| places(library::path()));
    assert_eq!(plain[0], plain[1], "the ordinary build's order is fixed");
}

#[test]
fn a_freed_block_is_quarantined_before_reuse() {
    let freed =
        |library| -> usize { texts(&run_under(library, "rest", 0))[0].parse().expect("a number") };
    assert!(freed(hardened()) >= 512, "as many as stand in line");
    assert_eq!(freed(library::path()), 0, "the ordinary build hands it out at once");
}

#[test]
fn correct_programs_run() {
    let kinds = ["sound", "threads_and_forks", "many_large", "limit_on_data", "limit_on_memory"];
    for kind in kinds {
        library::success(&mut under(hardened(), kind, 0));
    }
}
