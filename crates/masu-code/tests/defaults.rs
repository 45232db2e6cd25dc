//! Objects that compilers make without flags, and a linker's additions to a program: functions of the C library that
//! record their caller, addresses of the process, functions that choose their implementation at load.

mod fixture;

use std::ffi::{c_int, c_void};

use fixture::{CC, Workshop, call, load, load_all, options, quiet};
use masu_code::{Arena, Options, Place};

/// A Debian compiler's default.
const DEFAULT: &[&str] = &["-O2", "-fPIE"];

unsafe extern "C" {
    static optind: c_int;
}

/// The exit status of a child that runs `what`.
fn in_child(what: impl FnOnce()) -> c_int {
    let mut status = 0;
    // SAFETY: The child runs loaded code and the C library, and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            what();
            libc::exit(9);
        }
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    status >> 8 & 0xff
}

#[test]
fn what_was_noted_for_the_end_runs_when_its_object_goes_or_the_program_ends() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let keeps = workshop.c("keeps.c", "long count; long f(void) { return count; }");
    let text = "#include <stdlib.h>\n#include <pthread.h>\nextern long count;\n\
        static void one(void) { count = count * 10 + 1; } static void two(void) { count = count * 10 + 2; }\n\
        static void forked(void) { count = 7; } static void last(void) { if (count == 7) _Exit(5); }\n\
        long begin(void) { return atexit(one) + atexit(two) + at_quick_exit(one); }\n\
        long fork_too(void) { return pthread_atfork(0, 0, forked) + atexit(last); }\n\
        __attribute__((destructor)) static void end(void) { count = count * 10 + 3; }\n";
    let keeps = load(&arena, keeps);
    for _ in 0..2 {
        let source = workshop.source(CC, "notes.c", text, &["-O2", "-fPIC"]);
        let object = load(&arena, source);
        assert_eq!((call(&arena, object, "begin"), call(&arena, keeps, "f") % 1000), (0, 0));
        arena.unload(object).unwrap();
        assert_eq!(call(&arena, keeps, "f") % 1000, 213, "the last first");
        call(&arena, keeps, "f");
        let count = arena.symbol(keeps, "count").unwrap() as *mut i64;
        // SAFETY: The address is a variable of the object, which is loaded.
        unsafe { count.write(0) };
    }
    // SAFETY: As above.
    let object =
        unsafe { arena.load(workshop.source(CC, "notes.c", text, &["-O2", "-fPIC"])) }.unwrap();
    assert_eq!(call(&arena, object, "fork_too"), 0);
    assert_eq!(in_child(|| ()), 5, "the child was noticed, and its end");
    arena.unload(object).unwrap();
    assert_eq!(in_child(|| ()), 9, "nothing of it is left in the C library's lists");
}

#[test]
fn addresses_of_functions_and_variables_are_the_processs_own() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "#include <string.h>\n#include <sys/stat.h>\nextern int optind;\n\
        long of_function(void) { return (long)strlen; } long of_variable(void) { return (long)&optind; }\n\
        long behind(void) { return (long)(&optind + 3); } long (*in_data)(void) = (void *)strlen;\n\
        long from_data(void) { return (long)in_data; }\n\
        long of_file(void) { struct stat s; return stat(\"/\", &s) + lstat(\"/\", &s) + S_ISDIR(s.st_mode); }\n\
        long weak(void) { extern int nobody(void) __attribute__((weak)); return nobody ? nobody() : 4; }";
    let (function, variable) = (libc::strlen as *const c_void as i64, &raw const optind as i64);
    for flags in [DEFAULT, &["-O0", "-fPIE"], &["-O2", "-fPIC"]] {
        let source = workshop.source(CC, "address.c", text, flags).private();
        let object = load(&arena, source);
        let found = ["of_function", "from_data", "of_variable", "behind", "of_file", "weak"]
            .map(|name| call(&arena, object, name));
        assert_eq!(found, [function, function, variable, variable + 12, 1, 4], "{flags:?}");
        arena.unload(object).unwrap();
    }
    assert_eq!(arena.report().got, 0);
}

#[test]
fn data_of_a_library_is_reached_near_it_or_refused_with_what_to_do() {
    let workshop = Workshop::open();
    let text = "#include <stdio.h>\nlong f(void) { return fprintf(stderr, \"%s\", \"\") + (stderr != 0); }";
    let source = workshop.source(CC, "far.c", text, DEFAULT);
    let place = Place::NearLibraries;
    let near = Arena::open(Options { place, ..options() }).unwrap();
    let object = load(&near, &source);
    assert_eq!(call(&near, object, "f"), 1);
    // An emulator may put the libraries near the program.
    if cfg!(target_arch = "aarch64") {
        return;
    }
    // SAFETY: As above.
    let said = unsafe { quiet().load(&source) }.unwrap_err().to_string();
    assert!(said.contains("far.c.o: .text+") && said.contains("`stderr`"), "{said}");
    assert!(said.contains("compile with -fPIC"), "{said}");
}

#[test]
fn a_function_that_is_chosen_when_it_is_loaded_is_called_and_has_one_address() {
    let workshop = Workshop::open();
    let text = "static long one(void) { return 1; } static long two(void) { return 2; } extern long which;\n\
        static long (*choose(void))(void) { return which ? two : one; }\n\
        long chosen(void) __attribute__((ifunc(\"choose\")));\n\
        static long own(void) __attribute__((ifunc(\"choose\")));\n\
        long (*pointer)(void) = chosen; long f(void) { return chosen() * 100 + own() * 10 + (pointer == chosen); }";
    let user = "extern long chosen(void), (*pointer)(void);\n\
        long g(void) { return chosen() * 10 + (pointer == chosen); }";
    for &writing in fixture::WAYS {
        let arena = Arena::open(Options { writing, ..options() }).unwrap();
        let empty = arena.report();
        for flags in [&["-O2", "-fPIC"][..], DEFAULT] {
            let which = workshop.c("which.c", "long which = 1;");
            let chosen = workshop.source(CC, "chosen.c", text, flags);
            let user = workshop.source(CC, "user.c", user, flags);
            let mut objects = load_all(&arena, [which, chosen]);
            objects.push(load(&arena, user));
            assert_eq!(call(&arena, objects[1], "f"), 221, "{writing:?} {flags:?}");
            assert_eq!(call(&arena, objects[1], "chosen"), 2);
            assert_eq!(call(&arena, objects[2], "g"), 21);
            arena.unload_all(&objects).unwrap();
            assert_eq!(arena.report(), empty);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_distance_in_data_is_no_call_whatever_byte_lies_before_it() {
    let (workshop, arena) = (Workshop::open(), quiet());
    // Before the distance is the first byte of a call.
    let text = "__asm__(\".data; .balign 8; .skip 7; .byte 0xe8; distance: .quad optind - distance; .text\");\n\
        extern long distance; long f(void) { return (long)&distance + distance; }";
    let object = load(&arena, workshop.c("distance.c", text));
    assert_eq!(call(&arena, object, "f"), &raw const optind as i64);
}
