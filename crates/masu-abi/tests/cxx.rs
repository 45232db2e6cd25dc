//! The operators `new` and `delete` in C++: handlers, exceptions, late destructors.
//!
//! It relies on `tests/c/cxx.cpp`, one program with a group of checks for each test here, and on
//! `host.c` and `plugin.cpp` for a C++ runtime that comes late or never.

mod library;

use std::path::PathBuf;

use library::{groups, program};

// The first version of C++ with aligned `new`.
program!("cxx.cpp", &["-std=c++17", "-fsized-deallocation", "-Wno-mismatched-new-delete"]);

groups! { program();
    all_operators
    sized_delete_does_not_believe_the_size
    new_throws_or_gives_null
    handler_runs_until_it_is_gone
    handler_that_finds_memory
    handler_that_throws
    exceptions_through_many_frames
    threads_that_free_late
    destructors_after_main
}

fn host() -> PathBuf {
    // The program calls the operators by name, as only a C++ library would.
    library::compile("host.c", "program", &library::linked())
}

#[test]
fn runtime_of_a_plug_in_throws_too() {
    let plugin = library::compile("plugin.cpp", "so", &["-shared", "-fPIC"]);
    library::succeeds(library::preloaded(host()).arg(plugin));
}

#[test]
fn without_a_runtime_nothrow_gives_null_and_new_ends_with_a_message() {
    let output = library::preloaded(host()).output().expect("the program starts");
    let printed = library::printed(&output);
    assert!(!output.status.success(), "{printed}");
    assert!(printed.contains("masu: out of memory in operator new"), "{printed}");
}
