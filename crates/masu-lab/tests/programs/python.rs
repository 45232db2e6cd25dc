//! CPython, Debian's: threaded scripts, and the modules of its own test suite, once with its small
//! object allocator over ours and once with every object straight from `malloc`.

use crate::program::Program;
use crate::soak;

/// Modules of CPython's test suite that allocate in every way and depend on no time and no network.
const MODULES: [&str; 9] = [
    "test.test_array",
    "test.test_collections",
    "test.test_dict",
    "test.test_json",
    "test.test_list",
    "test.test_re",
    "test.test_set",
    "test.test_threading_local",
    "test.test_zlib",
];

/// Those that take their time.
const MODULES_SOAK: [&str; 21] = [
    "test.test_ast",
    "test.test_bytes",
    "test.test_bz2",
    "test.test_ctypes",
    "test.test_deque",
    "test.test_exceptions",
    "test.test_format",
    "test.test_functools",
    "test.test_gc",
    "test.test_hashlib",
    "test.test_itertools",
    "test.test_long",
    "test.test_lzma",
    "test.test_memoryview",
    "test.test_pickle",
    "test.test_struct",
    "test.test_thread",
    "test.test_threading",
    "test.test_unicode",
    "test.test_weakref",
    "test.test_xml_etree_c",
];

fn python() -> Program {
    Program::new("python3.11", "python3.11")
        .variable("PYTHONHASHSEED", "0")
        .variable("PYTHONDONTWRITEBYTECODE", "1")
}

/// Runs modules of the test suite; the counts and the name of each test that does not pass are compared.
fn suite(modules: &[&str], malloc: &str) {
    let names = modules.join("\n");
    python()
        .arguments(["run_modules.py", "modules"])
        .file("run_modules.py", include_str!("scripts/run_modules.py"))
        .file("modules", names)
        .variable("PYTHONMALLOC", malloc)
        .stderr_varies()
        .prints("modules passed")
        .excuses("ldconfig", "is static: ctypes asks it where libraries lie")
        .same_under_masu();
}

/// Threads that hand objects to one another, with a malloc of CPython's choice underneath.
pub(crate) fn threads(malloc: &str) -> Program {
    python()
        .arguments(["threads.py", if soak() { "40000" } else { "2500" }])
        .file("threads.py", include_str!("scripts/threads.py"))
        .variable("PYTHONMALLOC", malloc)
        .prints("all threads are done")
}

#[test]
fn python_threads_compute_the_same() {
    threads("pymalloc").same_under_masu();
}

#[test]
fn python_threads_compute_the_same_when_every_object_comes_from_malloc() {
    threads("malloc").same_under_masu();
}

#[test]
fn python_test_modules_give_the_same_results() {
    suite(&MODULES, "pymalloc");
    if soak() {
        suite(&MODULES_SOAK, "pymalloc");
    }
}

#[test]
fn python_test_modules_give_the_same_results_when_every_object_comes_from_malloc() {
    suite(&MODULES, "malloc");
    if soak() {
        suite(&MODULES_SOAK, "malloc");
    }
}
