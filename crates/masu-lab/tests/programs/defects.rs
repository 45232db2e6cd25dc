//! Defects that the matrix must find: each way in which a program can differ, and each way in which a
//! preloaded library does not serve it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::program::Program;

fn script(script: &str) -> Program {
    Program::script(script, "").prints("begun")
}

#[test]
#[should_panic(expected = "apt-get install no-such-package")]
fn a_missing_program_is_named_with_its_package() {
    Program::new("no-such-program", "no-such-package").same_under_masu();
}

#[test]
#[should_panic(expected = "stdout differs in line 2")]
fn another_output_is_found() {
    script(r#"echo begun; echo "${LD_PRELOAD:-none}""#).same_under_masu();
}

#[test]
#[should_panic(expected = "returned 3 where it returned 0 without")]
fn another_exit_status_is_found() {
    script(r#"echo begun; [[ -z "${LD_PRELOAD:-}" ]] || exit 3"#).same_under_masu();
}

#[test]
#[should_panic(expected = "SIGSEGV")]
fn a_crash_is_found() {
    script(r#"echo begun; [[ -z "${LD_PRELOAD:-}" ]] || kill -SEGV $$"#).same_under_masu();
}

#[test]
#[should_panic(expected = "work/file differ")]
fn other_file_contents_are_found() {
    script(r#"echo begun; echo "${LD_PRELOAD:+y}" > file"#).same_under_masu();
}

#[test]
#[should_panic(expected = "/work: file")]
fn another_file_is_found() {
    script(r#"echo begun; [[ -z "${LD_PRELOAD:-}" ]] || touch file"#).same_under_masu();
}

#[test]
#[should_panic(expected = "TimedOut")]
fn a_program_without_end_is_ended() {
    script(r#"echo begun; [[ -z "${LD_PRELOAD:-}" ]] || sleep 10000"#)
        .limit(Duration::from_secs(15))
        .same_under_masu();
}

#[test]
#[should_panic(expected = "libmasu was not at work in sort: ")]
fn a_child_that_drops_the_library_is_found() {
    script("echo begun; env -u LD_PRELOAD sort /dev/null").same_under_masu();
}

#[test]
#[should_panic(expected = "program: it is linked statically")]
fn a_static_program_is_found() {
    script("echo begun; ./program")
        .prepare(|folder| compile(folder, "int main(void) { return !malloc(9); }", "-static"))
        .same_under_masu();
}

#[test]
#[should_panic(expected = "program: it defines `malloc` itself")]
fn a_program_that_brings_its_own_malloc_is_found() {
    let own = "
        static char heap[100000], *next = heap;
        void *malloc(size_t n) { return (next += n + 64) - n - n % 16; }
        void free(void *block) { (void)block; }
        void *calloc(size_t n, size_t m) { return malloc(n * m); }
        void *realloc(void *block, size_t n) { (void)block; return malloc(n); }
        int main(void) { return !malloc(9); }";
    script("echo begun; ./program")
        .prepare(|folder| compile(folder, own, "-rdynamic"))
        .same_under_masu();
}

/// Makes the executable `program` in `folder`.
fn compile(folder: &Path, source: &str, option: &str) {
    let file = folder.join("program.c");
    std::fs::write(&file, format!("#include <stdlib.h>\n{source}\n")).expect("write a source");
    let compiled = Command::new("gcc")
        .args(["-O0", "-fno-builtin", option, "-o"])
        .args([&folder.join("program"), &file])
        .status()
        .expect("run gcc: apt-get install gcc libc6-dev");
    assert!(compiled.success(), "the program does not compile");
}
