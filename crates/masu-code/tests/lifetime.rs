//! An object stays while anything refers to it, is freed when nothing does, and its room is used
//! again.

mod fixture;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fixture::{CC, CXX, WAYS, Workshop, call, load, load_all, options, quiet};
use masu_code::{Arena, Handle, Options, Source, Writing};

/// An object whose `f` returns a number.
fn returns(workshop: &Workshop, number: i64) -> Source {
    let name = format!("returns{number}.c");
    workshop
        .source(
            CC,
            &name,
            &format!("long f(void) {{ return {number}; }}"),
            &["-O2", "-fPIC", "-fno-asynchronous-unwind-tables"],
        )
        .private()
}

#[test]
fn what_is_unloaded_is_freed_only_after_all_readers_were_quiescent() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let [one, two] = [1, 2].map(|number| load(&arena, returns(&workshop, number)));
    let entry = arena.entry("f", one, "f").unwrap();
    let readers = [arena.reader(), arena.reader()];
    // SAFETY: The entry leads to `long f(void)`, and this thread has readers.
    let f = unsafe { entry.get::<extern "C" fn() -> i64>() };
    entry.replace(two, "f").unwrap();
    arena.unload(one).unwrap();
    assert_eq!((f(), arena.waiting()), (1, 1));
    readers[0].quiescent();
    assert_eq!((arena.collect(), f()), (0, 1));
    readers[1].away();
    assert_eq!((arena.collect(), arena.waiting()), (1, 0));
    readers[1].back();
    // SAFETY: As above.
    assert_eq!(unsafe { entry.get::<extern "C" fn() -> i64>() }(), 2);
}

#[test]
fn an_object_stays_while_a_function_an_entry_or_another_object_leads_to_it() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let base = load(&arena, workshop.c("base.c", "long base(void) { return 20; }"));
    let user = workshop.c("user.c", "long base(void); long f(void) { return base() + 1; }");
    let user = load(&arena, &user);
    // SAFETY: The type is right.
    let pinned = unsafe { arena.function::<extern "C" fn() -> i64>(base, "base") }.unwrap();
    arena.unload(base).unwrap();
    assert!(arena.find("base").is_none());
    assert_eq!((call(&arena, user, "f"), arena.waiting()), (21, 1));
    let entry = arena.entry("entry", user, "f").unwrap();
    arena.unload(user).unwrap();
    assert_eq!(arena.waiting(), 2);
    // SAFETY: No reader is needed, because only this thread loads and unloads.
    assert_eq!(unsafe { entry.get::<extern "C" fn() -> i64>() }(), 21);
    entry.replace_at(std::ptr::null()).unwrap();
    assert_eq!((arena.collect(), arena.waiting()), (1, 1));
    assert_eq!(pinned(), 20);
    drop(pinned);
    assert_eq!((arena.collect(), arena.waiting()), (1, 0));
    assert_eq!(arena.report().text.used, 0);
}

#[test]
fn a_definition_that_gave_way_is_found_again_when_the_other_is_unloaded() {
    let workshop = Workshop::open();
    let arena = Arena::open(Options { keep: true, ..options() }).unwrap();
    let weak = |number: i64| {
        let text = format!("__attribute__((weak)) long f(void) {{ return {number}; }}");
        load(&arena, workshop.c(&format!("weak{number}.c"), &text))
    };
    let user = workshop.c("user.c", "long f(void); long g(void) { return f(); }").private();
    let found = || {
        let user = load(&arena, &user);
        let found = call(&arena, user, "g");
        arena.unload(user).unwrap();
        found
    };
    let [one, two] = [1, 2].map(weak);
    let strong = load(&arena, workshop.c("strong.c", "long f(void) { return 3; }"));
    let last = weak(4);
    assert_eq!(found(), 3);
    arena.unload(strong).unwrap();
    assert_eq!(found(), 1);
    arena.unload(two).unwrap();
    arena.unload(one).unwrap();
    assert_eq!(found(), 4);
    arena.unload(last).unwrap();
    assert!(arena.find("f").is_none() && arena.report().objects == 0);
    // One batch defines all three, and the arena is compacted between.
    let hole = load(&arena, returns(&workshop, 9));
    let sources = ["weak2.c.o", "strong.c.o", "weak1.c.o"];
    let sources = sources.map(|name| Source::file(workshop.path(name)).unwrap());
    let [two, strong, one] = load_all(&arena, sources)[..] else { panic!("three objects") };
    arena.unload(hole).unwrap();
    arena.compact().unwrap();
    assert_eq!(found(), 3);
    arena.unload(strong).unwrap();
    assert_eq!(found(), 2);
    arena.compact().unwrap();
    arena.unload(two).unwrap();
    assert_eq!(found(), 1);
    arena.unload_all(&[one]).unwrap();
    assert!(arena.find("f").is_none() && arena.report().objects == 0);
}

