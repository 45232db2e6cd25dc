//! GNU's compilers: the driver, the compilers proper, the assembler, the linker, on real files.

use crate::program::Program;
use crate::soak;

/// The headers of Perl's interpreter, with all their inline functions: real C, and much of it.
pub(crate) fn compiling() -> Program {
    let script = r"
        core=$(perl -MConfig -e 'print $Config{archlibexp}')/CORE
        gcc -O2 -g -Wall -c embed.c -I$core $(perl -MConfig -e 'print $Config{ccflags}')";
    Program::script(script, "")
        .file("embed.c", include_str!("scripts/embed.c"))
        .produces("embed.o")
        .runs("gcc", "gcc")
        .runs("perl", "perl")
        .serves("cc1")
        .serves("as")
}

#[test]
fn gcc_makes_the_same_object_file() {
    compiling().same_under_masu();
}

#[test]
fn gcc_links_with_whole_program_optimisation_the_same() {
    Program::new("gcc", "gcc")
        .arguments(["-O2", "-g", "-flto=2", "-ffat-lto-objects", "-save-temps", "-frandom-seed=1"])
        .arguments(["one.c", "two.c", "-o", "program", "-lm"])
        .file("one.c", include_str!("scripts/one.c"))
        .file("two.c", include_str!("scripts/two.c"))
        .produces("program")
        .serves("lto1")
        .serves("ld")
        .same_under_masu();
}

#[test]
fn gxx_makes_the_same_object_file() {
    // Whole classes of the standard library, instantiated.
    Program::new("g++", "g++")
        .arguments(["-std=c++17", "-g", if soak() { "-O3" } else { "-O1" }, "-c", "instances.cc"])
        .file("instances.cc", include_str!("scripts/instances.cc"))
        .produces("instances.o")
        .serves("cc1plus")
        .serves("as")
        .same_under_masu();
}

#[test]
fn gxx_builds_a_program_that_runs_the_same() {
    Program::new("bash", "bash")
        .arguments([
            "-c",
            "g++ -std=c++20 -O1 -pthread tour.cc -o tour && ./tour $0",
            if soak() { "100" } else { "8" },
        ])
        .file("tour.cc", include_str!("scripts/tour.cc"))
        .produces("tour")
        .prints("caught 200 of 200")
        .runs("g++", "g++")
        .serves("tour")
        .same_under_masu();
}
