//! A C program on `masu_code.h` and `libmasu_code.so`, and the header's declarations compared with the library's
//! exports.
#![cfg(target_arch = "x86_64")]

// The arena by its own name, which this package's library has, too.
extern crate code_arena as masu_code;

#[path = "../../masu-code/tests/fixture/mod.rs"]
mod fixture;
mod library;

use std::collections::BTreeSet;

use fixture::{CC, Workshop, text};

/// Two objects: when the second is freed, it calls the first by an address that it was given.
const PLUGINS: [&str; 2] = [
    "#include <stdio.h>\n\
     void said(const char *who) { printf(\"goodbye from %s\\n\", who); }\n\
     __attribute__((destructor)) static void leave(void) { said(\"the first\"); }\n",
    "static void (*said)(const char *);\n\
     void meet(void (*other)(const char *)) { said = other; }\n\
     __attribute__((destructor)) static void leave(void) { said(\"the second\"); }\n",
];

/// A program linked with the library, by its path.
fn link(workshop: &Workshop, name: &str, source: &str) -> String {
    let file = format!("{name}.c");
    std::fs::write(workshop.path(&file), source).unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let folder = library::folder().display().to_string();
    let (search, run) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    let warnings = ["-Wall", "-Wextra", "-Werror", "-std=c11"];
    let arguments = [include, &file, "-o", name, &search, "-lmasu_code", &run];
    workshop.run(CC, &[&warnings[..], &arguments].concat());
    workshop.path(name).display().to_string()
}

#[test]
fn a_c_program_loads_calls_swaps_and_unloads() {
    let workshop = Workshop::open();
    let one = "long from_program(long); long f(long x) { return from_program(x) * 2; }";
    workshop.compile(CC, "one.c", one, &["-O2", "-fPIC"]);
    workshop.compile(CC, "two.c", "long f(long x) { return x + 41; }", &["-O2", "-fPIC"]);
    workshop.compile(CC, "first.c", PLUGINS[0], &["-O2", "-fPIC"]);
    workshop.compile(CC, "second.c", PLUGINS[1], &["-O2", "-fPIC"]);
    let client = link(&workshop, "client", &text("client.c"));
    let said = workshop.run(&client, &["one.c.o", "two.c.o", "first.c.o", "second.c.o"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "f(1) = 2002, resolver asked 1");
    assert!(lines[1].starts_with("replace 0, unload 0, again -1: no object is loaded"), "{said}");
    assert_eq!(lines[2..4], ["collected 0, then 1", "f(1) = 42"]);
    assert!(lines[4].starts_with("bad: 0: bad: not a relocatable object"), "{said}");
    assert!(lines[5].contains("two: it defines no symbol `g`"), "{said}");
    assert!(lines[6].starts_with("twice -1: no object is loaded"), "{said}");
    let end = ["none 0, all 0", "goodbye from the second", "goodbye from the first", "collected 2"];
    assert_eq!(lines[7..], end);
}

#[test]
fn a_jit_in_c_copies_stencils_and_writes_constants_into_them() {
    let workshop = Workshop::open();
    let stencils = link(&workshop, "stencils", include_str!("../examples/stencils.c"));
    let said = workshop.run(&stencils, &["x 3 * 4 + 0x123456789a x - +", "10", "-1"]);
    let f = |x: i64| x * 3 + 4 + (0x12_3456_789a - x);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[1..], [format!("f(10) = {}", f(10)), format!("f(-1) = {}", f(-1))]);
    assert!(lines[0].ends_with("at a multiple of 16 bytes"), "{said}");
}

#[test]
fn threads_end_after_the_library_was_closed_and_may_call_it_until_then() {
    let workshop = Workshop::open();
    let text_of = "__thread long t = 5; long f(void) { return t; }";
    workshop.compile(CC, "variable.c", text_of, &["-O2", "-fPIC"]);
    std::fs::write(workshop.path("ends.c"), text("ends.c")).unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    workshop.run(CC, &[include, "ends.c", "-o", "ends", "-lpthread", "-ldl"]);
    let library = library::folder().join("libmasu_code.so").display().to_string();
    let program = workshop.path("ends").display().to_string();
    let said = workshop.run(&program, &[&library, "variable.c.o"]);
    assert_eq!(said, "at the end: 0\nf() = 5\nended\n");
}

#[test]
fn a_call_with_null_fails_and_says_so() {
    let workshop = Workshop::open();
    let program = link(&workshop, "nothing", &text("nothing.c"));
    let said = workshop.run(&program, &[]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..5], ["0", "0 0 -1", "0 0 -1", "-1 0 -1", "0 -1 -1"]);
    assert_eq!(lines[5], "the entry: it is NULL");
    assert_eq!((lines[6], lines[8]), ("0 -1", "-1"));
    assert!(lines[7].ends_with("NULL"), "{said}");
}

#[test]
fn the_header_and_the_library_have_the_same_functions() {
    let header = include_str!("../include/masu_code.h");
    let in_header = |line: &str| {
        let is_declaration = !line.starts_with([' ', '/', '*']);
        let mut words = line.split(['(', ' ', '*']).filter(|_| is_declaration);
        let is_function =
            |word: &&str| word.starts_with("masu_code_") && line.contains(&format!("{word}("));
        words.find(is_function).map(str::to_owned)
    };
    let promised: BTreeSet<String> = header.lines().filter_map(in_header).collect();
    let workshop = Workshop::open();
    let library = library::folder().join("libmasu_code.so").display().to_string();
    let listed = workshop.run("readelf", &["--dyn-syms", "--wide", &library]);
    let exported: BTreeSet<String> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|name| name.starts_with("masu_code_"))
        .map(str::to_owned)
        .collect();
    assert_eq!(promised, exported);
    assert!(promised.len() > 20);
}