#[test]
fn objects_that_use_each_other_go_together() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let one = workshop.c("one.c", "long g(long); long f(long n) { return n ? g(n - 1) + 1 : 0; }");
    let two = workshop.c("two.c", "long f(long); long g(long n) { return n ? f(n - 1) + 2 : 0; }");
    let objects = load_all(&arena, &[one, two]);
    arena.unload(objects[0]).unwrap();
    assert_eq!(arena.waiting(), 1);
    arena.unload(objects[1]).unwrap();
    assert_eq!((arena.waiting(), arena.report().text.used), (0, 0));
}

#[test]
fn entries_are_symbols_and_replacing_one_reaches_its_callers() {
    for &writing in WAYS {
        let workshop = Workshop::open();
        let chosen = Options { writing, ..options() };
        let arena = Arena::open(chosen).unwrap();
        let [one, two] = [1, 2].map(|number| load(&arena, returns(&workshop, number)));
        let entry = arena.entry("method", one, "f").unwrap();
        let text = "long method(void); long (*taken)(void) = method;\n\
                    long f(void) { return method() * 100 + taken(); }";
        let caller = load(&arena, workshop.c("caller.c", text));
        assert_eq!(call(&arena, caller, "f"), 101);
        entry.replace(two, "f").unwrap();
        assert_eq!(call(&arena, caller, "f"), 202);
        assert!(returns_from_slot(&entry));
        // Own weak definitions give way to entries.
        let _others =
            ["second", "third", "fourth"].map(|name| arena.entry(name, one, "f").unwrap());
        let weak = "#define WEAK(name) __attribute__((weak)) long name(void) { return 5; }\n\
                    WEAK(method) WEAK(second) WEAK(third) WEAK(fourth)\n\
                    long g(void) { return method() * 100 + second() * 10 + third() + fourth(); }";
        let weak = load(&arena, workshop.c("weak.c", weak));
        assert_eq!(call(&arena, weak, "g"), 212);
        // The address of the entry lasts as long as the entry, though the object that took it is gone.
        let taken = arena.symbol(caller, "taken").unwrap().cast::<extern "C" fn() -> i64>();
        // SAFETY: The variable has this type.
        let taken = unsafe { taken.read() };
        arena.unload_all(&[caller, weak]).unwrap();
        let other = returns(&workshop, 3);
        load_all(&arena, [&other; 8]);
        assert_eq!(taken(), 2);
    }
}

/// Code that a JIT emits may load the entry itself.
fn returns_from_slot(entry: &masu_code::Entry) -> bool {
    // SAFETY: The slot lasts as long as the arena.
    unsafe { *entry.slot() == entry.address() }
}

#[test]
fn room_is_used_again_and_fragmentation_is_reported() {
    for &writing in WAYS {
        let workshop = Workshop::open();
        let chosen = Options { writing, ..options() };
        let arena = Arena::open(chosen).unwrap();
        let source = returns(&workshop, 7);
        let mut objects: Vec<Handle> = (0..400).map(|_| load(&arena, &source)).collect();
        let full = arena.report().text;
        for index in (0..400).step_by(2).rev() {
            arena.unload(objects.swap_remove(index)).unwrap();
        }
        let half = arena.report().text;
        // Sealed in batches, each load takes an OS page of its own.
        let most = if writing == Writing::Dual { full.used } else { full.used + full.hole_bytes };
        assert!(half.holes > 0 && half.hole_bytes <= most, "{half:?} {full:?}");
        objects.extend((0..200).map(|_| load(&arena, &source)));
        let again = arena.report().text;
        assert!(
            again.used <= full.used && again.hole_bytes <= full.hole_bytes,
            "{again:?} {full:?}"
        );
        assert!(objects.iter().all(|&object| call(&arena, object, "f") == 7));
        objects.into_iter().for_each(|object| arena.unload(object).unwrap());
        assert_eq!((arena.report().text.used, arena.report().text.holes), (0, 0));
    }
}

