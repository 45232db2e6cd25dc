//! Statistics of `libmasu.so`: the C functions, the text at the end, and the page for other processes,
//! through a process's whole life.
//!
//! It relies on `tests/c/statistics.c`; `life.rs` also runs its checks with a page.
//! `crates/masu/tests/statistics.rs` tests the numbers.

mod library;

use std::process::{Command, Stdio};

use library::{groups, program};

program!("statistics.c", &library::linked_by_name());

groups! { program();
    numbers_agree_with_what_the_program_does
    text_is_cut_where_there_is_no_room_and_errors_are_results
}

/// Runs a group under the preloaded library with this value of `MASU_STATISTICS_PAGE`.
fn with_page(group: &str, value: &str) {
    library::succeeds(library::preloaded(program()).arg(group).env("MASU_STATISTICS_PAGE", value));
}

#[test]
fn the_page_is_a_process_s_own_through_forks_threads_and_closed_descriptors() {
    with_page("page_through_life", "1");
}

#[test]
fn the_page_shows_at_least_half_of_a_sudden_allocation() {
    with_page("burst", "1");
}

#[test]
fn there_is_no_page_unless_it_is_wanted() {
    with_page("no_page", "0");
    let mut command = library::preloaded(program());
    library::succeeds(command.arg("no_page").env_remove("MASU_STATISTICS_PAGE"));
}

#[test]
fn a_limit_on_file_sizes_leaves_a_program_without_a_page_but_alive() {
    let mut shell = library::limited("ulimit -f 0", program());
    library::succeeds(shell.arg("no_page").env("MASU_STATISTICS_PAGE", "1"));
}

#[test]
fn statistics_are_written_at_the_end_where_that_is_wanted() {
    let said = |value| {
        let mut command = library::preloaded("/bin/true");
        let output = library::success(command.env("MASU_STATISTICS_AT_EXIT", value));
        assert!(output.stdout.is_empty());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said("1").contains("live_bytes"), "{}", said("1"));
    assert_eq!(said("0"), "");
    // A closed standard error is no failure.
    let mut command = library::preloaded("bash");
    command.args(["-c", "exec 2>&-; :"]).env("MASU_STATISTICS_AT_EXIT", "1").stdin(Stdio::null());
    library::succeeds(&mut command);
}

#[test]
fn a_program_with_more_rights_than_its_user_has_no_page() {
    let program = library::compile("paged.c", "secure", &["-static", library::archive()]);
    let said = || library::succeeds(Command::new(&program).env("MASU_STATISTICS_PAGE", "1"));
    assert_eq!(said(), "page\n", "an ordinary program has one");
    if library::gives_rights(&program) {
        assert_eq!(said(), "none\n");
    }
}
