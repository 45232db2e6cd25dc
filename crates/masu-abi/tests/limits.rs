//! Memory as the system sees it: locked, limited, purged, and reported by the library.
//!
//! It relies on `tests/c/limits.c`, one program with a group of checks for each test here.

mod library;

use std::path::{Path, PathBuf};
use std::process::Command;

use library::{groups, program};

program!("limits.c", &[]);

groups! { program();
    limit_that_comes_and_goes
    most_of_a_limit_can_be_used
    little_more_than_the_program_is_enough
    addresses_come_and_go_under_a_limit
    a_foreign_block_between_ours_is_not_ours
    what_is_kept_is_given_up_first
    what_is_kept_makes_room_for_a_longer_block
    addresses_of_small_blocks_are_one_piece_again
    every_arena_gives_its_end_back
    freed_memory_goes_back
    numbers_follow_the_program
}

#[test]
fn what_options_keep_makes_room_for_a_longer_block() {
    for retain in [Some("4G"), None] {
        let mut command = library::preloaded(program());
        command.arg("what_options_keep_makes_room_for_a_longer_block");
        library::succeeds(command.envs(retain.map(|bytes| ("MASU_RETAIN", bytes))));
    }
}

/// The program's exit code if it may not lock memory.
const NOT_PERMITTED: Option<i32> = Some(77);

fn locks_first() -> PathBuf {
    library::compile("limits.c", "lock-first", &["-DLOCK_FIRST"])
}

/// Memory is locked while the program runs under this library.
fn locked_memory(library: &Path, program: &Path) {
    let mut command = Command::new(program);
    let output = command.arg("locked_memory").env("LD_PRELOAD", library).output();
    let output = output.expect("it starts");
    if output.status.code() == NOT_PERMITTED {
        eprintln!("not tested: locking memory is not permitted here (ulimit -l)");
        return;
    }
    assert!(output.status.success(), "{}\n{}", output.status, library::printed(&output));
}

#[test]
fn memory_locked_after_the_first_malloc() {
    locked_memory(library::path(), program());
}

#[test]
fn memory_locked_before_the_first_malloc() {
    locked_memory(library::path(), &locks_first());
}

/// Freed blocks are closed and purged there, which the kernel refuses for locked memory.
#[test]
fn memory_locked_in_the_hardened_build() {
    locked_memory(library::hardened(), program());
    locked_memory(library::hardened(), &locks_first());
}

/// Runs the program as a user who may lock 8 MiB, after these commands of the shell.
fn locked_memory_of_a_user(program: &Path, before: &str) {
    const USER: &str =
        "setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all";
    let is_root = library::succeeds(Command::new("id").arg("-u")).trim() == "0";
    let user = if is_root { USER } else { "" };
    let script = |command: &str| format!("ulimit -l 8192 && {before} exec {user} {command}");
    let run = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &script(command)]).arg(library::path()).arg(program);
        shell.output().expect("there is a shell")
    };
    if !run("test -r $0 -a -x $1").status.success() {
        eprintln!("not tested: users may not read these files, or there is no setpriv");
        return;
    }
    let output = run("env LD_PRELOAD=$0 $1 locked_memory_of_a_user");
    assert!(output.status.success(), "{}\n{}", output.status, library::printed(&output));
}

#[test]
fn a_user_locks_memory_under_a_limit_on_addresses() {
    locked_memory_of_a_user(program(), "ulimit -v 131072 &&");
}

#[test]
fn a_user_locks_memory_before_the_first_malloc() {
    locked_memory_of_a_user(&locks_first(), "");
}

#[test]
fn up_to_the_limit_of_addresses_and_back() {
    let mut command = library::limited("ulimit -v 262144", program());
    library::succeeds(command.arg("up_to_the_limit"));
}

#[test]
fn reports_are_printed() {
    let mut command = library::preloaded(program());
    let printed = library::printed(&library::success(command.arg("reports_are_printed")));
    assert!(printed.contains("masu: live "), "malloc_stats printed nothing: {printed}");
}
