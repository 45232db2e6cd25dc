//! Thread-local variables of the process, used by loaded code in every model, from several threads.

mod fixture;
#[cfg(target_arch = "x86_64")]
#[path = "fixture/program.rs"]
mod program;

use std::ffi::CString;
use std::sync::atomic::{AtomicI64, Ordering};

use fixture::{CC, Workshop, call, load, load_all, quiet};
use masu_code::{Arena, Error, Source};

/// Loads a library with a thread-local variable into the process: in storage that every thread has
/// at the same distance (`initial-exec`), or in storage that is made on demand.
fn library(workshop: &Workshop, name: &str, model: &str) {
    let text =
        format!("_Thread_local long {name} = 40; long *of_{name}(void) {{ return &{name}; }}");
    let model = format!("-ftls-model={model}");
    // By descriptors, aarch64's C library would find room at the same distance even for a library that comes late.
    let dialect = if cfg!(target_arch = "aarch64") { "-mtls-dialect=trad" } else { "-O2" };
    workshop.compile(CC, "lib.c", &text, &["-O2", "-fPIC", &model, dialect]);
    workshop.run(CC, &["-shared", "lib.c.o", "-o", "lib.so"]);
    let path = CString::new(workshop.path("lib.so").display().to_string()).unwrap();
    // SAFETY: The library is this test's.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    assert!(!handle.is_null());
}

fn user(workshop: &Workshop, name: &str, model: &str) -> Source {
    let text = format!(
        "extern _Thread_local long {name} __attribute__((tls_model(\"{model}\"))); long *of_{name}(void);\n\
         long f(void) {{ {name} += 1; return {name} * 10 + (&{name} == of_{name}()); }}"
    );
    let flags: &[&str] = if model == "local-exec" { &["-O2", "-fPIE"] } else { &["-O2", "-fPIC"] };
    workshop.source(CC, &format!("{model}.c"), &text, flags).private()
}

/// The values that a fresh thread and then this thread see: each its own variable.
fn in_two_threads(arena: &Arena, source: &Source) -> Result<[i64; 2], Error> {
    // SAFETY: No initializers.
    let object = unsafe { arena.load(source)? };
    let there =
        std::thread::scope(|scope| scope.spawn(|| call(arena, object, "f")).join().unwrap());
    Ok([there, call(arena, object, "f")])
}

#[test]
fn static_storage_is_reached_in_every_model() {
    let (workshop, arena) = (Workshop::open(), quiet());
    library(&workshop, "kept", "initial-exec");
    for (round, model) in ["initial-exec", "global-dynamic", "local-exec"].iter().enumerate() {
        let seen = in_two_threads(&arena, &user(&workshop, "kept", model)).unwrap();
        assert_eq!(seen, [411, 411 + 10 * round as i64], "{model}");
    }
}

#[test]
fn storage_made_on_demand_is_reached_by_the_dynamic_model_and_refused_to_others() {
    let (workshop, arena) = (Workshop::open(), quiet());
    library(&workshop, "late", "global-dynamic");
    if cfg!(target_arch = "x86_64") {
        let seen = in_two_threads(&arena, &user(&workshop, "late", "global-dynamic")).unwrap();
        assert_eq!(seen, [411, 411]);
    }
    let error = in_two_threads(&arena, &user(&workshop, "late", "initial-exec")).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("`late`") && said.contains("initial-exec.c.o: .text+"), "{said}");
    assert!(said.contains("loaded late"), "{said}");
}

/// Flags by which the compiler asks for variables of objects; aarch64's descriptors have no place for variables of
/// loaded objects.
const DYNAMIC: &[&str] = if cfg!(target_arch = "aarch64") {
    &["-O2", "-fPIC", "-mtls-dialect=trad"]
} else {
    &["-O2", "-fPIC"]
};

const OWN: &str = "static _Thread_local long own = 5; static _Thread_local char zeros[3000];\n\
    _Thread_local long shared __attribute__((aligned(64))) = 7; static _Thread_local long *to = &table[2];\n\
    long f(void) { own += 1; shared += zeros[2999]; zeros[2999] += 1; to += 1;\n\
      return own * 100000 + shared * 1000 + to[-1] * 10 + !((unsigned long)&shared % 64); }\n";

