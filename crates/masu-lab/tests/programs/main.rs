//! The matrix of real programs: each gives the same exit status, output and files with
//! `libmasu.so` preloaded as without, and the library is shown to be at work in it.
//!
//! Relies on the lab, which runs each program, traces it, and says what the library served, and on the Debian packages
//! that each test names; a missing program fails its test. One test of one expression adds a program: see `shell.rs`.
//! `MASU_SOAK=1` makes the inputs larger and runs tests of minutes.
//!
//! The hard part is the proof (`masu_lab::verify`): a mapped library and a bound symbol prove little, so every executable
//! of every process tree that asks for memory must have *entered* one of the library's allocating functions, or be
//! excused by name and reason.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod archives;
mod compilers;
mod defects;
mod huge_pages;
mod interpreters;
mod jvm;
#[path = "../../../masu-abi/tests/library/mod.rs"]
mod library;
mod program;
mod python;
mod repositories;
mod rust;
mod shell;
mod text;
mod valgrind;

/// Whether this is a long run.
fn soak() -> bool {
    std::env::var_os("MASU_SOAK").is_some_and(|value| value == "1")
}