#[test]
fn memory_that_held_other_things_is_zero_where_it_must_be() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "static long zeros[3000]; long f(void) { long s = 0; \
                for (int i = 0; i < 3000; i++) s |= zeros[i]++; return s; }";
    let source = workshop.c("zeros.c", text).private();
    for _ in 0..5 {
        let object = load(&arena, &source);
        assert_eq!((call(&arena, object, "f"), call(&arena, object, "f")), (0, 1));
        arena.unload(object).unwrap();
    }
}

// Where code is sealed in batches, each of these loads has an OS page of its own.
#[cfg(target_arch = "x86_64")]
#[test]
fn compaction_moves_what_only_entries_lead_to() {
    let workshop = Workshop::open();
    let chosen = Options { keep: true, ..options() };
    let arena = Arena::open(chosen).unwrap();
    let sources: Vec<Source> = (0..4).map(|number| returns(&workshop, number)).collect();
    let objects: Vec<Handle> = (0..200).map(|index| load(&arena, &sources[index % 4])).collect();
    let name = |index: usize| format!("entry{index}");
    let entries: Vec<_> =
        (0..199).map(|index| arena.entry(&name(index), objects[index], "f").unwrap()).collect();
    // A caller knows the address of the last object: the object must stay at its place.
    let stays = arena.symbol(objects[199], "f").unwrap();
    for index in (0..199).filter(|index| index % 3 != 0) {
        entries[index].replace_at(std::ptr::null()).unwrap();
        arena.unload(objects[index]).unwrap();
    }
    let before = arena.report().text;
    assert!(before.hole_bytes > before.used, "{before:?}");
    let reader = arena.reader();
    let moved = arena.compact().unwrap();
    assert!(moved > 20 && arena.waiting() == moved, "{moved}");
    reader.quiescent();
    assert_eq!(arena.collect(), moved);
    for index in (0..199).filter(|index| index % 3 == 0) {
        // SAFETY: Only this thread unloads.
        let f = unsafe { entries[index].get::<extern "C" fn() -> i64>() };
        assert_eq!(f(), (index % 4) as i64);
        assert_eq!(call(&arena, objects[index], "f"), f());
    }
    assert_eq!(arena.symbol(objects[199], "f").unwrap(), stays);
    let ends = (0..199).filter(|index| index % 3 == 0);
    let ends = ends.map(|index| arena.text_of(objects[index]).unwrap()).map(|(at, size)| at + size);
    let span = ends.max().unwrap() - arena.report().base;
    assert_eq!(span, arena.report().text.used - arena.text_of(objects[199]).unwrap().1);
    assert_eq!(arena.compact().unwrap(), 0);
}

#[test]
fn initializers_and_destructors_run_in_order_and_once() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let log =
        workshop.c("log.c", "char seen[64]; static int n; void note(char c) { seen[n++] = c; }");
    let log = load(&arena, &log);
    let text = "void note(char);\n\
                __attribute__((constructor(300))) static void b(void) { note('b'); }\n\
                __attribute__((constructor(200))) static void a(void) { note('a'); }\n\
                __attribute__((constructor)) static void c(void) { note('c'); }\n\
                __attribute__((destructor)) static void d(void) { note('d'); }\n\
                __attribute__((weak)) void none(void);\n\
                __attribute__((section(\".init_array\"), used)) static void (*empty[])(void) =\n\
                    { none, 0, (void (*)(void))-1 };\n";
    let source = workshop.c("calls.c", text);
    let object = load(&arena, &source);
    let seen = arena.find("seen").unwrap().cast::<std::ffi::c_char>();
    // SAFETY: The array ends with zeros.
    let read = || unsafe { std::ffi::CStr::from_ptr(seen) }.to_str().unwrap().to_owned();
    assert_eq!(read(), "abc");
    arena.unload(object).unwrap();
    assert_eq!(read(), "abcd");
    let inert = load(&arena, source.inert());
    arena.unload(inert).unwrap();
    assert_eq!(read(), "abcd");
    arena.unload(log).unwrap();
}

