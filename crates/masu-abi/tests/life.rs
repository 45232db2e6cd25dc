//! A process's life under the library: its first allocation, fork, threads, libraries loaded and
//! unloaded, pointers of other mallocs.
//!
//! It relies on `tests/c/life.c`, `interrupted.c` and `forks.c`, programs with a group of checks for each test here,
//! and on `guest.c`, a library that the first program loads. With `MASU_SOAK` set, a million threads are started and
//! ended one after another instead of some thousands.

mod library;

use library::{groups, once, program};

program!("life.c", &[]);

once! { fn guest() => library::compile("guest.c", "so", &["-shared", "-fPIC"]) }

/// One test for each group, without a statistics page and with one.
macro_rules! paged_or_not {
    ($($group:ident)*) => {$(
        #[test]
        fn $group() {
            for page in ["0", "1"] {
                let mut command = library::preloaded(program());
                command.arg(stringify!($group)).arg(guest()).env("MASU_STATISTICS_PAGE", page);
                library::succeeds(&mut command);
            }
        }
    )*};
}

paged_or_not! {
    first_malloc_before_constructors
    fork_while_threads_allocate
    fork_beside_a_thread_that_trims
    fork_by_a_thread_that_never_allocated
    blocks_live_on_in_the_child
    other_forks
    raw_fork_while_threads_allocate
    threads_one_after_another
    threads_in_waves
    threads_with_the_smallest_stack
    threads_that_are_cancelled
    libraries_that_allocated_are_unloaded
    the_library_stays
}

#[cfg(target_env = "gnu")]
paged_or_not! { a_deeply_bound_library_has_our_malloc }

#[test]
#[cfg(target_env = "gnu")]
fn a_library_is_found_along_the_path_of_who_opens_it() {
    let folder = guest().parent().expect("it lies in a folder").display().to_string();
    let path = format!("-Wl,-rpath,{folder}");
    let program = library::compile("life.c", "with-a-path", &[&path]);
    let mut command = library::preloaded(program);
    command.arg("a_library_is_found_along_the_path_of_who_opens_it");
    library::succeeds(command.arg(guest().file_name().expect("it has a name")));
}

/// Linked as pkg-config says.
#[test]
fn a_library_with_the_archive_stays() {
    let package = include_str!("../../../packaging/pkg-config/masu-static.pc");
    let flags = package.split_whitespace().filter(|word| word.starts_with("-Wl,"));
    let arguments: Vec<_> =
        ["-shared", "-fPIC", library::archive()].into_iter().chain(flags).collect();
    let guest = library::compile("guest.c", "with-the-archive.so", &arguments);
    library::succeeds(
        library::preloaded(program()).arg("a_library_with_the_archive_stays").arg(guest),
    );
}

#[test]
fn foreign_pointers_go_to_their_malloc() {
    let mut command = library::preloaded(program());
    command.env("MASU_DEEPBIND", "1").arg("foreign_pointers_go_to_their_malloc").arg(guest());
    library::succeeds(&mut command);
}

groups! { library::compile("interrupted.c", "program", &[]);
    signals_rain_while_threads_allocate
    spawned_while_threads_allocate
    exec_while_threads_allocate
    rights_are_dropped_while_threads_allocate
    frees_after_main
    keys_free_late
}

groups! { library::compile("forks.c", "program", &["-rdynamic"]);
    handlers_are_registered_before_the_first_malloc
    a_handler_forks_in_the_midst_of_malloc
    fork_while_streams_are_flushed
    handlers_fork_beside_threads_that_allocate
    a_search_is_interrupted_by_fork
}

#[test]
fn a_handler_forks_where_statistics_are_written() {
    let program = library::compile("forks.c", "program", &["-rdynamic"]);
    let mut command = library::preloaded(program);
    command.env("MASU_STATISTICS_PAGE", "1").arg("a_handler_forks_in_the_midst_of_malloc");
    library::succeeds(&mut command);
}

/// Callers are searched for on the stack of the thread that allocates.
#[test]
fn threads_with_the_smallest_stack_have_their_blocks_sampled_and_guarded() {
    let folder = tempfile::tempdir().expect("a folder");
    for (option, value) in [("MASU_PROFILE_INTERVAL", "1"), ("MASU_GUARD_RATE", "1")] {
        let mut command = library::preloaded(program());
        command.arg("threads_with_the_smallest_stack").env(option, value);
        library::succeeds(command.env("MASU_PROFILE", folder.path().join(option)));
    }
}

#[test]
fn threads_where_no_key_is_left() {
    let program = library::compile("life.c", "first-malloc-late", &["-DWITHOUT_EARLIEST"]);
    library::succeeds(library::preloaded(program).arg("threads_where_no_key_is_left"));
}

#[test]
fn fork_handlers_may_allocate() {
    // The guest comes with the program here, so that its constructor is among the first.
    let guest = library::text(guest());
    let arguments = ["-DWITHOUT_EARLIEST", "-Wl,--no-as-needed", guest];
    let program = library::compile("life.c", "with-guest", &arguments);
    // The path is an argument too, because a remote program gets the files that its command names.
    library::succeeds(library::preloaded(program).args(["fork_handlers_may_allocate", guest]));
}

#[test]
fn a_pointer_of_nobody_ends_the_program() {
    let mut command = library::preloaded(program());
    let output = command.arg("a_pointer_of_nobody_ends_the_program").output().expect("it starts");
    assert!(!output.status.success());
    // glibc's own message is accepted, because the pointer may be glibc's.
    let printed = library::printed(&output);
    assert!(printed.contains("invalid pointer") || printed.contains("masu:"), "{printed}");
}
