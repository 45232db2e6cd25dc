//! The tested programs: one in C under the preloaded library, and one in Rust with the allocator in it, both with glibc and
//! without a C library.
//!
//! They rely on `tests/c/faulted.c` and on the test `faulted` of the package `masu`. If the C library is in the same
//! file as the allocator, function names tell them apart, because Rust's library makes all its system calls through
//! C's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSegment, ObjectSymbol};

use crate::library;
use crate::supervisor::Code;

pub(crate) struct Program {
    pub(crate) name: &'static str,
    file: PathBuf,
    is_preloaded: bool,
    pub(crate) code: Code,
}

impl Program {
    pub(crate) fn in_c() -> Program {
        let code = Code { file: library::path().to_owned(), functions: None };
        Program { name: "c", file: library::faulted().to_owned(), is_preloaded: true, code }
    }

    pub(crate) fn in_rust(name: &'static str, target: &str) -> Program {
        let file = build(target);
        let code = Code { functions: Some(rust_functions(&file)), file: file.clone() };
        Program { name, file, is_preloaded: false, code }
    }

    /// Whether the allocator comes from the library.
    pub(crate) fn is_preloaded(&self) -> bool {
        self.is_preloaded
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.file);
        // masu would warn of these variables as unknown options, with one more `write`.
        command.env_remove("MASU_FAULTS").env_remove("MASU_FAULTS_CALL");
        if self.is_preloaded {
            command.env("LD_PRELOAD", library::path());
        }
        command
    }
}

/// The test program of the package `masu`, optimized as programs are.
fn build(target: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--package", "masu", "--features", "profile", "--test", "faulted"]);
    cargo.args(["--no-run", "--release", "--target", target]);
    library::made_by(&mut cargo, |name| name.starts_with("faulted-") && !name.contains('.'))
}

/// The ranges of Rust's functions, as offsets from the first byte of the loaded file.
fn rust_functions(file: &Path) -> Vec<std::ops::Range<u64>> {
    let bytes = fs::read(file).expect("the program is there");
    let program = object::File::parse(&*bytes).expect("the program is an executable");
    let start = program.segments().map(|segment| segment.address()).min().expect("it has segments");
    let functions = program.symbols().filter(|symbol| {
        symbol.name().is_ok_and(|name| name.starts_with("_ZN") || name.starts_with("_R"))
    });
    let range = |at: u64, size: u64| at - start..at - start + size;
    let functions = functions.filter(|symbol| symbol.size() > 0);
    functions.map(|symbol| range(symbol.address(), symbol.size())).collect()
}
