//! Loaded code as debuggers, profilers and unwinders see it.
#![cfg(target_arch = "x86_64")]

mod fixture;

use std::ffi::{CString, c_void};
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use fixture::{CC, CXX, Workshop, call, load};
use masu_code::{Arena, Options, Source, Tools};

/// The address of a function of a library that stands for the program around the arena.
fn outside(library: &std::path::Path, name: &str) -> *mut c_void {
    let path = CString::new(library.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: The library is this test's.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    assert!(!handle.is_null(), "{}", library.display());
    let name = CString::new(name).unwrap();
    // SAFETY: The handle is the library's.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

#[test]
fn exceptions_pass_through_loaded_code_to_what_is_outside() {
    let workshop = Workshop::open();
    let text = "#include <stdexcept>\n\
        extern \"C\" long guarded(long (*inner)(long), long x) {\n\
          try { return inner(x); } catch (const std::runtime_error &e) { return -x; } }\n\
        extern \"C\" long thrower(long x) { if (x > 5) throw std::runtime_error(\"x\"); return x; }";
    workshop.compile(CXX, "outside.cpp", text, &["-O2", "-fPIC"]);
    workshop.run(CXX, &["-shared", "outside.cpp.o", "-o", "liboutside.so"]);
    let guarded = outside(&workshop.path("liboutside.so"), "guarded");
    // SAFETY: The function has this type.
    let guarded: extern "C" fn(*const c_void, i64) -> i64 = unsafe { std::mem::transmute(guarded) };
    let arena = Arena::open(Options::default()).unwrap();
    let inner = "extern \"C\" long thrower(long);\n\
        static long unwound;\n\
        struct Guard { ~Guard() { unwound++; } };\n\
        extern \"C\" long inner(long x) { Guard guard; return thrower(x) * 10 + 1; }\n\
        extern \"C\" long own(long x) { try { return inner(x); } catch (...) { return unwound; } }";
    let object = load(&arena, workshop.source(CXX, "inner.cpp", inner, &["-O2", "-fPIC"]));
    let inner = arena.symbol(object, "inner").unwrap();
    // An exception goes out of the program, through loaded code, into the program; another is thrown and caught within
    // loaded code.
    assert_eq!(guarded(inner, 4), 41);
    assert_eq!(guarded(inner, 9), -9);
    // SAFETY: The type is right.
    let own = unsafe { arena.function::<extern "C" fn(i64) -> i64>(object, "own") }.unwrap();
    assert_eq!((own(3), own(8)), (31, 4));
    // The test repeats this, because code is loaded and freed at the same addresses.
    drop(own);
    for _ in 0..20 {
        arena.unload(object).ok();
        let again = workshop.path("inner.cpp.o");
        let again = load(&arena, Source::file(again).unwrap().private());
        assert_eq!(guarded(arena.symbol(again, "inner").unwrap(), 7), -7);
        arena.unload(again).unwrap();
    }
}

#[test]
fn a_rust_panic_passes_through_loaded_code() {
    extern "C-unwind" fn panics(x: i64) -> i64 {
        assert!(x < 5, "five and more");
        x
    }
    let workshop = Workshop::open();
    let resolver: masu_code::Resolver =
        Box::new(|name| (name == b"panics").then_some(panics as *const () as usize));
    let arena = Arena::open(Options { resolver: Some(resolver), ..Options::default() }).unwrap();
    let text = "long panics(long); long f(long x) { return panics(x) + 1; }";
    let source = workshop.source(CC, "f.c", text, &["-O2", "-fPIC", "-fexceptions"]);
    let object = load(&arena, &source);
    // SAFETY: The type is right.
    let f = unsafe { arena.function::<extern "C-unwind" fn(i64) -> i64>(object, "f") }.unwrap();
    assert_eq!(f(3), 4);
    assert!(std::panic::catch_unwind(|| f(6)).is_err());
}

#[test]
fn exceptions_pass_while_neighbors_come_and_go() {
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn leaves() {
        // ORDERING: Relaxed; it is read when the threads have ended.
        LEFT.fetch_add(1, Ordering::Relaxed);
    }
    extern "C-unwind" fn throws(x: i64) -> i64 {
        if x > 0 {
            std::panic::resume_unwind(Box::new(x));
        }
        x
    }
    let workshop = Workshop::open();
    let resolver: masu_code::Resolver = Box::new(|name| match name {
        b"throws" => Some(throws as *const () as usize),
        b"leaves" => Some(leaves as *const () as usize),
        _ => None,
    });
    let arena = Arena::open(Options { resolver: Some(resolver), ..Options::default() }).unwrap();
    // The unwinder finds `leave` by its distance from the function's first byte.
    let text = "long throws(long); void leaves(void);\n\
        static void leave(long *x) { leaves(); }\n\
        long f(long x) { long y __attribute__((cleanup(leave))) = x; return throws(y) + 1; }";
    let flags = ["-O2", "-fPIC", "-fexceptions"];
    let source = workshop.source(CC, "f.c", text, &flags).private();
    let mut objects: Vec<_> = (0..600).map(|_| load(&arena, &source)).collect();
    // Exceptions pass through each of these while its neighbors are replaced.
    let kept: Vec<_> = objects.iter().copied().step_by(20).collect();
    type Throws = extern "C-unwind" fn(i64) -> i64;
    // SAFETY: The type is right.
    let function = |object| unsafe { arena.function::<Throws>(object, "f") }.unwrap();
    let kept: Vec<_> = kept.into_iter().map(function).collect();
    // More threads than CPUs, so that some stop between finding a frame and using it.
    std::thread::scope(|scope| {
        let throwing = [(); 6].map(|()| {
            scope.spawn(|| {
                for (x, f) in (1..=3000).zip(kept.iter().cycle()) {
                    let caught = std::panic::catch_unwind(|| f(x)).expect_err("it was thrown");
                    assert_eq!(caught.downcast_ref(), Some(&x));
                }
            })
        });
        let mut round = 0;
        while !throwing.iter().all(|thread| thread.is_finished()) {
            round += 7;
            let at = round % objects.len();
            if at % 20 != 0 {
                arena.unload(objects[at]).unwrap();
                // Other code uses the memory that this has freed.
                std::hint::black_box([(); 16].map(|()| Box::new([usize::MAX; 8])));
                objects[at] = load(&arena, &source);
            }
        }
    });
    // ORDERING: Relaxed; the threads have ended.
    assert_eq!(LEFT.load(Ordering::Relaxed), 6 * 3000);
}

#[test]
fn backtrace_walks_through_loaded_code() {
    let workshop = Workshop::open();
    let arena = Arena::open(Options::default()).unwrap();
    let text = "int backtrace(void **, int);\n\
        void *frames[64];\n\
        __attribute__((noinline)) int inner(void) { return backtrace(frames, 64) + 1; }\n\
        long f(void) { return inner() + 1; }";
    let object = load(&arena, workshop.c("f.c", text));
    let depth = call(&arena, object, "f") - 2;
    let frames = arena.symbol(object, "frames").unwrap().cast::<usize>();
    let (start, size) = arena.text_of(object).unwrap();
    // SAFETY: The array has 64 places.
    let frames: Vec<usize> =
        (0..depth as usize).map(|index| unsafe { *frames.add(index) }).collect();
    let inside = frames.iter().filter(|frame| (start..start + size).contains(frame)).count();
    assert_eq!(inside, 2, "{frames:x?}");
    // The backtrace continues into this test and its caller.
    assert!(frames.len() > 5);
}

const WORK: &str = "long total;\n\
                    long step(long i) { total += i ^ 3; return total; }\n\
                    long work(long n) { for (long i = 0; i < n; i++) step(i); return total; }\n";

#[test]
fn perf_names_loaded_functions_by_the_map_and_by_the_jitdump() {
    let workshop = Workshop::open();
    let object = workshop.compile(CC, "work.c", WORK, &["-O1", "-fno-inline", "-fPIC"]);
    let map = format!("/tmp/perf-{}.map", std::process::id());
    // A link that another user left in the folder may lead to a file of this user.
    std::fs::write(workshop.path("file"), "kept").unwrap();
    std::os::unix::fs::symlink(workshop.path("file"), &map).unwrap();
    let tools = Tools { perf_map: true, ..Tools::none() };
    Arena::open(Options { tools, ..Options::default() }).unwrap_err();
    std::fs::remove_file(&map).unwrap();
    // Lines of an earlier process of this number go, and those of another JIT of this process stay.
    for (written, stays) in [(SystemTime::UNIX_EPOCH, false), (SystemTime::now(), true)] {
        std::fs::write(&map, "1 1 other\n").unwrap();
        File::open(&map).unwrap().set_modified(written).unwrap();
        let jitdump = Some(workshop.path(""));
        let tools = Tools { perf_map: true, jitdump, ..Tools::none() };
        let arena = Arena::open(Options { tools, ..Options::default() }).unwrap();
        let loaded = load(&arena, Source::file(&object).unwrap());
        let lines = std::fs::read_to_string(&map).unwrap();
        let address = arena.symbol(loaded, "step").unwrap() as usize;
        let line = lines.lines().find(|line| line.ends_with(" step")).expect("step is in the map");
        assert!(line.starts_with(&format!("{address:x} ")), "{line}");
        assert_eq!(lines.contains("other"), stays, "{lines}");
        std::fs::remove_file(&map).unwrap();
    }
    let dump = std::fs::read(workshop.path(&format!("jit-{}.dump", std::process::id()))).unwrap();
    let word = |at: usize| u64::from_le_bytes(dump[at..at + 8].try_into().unwrap());
    assert_eq!((&dump[..4], word(40) as u32), (&b"DTiJ"[..], 0));
    assert_eq!(word(40) >> 32, 16 + 8 + 32 + 5 + word(40 + 16 + 8 + 16), "the record's size");
    assert!(dump.windows(5).any(|bytes| bytes == b"step\0"));
}

/// The records of a jitdump: the names of the functions, and the numbers of the records.
fn records(path: &std::path::Path) -> Vec<(String, u64)> {
    let dump = std::fs::read(path).unwrap();
    let word = |at: usize| u64::from_le_bytes(dump[at..at + 8].try_into().unwrap());
    let (mut at, mut found) = (40, Vec::new());
    while at < dump.len() {
        assert_eq!(word(at) as u32, 0, "a load of code");
        let name = dump[at + 56..].split(|&byte| byte == 0).next().unwrap();
        found.push((String::from_utf8(name.to_vec()).unwrap(), word(at + 48)));
        let size = (word(at) >> 32) as usize;
        assert!(size > 56, "a record has a size");
        at += size;
    }
    assert_eq!((&dump[..4], at), (&b"DTiJ"[..], dump.len()));
    found
}

#[test]
fn arenas_with_one_folder_share_a_jitdump() {
    let workshop = Workshop::open();
    let sources = ["one", "two", "three"].map(|name| {
        workshop.c(&format!("{name}.c"), &format!("long {name}(void) {{ return 1; }}"))
    });
    let open = || {
        let tools = Tools { jitdump: Some(workshop.path("")), ..Tools::none() };
        Arena::open(Options { tools, ..Options::default() }).unwrap()
    };
    let first = open();
    load(&first, &sources[0]);
    let second = open();
    load(&second, &sources[1]);
    load(&first, &sources[2]);
    drop((first, second));
    load(&open(), &sources[0]);
    let dump = workshop.path(&format!("jit-{}.dump", std::process::id()));
    let (names, mut numbers): (Vec<String>, Vec<u64>) = records(&dump).into_iter().unzip();
    assert_eq!(names, ["one", "two", "three", "one"]);
    numbers.dedup();
    assert_eq!(numbers.len(), 4, "perf knows functions by their numbers");
}

#[test]
fn code_of_a_forked_child_is_not_in_its_parents_files() {
    let workshop = Workshop::open();
    let tools = Tools { jitdump: Some(workshop.path("")), ..Tools::none() };
    let writing = masu_code::Writing::Batches;
    let arena = Arena::open(Options { tools, writing, ..Options::default() }).unwrap();
    let source = workshop.c("one.c", "long one(void) { return 1; }").private();
    let is_loaded = || call(&arena, load(&arena, &source), "one") == 1;
    assert!(is_loaded() && fixture::holds_in_child(is_loaded));
    let dump = workshop.path(&format!("jit-{}.dump", std::process::id()));
    assert_eq!(records(&dump).len(), 1);
}
