//! First-class heaps in C: `tests/c/heap.c` has a group of checks for each test here. The tests also cover C++, whose
//! `delete` frees a heap's block.

mod library;

use std::fs;
use std::path::Path;

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

#[test]
fn delete_frees_a_heap_s_block() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("heap-delete.cpp");
    let text = "#include <masu.h>\n#include <new>\n\
        int main() {\n\
            masu_heap_t *heap = masu_heap_new();\n\
            for (int i = 0; i < 1000; i++) {\n\
                int *number = new (masu_heap_malloc(heap, sizeof(int))) int(i);\n\
                delete number;\n\
                char *many = new (masu_heap_malloc(heap, 9000)) char[9000];\n\
                delete[] many;\n\
            }\n\
            struct masu_heap_statistics counts;\n\
            masu_heap_statistics(heap, &counts, sizeof counts);\n\
            masu_heap_destroy(heap);\n\
            return counts.live_blocks != 0;\n\
        }\n";
    fs::write(&source, text).expect("the target folder is writable");
    // GCC warns of blocks from one function freed by another, which this tests.
    let arguments = [&library::linked()[..], &["-Wno-mismatched-new-delete"]].concat();
    let program = library::compile_with("c++", &source, "heaps", &arguments);
    library::succeeds(&mut library::preloaded(program));
}