#[test]
fn variables_that_objects_define_are_each_threads_own() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = format!("static long table[9] = {{0, 1, 2, 3, 4, 5, 6, 7, 8}};\n{OWN}");
    let defines = workshop.source(CC, "own.c", &text, DYNAMIC);
    let other = "extern _Thread_local long shared; long g(void) { return shared += 10; }";
    let other = workshop.source(CC, "other.c", other, DYNAMIC);
    let empty = arena.report();
    for round in 0..3 {
        // In one batch, and one after the other.
        let objects = if round == 0 {
            load_all(&arena, [&defines, &other])
        } else {
            // SAFETY: As above.
            [&defines, &other].map(|source| unsafe { arena.load(source) }.unwrap()).to_vec()
        };
        assert!(arena.symbol(objects[0], "shared").is_err() && arena.find("shared").is_none());
        let calls = || {
            let calls = [(0, "f"), (0, "f"), (1, "g"), (0, "f")];
            calls.map(|(object, name)| call(&arena, objects[object], name))
        };
        let expected = [607_021, 708_031, 18, 820_041];
        assert_eq!(calls(), expected, "{round}");
        for _ in 0..3 {
            let there = std::thread::scope(|scope| scope.spawn(calls).join().unwrap());
            assert_eq!(there, expected, "{round}, in another thread");
        }
        arena.unload_all(&objects).unwrap();
        assert_eq!((arena.report(), arena.find("g")), (empty.clone(), None));
    }
}

#[test]
fn variables_of_objects_are_refused_to_code_for_programs() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "_Thread_local long own = 5; long f(void) { return own; }";
    let source = workshop.source(CC, "own.c", text, &["-O2", "-fPIE", "-fno-section-anchors"]);
    // SAFETY: No initializers.
    let said = unsafe { arena.load(source) }.unwrap_err().to_string();
    assert!(said.contains("own.c.o: .text+") && said.contains("`own`"), "{said}");
    assert!(said.contains("compile with -fPIC"), "{said}");
    assert_eq!(arena.report().sealed.used, quiet().report().sealed.used);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_cxx_object_stays_until_the_threads_ended_that_its_variables_have_destructors_of() {
    program::share(c"libstdc++.so.6");
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "static long ended; struct Counted { long n = 3; ~Counted() { ended += n; } };\n\
        static thread_local Counted counted;\n\
        extern \"C\" long f() { return ++counted.n; } extern \"C\" long *at() { return &ended; }";
    let object = workshop.source(fixture::CXX, "ends.cpp", text, &["-O2", "-fPIC"]);
    let object = fixture::load(&arena, object);
    let ended = call(&arena, object, "at") as *const i64;
    // SAFETY: The object is loaded.
    let ended = || unsafe { ended.read_volatile() };
    std::thread::scope(|scope| {
        let (said, hears) = std::sync::mpsc::channel::<()>();
        let (sends, heard) = std::sync::mpsc::channel();
        let arena = &arena;
        scope.spawn(move || {
            sends.send(call(arena, object, "f")).unwrap();
            hears.recv().unwrap();
        });
        assert_eq!((heard.recv().unwrap(), ended()), (4, 0));
        arena.unload(object).unwrap();
        assert_eq!((arena.collect(), ended()), (0, 0), "a thread still has a variable");
        said.send(()).unwrap();
    });
    // The thread's destructors may still run when the scope has joined the thread.
    while arena.collect() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(arena.report().text.used, 0);
}

#[test]
fn an_object_stays_where_a_thread_registers_a_destructor_in_it_at_the_last_moment() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "int __cxa_thread_atexit(void (*)(void *), void *, void *); extern char __dso_handle;\n\
        static void end(void *flag) { *(long *)flag = 7; }\n\
        long f(long *flags) {\n\
            __atomic_store_n(&flags[0], 1, 5);\n\
            while (__atomic_load_n(&flags[1], 5) == 0) {}\n\
            return __cxa_thread_atexit(end, &flags[2], &__dso_handle); }";
    let object = load(&arena, workshop.c("late.c", text));
    let entry = arena.entry("late", object, "f").unwrap();
    let flags: [AtomicI64; 3] = Default::default();
    let (go, wait) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (arena, entry, flags) = (&arena, &entry, &flags);
        let thread = scope.spawn(move || {
            let reader = arena.reader();
            // SAFETY: The type is right, and this thread has a reader.
            let f = unsafe { entry.get::<extern "C" fn(*const AtomicI64) -> i64>() };
            assert_eq!(f(flags.as_ptr()), 0);
            drop(reader);
            flags[0].store(2, Ordering::SeqCst);
            wait.into_iter().for_each(|()| {});
        });
        let reaches = |state| {
            while flags[0].load(Ordering::SeqCst) != state {
                std::thread::yield_now();
            }
        };
        reaches(1);
        // The thread runs the object, so the object is only retired.
        entry.replace_at(std::ptr::null()).unwrap();
        arena.unload(object).unwrap();
        flags[1].store(1, Ordering::SeqCst);
        reaches(2);
        assert_eq!((arena.collect(), arena.waiting()), (0, 1));
        drop(go);
        thread.join().unwrap();
    });
    assert_eq!(flags[2].load(Ordering::SeqCst), 7);
    assert_eq!(arena.collect(), 1);
}
