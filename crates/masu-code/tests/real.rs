//! Real libraries loaded by the arena: zlib with its own test program, sqlite with all its objects, and
//! objects of rustc, each against the same linked by the system's linker.
#![cfg(target_arch = "x86_64")]

mod fixture;

use std::ffi::{CString, c_char, c_int};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::Path;

use fixture::{CC, Workshop, call, options, quiet, text};
use masu_code::{Arena, Options, Source, Tools};

/// What `main` of loaded objects prints and returns, in a child process of its own.
fn run(arena: &Arena, sources: &[Source], arguments: &[&str], folder: &Path) -> (String, i32) {
    let folder = CString::new(folder.as_os_str().as_encoded_bytes()).unwrap();
    let mut ends = [0; 2];
    // SAFETY: Two places for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: No initialisers but the libraries'.
    let objects = unsafe { arena.load_all(sources) }.unwrap_or_else(|error| panic!("{error}"));
    type Main = extern "C" fn(c_int, *const *const c_char) -> c_int;
    // SAFETY: The first object has a `main`.
    let main = unsafe { arena.function::<Main>(objects[0], "main") }.unwrap();
    let words: Vec<CString> = arguments.iter().map(|word| CString::new(*word).unwrap()).collect();
    let mut words: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    words.push(std::ptr::null());
    // SAFETY: The child runs loaded code and the C library, and ends without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: As above.
        unsafe {
            libc::dup2(ends[1], 1);
            libc::chdir(folder.as_ptr());
            let code = main(words.len() as c_int - 1, words.as_ptr());
            libc::fflush(std::ptr::null_mut());
            libc::_exit(code);
        }
    }
    // SAFETY: The descriptors are this function's.
    unsafe { libc::close(ends[1]) };
    let mut said = String::new();
    // SAFETY: As above.
    let mut pipe = unsafe { std::fs::File::from_raw_fd(ends[0]) };
    pipe.read_to_string(&mut said).unwrap();
    let mut status = 0;
    // SAFETY: Waits for the child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    drop(main);
    objects.into_iter().for_each(|object| arena.unload(object).unwrap());
    assert_eq!(arena.report().text.used, 0);
    (said, status)
}

fn library(path: &str) -> Vec<Source> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Source::archive(path, &bytes).unwrap()
}

/// A C library that loaded code needs and this program may not have.
fn need(name: &std::ffi::CStr) {
    // SAFETY: A library of the system.
    assert!(!unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) }.is_null());
}

#[test]
fn zlib_passes_its_own_test_program_in_the_arena() {
    let workshop = Workshop::open();
    let example = std::fs::read_to_string("/usr/share/doc/zlib1g-dev/examples/example.c").unwrap();
    let example = workshop.compile(CC, "example.c", &example, &["-O2", "-fPIC", "-w"]);
    workshop.run(CC, &["example.c.o", "-o", "example", "-lz"]);
    let linked = workshop.run(&workshop.path("example").display().to_string(), &["linked.gz"]);
    let mut sources = vec![Source::file(example).unwrap()];
    sources.extend(library("/usr/lib/x86_64-linux-gnu/libz.a"));
    for &writing in fixture::WAYS {
        let arena = Arena::open(Options { writing, ..options() }).unwrap();
        let (said, status) = run(&arena, &sources, &["example", "loaded.gz"], &workshop.path(""));
        assert_eq!((said.as_str(), status), (linked.as_str(), 0), "{writing:?}");
    }
    assert!(linked.contains("large_inflate(): OK"), "{linked}");
    let files = ["linked.gz", "loaded.gz"].map(|name| std::fs::read(workshop.path(name)).unwrap());
    assert_eq!(files[0], files[1]);
}

#[test]
fn sqlite_answers_as_the_library_does() {
    need(c"libm.so.6");
    let workshop = Workshop::open();
    let driver = workshop.compile(CC, "sql.c", &text("sql.c"), &["-O2", "-fPIC"]);
    workshop.run(CC, &["sql.c.o", "-o", "sql", "-lsqlite3"]);
    let linked = workshop.run(&workshop.path("sql").display().to_string(), &[]);
    let mut sources = vec![Source::file(driver).unwrap()];
    sources.extend(library("/usr/lib/x86_64-linux-gnu/libsqlite3.a"));
    assert!(sources.len() > 50);
    let chosen = Options { tools: Tools::default(), ..options() };
    let arena = Arena::open(chosen).unwrap();
    let (said, status) = run(&arena, &sources, &["sql"], &workshop.path(""));
    assert_eq!((said.as_str(), status), (linked.as_str(), 0));
    assert!(linked.lines().count() > 20 && !linked.contains("error"), "{linked}");
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
    // What the standard library brings to every program, less what needs one.
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
    // SAFETY: No initialisers.
    let objects = unsafe { arena.load_all(&sources) }.unwrap_or_else(|error| panic!("{error}"));
    let with = objects.iter().position(|&object| arena.symbol(object, "check").is_ok()).unwrap();
    assert_eq!(call(&arena, objects[with], "check").to_string(), expected.trim());
}
