//! The shell and the tools of every day: bash, ls, sed, grep, sort.

use crate::program::Program;
use crate::soak;
use crate::text;

#[test]
fn bash_runs_a_script_the_same() {
    Program::new("bash", "bash")
        .arguments(["tour.bash"])
        .file("tour.bash", include_str!("scripts/tour.bash"))
        .prints("processes: 40")
        .same_under_masu();
}

#[test]
fn ls_lists_a_tree_the_same() {
    let folders = if soak() { 500 } else { 50 };
    Program::new("ls", "coreutils")
        .arguments(["-lR", "tree"])
        .prepare(move |folder| text::tree(folder, folders))
        .prints("file-19.txt")
        .same_under_masu();
}

#[test]
fn sed_finds_the_same_primes() {
    Program::new("sed", "sed")
        .arguments(["-rf", "primes49.sed"])
        .file("primes49.sed", include_str!("../../../../workloads/primes49.sed"))
        .input(if soak() { "50\n" } else { "20\n" })
        .prints("149")
        .same_under_masu();
}

#[test]
fn sed_edits_a_file_in_place_the_same() {
    // The hold space takes the whole file and is reversed: reallocations that grow to megabytes.
    Program::new("sed", "sed")
        .arguments(["-i", "-E", r"s/(\w+) (\w+)/\2 \1/g; y/abc/ABC/; 1!G; h; $!d", "lines.txt"])
        .file("lines.txt", text::lines(if soak() { 12_000 } else { 2_500 }))
        .produces("lines.txt")
        .same_under_masu();
}

#[test]
fn grep_finds_the_same_lines() {
    Program::new("grep", "grep")
        .arguments(["-rnE", r"(\w+)::\1|sub [a-z]{3,5}_", "/usr/share/perl"])
        .prints("sub ")
        .same_under_masu();
}

#[test]
fn grep_with_perl_expressions_finds_the_same_lines() {
    Program::new("grep", "grep")
        .arguments(["-nP", r"(?<=page )(?:heap|cache) \w+ (\d)\1"])
        .input(text::lines(if soak() { 2_000_000 } else { 100_000 }))
        .prints("page heap")
        .same_under_masu();
}

/// The small buffer makes it sort in pieces and merge them from temporary files.
pub(crate) fn sorting() -> Program {
    Program::new("sort", "coreutils")
        .arguments(["--parallel=4", "--buffer-size=4M", "-k2,2", "-k1n"])
        .input(text::lines(if soak() { 2_000_000 } else { 300_000 }))
        .prints("arena")
}

#[test]
fn sort_in_parallel_sorts_the_same() {
    sorting().same_under_masu();
}
