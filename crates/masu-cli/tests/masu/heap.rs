//! `masu heap`: profiles of real programs of C++ and of Rust name the functions that allocate, as they are
//! called in their sources.
//!
//! Relies on a C++ compiler and on the rustc that builds these tests; the programs are compiled here, without
//! frame pointers. Their live memory is known to the byte.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::{failure, masu, printed};

const CPP: &str = include_str!("../c/shop.cpp");

const RUST: &str = r#"
mod index {
    #[inline(never)]
    pub fn words(count: usize) -> std::collections::BTreeMap<usize, String> {
        (0..count).map(|n| (n, "x".repeat(1000))).collect()
    }
}
struct Image(Vec<u8>);
impl Image {
    #[inline(never)]
    fn blank(side: usize) -> Image { Image(vec![1; side * side]) }
}
fn main() {
    let image = Image::blank(4096);
    let words = index::words(20_000);
    println!("ready {} {}", image.0.len(), words.len());
    std::mem::forget((image, words));
}
"#;

fn compiled(folder: &Path, source: &str, name: &str) -> PathBuf {
    let (file, program) = (folder.join(name), folder.join(format!("{name}-program")));
    fs::write(&file, source).unwrap();
    let mut command = if name.ends_with(".rs") {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        command.args(["--edition=2024", "-O", "-g"]);
        command
    } else {
        let mut command = Command::new("c++");
        command.args(["-O2", "-g", "-fomit-frame-pointer"]);
        command
    };
    let output = command.arg(&file).arg("-o").arg(&program).output().expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The profile that a program leaves at its end.
fn profiled(folder: &Path, program: &Path) -> PathBuf {
    let prefix = folder.join("heap");
    let mut command = masu(&["run", "--"]);
    command.arg(program).env("MASU_PROFILE", &prefix).env("MASU_PROFILE_INTERVAL", "32K");
    assert!(command.output().unwrap().status.success());
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files = entries.filter(|path| path.extension().is_some_and(|end| end == "pb"));
    files.next().expect("the program wrote a profile")
}

fn shown(arguments: &[&str], file: &Path) -> String {
    printed(masu(&["heap", "show"]).args(arguments).arg(file))
}

/// The sum of the folded stacks in which these functions follow each other.
fn sum_of(folded: &str, path: &[&str]) -> f64 {
    let goes_so = |stack: &str| {
        let mut rest = stack.split(';');
        path.iter().all(|name| rest.any(|function| function.contains(name)))
    };
    let lines = folded.lines().map(|line| line.rsplit_once(' ').expect("a number"));
    lines.filter(|(stack, _)| goes_so(stack)).map(|(_, sum)| sum.parse::<f64>().unwrap()).sum()
}

fn is_close(estimate: f64, truth: f64, share: f64) {
    assert!((estimate / truth - 1.0).abs() < share, "{estimate}, and {truth} are true");
}

#[test]
fn a_program_of_cpp_is_recognized_by_its_own_names() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), CPP, "shop.cpp");
    let file = profiled(folder.path(), &program);
    let live = shown(&["--format", "folded"], &file);
    // Deviations: one of 768 in a block so long; 1,220 samples at 2.9 %.
    is_close(sum_of(&live, &["main", "shop::table()"]), f64::from(24 << 20), 0.01);
    is_close(sum_of(&live, &["main", "shop::parse(int)", "reserve"]), 5000.0 * 8000.0, 0.15);
    assert!(sum_of(&live, &["shop::churn()"]) < 100_000.0, "{live}");
    let all = shown(&["--of", "allocated", "--format", "folded"], &file);
    is_close(sum_of(&all, &["main", "shop::churn()"]), 200_000.0 * 1001.0, 0.07);
    is_close(sum_of(&all, &["main", "shop::Store<shop::Order>::keep"]), 5000.0 * 72.0, 1.5);
    let table = shown(&[], &file);
    assert!(table.contains("shop::table()") && table.contains("shop.cpp:"), "{table}");
    let picture = shown(&["--format", "svg"], &file);
    assert!(picture.starts_with("<svg") && picture.contains("shop::parse(int)"), "{picture}");
    // A profile with names does not need the program any more.
    let named = folder.path().join("named.pb");
    shown(&["-o", named.to_str().unwrap()], &file);
    fs::remove_file(&program).unwrap();
    assert_eq!(shown(&["--format", "folded"], &named), live);
    let without = shown(&[], &file);
    assert!(without.contains("Note: no names of"), "{without}");
}

#[test]
fn a_program_of_rust_is_recognized_by_its_own_names_and_inlined_ones() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), RUST, "image.rs");
    let live = shown(&["--format", "folded"], &profiled(folder.path(), &program));
    is_close(sum_of(&live, &["image::main", "image::Image::blank"]), f64::from(16 << 20), 0.01);
    is_close(sum_of(&live, &["main", "image::index::words", "repeat"]), 20_000.0 * 1000.0, 0.25);
    assert!(!live.contains("__rust_alloc") && !live.contains("malloc"), "{live}");
}

