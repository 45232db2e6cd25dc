//! Compilers' constructs, loaded and run, and compared with the same linked by the system's linker.

mod fixture;
#[path = "fixture/program.rs"]
mod program;

use fixture::{CC, CXX, Workshop, call, load, load_all, options, quiet, text};
#[cfg(target_arch = "x86_64")]
use masu_code::Place;
use masu_code::{Arena, Options, Source, Tools};
use program::share;

/// The output of a program of the same source that the system's linker made.
fn linked(workshop: &Workshop, compiler: &str, source: &str, flags: &[&str]) -> i64 {
    std::fs::write(workshop.path(source), text(source)).unwrap();
    let mut arguments = flags.to_vec();
    arguments.extend(["-DWITH_MAIN", source, "-o", "program", "-lm"]);
    workshop.run(compiler, &arguments);
    workshop.printed("program").trim().parse().unwrap()
}

const LEVELS: [&str; 2] = ["-O0", "-O2"];

#[test]
fn code_for_shared_libraries_computes_what_the_linked_program_does() {
    let arena = quiet();
    share(c"libm.so.6");
    let compilers: &[&str] = if cfg!(target_arch = "x86_64") { &[CC, "clang"] } else { &[CC] };
    for compiler in compilers {
        for level in LEVELS {
            for extra in [
                &[][..],
                &["-ffunction-sections", "-fdata-sections"],
                &["-fno-plt"],
                &["-fcommon", "-g"],
            ] {
                let workshop = Workshop::open();
                let mut flags = vec![level, "-fPIC"];
                flags.extend(extra);
                let expected = linked(&workshop, compiler, "constructs.c", &flags);
                let source = workshop.source(compiler, "it.c", &text("constructs.c"), &flags);
                let object = load(&arena, source.private());
                assert_eq!(call(&arena, object, "check"), expected, "{compiler} {flags:?}");
                assert_eq!(call(&arena, object, "check"), expected, "{compiler} {flags:?}, again");
                arena.unload(object).unwrap();
            }
        }
    }
    assert_eq!(arena.report().objects, 0);
    assert_eq!((arena.report().got, arena.report().stubs, arena.report().text.used), (0, 0, 0));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_for_programs_runs_in_the_lowest_2_gib() {
    share(c"libm.so.6");
    let tools = Tools::none();
    let arena = Arena::open(Options { place: Place::Low, tools, ..Options::default() }).unwrap();
    assert!(arena.report().base < 1 << 31);
    for compiler in [CC, "clang"] {
        for level in LEVELS {
            let workshop = Workshop::open();
            let expected = linked(&workshop, compiler, "constructs.c", &[level]);
            // `stderr` of the C library is far away: code reaches such data only with -fPIC, or through the copy that a
            // linker makes for a program.
            let source =
                text("constructs.c").replace("stderr", "stream()").replace("stdout", "stream()");
            let source = source.replace(
                "extern int nobody_defines",
                "extern FILE *stream(void);\nextern int nobody_defines",
            );
            let stream =
                workshop.c("stream.c", "#include <stdio.h>\nFILE *stream(void) { return stderr; }");
            let flags = [level, "-fno-pic", "-fno-pie"];
            let source = workshop.source(compiler, "it.c", &source, &flags);
            let objects = load_all(&arena, &[source, stream]);
            assert_eq!(call(&arena, objects[0], "check"), expected, "{compiler} {level}");
            objects.into_iter().for_each(|object| arena.unload(object).unwrap());
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_large_code_model_runs_too() {
    share(c"libm.so.6");
    let workshop = Workshop::open();
    let expected = linked(&workshop, CC, "constructs.c", &["-O2"]);
    for flags in [
        &["-O2", "-fPIC", "-mcmodel=large"][..],
        &["-O2", "-fno-pic", "-mcmodel=large"],
        &["-O2", "-fPIC", "-mcmodel=medium"],
    ] {
        let arena = quiet();
        let source = workshop.source(CC, "it.c", &text("constructs.c"), flags);
        let object = load(&arena, &source);
        assert_eq!(call(&arena, object, "check"), expected, "{flags:?}");
    }
}

#[test]
fn cxx_with_templates_exceptions_and_globals_computes_what_the_linked_program_does() {
    let compilers: &[&str] = if cfg!(target_arch = "x86_64") { &[CXX, "clang++"] } else { &[CXX] };
    share(c"libstdc++.so.6");
    for compiler in compilers {
        for flags in [
            &["-O0", "-fPIC"][..],
            &["-O2", "-fPIC"],
            &["-O2", "-fPIC", "-ffunction-sections", "-g"],
        ] {
            let workshop = Workshop::open();
            std::fs::write(workshop.path("shapes.cpp"), text("shapes.cpp")).unwrap();
            std::fs::write(workshop.path("shapes.h"), text("shapes.h")).unwrap();
            let parts = ["-DPART=1", "-DPART=2"];
            let mut linking = flags.to_vec();
            linking.extend(["shapes.cpp", "-DPART=0", "-DWITH_MAIN", "-o", "program"]);
            workshop.run(compiler, &linking);
            let printed = workshop.printed("program");
            let sources: Vec<Source> = parts
                .iter()
                .map(|part| {
                    let flags = [flags, &[part]].concat();
                    workshop.source(
                        compiler,
                        &format!("part{}.cpp", &part[7..]),
                        &text("shapes.cpp"),
                        &flags,
                    )
                })
                .collect();
            let chosen = Options { tools: Tools::default(), ..options() };
            let arena = Arena::open(chosen).unwrap();
            let objects = load_all(&arena, &sources);
            let expected: i64 = printed.trim().parse().unwrap();
            assert_eq!(call(&arena, objects[0], "check"), expected, "{compiler} {flags:?}");
            for object in objects {
                arena.unload(object).unwrap();
            }
            assert_eq!((arena.report().objects, arena.waiting()), (0, 0));
        }
    }
}

#[test]
fn what_has_no_bytes_has_an_address() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "int none[0]; long f(void) { return (long)none; }";
    let source = workshop.source(CC, "none.c", text, &["-O0", "-fPIC", "-fcommon"]);
    let object = load(&arena, &source);
    let address = arena.symbol(object, "none").unwrap();
    assert!(!address.is_null());
    assert_eq!(call(&arena, object, "f"), address as i64);
    arena.unload(object).unwrap();
    assert_eq!(arena.report().data.used, 0);
}

#[test]
fn a_common_variable_is_zero_in_its_whole_length_where_memory_is_used_again() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "long old[100];\n\
        long f(void) { for (int i = 0; i < 100; i++) old[i] = i + 1; return old[0]; }";
    let old = load(&arena, workshop.c("old.c", text).private());
    assert_eq!(call(&arena, old, "f"), 1);
    // The object keeps the OS page.
    let text = "long stays = 4; long f(void) { return stays; }";
    load(&arena, workshop.c("stays.c", text).private());
    arena.unload(old).unwrap();
    let common = |name, text| workshop.source(CC, name, text, &["-O2", "-fPIC", "-fcommon"]);
    let sum = "long c[100]; long g(void) { long s = 0; for (int i = 0; i < 100; i++) s += c[i]; return s; }";
    let sources =
        [common("short.c", "long c[2]; long f(void) { return c[0]; }"), common("long.c", sum)];
    let objects = load_all(&arena, sources);
    assert_eq!((call(&arena, objects[0], "f"), call(&arena, objects[1], "g")), (0, 0));
    // Long ones take no memory before they are used.
    let bulk = load(&arena, common("bulk.c", "char bulk[48 << 20];"));
    let start = arena.symbol(bulk, "bulk").unwrap() as usize;
    let (middle, mut is_resident) = ((start + (24 << 20)).next_multiple_of(1 << 16), 1);
    // SAFETY: The page is mapped, and there is a byte for it.
    unsafe { libc::mincore(middle as *mut _, 4096, &raw mut is_resident) };
    assert_eq!(is_resident & 1, 0);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn exceptions_are_caught_in_arenas_that_take_the_place_of_others() {
    let workshop = Workshop::open();
    share(c"libstdc++.so.6");
    let text = "extern \"C\" long f() { try { throw 1L; } catch (long y) { return y; } return 0; }";
    let source = workshop.source(CXX, "throws.cpp", text, &["-O1", "-fPIC"]).private();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let arena =
                        Arena::open(Options { size: 1 << 20, ..Options::default() }).unwrap();
                    assert_eq!(call(&arena, load(&arena, &source), "f"), 1);
                }
            });
        }
    });
}
