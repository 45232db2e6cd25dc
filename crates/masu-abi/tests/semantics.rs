//! The malloc family conforms to C23, POSIX and glibc's manual.
//!
//! It relies on `tests/c/semantics.c`, one program with a group of checks for each test here.

mod library;

use library::{groups, program};

groups! { program();
    zero_sizes
    every_size_is_aligned_and_writable
    impossible_sizes_fail
    a_size_that_overflows_is_a_lack_of_memory
    realloc_rules
    calloc_is_zero_after_dirty_reuse
    alignments
    bad_alignments
    whole_pages
    errno_is_kept_by_free
    sized_frees_do_not_believe_the_size
    second_names
    jemallocs_functions
}

// Some of the functions are newer or older than the C library.
program!("semantics.c", &library::linked());
