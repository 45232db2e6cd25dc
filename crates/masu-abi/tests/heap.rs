//! First-class heaps in C: `tests/c/heap.c` has a group of checks for each test here.

mod library;

use library::{groups, program};

program!("heap.c", &library::linked());

groups! { program();
    plain_free
    rules
    destroy_returns_memory
    threads
    fork_keeps_heaps
    totals
    made_of_what_is_kept
}

/// With limited addresses there is no class map, and frees look blocks up in their arena.
#[test]
fn heaps_work_without_a_class_map() {
    for group in ["plain_free", "rules", "threads"] {
        library::succeeds(library::limited("ulimit -v 1000000", program()).arg(group));
    }
}

#[test]
fn use_of_a_destroyed_heap_is_reported() {
    let output = library::preloaded(program()).arg("used_when_gone").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("after it was destroyed"), "{said}");
}
