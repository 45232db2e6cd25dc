//! Static libraries: only the needed members are loaded. Programs that use Debian's libraries, compiled without flags,
//! print the same as when the system's linker linked them.

mod fixture;
#[cfg(target_arch = "x86_64")]
#[path = "fixture/program.rs"]
mod program;

use fixture::{CC, Workshop, call, quiet};
use masu_code::{Archive, Error};

const AR: &str = if cfg!(target_arch = "aarch64") { "aarch64-linux-gnu-ar" } else { "ar" };

/// Members that need each other, a member that nothing needs, and a member that defines a symbol of another member.
fn members(workshop: &Workshop) {
    for (name, text) in [
        ("one.c", "extern long two(void); long one(void) { return two() + 1; }"),
        ("two.c", "extern long count; long two(void) { return ++count; }"),
        ("count.c", "long count = 40;"),
        ("again.c", "long two(void) { return 9; }"),
        ("unused.c", "extern long nobody(void); long unused(void) { return nobody(); }"),
    ] {
        workshop.compile(CC, name, text, &["-O2", "-fPIC"]);
    }
    let objects = ["one.c.o", "two.c.o", "again.c.o", "unused.c.o"];
    workshop.run(AR, &[&["rcs", "libfirst.a"], &objects[..]].concat());
    workshop.run(AR, &["rcs", "libsecond.a", "count.c.o"]);
    workshop.run(AR, &[&["rcsT", "libthin.a"], &objects[..], &["count.c.o"]].concat());
    workshop.run(AR, &["rcS", "libbare.a", "count.c.o"]);
    workshop.run(AR, &["rc", "libempty.a"]);
}

#[test]
fn members_are_loaded_that_are_needed_and_once() {
    let workshop = Workshop::open();
    members(&workshop);
    let archive = |name: &str| Archive::file(workshop.path(name)).unwrap();
    // The order of the libraries does not matter.
    for names in [
        &["libfirst.a", "libsecond.a"][..],
        &["libempty.a", "libsecond.a", "libfirst.a"],
        &["libthin.a"],
    ] {
        let archives: Vec<Archive> = names.iter().map(|name| archive(name)).collect();
        let arena = quiet();
        let text = "extern long one(void), weak(void) __attribute__((weak)); long f(void) { return one(); }";
        let f = workshop.c("f.c", text);
        // SAFETY: No initializers.
        let objects = unsafe { arena.load_with([f], &archives) }.unwrap();
        assert_eq!((call(&arena, objects[0], "f"), objects.len()), (42, 4), "{names:?}");
        assert!(arena.find("unused").is_none());
        // A loaded member is not loaded again.
        let g = workshop.c("g.c", "extern long two(void); long g(void) { return two(); }");
        // SAFETY: As above.
        let more = unsafe { arena.load_with([g], &archives) }.unwrap();
        assert_eq!((call(&arena, more[0], "g"), more.len()), (42, 1));
        arena.unload_all(&[objects, more].concat()).unwrap();
        assert_eq!(arena.report().objects, 0);
    }
}

#[test]
fn threads_that_need_one_member_share_it() {
    let workshop = Workshop::open();
    members(&workshop);
    let archives =
        ["libfirst.a", "libsecond.a"].map(|name| Archive::file(workshop.path(name)).unwrap());
    let user =
        workshop.c("f.c", "extern long one(void); long f(void) { return one() != 0; }").private();
    let arena = quiet();
    let start = std::sync::Barrier::new(2);
    for _ in 0..200 {
        let load = || {
            start.wait();
            // SAFETY: No initializers.
            unsafe { arena.load_with([&user], &archives) }.unwrap_or_else(|error| panic!("{error}"))
        };
        let loaded = std::thread::scope(|scope| {
            [scope.spawn(load), scope.spawn(load)].map(|thread| thread.join().unwrap())
        });
        assert!(loaded.iter().all(|objects| call(&arena, objects[0], "f") == 1));
        let objects = loaded.concat();
        assert_eq!(objects.len(), 2 + 3, "two users, and each member once");
        arena.unload_all(&objects).unwrap();
        assert_eq!(arena.report().objects, 0);
    }
}

