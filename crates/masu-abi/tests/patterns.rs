//! The allocation patterns of `workloads/patterns` print the same under libmasu as under the system's
//! malloc, and they find a faulty malloc.
//!
//! It relies on the patterns, which check the contents of their blocks and print a checksum that is the same in each
//! run. Equal output shows that both mallocs did the same work, so that benchmarks compare times of the same work.

mod library;

use std::path::{Path, PathBuf};
use std::process::Command;

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/patterns")
}

/// Compiles `sources` with `arguments` into the target folder.
fn compile(sources: &[PathBuf], name: &str, arguments: &[&str]) -> PathBuf {
    let result = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-pthread", "-fno-builtin-malloc"]);
    library::succeeds(command.args(sources).args(arguments).arg("-o").arg(&result));
    result
}

library::once! {
    fn program() => {
        let entries = std::fs::read_dir(sources()).expect("the patterns are in the checkout");
        let paths = entries.map(|entry| entry.expect("the folder is readable").path());
        let files: Vec<_> = paths.filter(|path| path.extension() == Some("c".as_ref())).collect();
        compile(&files, "patterns", &["-Wall", "-Wextra", "-Werror"])
    }
}

/// Arguments for a short run that does everything at least once.
fn brief(name: &str, group: &str) -> Vec<String> {
    let ops = match (name, group) {
        ("realloc-1k" | "realloc-double", _) => 3_000,
        (_, "large") => 130,
        ("thread-start-exit", _) => 300,
        ("sparse-cross", _) => 20_000,
        ("phase-change", _) => 3_000_000,
        (_, "small") => 150_000,
        (_, "threads") => 300_000,
        _ => 100_000,
    };
    let mut arguments = vec![name.to_owned(), "--ops".to_owned(), ops.to_string()];
    if name == "idle-threads" {
        arguments.extend(["--threads".to_owned(), "50".to_owned()]);
    }
    arguments
}

/// Runs a program under both mallocs, which must print the same.
fn same(program: &Path, arguments: &[String]) {
    let system = library::succeeds(Command::new(program).args(arguments));
    let masu = library::succeeds(library::preloaded(program).args(arguments));
    assert!(system.contains("checksum "), "{arguments:?} printed no checksum: {system}");
    assert_eq!(system, masu, "{arguments:?} did different work under libmasu");
}

/// Runs every pattern of a group under both mallocs; returns the number of patterns.
fn same_under_both(wanted: &str) -> usize {
    let listed = library::succeeds(Command::new(program()).arg("--list"));
    let mut count = 0;
    for line in listed.lines() {
        let mut words = line.split_whitespace();
        let (name, group) = (words.next().expect("a name"), words.next().expect("a group"));
        if group == wanted {
            same(program(), &brief(name, group));
            count += 1;
        }
    }
    count
}

#[test]
fn small_patterns_do_the_same_work_under_both_mallocs() {
    assert_eq!(same_under_both("small"), 18);
}

#[test]
fn large_patterns_do_the_same_work_under_both_mallocs() {
    assert_eq!(same_under_both("large"), 10);
}

#[test]
fn thread_patterns_do_the_same_work_under_both_mallocs() {
    assert_eq!(same_under_both("threads"), 13);
}

#[test]
fn lifetime_patterns_do_the_same_work_under_both_mallocs() {
    assert_eq!(same_under_both("lifetime"), 7);
}

#[test]
fn work_on_many_threads_does_not_depend_on_their_number() {
    let checksum = |threads: &str| {
        let mut command = library::preloaded(program());
        command.args(["many-threads", "--ops", "100000", "--threads", threads]);
        let printed = library::succeeds(&mut command);
        printed.split_once(" checksum ").expect("a checksum").1.to_owned()
    };
    assert_eq!(checksum("64"), checksum("1"));
}

#[test]
fn drawn_programs_do_the_same_work_under_both_mallocs() {
    let drawn = sources().join("../drawn/drawn.c");
    let include = format!("-I{}", sources().display());
    let files = [drawn, sources().join("run.c")];
    let program = compile(&files, "drawn", &["-Wall", "-Wextra", "-Werror", &include, "-lm"]);
    for seed in 0..60 {
        same(&program, &[seed.to_string(), "--bytes".to_owned(), "5000000".to_owned()]);
    }
}

/// Peak RSS in kB of a pattern under libmasu, as the program itself reads it.
fn peak_rss_kb(pattern: &str, ops: &str) -> usize {
    let mut command = library::preloaded(program());
    let output = command.args([pattern, "--ops", ops]).output().expect("the program starts");
    let printed = library::printed(&output);
    let figure = printed.split_once("rss_kb ").expect("a figure").1;
    figure.split_whitespace().next().and_then(|kb| kb.parse().ok()).expect("a number")
}

#[test]
fn a_growing_block_is_resident_only_where_it_was_written() {
    // Grown to 64 MiB, one word in each MiB written: huge pages would make most of it resident.
    let sparse = peak_rss_kb("realloc-1m", "128");
    assert!(sparse < 16 << 10, "{sparse} kB");
    let used = peak_rss_kb("realloc-1m-touched", "128");
    assert!(used > 64 << 10, "{used} kB");
}

#[test]
fn buffers_among_many_small_blocks_are_resident_only_where_they_were_written() {
    // 400,000 small blocks of 213 MB together, and 390 buffers of 425 MB, which would lie in huge pages of both.
    let sparse = peak_rss_kb("sparse-among-small", "400000");
    assert!(sparse < 400 << 10, "{sparse} kB");
}

#[test]
fn a_malloc_that_hands_out_a_live_block_is_found() {
    let twice = compile(&[sources().join("smoke/twice.c")], "libtwice.so", &["-shared", "-fPIC"]);
    for name in ["batch-in-order", "tiny", "random-100k", "server", "ring", "mixed-cross", "jsonl"]
    {
        let mut command = Command::new(program());
        command.args([name, "--ops", "20000"]).env("LD_PRELOAD", &twice);
        // Overwritten pointers of the tree may end the program before its text is compared, about once in 300 runs;
        // then the test runs the program again.
        let runs = if name == "jsonl" { 20 } else { 1 };
        let is_noticed = (0..runs).any(|_| {
            let output = command.output().expect("the program starts");
            let printed = library::printed(&output);
            assert_ne!(output.status.code(), Some(0), "{name} noticed nothing: {printed}");
            output.status.code() == Some(3) && printed.contains("does not hold what was written")
        });
        assert!(is_noticed, "{name} never said what was wrong");
    }
}

#[test]
fn wrong_arguments_are_named() {
    let cases: [(&[&str], &str); 8] = [
        (&[], "name a pattern"),
        (&["no-such"], "'no-such' is not a pattern"),
        (&["pair-16", "--size", "8"], "--size needs a number from 16"),
        (&["random-4m", "--size", "1024"], "--size needs a number from 16 to 268"),
        (&["pair-16", "--ops", "-1"], "--ops needs a number"),
        (&["jsonl", "--size", "64"], "jsonl takes no --size"),
        (&["ring", "--live", "64"], "ring takes no --live"),
        (&["random-100k", "--live", "0"], "--live needs a number from 1 to 33554432"),
    ];
    for (arguments, message) in cases {
        let output = Command::new(program()).args(arguments).output().expect("the program starts");
        let printed = library::printed(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {printed}");
        assert!(printed.contains(message), "{arguments:?}: {printed}");
    }
}