#[test]
fn objects_unloaded_together_end_in_reverse_and_are_freed_only_then() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let log =
        workshop.c("log.c", "char seen[64]; static int n; void note(char c) { seen[n++] = c; }");
    let log = load(&arena, &log);
    // At its end the registry calls the registered functions; no symbol tells of them.
    let registry = "static void (*member)(void);\n\
        void enter(void (*call)(void)) { member = call; }\n\
        __attribute__((destructor)) static void end(void) { member(); }";
    let user = "void note(char); void enter(void (*)(void));\n\
        static void call(void) { note('c'); }\n\
        __attribute__((constructor)) static void begin(void) { note('a'); enter(call); }\n\
        __attribute__((destructor)) static void end(void) { note('b'); }";
    let sources = [workshop.c("registry.c", registry), workshop.c("user.c", user)];
    let mut objects = load_all(&arena, &sources);
    objects.push(objects[0]);
    assert!(arena.unload_all(&objects).is_err());
    objects.pop();
    assert_eq!((arena.report().objects, arena.waiting()), (3, 0));
    arena.unload_all(&objects).unwrap();
    assert_eq!((arena.report().objects, arena.waiting()), (1, 0));
    let seen = arena.find("seen").unwrap().cast::<std::ffi::c_char>();
    // SAFETY: The array ends with zeros.
    let seen = unsafe { std::ffi::CStr::from_ptr(seen) };
    assert_eq!(seen.to_str().unwrap(), "abc");
    arena.unload(log).unwrap();
}

#[test]
fn the_arena_stays_while_a_reader_may_run_its_code() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let object = load(&arena, returns(&workshop, 5));
    let reader = arena.reader();
    let entry = arena.entry("entry", object, "f").unwrap();
    // SAFETY: The type is right, and this thread has a reader.
    let f = unsafe { entry.get::<extern "C" fn() -> i64>() };
    drop((entry, arena));
    assert_eq!(f(), 5);
    drop(reader);
}

#[test]
fn a_handle_is_of_one_arena() {
    let workshop = Workshop::open();
    let (arena, other) = (quiet(), quiet());
    let [object, same] = [&arena, &other].map(|arena| load(arena, returns(&workshop, 1)));
    assert!(matches!(other.unload(object), Err(masu_code::Error::NoObject)));
    let code = arena.load_code("code", 1, 1, |_, _| {}).unwrap();
    assert!(other.symbol(code, "code").is_err());
    other.unload(same).unwrap();
}

#[test]
fn an_inert_object_runs_no_destructor_after_it_was_moved() {
    static ENDED: AtomicBool = AtomicBool::new(false);
    extern "C" fn note() {
        ENDED.store(true, Ordering::Relaxed);
    }
    let workshop = Workshop::open();
    let resolver: masu_code::Resolver =
        Box::new(|name| (name == b"note").then_some(note as *const () as usize));
    let arena = Arena::open(Options { keep: true, resolver: Some(resolver), ..options() }).unwrap();
    let hole = load(&arena, returns(&workshop, 1));
    let text = "void note(void); __attribute__((destructor)) static void end(void) { note(); }";
    let object = load(&arena, workshop.c("end.c", text).inert());
    arena.unload(hole).unwrap();
    assert_eq!(arena.compact().unwrap(), 1);
    arena.unload(object).unwrap();
    assert!(!ENDED.load(Ordering::Relaxed));
}

#[test]
fn an_entry_keeps_an_object_that_was_moved() {
    let workshop = Workshop::open();
    let arena = Arena::open(Options { keep: true, ..options() }).unwrap();
    let [hole, object] = [1, 2].map(|number| load(&arena, returns(&workshop, number)));
    let entry = arena.entry("entry", object, "f").unwrap();
    arena.unload(hole).unwrap();
    assert_eq!(arena.compact().unwrap(), 1);
    arena.unload(object).unwrap();
    assert_eq!(arena.waiting(), 1);
    // SAFETY: No reader is needed, because only this thread unloads.
    assert_eq!(unsafe { entry.get::<extern "C" fn() -> i64>() }(), 2);
    entry.replace_at(std::ptr::null()).unwrap();
    assert_eq!((arena.collect(), arena.waiting()), (1, 0));
}