#[test]
fn what_is_wrong_with_a_library_is_named() {
    let (workshop, arena) = (Workshop::open(), quiet());
    members(&workshop);
    let file = |name: &str| Archive::file(workshop.path(name));
    let text = "extern long count, unused(void); long f(void) { return count + unused(); }";
    let f = workshop.c("f.c", text);
    let said = |archives: &[Archive]| -> String {
        // SAFETY: Nothing is loaded.
        unsafe { arena.load_with([&f], archives) }.unwrap_err().to_string()
    };
    let bare = said(&[file("libbare.a").unwrap()]);
    assert!(bare.contains("libbare.a") && bare.contains("ranlib"), "{bare}");
    let undefined = said(&[file("libfirst.a").unwrap(), file("libsecond.a").unwrap()]);
    assert!(undefined.contains("libfirst.a(unused.c.o): .text+"), "{undefined}");
    assert!(undefined.contains("`nobody`"), "{undefined}");
    let thin = file("libthin.a").unwrap();
    std::fs::remove_file(workshop.path("count.c.o")).unwrap();
    let gone = said(&[thin]);
    assert!(gone.contains("cannot read") && gone.contains("count.c.o"), "{gone}");
    // A device may have no end, and a pipe may never say anything.
    std::os::unix::fs::symlink("/dev/null", workshop.path("count.c.o")).unwrap();
    let device = said(&[file("libthin.a").unwrap()]);
    assert!(device.contains("count.c.o") && device.contains("regular file"), "{device}");
    assert!(matches!(file("f.c.o"), Err(Error::Malformed { .. })));
    assert_eq!(arena.report().objects, 0);
}

#[cfg(target_arch = "x86_64")]
mod debian {
    use std::path::PathBuf;

    use super::fixture::{CC, CXX, WAYS, Workshop, options, text};
    use super::program::{run, share};
    use masu_code::{Archive, Arena, Options, Place, Source, Tools};

    fn archive(name: &str) -> PathBuf {
        PathBuf::from("/usr/lib/x86_64-linux-gnu").join(name)
    }

    /// Checks that a program prints the same where the arena takes the needed members of static libraries, and where
    /// the system's linker did. Returns its output.
    fn prints_the_same(compiler: &str, (name, flag): (&str, &str), libraries: &[&str]) -> String {
        let workshop = Workshop::open();
        let object = workshop.compile(compiler, name, &text(name), &["-O1", "-w", flag]);
        let object = object.display().to_string();
        let paths: Vec<String> =
            libraries.iter().map(|name| archive(name).display().to_string()).collect();
        let words: Vec<&str> = paths.iter().map(String::as_str).collect();
        let more = ["-o", "linked", "-lm", "-lpthread", "-ldl"];
        workshop.run(compiler, &[&[object.as_str()], &words[..], &more].concat());
        let linked = workshop.run(&workshop.path("linked").display().to_string(), &[]);
        assert!(linked.lines().count() > 2, "{linked}");
        let archives: Vec<Archive> =
            paths.iter().map(|path| Archive::file(path).unwrap()).collect();
        let source = Source::file(object).unwrap();
        for &writing in WAYS {
            // These libraries use the C library's `stderr` as the code of a program does.
            let place = Place::NearLibraries;
            let tools = Tools::default();
            let arena = Arena::open(Options { writing, place, tools, ..options() }).unwrap();
            // SAFETY: No initializers but the libraries'.
            let objects = unsafe { arena.load_with([&source], &archives) };
            let objects = objects.unwrap_or_else(|error| panic!("{error}"));
            let (said, status) = run(&arena, &objects, &["./linked"], &workshop.path(""));
            assert_eq!((said.as_str(), status), (linked.as_str(), 0), "{writing:?}");
        }
        linked
    }

    fn library(flag: &str, libraries: &[&str]) -> String {
        prints_the_same(CC, ("libraries.c", flag), libraries)
    }

    #[test]
    fn zlib_and_bzip2_compute_what_linked_they_do() {
        library("-DWITH_Z", &["libz.a"]);
        library("-DWITH_BZ2", &["libbz2.a"]);
    }

    #[test]
    fn xz_with_threads_computes_what_linked_it_does() {
        library("-DWITH_LZMA", &["liblzma.a"]);
    }

    #[test]
    fn png_on_zlib_and_the_math_library_computes_what_linked_it_does() {
        share(c"libm.so.6");
        library("-DWITH_PNG", &["libpng.a", "libz.a"]);
    }

    #[test]
    fn gmp_computes_what_linked_it_does() {
        library("-DWITH_GMP", &["libgmp.a"]);
    }

    #[test]
    fn sqlite_computes_what_linked_it_does() {
        share(c"libm.so.6");
        prints_the_same(CC, ("sql.c", "-DX"), &["libsqlite3.a"]);
    }

    #[test]
    fn openssl_computes_what_linked_it_does() {
        let said = library("-DWITH_CRYPTO", &["libcrypto.a"]);
        assert!(said.contains("signed by ED25519: 4, forged: 0"), "{said}");
    }

    #[test]
    fn googletest_catches_what_is_thrown() {
        share(c"libstdc++.so.6");
        let said = prints_the_same(CXX, ("throws.cpp", "-std=c++17"), &["libgtest.a"]);
        assert!(said.contains("nobody catches this"), "{said}");
    }
}
