//! Thread-local variables of the process, used by loaded code in every model, from several threads.

mod fixture;

use std::ffi::CString;

use fixture::{CC, Workshop, call, quiet};
use masu_code::{Arena, Error, Source};

/// Loads a library with a thread-local variable into the process: in storage that every thread has
/// at the same distance (`initial-exec`), or in storage that is made on demand.
fn library(workshop: &Workshop, name: &str, model: &str) {
    let text =
        format!("_Thread_local long {name} = 40; long *of_{name}(void) {{ return &{name}; }}");
    let model = format!("-ftls-model={model}");
    // By descriptors, aarch64's C library would find room at the same distance even for a late one.
    let dialect = if cfg!(target_arch = "aarch64") { "-mtls-dialect=trad" } else { "-O2" };
    workshop.compile(CC, "lib.c", &text, &["-O2", "-fPIC", &model, dialect]);
    workshop.run(CC, &["-shared", "lib.c.o", "-o", "lib.so"]);
    let path = CString::new(workshop.path("lib.so").display().to_string()).unwrap();
    // SAFETY: A library of this test's.
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

/// What a fresh thread and then this one see: each its own variable.
fn in_two_threads(arena: &Arena, source: &Source) -> Result<[i64; 2], Error> {
    // SAFETY: No initialisers.
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
