//! Heaps as the memory of C++ containers: `include/masu.hpp`.
//!
//! It relies on `tests/c/containers.cpp`, one program in C++17 with a group of checks for each test here.

mod library;

use library::{groups, program};

// GCC warns of blocks from one function freed by another, which one test does.
const OPTIONS: [&str; 3] = ["-std=c++17", "-Werror", "-Wno-mismatched-new-delete"];

program!("containers.cpp", &[&library::linked()[..], &OPTIONS].concat());

groups! { program();
    pmr_containers_live_in_the_heap
    allocator_serves_containers
    alignments_hold
    equal_where_the_heap_is_the_same
    exceptions_leave_the_heap_as_it_was
    all_blocks_end_with_the_heap
    any_thread_uses_any_heap
    delete_frees_a_heap_s_block
}