#[test]
fn an_object_calls_the_same_functions_after_a_compaction() {
    let workshop = Workshop::open();
    let arena = Arena::open(Options { keep: true, ..options() }).unwrap();
    let [hole, old] = ["9", "1"].map(|number| {
        let text = format!("long g{number}(void) {{ return {number}; }}");
        load(&arena, workshop.c("g.c", &text.replace("g1", "g")))
    });
    let user = load(&arena, workshop.c("f.c", "long g(void); long f(void) { return g(); }"));
    let entry = arena.entry("entry", user, "f").unwrap();
    arena.unload(old).unwrap();
    let new = load(&arena, workshop.c("new.c", "long g(void) { return 2; }"));
    // An object whose address is known stays where it is.
    arena.symbol(new, "g").unwrap();
    arena.unload(hole).unwrap();
    arena.compact().unwrap();
    // SAFETY: No reader is needed, because only this thread unloads.
    assert_eq!(unsafe { entry.get::<extern "C" fn() -> i64>() }(), 1);
}

#[test]
fn what_destructors_note_for_the_end_runs_before_their_object_is_freed() {
    static ENDED: AtomicU64 = AtomicU64::new(0);
    extern "C" fn note() {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
    let workshop = Workshop::open();
    let in_c = "#include <stdlib.h>\nvoid note(void); static void late(void) { note(); }\n\
        __attribute__((destructor)) static void end(void) { atexit(late); }";
    // A static variable that the destructor is the first to use.
    let in_cxx = "extern \"C\" void note(); struct Log { ~Log() { note(); } void say() {} };\n\
        static Log &log() { static Log one; return one; }\n\
        __attribute__((destructor)) static void end() { log().say(); }";
    let flags = ["-O2", "-fPIC", "-fno-exceptions", "-fno-threadsafe-statics"];
    let sources = [workshop.c("ends.c", in_c), workshop.source(CXX, "ends.cpp", in_cxx, &flags)];
    for (source, before) in sources.iter().zip([0, 2]) {
        let resolver: masu_code::Resolver =
            Box::new(|name| (name == b"note").then_some(note as *const () as usize));
        let arena = Arena::open(Options { resolver: Some(resolver), ..options() }).unwrap();
        let object = load(&arena, source);
        arena.unload(object).unwrap();
        assert_eq!(ENDED.load(Ordering::Relaxed), before + 1, "{}", source.name());
        // The object ends with its arena.
        load(&arena, source);
        drop(arena);
        assert_eq!(ENDED.load(Ordering::Relaxed), before + 2, "{}", source.name());
    }
}

#[test]
fn destructors_run_by_priority_whatever_the_order_of_their_sections() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let log = load(&arena, workshop.c("log.c", "long log; long f(void) { return log; }"));
    let text = "extern long log;\n\
        #define NOTE(name, kind, digit) \\\n\
        __attribute__((kind)) static void name(void) { log = log * 10 + digit; }\n\
        NOTE(a, constructor, 3) NOTE(b, constructor(200), 2) NOTE(c, constructor(101), 1)\n\
        NOTE(d, destructor, 4) NOTE(e, destructor(200), 5) NOTE(f, destructor(101), 6)\n\
        NOTE(g, destructor(300), 7)";
    let object = load(&arena, workshop.c("notes.c", text));
    arena.unload(object).unwrap();
    assert_eq!(call(&arena, log, "f"), 123_4756);
}

#[test]
fn a_report_counts_loaded_objects_also_while_destructors_run() {
    static ARENA: OnceLock<Arena> = OnceLock::new();
    extern "C" fn note() -> i64 {
        let report = ARENA.get().expect("it is open").report();
        (report.objects * 10 + report.waiting) as i64
    }
    let workshop = Workshop::open();
    let resolver: masu_code::Resolver =
        Box::new(|name| (name == b"note").then_some(note as *const () as usize));
    let arena = Arena::open(Options { resolver: Some(resolver), ..options() }).unwrap();
    let arena = ARENA.get_or_init(|| arena);
    let said = load(arena, workshop.c("said.c", "long said; long f(void) { return said; }"));
    let text = "extern long said; long note(void);\n\
        __attribute__((destructor)) static void end(void) { said = note(); }";
    let object = load(arena, workshop.c("ends.c", text));
    arena.unload(object).unwrap();
    assert_eq!(call(arena, said, "f"), 11);
}
