//! Real libraries in the arena: googletest and miniz_oxide with their own tests, and objects of rustc, each compared with the
//! same linked by the system's linker. `archives.rs` has libraries in C.
#![cfg(target_arch = "x86_64")]

mod fixture;
#[path = "fixture/program.rs"]
mod program;

use std::ffi::CString;
use std::path::Path;

use fixture::{CXX, Workshop, call, load_all, options, quiet};
use masu_code::{Archive, Arena, Options, Source, Tools};
use program::{run, share};

fn library(path: &str) -> Vec<Source> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Source::archive(path, &bytes).unwrap()
}

#[test]
fn objects_of_rustc_run() {
    let workshop = Workshop::open();
    let text = "#![no_std]\n\
        use core::fmt::Write;\n\
        struct Sum(i64);\n\
        impl Write for Sum { fn write_str(&mut self, s: &str) -> core::fmt::Result {\n\
          for b in s.bytes() { self.0 = self.0 * 31 % 1_000_003 + b as i64; } Ok(()) } }\n\
        static TABLE: [&(dyn Fn(i64) -> i64 + Sync); 3] = [&|x| x + 1, &|x| x * 3, &|x| x - 7];\n\
        #[unsafe(no_mangle)] pub extern \"C\" fn check() -> i64 {\n\
          let mut sum = Sum(7);\n\
          for (i, f) in TABLE.iter().cycle().take(20).enumerate() {\n\
            write!(sum, \"{:>5}|{:x}|{:?};\", f(i as i64), i, Some(i as f64 / 4.0)).unwrap();\n\
          }\n\
          sum.0 }\n";
    // The same with a program around it, linked by rustc.
    let program = text.replace("#![no_std]\n", "") + "fn main() { println!(\"{}\", check()); }\n";
    std::fs::write(workshop.path("program.rs"), program).unwrap();
    // The parts that the standard library brings to every program, less the parts that need a program.
    let ends = "#[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n\
                #[unsafe(no_mangle)] extern \"C\" fn rust_eh_personality() {}\n";
    std::fs::write(workshop.path("it.rs"), text.to_owned() + ends).unwrap();
    let common = ["--edition=2024", "-O", "-Cpanic=abort"];
    workshop.run("rustc", &[&common[..], &["program.rs", "-o", "program"]].concat());
    let expected = workshop.run(&workshop.path("program").display().to_string(), &[]);
    let flags = ["--crate-type=staticlib", "-Ccodegen-units=3", "it.rs", "-o", "libit.a"];
    workshop.run("rustc", &[&common[..], &flags].concat());
    let sources = library(&workshop.path("libit.a").display().to_string());
    let arena = quiet();
    let objects = load_all(&arena, &sources);
    let with = objects.iter().position(|&object| arena.symbol(object, "check").is_ok()).unwrap();
    assert_eq!(call(&arena, objects[with], "check").to_string(), expected.trim());
}

#[test]
fn a_cxx_library_passes_tests_of_its_own_in_the_arena() {
    // Debian's googletest: the library with its samples, which are tests, and tests of its own parts.
    share(c"libstdc++.so.6");
    let (workshop, root) = (Workshop::open(), Path::new("/usr/src/googletest/googletest"));
    let include = format!("-I{}", root.display());
    let flags = ["-std=c++17", "-O1", "-fPIC", "-w", &include];
    let mut objects = Vec::new();
    let names = [
        "samples/sample1.cc",
        "samples/sample2.cc",
        "samples/sample4.cc",
        "samples/sample1_unittest.cc",
        "samples/sample2_unittest.cc",
        "samples/sample3_unittest.cc",
        "samples/sample4_unittest.cc",
        "samples/sample5_unittest.cc",
        "samples/sample6_unittest.cc",
        "samples/sample7_unittest.cc",
        "samples/sample8_unittest.cc",
        "test/googletest-message-test.cc",
        "test/googletest-test-part-test.cc",
        "test/gtest_prod_test.cc",
        "test/production.cc",
    ];
    for name in names {
        let object = format!("{}.o", name.replace('/', "-"));
        let source = root.join(name).display().to_string();
        workshop.run(CXX, &[&flags[..], &["-c", &source, "-o", &object]].concat());
        objects.push(object);
    }
    let archives =
        ["/usr/lib/x86_64-linux-gnu/libgtest_main.a", "/usr/lib/x86_64-linux-gnu/libgtest.a"];
    let words: Vec<&str> = objects.iter().map(String::as_str).collect();
    workshop.run(CXX, &[&words[..], &archives, &["-o", "linked"]].concat());
    let linked =
        workshop.run(&workshop.path("linked").display().to_string(), &["--gtest_print_time=0"]);
    let mut sources = library(archives[0]);
    sources.extend(objects.iter().map(|name| Source::file(workshop.path(name)).unwrap()));
    sources.extend(library(archives[1]));
    let arena = Arena::open(Options { tools: Tools::default(), ..options() }).unwrap();
    let program = workshop.path("linked").display().to_string();
    let (said, status) = run(
        &arena,
        &load_all(&arena, &sources),
        &[&program, "--gtest_print_time=0"],
        &workshop.path(""),
    );
    assert_eq!((said.as_str(), status), (linked.as_str(), 0));
    assert!(linked.contains("[  PASSED  ] ") && linked.lines().count() > 60, "{linked}");
}

