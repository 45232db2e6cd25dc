//! Locks of others: the dynamic linker's lock, under which initializers of libraries run, and the locks of a resolver.
//! The arena waits for none of them while it holds its own lock, and a fork leaves none of the arena's locks locked.
#![cfg(target_arch = "x86_64")]

mod fixture;

use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fixture::{Workshop, call, holds_in_child, load, options, quiet};
use masu_code::{Arena, Options, Resolver, Writing};

fn with_resolver(resolver: Resolver) -> Arena {
    Arena::open(Options { resolver: Some(resolver), ..options() }).unwrap()
}

#[test]
fn an_initializer_of_a_library_uses_the_arena_while_symbols_are_looked_up() {
    static ARENA: OnceLock<Arena> = OnceLock::new();
    extern "C" fn hook() {
        let arena = ARENA.get_or_init(quiet);
        for _ in 0..20 {
            assert!(arena.report().objects <= 1);
            std::thread::yield_now();
        }
    }
    let workshop = Workshop::open();
    let hook = hook as *const () as usize;
    let text = format!(
        "__attribute__((constructor)) static void begin(void) {{ ((void (*)(void)){hook}ul)(); }}"
    );
    std::fs::write(workshop.path("begin.c"), text).unwrap();
    workshop.run("gcc", &["-shared", "-fPIC", "-o", "begin.so", "begin.c"]);
    let path = CString::new(workshop.path("begin.so").to_str().unwrap()).unwrap();
    // The process is asked for these names each time, because it may have them later.
    let names: Vec<String> = (0..50).map(|number| format!("nowhere_{number}")).collect();
    let declare = |name: &String| format!("__attribute__((weak)) void {name}(void);\n");
    let declared: String = names.iter().map(declare).collect();
    let calls: String = names.iter().map(|name| format!("{name}(); ")).collect();
    let text = format!("{declared} long f(long n) {{ if (n) {{ {calls} }} return 5; }}");
    let source = workshop.c("wants.c", &text).private();
    let arena = ARENA.get_or_init(quiet);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                let object = load(arena, &source);
                arena.unload(object).unwrap();
            }
        });
        scope.spawn(|| {
            for _ in 0..200 {
                // SAFETY: The library's initializer is the one above.
                let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
                assert!(!library.is_null());
                // SAFETY: The library was loaded here.
                unsafe { libc::dlclose(library) };
            }
        });
    });
}

#[test]
fn a_resolver_may_ask_the_arena() {
    static ARENA: OnceLock<Arena> = OnceLock::new();
    let workshop = Workshop::open();
    let find = |_: &[u8]| ARENA.get()?.find("known").map(|address| address as usize);
    let arena = ARENA.get_or_init(|| with_resolver(Box::new(find)));
    load(arena, workshop.c("known.c", "long known(void) { return 6; }"));
    let user = workshop.c("user.c", "long alias(void); long f(void) { return alias(); }");
    assert_eq!(call(arena, load(arena, user), "f"), 6);
}

#[test]
fn a_resolver_that_panics_leaves_the_arena_as_it_was() {
    let workshop = Workshop::open();
    let arena = with_resolver(Box::new(|_| panic!("it does not know")));
    let before = arena.report();
    let source = workshop.c("user.c", "long alias(void); long f(void) { return alias(); }");
    // SAFETY: No initializers.
    let panic = std::panic::catch_unwind(|| unsafe { arena.load(&source) });
    assert!(panic.is_err());
    assert_eq!(arena.report(), before);
}

#[test]
fn a_child_may_load_whatever_other_threads_did_at_the_fork() {
    let workshop = Workshop::open();
    let chosen = Options { writing: Writing::Batches, ..options() };
    let arena = Arena::open(chosen).unwrap();
    let text = "__thread long t; long f(void) { return t + 5; }";
    let source = workshop.c("thread.c", text).private();
    let works = || {
        let object = load(&arena, &source);
        let returned = call(&arena, object, "f");
        drop(arena.reader());
        arena.unload(object).is_ok() && returned == 5
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(works());
                }
            });
        }
        let failed = (0..200).find(|_| !holds_in_child(works));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(failed, None);
    });
}

#[test]
fn a_resolver_is_asked_for_each_load_and_may_answer_otherwise() {
    static KNOWS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn one() -> i64 {
        1
    }
    extern "C" fn two() -> i64 {
        2
    }
    let workshop = Workshop::open();
    let arena =
        with_resolver(Box::new(|name| (name == b"method").then(|| KNOWS.load(Ordering::Relaxed))));
    let source = workshop.c("user.c", "long method(void); long f(void) { return method(); }");
    let source = source.private();
    // A method of a JIT has another address when it was compiled again, and the old code may be gone.
    let methods = [one as *const () as usize, two as *const () as usize];
    for (method, returned) in methods.into_iter().zip([1, 2]) {
        KNOWS.store(method, Ordering::Relaxed);
        assert_eq!(call(&arena, load(&arena, &source), "f"), returned);
    }
}
