//! `include/masu.h` and `masu.hpp` compile everywhere, and programs that include them work.
//!
//! It relies on gcc and, if installed, on clang and musl's wrapper of gcc. `masu.h` redeclares functions of the C
//! library, which is an error as soon as one attribute or exception specification differs in one mode of one language.
//! So every mode is compiled, with warnings as errors.

mod library;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const C: [&str; 5] = ["c89", "c99", "c11", "gnu11", "gnu2x"];
const CXX: [&str; 5] = ["c++98", "c++11", "c++17", "c++20", "gnu++20"];
const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

fn folder() -> PathBuf {
    let header = library::header();
    header.parent().expect("a file is in a folder").to_owned()
}

struct Use {
    header: &'static str,
    body: &'static str,
}

const PLAIN: Use = Use {
    header: "masu.h",
    body: "int main(void) { free(malloc(1)); return masu_version() == NULL; }\n",
};

const CONTAINERS: Use = Use {
    header: "masu.hpp",
    body: "#include <vector>\n\
           int main() { masu::heap heap; std::vector<int, masu::allocator<int>> one(heap); one.resize(9); }\n",
};

/// Checks a program that includes the header only, and a program that includes other headers before and after.
fn is_clean(compiler: &str, language: &str, standard: &str, more: &[&str], used: &Use) {
    let Use { header, body } = used;
    let alone = format!("#include <{header}>\n");
    let around = format!(
        "#undef _GNU_SOURCE\n#define _GNU_SOURCE\n#include <stdlib.h>\n#include <malloc.h>\n{alone}\
         #include <stdlib.h>\n#include <string.h>\n"
    );
    for (kind, text) in [("alone", alone), ("around", around)] {
        let more_text = more.concat();
        let name = format!("{header}-{compiler}-{standard}{more_text}-{kind}.txt");
        let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&source, format!("{text}{body}")).expect("the target folder is writable");
        let mut command = Command::new(compiler);
        command.args(["-x", language, "-fsyntax-only"]).arg(format!("-std={standard}"));
        command.args(STRICT).args(more).arg("-I").arg(folder()).arg(&source);
        library::succeeds(&mut command);
    }
}

fn has(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        eprintln!("not tested: there is no {compiler}");
    }
    found
}

#[test]
fn every_c_compiler_accepts_it_without_warnings() {
    for compiler in ["cc", "clang", "musl-gcc"].into_iter().filter(|compiler| has(compiler)) {
        for standard in C {
            is_clean(compiler, "c", standard, &[], &PLAIN);
        }
    }
}

#[test]
fn every_cxx_compiler_accepts_it_without_warnings() {
    for compiler in ["c++", "clang++"].into_iter().filter(|compiler| has(compiler)) {
        for standard in CXX {
            is_clean(compiler, "c++", standard, &[], &PLAIN);
            if standard != "c++98" {
                is_clean(compiler, "c++", standard, &[], &CONTAINERS);
                is_clean(compiler, "c++", standard, &["-fno-rtti", "-fno-exceptions"], &CONTAINERS);
            }
        }
    }
}

/// A program that is linked with the library by its name, as a user links it.
fn linked() -> PathBuf {
    let arguments = [&library::linked_by_name()[..], &["-pedantic"]].concat();
    library::compile("interface.c", "linked", &arguments)
}

#[test]
fn its_version_is_the_library_s() {
    let printed = library::succeeds(Command::new(linked()).arg("version"));
    let [text, number, library] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}");
    };
    assert_eq!(text, env!("CARGO_PKG_VERSION"));
    assert_eq!(library, text);
    let parts: Vec<u32> = text.split('.').map(|part| part.parse().expect("a number")).collect();
    assert_eq!(number, (10_000 * parts[0] + 100 * parts[1] + parts[2]).to_string());
}

#[test]
fn options_are_set_and_refused_by_name() {
    library::succeeds(Command::new(linked()).env_remove("MASU_RETAIN").arg("options"));
}
