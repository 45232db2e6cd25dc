//! Perl and Node.

use crate::program::Program;
use crate::soak;

#[test]
fn perl_runs_a_script_the_same() {
    Program::new("perl", "perl")
        .arguments(["tour.pl", if soak() { "2000000" } else { "60000" }])
        .file("tour.pl", include_str!("scripts/tour.pl"))
        .variable("PERL_HASH_SEED", "0")
        .prints("children: 4")
        .same_under_masu();
}

#[test]
fn perl_clones_its_interpreter_into_threads_the_same() {
    Program::new("perl", "perl")
        .arguments(["threads.pl", if soak() { "200" } else { "12" }])
        .file("threads.pl", include_str!("scripts/threads.pl"))
        .variable("PERL_HASH_SEED", "0")
        .prints("total: ")
        .same_under_masu();
}

/// Its modules are opened with `RTLD_DEEPBIND`: under another preloaded malloc it ends at its start.
#[test]
fn php_parses_and_writes_the_same() {
    Program::new("php", "php-cli")
        .arguments(["tour.php", if soak() { "2000" } else { "60" }])
        .file("tour.php", include_str!("scripts/tour.php"))
        .prints("documents: ")
        .same_under_masu();
}

#[test]
fn node_runs_workers_the_same() {
    Program::new("node", "nodejs")
        .arguments(["workers.js", if soak() { "40" } else { "4" }])
        .file("workers.js", include_str!("scripts/workers.js"))
        .prints("workers are done")
        .same_under_masu();
}

#[test]
fn node_tests_pass_the_same() {
    Program::new("node", "nodejs")
        .arguments(["--test", "--test-reporter=./names.mjs", "buffers.test.js"])
        .file("buffers.test.js", include_str!("scripts/buffers.test.js"))
        .file("names.mjs", include_str!("scripts/names.mjs"))
        .prints("pass: a buffer grows and keeps its contents")
        .same_under_masu();
}
