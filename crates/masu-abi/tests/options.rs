//! The library reads the environment however it was loaded, and ignores it in a program with more
//! rights than its user.
//!
//! `crates/masu/tests/options` tests the effect of each option; here `MASU_RETAIN` represents all of
//! them. It relies on `tests/c/freed.c`.

mod library;

use std::path::Path;
use std::process::Command;

use library::{program, text};

/// The MiB retained of 192 that the program freed.
fn kept_mib(mut command: Command, retain: &str) -> i64 {
    let printed = library::succeeds(command.env("MASU_RETAIN", retain));
    printed.trim().parse().unwrap_or_else(|error| panic!("{printed}: {error}"))
}

program!("freed.c", &[]);

fn obeys(command: impl Fn() -> Command) {
    let none = kept_mib(command(), "0");
    assert!(none < 4, "{none} MiB kept with 0");
    let all = kept_mib(command(), "1G");
    assert!(all > 180, "{all} MiB kept with 1G");
}

#[test]
fn preloaded() {
    obeys(|| library::preloaded(program()));
}

#[test]
fn started_through_the_dynamic_linker() {
    let linker = library::succeeds(Command::new("cc").arg("-print-file-name=ld-linux-x86-64.so.2"));
    if !cfg!(target_arch = "x86_64") || !Path::new(linker.trim()).is_absolute() {
        eprintln!("not tested: the compiler knows no dynamic linker");
        return;
    }
    obeys(|| {
        let mut command = library::preloaded(linker.trim());
        command.arg(program());
        command
    });
}

#[test]
fn linked_from_the_archive() {
    let program = library::compile("freed.c", "archive", &[library::archive()]);
    obeys(|| Command::new(&program));
    let program = library::compile("freed.c", "static", &["-static", library::archive()]);
    obeys(|| Command::new(&program));
}

#[test]
fn on_musl() {
    let Some(compiler) = library::musl_compiler() else { return };
    let source = library::source("freed.c");
    let archive = library::build("libmasu.a", &["--target", library::MUSL], &[]);
    let arguments = ["-static", text(&archive)];
    let program = library::compile_with(compiler, &source, "musl-static", &arguments);
    obeys(|| Command::new(&program));

    let shared = library::musl_shared();
    let program = library::compile_with(compiler, &source, "musl", &[]);
    obeys(|| {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", &shared);
        command
    });
}

#[test]
fn a_bad_value_is_one_line_and_the_program_runs() {
    let mut command = library::preloaded(program());
    let output = library::success(command.env("MASU_SHARDS", "many"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "masu: MASU_SHARDS must be a count from 1 to 60; its default holds\n");
}

#[test]
fn a_program_with_more_rights_than_its_user_ignores_the_environment() {
    let program = library::compile("freed.c", "secure", &["-static", library::archive()]);
    if !library::gives_rights(&program) {
        return;
    }
    let run_with = |name: &str, value: &str| {
        let mut command = Command::new(&program);
        command.env(name, value).output().expect("the program starts")
    };
    for (name, value) in [
        ("MASU_RETAIN", "1G"),
        ("MASU_RETAIN_MIN", "1G"),
        ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1073741824"),
    ] {
        let printed = run_with(name, value).stdout;
        let kept: i64 = String::from_utf8_lossy(&printed).trim().parse().expect("a number");
        assert!(kept < 96, "{kept} MiB kept, as if {name}={value} had been heard");
    }
    for (name, value) in [("MASU_RETAIN", "bad"), ("MASU_RETIAN", "1"), ("MASU_VERBOSE", "2")] {
        assert_eq!(String::from_utf8_lossy(&run_with(name, value).stderr), "", "{name}");
    }
}
