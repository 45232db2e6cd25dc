//! A program in C can use the installed files: pkg-config finds them, both ways of linking work, and the program runs
//! on them.
//!
//! It relies on gcc, g++ and pkg-config, which `cargo xtask ci` provides, and on groff to read a page.

use std::ffi::OsStr;

use clap::Parser;

use super::*;
use crate::package::clean::talk;
use crate::root;

fn succeeds(command: &mut Command) -> String {
    commands::output(command).unwrap()
}

/// Prints which malloc it got, and whether the header is the library's.
const PROGRAM_TEXT: &str = include_str!("tests/program.c");

#[test]
fn what_is_installed_serves_programs_that_pkg_config_links() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("usr");
    let request = Request { prefix, libraries: "lib".to_owned(), staging: None };
    let installed = request.perform(root().unwrap()).unwrap();
    for path in &installed {
        assert!(path.starts_with(&request.prefix) && path.is_file(), "{}", path.display());
    }
    let source = folder.path().join("program.c");
    fs::write(&source, PROGRAM_TEXT).unwrap();
    let flags = |words: &str| {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", request.place("lib/pkgconfig")).args(words.split(' '));
        succeeds(&mut command).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for (name, compiler, words) in [
        ("dynamic", "gcc", "--cflags --libs masu"),
        ("archive", "gcc", "--cflags --libs masu-static"),
        ("static", "gcc -static", "--static --cflags --libs masu"),
        ("cxx", "g++ -x c++", "--cflags --libs masu"),
        ("cxx-static", "g++ -static -x c++", "--static --cflags --libs masu"),
    ] {
        let program = folder.path().join(name);
        let mut compiler = compiler.split(' ');
        let mut link = Command::new(compiler.next().unwrap());
        link.args(compiler).arg(&source).arg("-o").arg(&program).args(flags(words));
        succeeds(&mut link);
        let mut command = Command::new(&program);
        command.env_clear();
        if ["dynamic", "cxx"].contains(&name) {
            command.env("LD_LIBRARY_PATH", request.place("lib"));
        }
        let printed = talk(&mut command, "").unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert!(printed.contains(&format!("{version} 1 0\n")), "{name}: {printed}");
        assert!(printed.contains("masu"), "{name} is not served by masu: {printed}");
    }
    assert_eq!(flags("--modversion masu"), [env!("CARGO_PKG_VERSION")]);
    let preloaded = succeeds(
        Command::new("sh")
            .args(["-c", "grep -c libmasu.so /proc/self/maps"])
            .env("LD_PRELOAD", request.place("lib/libmasu.so")),
    );
    assert_ne!(preloaded.trim(), "0");
    let names: Vec<&OsStr> = installed.iter().filter_map(|path| path.file_name()).collect();
    let expected =
        "masu masu.1 masu-compare.1 masu.3 _masu masu.fish masu.pc masu-secure.pc masu-config.cmake
        masu-config-version.cmake xquo xquo.1 _xquo xquo.fish masu_code.pc masu_code.3";
    for name in expected.split_whitespace() {
        assert!(names.contains(&OsStr::new(name)), "{name} is missing");
    }
    let needed = loads_code(folder.path(), &request, &flags("--cflags --libs masu_code"));
    assert!(needed.contains("[libmasu_code.so]"), "{needed}");
    let needed = loads_code(folder.path(), &request, &flags("--cflags --libs masu_code-static"));
    assert!(!needed.contains("masu"), "{needed}");
    for name in ["masu", "masu-secure"] {
        let needed = calls_no_malloc(folder.path(), &flags(&format!("--libs {name}")));
        assert!(needed.contains(&format!("[lib{name}.so]")), "{needed}");
    }
    containers_by_cmake(folder.path(), &request);
}

/// Links a program whose only requests are its C library's, by a linker that drops what the program itself does not call;
/// returns the contents of its dynamic section.
fn calls_no_malloc(folder: &Path, flags: &[String]) -> String {
    let (text, program) = (folder.join("quiet.c"), folder.join("quiet"));
    fs::write(&text, "int puts(const char *); int main(void) { return puts(\"\") < 0; }\n")
        .unwrap();
    let mut link = Command::new("gcc");
    succeeds(link.arg("-Wl,--as-needed").arg(&text).arg("-o").arg(&program).args(flags));
    succeeds(Command::new("readelf").arg("-d").arg(&program))
}

/// Containers in a heap, by the header for C++.
const CONTAINERS_TEXT: &str = include_str!("tests/containers.cpp");

const CONTAINERS_PROJECT: &str = include_str!("tests/CMakeLists.txt");

