//! Other forms of the library and of its programs: static, linked by the program, for musl, and under a
//! program with wrappers of its own.
//!
//! It relies on glibc's static library (part of Debian's libc6-dev) and, for musl, on `musl-gcc` and musl's own dynamic
//! linker (Debian's musl-tools); without those the tests report that they did nothing.

mod library;

use std::process::Command;

use library::{MUSL, musl_compiler, source, text};

const PLAIN: &str = "without_dynamic_linker.c";
const THROWS: &str = "static_throw.cpp";

/// Compiles a source of `tests/c` with `arguments` and checks that masu serves it.
fn is_served(name: &str, compiler: &str, kind: &str, arguments: &[&str]) {
    let source = source(name);
    let program = library::compile_with(compiler, &source, kind, arguments);
    let printed = library::printed(&library::success(&mut Command::new(program)));
    assert!(printed.contains("masu: live "), "not served by masu: {printed}");
}

#[test]
fn static_library_in_a_dynamic_program() {
    is_served(PLAIN, "cc", "archive", &[library::archive()]);
}

#[test]
fn static_library_in_a_static_program() {
    is_served(PLAIN, "cc", "static", &["-static", library::archive()]);
}

#[test]
fn static_cxx_program_throws_if_linked_with_the_unwinder() {
    let arguments = ["-static", library::archive(), "-Wl,-u,_ZSt17__throw_bad_allocv"];
    is_served(THROWS, "c++", "static", &arguments);
}

#[test]
fn cxx_program_with_the_archive_throws() {
    is_served(THROWS, "c++", "archive", &[library::archive()]);
}

#[test]
fn shared_library_that_the_program_asks_for() {
    is_served(PLAIN, "cc", "linked", &library::linked_by_name());
}

#[test]
fn library_does_not_call_a_program_s_wrappers() {
    let program = library::compile("wrapper.c", "program", &["-rdynamic"]);
    library::succeeds(&mut library::preloaded(program));
}

#[test]
fn musl_static_library() {
    let Some(compiler) = musl_compiler() else { return };
    let archive = library::build("libmasu.a", &["--target", MUSL], &[]);
    is_served(PLAIN, compiler, "musl-static", &["-static", text(&archive)]);
}

#[test]
fn musl_shared_library_keeps_the_rules_of_c() {
    let Some(compiler) = musl_compiler() else { return };
    let built = library::musl_shared();
    let program = library::compile_with(compiler, &source("semantics.c"), "musl", &[text(&built)]);
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", built.parent().expect("a file is in a folder"));
    library::succeeds(command.env("LD_PRELOAD", &built).arg("all"));
}
