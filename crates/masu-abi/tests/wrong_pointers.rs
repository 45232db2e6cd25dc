//! `free`, `realloc` and `malloc_usable_size` of wrong pointers (into the middle of a block, into free memory, into
//! metadata) end the program at the call, with masu's message.
//!
//! It relies on `tests/c/wrong_pointers.c`, a program with one wrong call for each test here. glibc's `free` would
//! accept each pointer, from the data around it. Each test runs twice: with the class map, and with too few addresses
//! for a class map.

mod library;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use library::program;

program!("wrong_pointers.c", &library::linked());

fn commands() -> [Command; 2] {
    // There is room for blocks over 1 GiB, and none for the class map.
    [library::preloaded(program()), library::limited("ulimit -v 16000000", program())]
}

/// The message of each wrong call.
macro_rules! ended {
    ($($group:ident: $said:literal)*) => {$(
        #[test]
        fn $group() {
            const SIGABRT: i32 = 6;
            for mut command in commands() {
                let output = command.arg(stringify!($group)).output().expect("the program starts");
                let printed = library::printed(&output);
                assert!(output.status.signal() == Some(SIGABRT), "{}\n{printed}", output.status);
                assert!(printed.starts_with("masu: "), "{printed}");
                assert!(printed.contains($said), "{printed}");
            }
        }
    )*};
}

ended! {
    free_inside_a_large_block: "middle of a block"
    free_far_inside_a_large_block: "middle of a block"
    realloc_inside_a_large_block: "middle of a block"
    realloc_far_inside_a_large_block: "middle of a block"
    grow_inside_a_large_block: "middle of a block"
    size_inside_a_large_block: "middle of a block"
    size_far_inside_a_large_block: "middle of a block"
    free_a_free_large_block: "freed twice"
    realloc_a_free_large_block: "after it was freed"
    size_of_a_free_large_block: "after it was freed"
    free_a_merged_large_block: "freed twice"
    free_a_parked_block: "freed twice"
    realloc_a_parked_block: "after it was freed"
    shrink_a_parked_block: "after it was freed"
    size_of_a_parked_block: "after it was freed"
    free_inside_a_parked_block: "freed twice"
    free_after_realloc_moved_it: "freed twice"
    free_inside_a_huge_block: "middle of a block"
    free_far_inside_a_huge_block: "middle of a block"
    free_beyond_two_gib_of_a_huge_block: "middle of a block"
    realloc_far_inside_a_huge_block: "middle of a block"
    size_far_inside_a_huge_block: "middle of a block"
    free_a_block_of_a_page_that_is_gone: "freed twice"
    free_of_memory_of_the_allocators_own: "never handed out"
    free_of_memory_never_handed_out: "never handed out"
    realloc_inside_a_small_block: "middle of a block"
    realloc_of_a_misaligned_pointer: "middle of a block"
    size_inside_a_small_block: "middle of a block"
    free_small_blocks_twice_in_a_row: "freed twice"
    free_one_of_many_twice_in_a_row: "freed twice"
    free_in_order_what_is_free: "freed twice"
    free_in_reverse_what_is_free: "freed twice"
    free_misaligned_pointers: "middle of a block"
    free_inside_small_blocks: "middle of a block"
    free_a_middle_block_twice: "freed twice"
    free_inside_a_large_block_of_a_heap: "middle of a block"
    free_far_inside_a_large_block_of_a_heap: "middle of a block"
    realloc_far_inside_a_large_block_of_a_heap: "middle of a block"
    free_a_free_large_block_of_a_heap: "freed twice"
    free_a_block_of_a_heap_that_is_gone: "freed twice"
    realloc_a_block_of_a_heap_that_is_gone: "after it was freed"
}

#[test]
fn another_malloc_may_reuse_the_addresses_of_an_unmapped_arena() {
    for mut command in commands() {
        command.arg("another_malloc_may_have_the_addresses_of_an_arena_that_is_gone");
        library::success(&mut command);
    }
}