/// A project in C++ that CMake links with the installed files.
fn containers_by_cmake(folder: &Path, request: &Request) {
    let project = folder.join("containers");
    files::write(&project.join("containers.cpp"), CONTAINERS_TEXT).unwrap();
    files::write(&project.join("CMakeLists.txt"), CONTAINERS_PROJECT).unwrap();
    let built = project.join("built");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&project).arg("-B").arg(&built);
    succeeds(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", request.prefix.display())));
    succeeds(Command::new("cmake").arg("--build").arg(&built));
    for kind in ["masu", "secure", "static"] {
        let live_blocks = succeeds(&mut Command::new(built.join(kind)));
        assert_eq!(live_blocks, "101\n", "{kind}: a block for each word, one for the vector");
        let needed = succeeds(Command::new("readelf").arg("-d").arg(built.join(kind)));
        for (library, of) in [("libmasu.so", "masu"), ("libmasu-secure.so", "secure")] {
            assert_eq!(needed.contains(library), kind == of, "{kind}: {needed}");
        }
    }
}

/// Loads `square` from an object into an arena, and calls it.
const LOADER_TEXT: &str = include_str!("tests/loader.c");

/// Runs a program that pkg-config links with the code arena; returns the contents of its dynamic section.
fn loads_code(folder: &Path, request: &Request, flags: &[String]) -> String {
    let (loader, object) = (folder.join("loader"), folder.join("square.o"));
    let (loader_text, square_text) = (folder.join("loader.c"), folder.join("square.c"));
    fs::write(&loader_text, LOADER_TEXT).unwrap();
    fs::write(&square_text, "int square(int x) { return x * x; }\n").unwrap();
    succeeds(Command::new("gcc").arg("-c").arg(&square_text).arg("-o").arg(&object));
    succeeds(Command::new("gcc").arg(&loader_text).arg("-o").arg(&loader).args(flags));
    let mut run = Command::new(&loader);
    run.arg(&object).env("LD_LIBRARY_PATH", request.place("lib"));
    assert_eq!(succeeds(&mut run), "49\n");
    succeeds(Command::new("readelf").arg("-d").arg(&loader))
}

#[test]
fn a_package_is_made_aside_and_speaks_of_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let staging = folder.path().join("package");
    let request = Request {
        prefix: "/opt/masu".into(),
        libraries: "lib/here".to_owned(),
        staging: Some(staging.clone()),
    };
    let installed = request.perform(root().unwrap()).unwrap();
    assert!(installed.iter().all(|path| path.starts_with(staging.join("opt/masu"))));
    let file = fs::read_to_string(staging.join("opt/masu/lib/here/pkgconfig/masu.pc")).unwrap();
    assert!(file.starts_with("prefix=/opt/masu\nlibdir=${prefix}/lib/here\n"), "{file}");
    assert!(!file.contains("package"), "{file}");
    for path in installed {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let is_program = ["masu", "xquo", "libmasu.so", "libmasu-secure.so", "libmasu_code.so"]
            .iter()
            .any(|name| {
                path.file_name() == Some(OsStr::new(name))
                    && !path.to_string_lossy().contains("share")
            });
        assert_eq!(mode, if is_program { 0o755 } else { 0o644 }, "{}", path.display());
    }
}

#[test]
fn a_file_in_use_is_replaced_and_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/file");
    write(&path, b"old", FILE).unwrap();
    let held = fs::File::open(&path).unwrap();
    write(&path, b"newer", FILE).unwrap();
    assert_eq!(std::io::read_to_string(held).unwrap(), "old");
    assert_eq!(fs::read(&path).unwrap(), b"newer");
    assert_eq!(files::list(&folder.path().join("deep")).unwrap(), [path], "nothing is left aside");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for wrong in ["--prefix=here", "--destdir=x", "--libdir=/x"] {
        assert!(Request::try_parse_from(["install", wrong]).is_err(), "{wrong}");
    }
    let request = Request::try_parse_from(["install"]).unwrap();
    assert_eq!(request.place("lib/x"), Path::new("/usr/local/lib/x"));
}

#[test]
fn pages_of_headers_have_every_function() {
    let read = |path: &str| files::read(&root().unwrap().join(path)).unwrap();
    let malloc = read("crates/masu-abi/include/masu.h");
    let code = read("crates/masu-code-abi/include/masu_code.h");
    // The rest of the malloc family has pages of its own.
    let after_family = malloc.split_once("---- The library").unwrap().1;
    for (page, declarations) in
        [(manual::MALLOC.of(&malloc), after_family), (manual::CODE.of(&code), &code)]
    {
        let calls = declarations.match_indices("masu_").filter_map(|(at, _)| {
            let name: String = declarations[at..]
                .chars()
                .take_while(|&letter| letter.is_ascii_lowercase() || letter == '_')
                .collect();
            declarations[at + name.len()..].starts_with('(').then_some(name)
        });
        let calls: std::collections::BTreeSet<String> = calls.collect();
        assert!(calls.len() >= 20, "{calls:?}");
        for name in calls {
            assert!(page.contains(&format!("{name}(")), "{name} is missing:\n{page}");
        }
        for mark in ["MASU_API", "MASU_NOTHROW", "MASU_ATTRIBUTE", "COUPLING", "#endif"] {
            assert!(!page.contains(mark), "{mark} is no word for a reader:\n{page}");
        }
    }
}
