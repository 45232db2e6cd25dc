//! What is wrong ends the program with a message that says so: each in a child of its own.

use std::process::Command;

use masu::{Heap, Masu, c};

use crate::{bytes, filled};

/// Runs the test `name` of this program in a child that is to be wrong; what it wrote last.
fn complaint_of(name: &str) -> String {
    let program = std::env::current_exe().expect("a test is a program");
    let output = Command::new(program)
        .args(["--exact", name, "--ignored", "--nocapture"])
        .output()
        .expect("a program that runs starts");
    assert!(!output.status.success(), "{name} ended well");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Empties what this thread keeps, which is where blocks are looked at.
fn settle() {
    c::trim(0);
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn freed_twice() {
    let heap = Heap::new();
    let block = filled(&heap, 100, 1);
    for _ in 0..2 {
        // SAFETY: None: the second time is what is wrong.
        unsafe { heap.dealloc(block, bytes(100)) };
    }
    settle();
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn freed_twice_large() {
    let heap = Heap::new();
    let block = filled(&heap, 1 << 20, 1);
    for _ in 0..2 {
        // SAFETY: None, as above.
        unsafe { heap.dealloc(block, bytes(1 << 20)) };
    }
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn freed_in_the_middle() {
    let heap = Heap::new();
    let block = filled(&heap, 100, 1);
    // SAFETY: None: the pointer is what is wrong.
    unsafe { c::free(block.as_ptr().add(16)) };
    settle();
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn freed_in_the_middle_of_a_page() {
    let heap = Heap::new();
    let block = filled(&heap, 5_000, 1);
    // SAFETY: None, as above.
    unsafe { c::free(block.as_ptr().add(64)) };
    settle();
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn freed_behind_the_last_block() {
    let heap = Heap::new();
    // Of 1 KiB three blocks of 320 bytes leave room for less than one more.
    let block = (0..3).map(|_| filled(&heap, 300, 1)).max().expect("three blocks");
    // SAFETY: None, as above.
    unsafe { c::free(block.as_ptr().add(320)) };
    settle();
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn resized_in_the_middle() {
    let heap = Heap::new();
    let block = filled(&heap, 100, 1);
    // SAFETY: None, as above.
    let _ = unsafe { c::realloc(block.as_ptr().add(16), 1_000) };
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn freed_twice_from_a_page() {
    let heap = Heap::new();
    let block = filled(&heap, 5_000, 1);
    for _ in 0..2 {
        // SAFETY: None: the second time is what is wrong.
        unsafe { c::free(block.as_ptr()) };
    }
    settle();
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn freed_to_another_heap() {
    let (heap, other) = (Heap::new(), Heap::new());
    let block = filled(&heap, 100, 1);
    filled(&other, 100, 1);
    // SAFETY: None: the heap is what is wrong.
    unsafe { other.dealloc(block, bytes(100)) };
    settle();
}

#[test]
#[ignore = "is wrong; run by the test below"]
fn freed_to_the_global_allocator() {
    use std::alloc::GlobalAlloc;
    let heap = Heap::new();
    let block = filled(&heap, 100, 1);
    // SAFETY: None: the allocator is what is wrong.
    unsafe { Masu::new().dealloc(block.as_ptr(), bytes(100)) };
    settle();
}

#[test]
fn misuse_ends_the_program_and_is_named() {
    for (name, complaint) in [
        ("freed_twice", "freed twice"),
        ("freed_twice_large", "freed twice"),
        ("freed_twice_from_a_page", "freed twice"),
        ("freed_in_the_middle", "middle of a block"),
        ("freed_in_the_middle_of_a_page", "middle of a block"),
        ("freed_behind_the_last_block", "middle of a block"),
        ("resized_in_the_middle", "middle of a block"),
        ("freed_to_another_heap", "another heap or to none"),
        ("freed_to_the_global_allocator", "another heap or to none"),
    ] {
        let said = complaint_of(&format!("misuse::{name}"));
        assert!(said.contains(complaint), "{name}: {said}");
    }
}