/// The folder of a crate's source that cargo fetched for this crate.
fn crate_source(name: &str) -> std::path::PathBuf {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--format-version=1"]);
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let mark = "\"manifest_path\":\"";
    let paths = said.split(mark).skip(1).filter_map(|rest| rest.split_once('"'));
    let folder = |(path, _): (&str, &str)| Some(Path::new(path).parent()?.to_path_buf());
    let is_it = |folder: &std::path::PathBuf| {
        let last = folder.file_name().unwrap_or_default().to_string_lossy();
        last.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
    };
    let found = paths.filter_map(folder).find(is_it);
    found.unwrap_or_else(|| {
        panic!("cargo has no {name}: {}", String::from_utf8_lossy(&output.stderr))
    })
}

#[test]
fn a_rust_library_passes_its_own_tests_in_the_arena() {
    let workshop = Workshop::open();
    let place = |name: &str| crate_source(name).join("src/lib.rs").display().to_string();
    let common =
        ["--edition=2021", "-O", "-Cprefer-dynamic", "-Ccodegen-units=1", "--cap-lints=allow"];
    let compile = |arguments: &[&str]| workshop.run("rustc", &[&common[..], arguments].concat());
    compile(&["--crate-type=rlib", "--crate-name=adler2", &place("adler2")]);
    // The crate's tests and their `main`: rustc links the program, and the arena loads the object.
    let name = ["--test", "--crate-name=miniz_oxide", "--extern=adler2=libadler2.rlib"];
    let kinds = ["--cfg=feature=\"with-alloc\"", "--emit=obj,link"];
    compile(&[&name[..], &kinds, &[&place("miniz_oxide")]].concat());
    let libraries = workshop.run("rustc", &["--print=target-libdir"]);
    let file = |start: &str, end: &str| {
        let entries =
            std::fs::read_dir(libraries.trim()).unwrap().map(|entry| entry.unwrap().path());
        let is_it = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        };
        entries.into_iter().find(is_it).unwrap_or_else(|| panic!("no {start}…{end}"))
    };
    let standard = file("libstd-", ".so");
    share(&CString::new(standard.as_os_str().as_encoded_bytes()).unwrap());
    // The harness has thread-local variables.
    let needed =
        [file("libtest-", ".rlib"), file("libgetopts-", ".rlib"), workshop.path("libadler2.rlib")];
    let needed = needed.map(|path| Archive::file(path).unwrap());
    // The order of tests and the time they take depend on the harness.
    let lines = |said: &str| -> Vec<String> {
        let kept = said.lines().map(|line| line.split("; finished in").next().unwrap_or(line));
        kept.map(str::to_owned).collect()
    };
    let search = format!("LD_LIBRARY_PATH={}", libraries.trim());
    let linked = workshop.run("env", &[&search, "./miniz_oxide", "--test-threads=1"]);
    let source = Source::file(workshop.path("miniz_oxide.o")).unwrap();
    let arena = Arena::open(Options { tools: Tools::default(), ..options() }).unwrap();
    // SAFETY: No initializers.
    let objects = unsafe { arena.load_with([source], &needed) };
    let objects = objects.unwrap_or_else(|error| panic!("{error}"));
    let arguments = ["miniz_oxide", "--test-threads=1"];
    let (said, status) = run(&arena, &objects, &arguments, &workshop.path(""));
    assert_eq!((lines(&said), status), (lines(&linked), 0));
    assert!(linked.contains("test result: ok. 2") && linked.lines().count() > 20, "{linked}");
}
