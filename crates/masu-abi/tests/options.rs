//! The library reads the environment however it was loaded, and ignores it in a program with more
//! rights than its user.
//!
//! `crates/masu/tests/options` tests the effect of each option; here `MASU_RETAIN` represents all of
//! them. It relies on `tests/c/freed.c`.

mod library;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const MUSL: &str = "x86_64-unknown-linux-musl";

/// The MiB retained of 64 that the program freed.
fn kept_mib(mut command: Command, retain: &str) -> i64 {
    let printed = library::succeeds(command.env("MASU_RETAIN", retain));
    printed.trim().parse().unwrap_or_else(|error| panic!("{printed}: {error}"))
}

fn obeys(command: impl Fn() -> Command) {
    let none = kept_mib(command(), "0");
    assert!(none < 4, "{none} MiB kept with 0");
    let all = kept_mib(command(), "1G");
    assert!(all > 60, "{all} MiB kept with 1G");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the target folder has a plain name")
}

#[test]
fn preloaded() {
    let program = library::compile("freed.c", "program", &[]);
    obeys(|| library::preloaded(&program));
}

#[test]
fn started_through_the_dynamic_linker() {
    let program = library::compile("freed.c", "program-of-linker", &[]);
    let linker = library::succeeds(Command::new("cc").arg("-print-file-name=ld-linux-x86-64.so.2"));
    if !cfg!(target_arch = "x86_64") || !Path::new(linker.trim()).is_absolute() {
        eprintln!("not tested: the compiler knows no dynamic linker");
        return;
    }
    obeys(|| {
        let mut command = library::preloaded(linker.trim());
        command.arg(&program);
        command
    });
}

#[test]
fn linked_from_the_archive() {
    let archive = library::static_path();
    let program = library::compile("freed.c", "archive", &[text(&archive)]);
    obeys(|| Command::new(&program));
    let program = library::compile("freed.c", "static", &["-static", text(&archive)]);
    obeys(|| Command::new(&program));
}

#[test]
fn on_musl() {
    if !cfg!(target_arch = "x86_64") || Command::new("musl-gcc").arg("--version").output().is_err()
    {
        eprintln!("not tested: there is no musl-gcc (Debian: musl-tools)");
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/freed.c");
    let archive = library::build("libmasu.a", &["--target", MUSL], &[]);
    let arguments = ["-static", text(&archive)];
    let program = library::compile_with("musl-gcc", &source, "musl-static", &arguments);
    obeys(|| Command::new(&program));

    let folder = format!("{}/musl-shared", env!("CARGO_TARGET_TMPDIR"));
    let arguments = ["--target", MUSL, "--target-dir", &folder];
    let flags = ("RUSTFLAGS", "-C target-feature=-crt-static");
    let shared = library::build("libmasu.so", &arguments, &[flags]);
    let program = library::compile_with("musl-gcc", &source, "musl", &[]);
    obeys(|| {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", &shared);
        command
    });
}

#[test]
fn a_bad_value_is_one_line_and_the_program_runs() {
    let program = library::compile("freed.c", "program-of-bad", &[]);
    let mut command = library::preloaded(&program);
    let output = command.env("MASU_SHARDS", "many").output().expect("the program starts");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "masu: MASU_SHARDS must be a count from 1 to 60; its default holds\n");
}

#[test]
fn a_program_with_more_rights_than_its_user_ignores_the_environment() {
    let archive = library::static_path();
    let program = library::compile("freed.c", "secure", &["-static", text(&archive)]);
    // A group of its own, taken on at start: only root may give a file to one it is not in.
    const OTHER_GROUP: u32 = 65_534;
    let is_made = chown(&program, None, Some(OTHER_GROUP)).is_ok()
        && fs::set_permissions(&program, fs::Permissions::from_mode(0o2755)).is_ok();
    if !is_made {
        eprintln!("not tested: this user may not make a set-group-ID program");
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
        assert!(kept < 32, "{kept} MiB kept, as if {name}={value} had been heard");
    }
    for (name, value) in [("MASU_RETAIN", "bad"), ("MASU_RETIAN", "1"), ("MASU_VERBOSE", "2")] {
        assert_eq!(String::from_utf8_lossy(&run_with(name, value).stderr), "", "{name}");
    }
}
