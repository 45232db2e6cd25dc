//! Counted runs, held against strace on a program whose calls do not depend on luck, and against what that
//! program is known to do.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use masu_lab::calls::{self, Call, Calls};
use masu_lab::execute::{Conditions, execute};
use masu_lab::{Catalogue, Ending, Input, Limits, Places, Run, Stop, Variant, Workload};

/// What the tests compile and write.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    /// The program of `c/calls.c`.
    fn program(&self) -> OsString {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/calls.c");
        let program = self.0.path().join("calls");
        let run = run(vec![
            "gcc".into(),
            "-O1".into(),
            "-pthread".into(),
            "-w".into(),
            "-o".into(),
            program.clone().into(),
            source.into(),
        ]);
        assert_eq!(run.ending, Ending::Exited(0), "{run:?}");
        program.into()
    }
}

fn workload(words: Vec<OsString>) -> (Workload, Variant) {
    let workload = Workload::new(words, Input::Empty).unwrap();
    let catalogue = Catalogue::find(&Places::default());
    let variant = catalogue.resolve(&"system".parse().unwrap(), &workload.program).unwrap();
    (workload, variant)
}

/// By the lab itself, whose runs take whatever else this process starts for their own.
fn run(words: Vec<OsString>) -> Run {
    let (workload, variant) = workload(words);
    execute(&workload, &variant, &Limits::default(), &Stop::never()).unwrap()
}

fn counted(words: Vec<OsString>) -> (Run, Calls) {
    let (workload, variant) = workload(words);
    calls::count(&workload, &variant, &Conditions::default(), &Stop::never()).unwrap()
}

fn shell(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(OsString::from).to_vec()
}

/// How often each call was made, by strace's table.
fn by_strace(table: &Path, words: &[OsString]) -> HashMap<String, u64> {
    let strace = ["strace", "-f", "-c", "-o"].map(OsString::from);
    let words = strace.into_iter().chain([table.as_os_str().to_owned()]).chain(words.to_vec());
    let run = run(words.collect());
    assert_eq!(run.ending, Ending::Exited(0), "this test needs strace: {run:?}");
    let table = fs::read_to_string(table).unwrap();
    let rows = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(((*fields.last()?).to_owned(), fields.get(3)?.parse().ok()?))
    });
    rows.collect()
}

#[test]
fn counts_are_straces_threads_and_processes_included() {
    let folder = Folder::new();
    let program = folder.program();
    let (run, counted) = counted(vec![program.clone()]);
    assert_eq!(run.ending, Ending::Exited(0), "{run:?}");
    let strace = by_strace(&folder.0.path().join("table"), &[program]);
    for call in Call::ALL {
        // Whether a thread that is joined has ended already is a matter of luck.
        if call != Call::Futex {
            let expected = strace.get(call.name()).copied().unwrap_or(0);
            assert_eq!(counted.total.of(call), expected, "{}: {strace:?}", call.name());
        }
    }
    assert!(counted.total.of(Call::Brk) >= 100 && counted.total.of(Call::Munmap) >= 30);
}

#[test]
fn a_shells_processes_are_counted_as_strace_counts_them() {
    let folder = Folder::new();
    // No child ends while the shell makes another: a signal makes `clone` begin again.
    let script = "for i in 1 2 3; do /bin/echo $i; done; cat /dev/zero | head -c 1; (exit 3); \
                  no-such-program; true";
    let (_, counted) = counted(shell(script));
    let strace = by_strace(&folder.0.path().join("table"), &shell(script));
    for call in [Call::Mmap, Call::Brk, Call::Clone, Call::Fork, Call::Vfork, Call::Execve] {
        let expected = strace.get(call.name()).copied().unwrap_or(0);
        assert_eq!(counted.total.of(call), expected, "{}: {strace:?}", call.name());
    }
    let names = counted.programs.iter().filter_map(|path| path.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(names.contains(&"echo".to_owned()) && names.contains(&"cat".to_owned()), "{names:?}");
}

#[test]
fn each_thread_has_its_own_counts_and_writes_their_sizes() {
    let folder = Folder::new();
    let (_, counted) = counted(vec![folder.program()]);
    // The program, nine threads, two children, of which one runs another program.
    assert_eq!((counted.processes, counted.threads_begun, counted.more_threads), (3, 12, 0));
    assert_eq!(counted.threads.len(), 12);
    let yields: Vec<u64> =
        counted.threads.iter().map(|thread| thread.counts.of(Call::SchedYield)).collect();
    assert_eq!(yields.iter().filter(|count| **count == 4).count(), 9, "{yields:?}");
    let first = &counted.threads[0];
    assert_eq!((first.process, first.name.as_str()), (first.thread, "calls"));
    assert_eq!(first.counts.futex_wakes, 6);
    assert!(first.counts.futex_waits >= 3);
    let sum: u64 = counted.threads.iter().map(|thread| thread.counts.of(Call::Write)).sum();
    assert_eq!(sum, counted.total.of(Call::Write));
    // Threads write 0 + 1 + … + 8 times ten bytes, the children 5 times each and 7 times more.
    let small = 36 + 10 + 7;
    let writes = counted.total.writes;
    assert_eq!((writes.calls, writes.bytes), (small + 3, small * 10 + 1000 + 4096 + 20));
    assert_eq!((writes.below(16), writes.below(512)), (small, small + 1));
}

#[test]
fn a_program_that_is_killed_ends_the_run_as_it_would_alone() {
    let folder = Folder::new();
    let (run, counted) = counted(vec![folder.program(), "die".into()]);
    assert_eq!((run.ending, run.left_behind), (Ending::Signalled(9), Vec::<String>::new()));
    assert_eq!(counted.total.of(Call::Execve), 1);
    let (run, _) = self::counted(shell("kill -TERM $$"));
    assert_eq!(run.ending, Ending::Signalled(15));
}

#[test]
fn nothing_in_the_tree_gets_more_rights() {
    let folder = Folder::new();
    let status = folder.0.path().join("status");
    let (_, _) =
        counted(shell(&format!("grep NoNewPrivs /proc/self/status > {}", status.display())));
    let status = fs::read_to_string(status).unwrap();
    assert_eq!(status.split_whitespace().last(), Some("1"), "{status}");
}

#[test]
fn a_program_that_runs_without_its_rights_is_named() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: only root makes a program with the rights of somebody else");
        return;
    }
    let folder = Folder::new();
    let program = folder.0.path().join("with-rights");
    fs::copy("/bin/true", &program).unwrap();
    let script = format!("chown 65534 {0} && chmod 4755 {0}", program.display());
    assert_eq!(run(shell(&script)).ending, Ending::Exited(0));
    let (_, counted) = counted(shell(&format!("{}; true", program.display())));
    let named: Vec<_> = counted.privileged.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(named, [program], "{counted:?}");
    assert!(counted.privileged[0].1.contains("setuid"), "{counted:?}");
}