#[test]
fn a_running_program_answers_and_two_answers_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path(), CPP, "shop.cpp");
    let prefix = folder.path().join("heap");
    let mut child = masu(&["run", "--"])
        .args([program.to_str().unwrap(), "on"])
        .env("MASU_PROFILE", &prefix)
        .env("MASU_PROFILE_INTERVAL", "32K")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let process = child.id().to_string();
    let folded = || printed(&mut masu(&["heap", "show", "-p", &process, "--format", "folded"]));
    let first = folded();
    is_close(sum_of(&first, &["main", "shop::table()"]), f64::from(24 << 20), 0.01);
    folded();
    child.kill().unwrap();
    child.wait().unwrap();
    let file = |number: u32| format!("{}.{process}.{number}.pb", prefix.display());
    let mut command = masu(&["heap", "diff", "--of", "allocated", "--format", "folded"]);
    let difference = printed(command.args([file(0), file(1)]));
    assert!(sum_of(&difference, &["shop::churn()"]) > 0.0, "{difference}");
    assert!(!difference.contains("shop::table()"), "it did not change: {difference}");
    let (message, code) = failure(&["heap", "show", "-p", &process]);
    assert!(code == 2 && message.contains("has ended"), "{message}");
}

#[test]
fn a_process_without_a_profile_gets_the_command_for_one() {
    let own = std::process::id().to_string();
    for option in ["-p", "--pid", "--process"] {
        let (message, code) = failure(&["heap", "show", option, &own]);
        assert!(code == 2 && message.contains("MASU_PROFILE=/tmp/heap"), "{message}");
    }
}

#[test]
fn a_full_folder_for_temporary_files_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("disk")).unwrap();
    // Programs such as sort close their standard error before the profile is written.
    let script = format!(
        "mount -t tmpfs -o size=8k none disk || exit 99; \
         TMPDIR=$PWD/disk {} heap -- sh -c 'head -c 9999 /dev/zero >disk/full; exec sort' 2>said",
        env!("CARGO_BIN_EXE_masu")
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.current_dir(folder.path()).env_remove("LD_PRELOAD").stdin(Stdio::null());
    let output = command.output().unwrap();
    let Ok(said) = fs::read_to_string(folder.path().join("said")) else {
        eprintln!("skipped: this machine lets nobody mount inside a namespace of their own");
        return;
    };
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("disk (TMPDIR names another folder): No space left"), "{said}");
}

#[test]
fn a_signal_for_masu_reaches_the_program() {
    let folder = tempfile::tempdir().unwrap();
    for (trap, ending) in [("exit 7", 7), ("trap - TERM; kill $$", 128 + 15)] {
        let script = format!("trap '{trap}' TERM; echo ready; while :; do sleep 0.01; done");
        let mut child = masu(&["heap", "--", "sh", "-c", &script])
            .env("TMPDIR", folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(ending), "{trap}: {said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{trap}: no file is left");
    }
}

#[test]
fn nothing_seen_of_the_first_process_says_nothing_of_others() {
    // Hardly any request is sampled.
    let mut command = masu(&["heap", "--", "true"]);
    let output = command.env("MASU_PROFILE_INTERVAL", "100G").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(said.contains("This is of its first process."), "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn a_wrong_option_does_not_look_like_an_exit_code_of_the_program() {
    let (message, code) = failure(&["heap", "--of", "much", "--", "true"]);
    assert!(code == 125 && message.contains("invalid value"), "{message}");
    assert_eq!(failure(&["heap", "show", "--of", "much", "x"]).1, 2);
}

#[test]
fn a_program_is_run_and_what_it_never_freed_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include <stdlib.h>\n#include <string.h>\n\
         __attribute__((noinline)) char *keep(int n) { char *p = (char *)malloc(n); memset(p, 1, n); return p; }\n\
         int main() { for (int i = 0; i < 2000; i++) { char *p = keep(5000); if (i % 2) free(p); } return 3; }\n";
    let program = compiled(folder.path(), source, "leak.cpp");
    let output = masu(&["heap", "--"]).arg(&program).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "the exit code is the program's: {said}");
    assert!(said.contains("Never freed: about ") && said.contains("  keep"), "{said}");
    let picture = folder.path().join("leak.svg");
    let output = masu(&["heap", "-o"]).arg(&picture).arg("--").arg(&program).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let drawing = fs::read_to_string(picture).unwrap();
    assert!(drawing.contains("<svg") && drawing.contains("keep"), "{drawing}");
    let scope = folder.path().join("leak.json");
    let output = masu(&["heap", "-o"]).arg(&scope).arg("--").arg(&program).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let scope = fs::read_to_string(scope).unwrap();
    assert!(scope.contains("speedscope.app") && scope.contains("keep"), "{scope}");
    // An output that could not be written at the end is refused before the program runs.
    for name in ["leak.pdf", "no-such-folder/leak.svg"] {
        let ran = folder.path().join("ran");
        let mut refused = masu(&["heap", "-o"]);
        refused.arg(folder.path().join(name)).args(["--", "touch"]).arg(&ran);
        assert_eq!(refused.status().unwrap().code(), Some(125), "{name}");
        assert!(!ran.exists(), "{name}");
    }
}
