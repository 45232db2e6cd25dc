//! Mallocs that are broken on purpose, made with the C compiler: the lab refuses each
//! with a message that says what is at fault.

use std::fs;
use std::path::{Path, PathBuf};

use masu_lab::results::Rounds;
use masu_lab::{
    Catalogue, CompareOptions, Ending, Error, Input, Limits, Places, Plan, Stop, Variant, Workload,
    compare, execute,
};

/// A malloc that works, as a base for broken ones: it never frees.
const WORKS: &str = include_str!("crashes/works.c");

/// A library compiled for one test, in its own folder.
struct Library(PathBuf, #[expect(dead_code, reason = "removes the folder")] tempfile::TempDir);

impl Library {
    fn new(name: &str, source: &str) -> Library {
        let folder = tempfile::tempdir().unwrap();
        let stem = folder.path().join(format!("masu-broken-{name}"));
        let (source_file, path) = (stem.with_extension("c"), stem.with_extension("so"));
        fs::write(&source_file, source).unwrap();
        // The lab itself runs the compiler, because its runs take any other child of this process for their own.
        let flags = ["cc", "-shared", "-fPIC", "-fno-builtin", "-O1", "-w", "-o"].map(Into::into);
        let files = [path.clone().into_os_string(), source_file.clone().into_os_string()];
        let compiler = Workload::new(flags.into_iter().chain(files), Input::Empty)
            .expect("this test needs a C compiler: apt-get install gcc");
        let (variant, conditions) = (system(&compiler), execute::Conditions::default());
        let run = execute::execute(&compiler, &variant, &conditions, &Stop::never()).unwrap();
        assert_eq!(run.ending, Ending::Exited(0), "{run:?}");
        Library(path, folder)
    }
}

fn system(workload: &Workload) -> Variant {
    let catalogue = Catalogue::find(&Places::default());
    catalogue.resolve(&"system".parse().unwrap(), &workload.program).unwrap()
}

/// The error of comparing `arguments` under the system's malloc and under `library`.
fn refusal(arguments: &[&str], library: &Path, limits: Limits) -> String {
    let workload = Workload::new(arguments.iter().copied(), Input::Empty).unwrap();
    let reference = system(&workload);
    let broken = Variant {
        label: "broken".to_owned(),
        library: Some(library.to_owned()),
        ..reference.clone()
    };
    let mut plan = Plan::single(&workload, &[reference, broken], Rounds::Fixed(1));
    plan.cases[0].limits = limits;
    let options = CompareOptions::default();
    let error = compare(&plan, &options, &Stop::never(), &mut |_| {}).unwrap_err();
    let message = error.to_string();
    let is_about_it = matches!(
        &error,
        Error::CannotRun { variant, .. } | Error::NotInEffect { variant, .. } if variant == "broken"
    );
    assert!(is_about_it && message.contains("broken"), "{message}");
    message
}

fn crash(source: &str, name: &str, arguments: &[&str]) -> String {
    let library = Library::new(name, &format!("{source}\n{WORKS}"));
    refusal(arguments, &library.0, Limits::default())
}

#[test]
fn a_malloc_that_aborts_and_a_constructor_that_crashes_are_blamed_and_not_the_program() {
    let aborts = "#include <stdlib.h>\nvoid *malloc(size_t n) { abort(); }\n\
                  void *calloc(size_t a, size_t b) { abort(); }";
    let raises = format!(
        "#include <signal.h>\n__attribute__((constructor)) static void begin(void) {{ raise(SIGSEGV); }}\n{WORKS}"
    );
    for (name, source, signal) in
        [("abort", aborts, "SIGABRT"), ("constructor", &raises, "SIGSEGV")]
    {
        let message =
            refusal(&["sed", "-n", "$="], &Library::new(name, source).0, Limits::default());
        for words in ["start-up", "without the program's fault", "`sh -c :`", signal] {
            assert!(message.contains(words), "{message}");
        }
    }
}

#[test]
fn a_library_that_lacks_a_symbol_is_refused_in_the_loaders_words() {
    let source = "extern int no_such_function(void);\n\
                  __attribute__((constructor)) static void begin(void) { no_such_function(); }";
    let message = crash(source, "symbol", &["sed", "-n", "$="]);
    assert!(message.contains("no_such_function"), "{message}");
    assert!(message.contains("without the program's fault"), "{message}");
}

/// Crashes once a program has asked for more than a megabyte.
const CRASHES_LATER: &str = "\
#include <stddef.h>
static size_t sum;
static void count(size_t n) { if ((sum += n) > 1 << 20) __builtin_trap(); }";

#[test]
fn a_crash_that_only_this_program_meets_is_reported_with_what_it_does_elsewhere() {
    let works =
        WORKS.replace("void *malloc(size_t n) {", "void *malloc(size_t n) {\n    count(n);");
    let library = Library::new("later", &format!("{CRASHES_LATER}\n{works}"));
    let direct = ["awk", "BEGIN { for (i = 0; i < 100000; i++) a[i] = i \"\"; print \"end\" }"];
    let message = refusal(&direct, &library.0, Limits::default());
    for words in ["the program was ended by signal 4 (SIGILL)", "under `system` it returned 0"] {
        assert!(message.contains(words), "{message}");
    }
    // A shell hides the signal behind an exit code.
    let script = format!("{} '{}'; exit $?", direct[0], direct[1]);
    let message = refusal(&["sh", "-c", &script], &library.0, Limits::default());
    for words in ["returned 132", "shell", "SIGILL"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_malloc_that_hangs_is_reported_once_the_reference_was_in_time() {
    let works =
        WORKS.replace("void *malloc(size_t n) {", "void *malloc(size_t n) {\n    for (;;);");
    let library = Library::new("hang", &works);
    // Enough time for the reference on a very busy machine.
    let limits = Limits { time: Some(std::time::Duration::from_secs(3)), memory_bytes: None };
    let message = refusal(&["sed", "-n", "$="], &library.0, limits);
    for words in ["ran out of time", "under `system` it returned 0", "allow more time"] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_program_that_crashes_by_itself_may_be_compared() {
    let library = Library::new("works", WORKS);
    let workload = Workload::new(["sh", "-c", "kill -SEGV $$"], Input::Empty).unwrap();
    let reference = system(&workload);
    let other = Variant {
        label: "other".to_owned(),
        library: Some(library.0.clone()),
        ..reference.clone()
    };
    let plan = Plan::single(&workload, &[reference, other], Rounds::Fixed(1));
    let options = CompareOptions::default();
    let comparison = compare(&plan, &options, &Stop::never(), &mut |_| {}).unwrap();
    assert!(comparison.tables[0].runs.len() >= 2);
}
