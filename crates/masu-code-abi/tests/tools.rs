//! The view of gdb and perf on code that a program in C loaded.
#![cfg(target_arch = "x86_64")]

// The arena by its own name, which this package's library has, too.
extern crate code_arena as masu_code;

#[path = "../../masu-code/tests/fixture/mod.rs"]
mod fixture;
mod library;

use std::process::Command;

use fixture::{CC, Workshop};

/// A program on the C interface that loads an object and calls `work` in it.
fn program(workshop: &Workshop, tools: &str) -> String {
    let folder = library::folder().display().to_string();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/loads.c");
    let (search, run) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    let tools = format!("-DTOOLS={tools}");
    let arguments = ["-g", include, &tools, source, "-o", "program", &search, "-lmasu_code", &run];
    workshop.run(CC, &arguments);
    workshop.path("program").display().to_string()
}

const WORK: &str = include_str!("c/work.c");

fn gdb(workshop: &Workshop, commands: &[&str], program: &str) -> String {
    let mut arguments = vec!["-nx", "-batch", "-iex", "set debuginfod enabled off"];
    for command in commands {
        arguments.extend(["-ex", command]);
    }
    arguments.extend(["--args", program]);
    workshop.run("gdb", &arguments)
}

#[test]
fn gdb_stops_in_a_loaded_function_by_name_and_by_line_and_prints_its_source() {
    let workshop = Workshop::open();
    workshop.compile(CC, "work.c", WORK, &["-O0", "-g", "-fPIC"]);
    let program = program(&workshop, "MASU_CODE_DEBUGGER");
    let commands = [
        "set breakpoint pending on",
        "break step",
        "run work.c.o",
        "backtrace",
        "print i",
        "delete",
        "break work.c:9",
        "continue",
        "info line",
        "print total",
        "continue",
    ];
    let said = gdb(&workshop, &commands, &program);
    for expected in [
        "step (i=0) at work.c:3",
        "total += i ^ 3;",
        " in work (n=3) at work.c:8",
        " in main (",
        "$1 = 0",
        "work (n=3) at work.c:9",
        "return total;",
        "$2 = ",
    ] {
        assert!(said.contains(expected), "gdb did not say {expected:?}:\n{said}");
    }
}

#[test]
fn gdb_knows_functions_and_frames_of_an_object_without_lines() {
    let workshop = Workshop::open();
    // Without frame pointers and prologues only the unwind table leads to the callers.
    let flags = ["-O2", "-fno-inline", "-fomit-frame-pointer", "-fPIC"];
    workshop.compile(CC, "work.c", WORK, &flags);
    let program = program(&workshop, "MASU_CODE_DEBUGGER");
    let commands = [
        "set breakpoint pending on",
        "break step",
        "run work.c.o",
        "backtrace",
        "delete",
        "x/i $pc",
        "finish",
        "print (long) total",
        "info symbol &total",
        "continue",
    ];
    let said = gdb(&workshop, &commands, &program);
    for expected in
        [" in step ()", " in work ()", " in main (", "<step", "$1 = 3", "total in section .bss"]
    {
        assert!(said.contains(expected), "gdb did not say {expected:?}:\n{said}");
    }
}

#[test]
fn perf_report_names_loaded_functions() {
    let workshop = Workshop::open();
    workshop.compile(CC, "work.c", WORK, &["-O1", "-fno-inline", "-fPIC"]);
    // This runs where the kernel lets this user measure.
    let program = program(&workshop, "MASU_CODE_PERF_MAP");
    let record =
        ["record", "-q", "-e", "cpu-clock", "-o", "perf.data", &program, "work.c.o", "long"];
    let recorded = Command::new("perf")
        .args(record)
        .current_dir(workshop.path(""))
        .env_remove("LD_LIBRARY_PATH")
        .output();
    match recorded {
        Ok(output) if output.status.success() || workshop.path("perf.data").exists() => {
            let report =
                workshop.run("perf", &["report", "-i", "perf.data", "--stdio", "--sort", "symbol"]);
            assert!(report.contains("] step") || report.contains("] work"), "{report}");
        }
        other => println!("skipped: perf cannot measure here: {other:?}"),
    }
}
