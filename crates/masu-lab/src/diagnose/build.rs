//! The test whether a program was compiled without optimization.
//!
//! Relies on traces that compilers leave: cargo leaves its folders, gcc its options in the debug information. If
//! neither is there, nothing is claimed: most programs have no debug information, and the slow part may be the
//! program itself. The difficulty is that others compile parts of a program: the C library's start files are always
//! optimized, so they do not make up for the rest.

use std::path::Path;

use super::facts::Build;
use masu_run::program::elf;

/// The most bytes of the debug information's text that are read.
const TEXT_MAX: usize = 32 << 20;

/// The build of the program in this file.
pub(super) fn of(path: &Path) -> Build {
    let unoptimized = if is_of_cargos_debug_profile(path) {
        Some("it lies in cargo's folder for debug builds".to_owned())
    } else {
        [&b".debug_str"[..], b".debug_line_str"].into_iter().find_map(|name| {
            let text = elf::section(path, name, TEXT_MAX)?;
            unoptimized_parts(&text)
        })
    };
    // The debug profile may have been set to optimize, and its folder keeps the same name.
    let is_certain = unoptimized.is_some() && !is_of_cargos_debug_profile(path);
    Build { path: path.to_owned(), unoptimized, is_certain }
}

/// Whether the path is `target/debug/program` or `target/TRIPLE/debug/deps/program`. The tag that cargo puts into
/// `target` identifies that folder.
fn is_of_cargos_debug_profile(path: &Path) -> bool {
    let is_debug = |folder: &&Path| folder.file_name().is_some_and(|name| name == "debug");
    let Some(debug) = path.ancestors().skip(1).take(3).find(is_debug) else { return false };
    let marked = |folder: &Path| {
        folder.join("CACHEDIR.TAG").is_file() || folder.join(".rustc_info.json").is_file()
    };
    debug.ancestors().skip(1).take(2).any(marked)
}

/// gcc's options for the parts of a program, from a section of strings, if all parts that record their options were
/// compiled without optimization.
fn unoptimized_parts(text: &[u8]) -> Option<String> {
    let strings = text.split(|byte| *byte == 0);
    let producers = strings.filter(|string| string.starts_with(b"GNU C"));
    let options = |producer: &[u8]| {
        let text = String::from_utf8_lossy(producer).into_owned();
        // Without any options on record, nothing is known.
        text.contains(" -m").then_some(text)
    };
    let flags: Vec<String> = producers.filter_map(options).collect();
    let is_optimized = |text: &String| {
        let level = text.split(' ').filter_map(|word| word.strip_prefix("-O")).next_back();
        level.is_some_and(|level| level != "0")
    };
    let first = flags.first()?;
    let compiler: Vec<&str> = first.split(" -").next()?.split(' ').take(3).collect();
    (!flags.iter().any(is_optimized))
        .then(|| format!("{} was given no -O, its debug information says", compiler.join(" ")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_part_without_an_option_is_not_optimized_and_one_with_it_is() {
        let plain = &b"main.c\0GNU C17 12.2.0 -mtune=generic -march=x86-64 -g\0int\0"[..];
        let flags = unoptimized_parts(plain).unwrap();
        assert!(flags.starts_with("GNU C17 12.2.0 was given no -O"), "{flags}");
        let zero = b"GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -O2 -O0\0";
        assert!(unoptimized_parts(zero).is_some());
        for text in [
            &b"GNU C17 12.2.0 -mtune=generic -march=x86-64 -g -O2\0"[..],
            // One part of the program is the slow one, and nobody knows which.
            b"GNU C17 12.2.0 -mtune=generic -g\0GNU C++17 12.2.0 -mtune=generic -O3\0",
            b"GNU C17 12.2.0\0",
            b"clang version 14\0",
            b"",
        ] {
            assert_eq!(unoptimized_parts(text), None);
        }
    }

    #[test]
    fn cargos_folder_is_known_by_its_mark() {
        let folder = std::env::temp_dir().join(format!("masu-build-{}", std::process::id()));
        let debug = folder.join("target/debug");
        fs::create_dir_all(debug.join("deps")).unwrap();
        let program = debug.join("deps/program");
        fs::write(&program, "no program").unwrap();
        let before = of(&program).unoptimized;
        fs::write(folder.join("target/CACHEDIR.TAG"), "").unwrap();
        let after = of(&program);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(before, None);
        assert!(after.unoptimized.is_some() && !after.is_certain, "{after:?}");
        assert!(!is_of_cargos_debug_profile(Path::new("/usr/bin/true")));
    }
}
