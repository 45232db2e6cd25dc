//! Counted runs of a shell, compared with strace, and the rights of programs in them. `known_calls.rs` compares counts
//! with programs that are known.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use masu_run::calls::{self, Call, Calls};
use masu_run::execute::{Conditions, Look, alone, execute};
use masu_run::{Ending, Input, Run, Stop, Variant, Workload};

/// Runs `words` by the lab itself, whose runs take all other programs that this process starts for their own.
fn run(words: Vec<OsString>) -> Run {
    let workload = Workload::new(words, Input::Empty).unwrap();
    execute(&workload, &Variant::default(), &Conditions::default(), &Stop::never()).unwrap()
}

fn counted(words: Vec<OsString>) -> (Run, Calls) {
    let workload = Workload::new(words, Input::Empty).unwrap();
    calls::count(&workload, &Variant::default(), &Conditions::default(), &Stop::never()).unwrap()
}

fn shell(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(OsString::from).to_vec()
}

/// The number of times each call was made, by strace's table.
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
fn a_shells_processes_are_counted_as_strace_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    // No child ends while the shell makes another: a signal makes `clone` begin again.
    let script = "for i in 1 2 3; do /bin/echo $i; done; cat /dev/zero | head -c 1; (exit 3); \
                  no-such-program; true";
    let (_, counted) = counted(shell(script));
    let strace = by_strace(&folder.path().join("table"), &shell(script));
    for call in [Call::Mmap, Call::Brk, Call::Clone, Call::Fork, Call::Vfork, Call::Execve] {
        let expected = strace.get(call.name()).copied().unwrap_or(0);
        assert_eq!(counted.total.of(call), expected, "{}: {strace:?}", call.name());
    }
    let names = counted.programs.iter().filter_map(|path| path.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(names.contains(&"echo".to_owned()) && names.contains(&"cat".to_owned()), "{names:?}");
}

#[test]
fn a_tracer_that_is_root_leaves_programs_their_rights() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: only root makes a program with the rights of somebody else");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("with-rights");
    fs::copy("/bin/true", &program).unwrap();
    let script = format!("chown 65534 {0} && chmod 4755 {0}", program.display());
    assert_eq!(run(shell(&script)).ending, Ending::Exited(0));
    let (_, counted) = counted(shell(&format!("{}; true", program.display())));
    assert_eq!((counted.privileged, counted.programs_begun), (Vec::new(), 2));
}

#[test]
fn the_tracer_waits_for_no_other_child_where_a_thread_runs_a_program() {
    const SOURCE: &str = "#include <pthread.h>\n#include <unistd.h>\n\
        static void *run(void *none) { execl(\"/bin/true\", \"true\", (char *)0); return none; }\n\
        int main(void) { pthread_t thread; pthread_create(&thread, 0, run, 0); for (;;) pause(); }\n";
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["run.c", "run"].map(|name| folder.path().join(name));
    fs::write(&source, SOURCE).unwrap();
    let files = ["-o".into(), program.clone().into(), source.into()];
    let compiler = ["cc", "-pthread"].map(OsString::from).into_iter().chain(files);
    assert_eq!(run(compiler.collect()).ending, Ending::Exited(0), "this test needs cc");
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let (run, counted) = counted(vec![program.into()]);
    assert_eq!(other.try_wait().unwrap(), None, "the tracer waited for it");
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!((run.ending, counted.programs_begun), (Ending::Exited(0), 2));
}

#[test]
fn a_look_that_panics_leaves_no_clock_that_goes_on() {
    struct Panics;
    impl Look for Panics {
        fn look(&mut self, _at: Duration, _members: &[i32]) {
            panic!("it looked");
        }
    }
    let workload = Workload::new(shell("sleep 0.2"), Input::Empty).unwrap();
    let count = || {
        let (variant, conditions) = (Variant::default(), Conditions::default());
        let (stop, mut look) = (Stop::never(), Panics);
        let off = Default::default();
        calls::count_watched(&workload, &variant, &conditions, &stop, &mut look, off)
    };
    // Without an end of the clock this waits for ever.
    assert!(catch_unwind(AssertUnwindSafe(count)).is_err());
}
