//! Heap profiles of C programs under `libmasu.so`: sampled blocks behave like any other, the file is right, and a program
//! with more rights than its user writes none.
//!
//! It relies on `tests/c/profile.c`, and on all fields of the file but names: with every byte sampled, sums are exact.
//! `masu-cli` tests the names.

mod library;
#[path = "../../masu/tests/profile/message.rs"]
#[expect(dead_code, reason = "the period and the mappings are checked for Rust programs")]
mod message;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use library::program;
use message::Message;

program!("profile.c", &["-fomit-frame-pointer"]);

/// The folder of a run, and its files.
struct Run {
    folder: tempfile::TempDir,
    said: String,
    printed: String,
}

impl Run {
    fn of(mut command: Command, what: &str, interval: &str) -> Run {
        let folder = tempfile::tempdir().expect("a folder");
        command.arg(what).env("MASU_PROFILE", folder.path().join("heap"));
        command.env("MASU_PROFILE_INTERVAL", interval).env("MASU_PROFILE_LEAKS", "1");
        let output = library::success(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Run { folder, said, printed: String::from_utf8_lossy(&output.stdout).into_owned() }
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    fn only_file(&self) -> PathBuf {
        let files = self.files();
        assert_eq!(files.len(), 1, "{files:?} {}", self.said);
        files[0].clone()
    }

    /// The reported live bytes at the end.
    fn live(&self) -> usize {
        let text = self.said.strip_prefix("masu: about ").expect("it is said what lives");
        text.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

fn message(file: &Path) -> Message {
    Message::read(&fs::read(file).expect("the profile"))
}

/// The number of frames of each sample, and its live bytes.
fn samples(file: &Path) -> Vec<(usize, i64)> {
    let samples = message(file).samples.into_iter();
    samples.map(|(stack, values)| (stack.len(), values.live_bytes)).collect()
}

/// Checks that one block of these bytes is live and has the frames of its callers: the allocator, the function, main,
/// two of the C library's, and the start.
fn has_whole_stack(file: &Path, live_bytes: i64) {
    let all = samples(file).into_iter();
    let kept: Vec<_> = all.filter(|(_, bytes)| *bytes == live_bytes).collect();
    assert!(kept.len() == 1 && kept[0].0 >= 5, "{kept:?}");
}

#[test]
fn sampled_blocks_are_blocks_like_any_other() {
    for interval in ["1", "1000", "512K"] {
        let run = Run::of(library::preloaded(program()), "exercise", interval);
        let file = run.only_file();
        // Blocks freed by any thread are no longer live; the C library keeps a few.
        assert!(run.live() < 256 << 10, "{}", run.said);
        assert!(fs::metadata(file).expect("the file").len() > 100);
    }
}

/// A request is sampled by its requested bytes, however much longer its block is, on every path.
#[test]
fn freed_blocks_are_estimated_by_their_requested_bytes() {
    let run = Run::of(library::preloaded(program()), "churn", "4096");
    let sums = message(&run.only_file()).sum();
    let mut numbers = run.printed.split_whitespace().map(|number| number.parse::<usize>());
    let mut next = || numbers.next().expect("two numbers").expect("a number") as f64;
    let (blocks, bytes) = (next(), next());
    // Over 30,000 samples: a standard deviation of at most 0.6 % for bytes and 0.9 % for blocks; five of them are
    // allowed.
    let [of_bytes, of_blocks] =
        [sums.allocated_bytes as f64 / bytes, sums.allocated_blocks as f64 / blocks];
    assert!((of_bytes - 1.0).abs() < 0.03, "{sums:?} of {bytes}");
    assert!((of_blocks - 1.0).abs() < 0.05, "{sums:?} of {blocks}");
}

#[test]
fn live_blocks_are_exact_and_have_their_callers() {
    let run = Run::of(library::preloaded(program()), "kept", "1");
    let file = run.only_file();
    let mode = fs::metadata(&file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    has_whole_stack(&file, 3 << 20);
    let run = Run::of(library::preloaded(program()), "threads", "1");
    let live = run.live();
    assert!((5 << 20..(5 << 20) + (256 << 10)).contains(&live), "{live}");
}

#[test]
fn a_static_program_has_whole_stacks_too() {
    // gcc omits the unwind index of static programs; rustc and clang do not.
    let options = ["-static", "-pthread", "-Wl,--eh-frame-hdr", library::archive()];
    let program = library::compile("profile.c", "static", &options);
    let run = Run::of(Command::new(&program), "kept", "1");
    has_whole_stack(&run.only_file(), 3 << 20);
}

#[test]
fn a_forked_child_has_a_profile_and_a_file_of_its_own() {
    let run = Run::of(library::preloaded(program()), "fork", "1");
    let numbers: Vec<&str> = run.printed.split_whitespace().collect();
    let live = |process: &str| -> i64 {
        let file = run.folder.path().join(format!("heap.{process}.0.pb"));
        samples(&file).into_iter().map(|(_, bytes)| bytes).sum()
    };
    assert_eq!(run.files().len(), 2, "{}", run.said);
    let (parent, child) = (live(numbers[0]), live(numbers[1]));
    assert!(parent >= 3 << 20 && child < 1 << 20, "{parent}, {child}");
}

#[test]
fn children_forked_during_a_sample_still_allocate() {
    Run::of(library::preloaded(program()), "fork_beside_samples", "1");
}

/// glibc has had the function for this since 2.35, as on every machine that runs these tests.
#[test]
fn a_child_forked_during_a_call_of_the_dynamic_linker_has_whole_stacks() {
    let run = Run::of(library::preloaded(program()), "fork_beside_asker", "1");
    let child = run.printed.split_whitespace().nth(1).expect("the child's number");
    let file = run.folder.path().join(format!("heap.{child}.0.pb"));
    has_whole_stack(&file, 2 << 20);
}

#[test]
fn a_wrong_unwind_table_ends_the_stack_and_not_the_program() {
    let run = Run::of(library::preloaded(program()), "mistold", "1");
    assert!(samples(&run.only_file()).iter().any(|(frames, _)| *frames > 0));
}

#[test]
fn a_program_with_more_rights_than_its_user_writes_nothing() {
    let arguments = ["-static", "-pthread", library::archive()];
    let program = library::compile("profile.c", "secure", &arguments);
    if !library::gives_rights(&program) {
        return;
    }
    let run = Run::of(Command::new(&program), "kept", "1");
    assert!(run.files().is_empty() && run.said.is_empty(), "{:?} {}", run.files(), run.said);
}

#[test]
fn a_limit_on_the_length_of_files_does_not_end_the_program() {
    let run = Run::of(library::limited("ulimit -f 0", program()), "kept", "1");
    let said = &run.said;
    assert!(said.contains("could not be written") && said.contains("errno 27"), "{said}");
}

#[test]
fn an_unwritable_folder_is_reported_and_the_program_runs() {
    for (prefix, said) in [
        ("/nonexistent/heap", "masu: there is no folder /nonexistent for MASU_PROFILE;"),
        ("/proc/heap", "masu: the heap profile could not be written to /proc/heap."),
        ("", "masu: MASU_PROFILE must be the start of a file's name"),
    ] {
        let mut command = library::preloaded(program());
        let output = library::success(command.arg("kept").env("MASU_PROFILE", prefix));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.starts_with(said), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}
