//! Rust's compiler with its own malloc hidden.
//!
//! The compiler as rustup brings it links jemalloc into its executable, whose `malloc` comes before
//! that of any preloaded library: there libmasu has to live beside it. To show the compiler *on*
//! libmasu too, a copy is made that does not export those names; all of its libraries then bind to
//! the preloaded ones.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};

/// The functions of a malloc, as symbols, and the one by which jemalloc is known.
const MALLOC_FAMILY: [&str; 10] = [
    "malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign", "valloc",
    "malloc_usable_size", "mallctl",
];

/// The compiler beside the cargo that runs the tests.
pub(crate) fn compiler() -> PathBuf {
    Path::new(env!("CARGO")).with_file_name("rustc")
}

/// Makes `toolchain` in `folder`: the compiler with its malloc hidden, and its libraries.
pub(crate) fn hide_malloc(folder: &Path) {
    let (rustc, toolchain) = (compiler(), folder.join("toolchain"));
    fs::create_dir_all(toolchain.join("bin")).expect("make a folder");
    let root = rustc.ancestors().nth(2).expect("the compiler lies in a folder `bin`");
    symlink(root.join("lib"), toolchain.join("lib")).expect("make a link");
    copy_without_malloc(&rustc, &toolchain.join("bin/rustc"));
}

/// Copies an executable, with the malloc family gone from the names that it exports: their first
/// letters are changed, and nothing ever looks for the new ones. The symbols for debuggers, which have
/// the names too, are stripped.
fn copy_without_malloc(from: &Path, to: &Path) {
    let _alone = masu_lab::execute::alone();
    let aside = to.with_extension("aside");
    let stripped = Command::new("strip").arg("-o").arg(&aside).arg(from).status();
    assert!(stripped.expect("run strip").success(), "the compiler cannot be stripped");
    let mut bytes = fs::read(&aside).expect("read the compiler");
    for name in exported(&bytes) {
        let entry = [b"\0", name.as_bytes(), b"\0"].concat();
        let places: Vec<_> =
            (0..bytes.len() - entry.len()).filter(|&at| bytes[at..].starts_with(&entry)).collect();
        places.into_iter().for_each(|at| bytes[at + 1] = b'?');
    }
    assert!(exported(&bytes).is_empty(), "the compiler's malloc is still there");
    fs::write(&aside, bytes).expect("write the compiler");
    // Another thread may fork while the file is open for writing here, and its child would make
    // the executable "busy": the copy is written by a process without threads.
    let copied = Command::new("install").args([&aside, to]).status().expect("run install");
    assert!(copied.success(), "the copy of the compiler cannot be installed");
}

/// The functions of the malloc family that an executable exports.
fn exported(bytes: &[u8]) -> Vec<String> {
    let file = object::File::parse(bytes).expect("the compiler is an ELF executable");
    file.dynamic_symbols()
        .filter(ObjectSymbol::is_definition)
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| MALLOC_FAMILY.contains(name))
        .map(str::to_owned)
        .collect()
}
