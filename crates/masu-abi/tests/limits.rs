//! Memory as the system sees it: locked, limited, given back, and what the library reports of it.
//!
//! It relies on `tests/c/limits.c`, one program with a group of checks for each test here.

mod library;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| library::compile("limits.c", "program", &[]))
}

fn run(group: &str) -> Output {
    library::preloaded(program()).arg(group).output().expect("the program starts")
}

/// One test for each group of the program that only has to succeed.
macro_rules! groups {
    ($($group:ident)*) => {$(
        #[test]
        fn $group() {
            let output = run(stringify!($group));
            assert!(output.status.success(), "{}\n{}", output.status, library::printed(&output));
        }
    )*};
}

groups! {
    limit_that_comes_and_goes
    most_of_a_limit_can_be_used
    little_more_than_the_program_is_enough
    addresses_come_and_go_under_a_limit
    freed_memory_goes_back
    numbers_follow_the_program
    settings_are_accepted
}

/// The program's way to say that it may not lock memory here.
const NOT_PERMITTED: Option<i32> = Some(77);

fn locked_memory(program: &Path) {
    let output = library::preloaded(program).arg("locked_memory").output().expect("it starts");
    if output.status.code() == NOT_PERMITTED {
        eprintln!("not tested: locking memory is not permitted here (ulimit -l)");
        return;
    }
    assert!(output.status.success(), "{}\n{}", output.status, library::printed(&output));
}

#[test]
fn memory_locked_after_the_first_malloc() {
    locked_memory(program());
}

#[test]
fn memory_locked_before_the_first_malloc() {
    locked_memory(&library::compile("limits.c", "lock-first", &["-DLOCK_FIRST"]));
}

#[test]
fn up_to_the_limit_of_addresses_and_back() {
    // The limit must hold before the program is loaded, as it would for any user.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 262144; LD_PRELOAD=$0 exec \"$1\" up_to_the_limit"]);
    library::succeeds(command.arg(library::path()).arg(program()));
}

#[test]
fn reports_are_printed() {
    let output = run("reports_are_printed");
    let printed = library::printed(&output);
    assert!(output.status.success(), "{}\n{printed}", output.status);
    assert!(printed.contains("masu: live "), "malloc_stats printed nothing: {printed}");
}
