//! An object's fault is reported with its place, and leaves the arena unchanged.

mod fixture;

use fixture::{CC, Workshop, call, load, quiet};
use masu_code::{Arena, Error, Options, Source, Tools};

/// The error of loading as text; the arena must be as before.
fn refused(arena: &Arena, sources: &[Source]) -> String {
    let before = arena.report();
    // SAFETY: No object with initializers is loaded.
    let error = unsafe { arena.load_all(sources) }.expect_err("it must not load");
    assert_eq!(arena.report(), before, "{error}");
    error.to_string()
}

#[track_caller]
fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{said:?} does not say {part:?}");
    }
}

#[test]
fn what_cannot_be_linked_is_named_with_its_place_and_the_remedy() {
    const FAST: &[&str] = &["-O2", "-fPIC"];
    const IS_X86: bool = cfg!(target_arch = "x86_64");
    const CALL: &str = if IS_X86 { "R_X86_64_PLT32" } else { "R_AARCH64_CALL26" };
    let (workshop, arena) = (Workshop::open(), quiet());
    let cases: [(&str, &[&str], &[&str]); 5] = [
        (
            "long nobody(void); long f(void) { return nobody() + 1; }",
            FAST,
            &[".text+0x", CALL, "`nobody`", "undefined"],
        ),
        (
            "static int a(void) { return 1; } static int (*choose(void))(void) { return a; }\n\
             int chosen(void) __attribute__((ifunc(\"choose\")));",
            FAST,
            &["`chosen`", "IFUNC"],
        ),
        (
            "extern char **environ; long f(void) { return (long)environ; }",
            &["-O2", "-fPIE"],
            &[".text+0x", "`environ`", "out of range", "-fPIC", "NearLibraries"],
        ),
        (
            "int x; long f(void) { return (long)&x; }",
            &["-O2", "-fno-pic"],
            &["R_X86_64_32", "`x`", "Place::Low"],
        ),
        (
            "extern _Thread_local int theirs; long f(void) { return theirs; }",
            &["-O2", "-fPIC", "-mtls-dialect=gnu2"],
            &["relocation type 34", "`theirs`"],
        ),
    ];
    // The last three are of this CPU.
    for (text, flags, says) in cases.into_iter().take(if IS_X86 { 5 } else { 2 }) {
        // An inert object may not run what chooses a function.
        let source = workshop.source(CC, "bad.c", text, flags).inert();
        assert_says(&refused(&arena, &[source]), &[&["bad.c.o"], says].concat());
    }
}

#[test]
fn initializers_that_would_not_run_are_refused() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "static void set(void) {} __attribute__((section(\".ctors\"), used)) static void \
        (*set_first)(void) = set; long f(void) { return 3; }";
    let source = workshop.c("old.c", text);
    let said = refused(&arena, std::slice::from_ref(&source));
    assert_says(&said, &["old.c.o", ".ctors", ".init_array"]);
    let object = load(&arena, source.inert());
    assert_eq!(fixture::call(&arena, object, "f"), 3);
}

#[test]
fn a_symbol_defined_twice_is_named_with_both_objects() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let one = workshop.c("one.c", "int value = 1; long f(void) { return value; }");
    let two = workshop.c("two.c", "int value = 2;");
    let said = refused(&arena, &[one.clone(), two.clone()]);
    assert_says(&said, &["two.c.o", "`value`", "one.c.o"]);
    let object = load(&arena, &one);
    assert_says(&refused(&arena, std::slice::from_ref(&two)), &["two.c.o", "`value`", "one.c.o"]);
    load(&arena, two.clone().private());
    arena.unload(object).unwrap();
    load(&arena, &two);
}

#[test]
fn objects_for_link_time_optimization_are_named_as_such() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "long f(void) { return 7; }";
    let thin =
        workshop.source(CC, "thin.c", text, &["-O2", "-fPIC", "-flto", "-fno-fat-lto-objects"]);
    assert_says(&refused(&arena, &[thin]), &["thin.c.o", "link-time", "-fno-lto"]);
    let fat = workshop.source(CC, "fat.c", text, &["-O2", "-fPIC", "-flto", "-ffat-lto-objects"]);
    let object = load(&arena, fat);
    assert_eq!(call(&arena, object, "f"), 7);
}

#[test]
fn a_file_that_is_no_object_is_refused() {
    let (workshop, arena) = (Workshop::open(), quiet());
    assert_says(&refused(&arena, &[Source::new("nothing", b"")]), &["nothing", "ELF header"]);
    assert_says(
        &refused(&arena, &[Source::new("text", b"int main() {}")]),
        &["text", "ELF header"],
    );
    let object = workshop.compile(CC, "f.c", "long f(void) { return 1; }", &["-O2", "-fPIC"]);
    workshop.run(CC, &["-shared", "f.c.o", "-o", "f.so"]);
    let library = Source::file(workshop.path("f.so")).unwrap();
    assert_says(&refused(&arena, &[library]), &["f.so", "relocatable"]);
    let mut bytes = std::fs::read(object).unwrap();
    bytes[18] ^= 0xff;
    assert_says(&refused(&arena, &[Source::new("other", &bytes)]), &["other", "another CPU"]);
    let missing = Source::file(workshop.path("missing.o")).unwrap_err().to_string();
    assert_says(&missing, &["missing.o", "cannot read"]);
}

#[test]
fn a_full_arena_says_so_and_goes_on_working() {
    let workshop = Workshop::open();
    let options = Options { size: 1 << 20, tools: Tools::none(), ..Options::default() };
    let arena = Arena::open(options).unwrap();
    let text = "char bulk[100000]; long f(void) { return sizeof bulk + bulk[7]; }";
    let source = workshop.c("bulk.c", text).private();
    let mut objects = Vec::new();
    let error = loop {
        // SAFETY: No initializers.
        match unsafe { arena.load(&source) } {
            Ok(object) => objects.push(object),
            Err(error) => break error,
        }
        assert!(objects.len() < 10, "it never gets full");
    };
    assert!(
        matches!(error, Error::Full { region: "writable data", wanted: 100_000.., .. }),
        "{error}"
    );
    assert_eq!(objects.len(), 2);
    assert!(objects.iter().all(|&object| call(&arena, object, "f") == 100_000));
    // A batch that does not fit as a whole is not loaded in part.
    arena.unload(objects[0]).unwrap();
    assert_says(&refused(&arena, &[source.clone(), source.clone()]), &["full", "writable data"]);
    let again = load(&arena, &source);
    assert_eq!(call(&arena, again, "f"), 100_000);
    assert!(matches!(arena.unload(objects[0]), Err(Error::NoObject)));
    let sizes = [1, 1 << 40].map(|size| Arena::open(Options { size, ..Options::default() }));
    assert!(sizes.iter().all(|arena| matches!(arena, Err(Error::Options(_)))));
}

#[test]
fn missing_handles_and_names_are_reported() {
    let (workshop, arena, other) = (Workshop::open(), quiet(), quiet());
    let object = load(&arena, workshop.c("f.c", "long f(void) { return 1; }"));
    assert_says(&arena.symbol(object, "g").unwrap_err().to_string(), &["f.c.o", "`g`"]);
    assert!(matches!(other.symbol(object, "f"), Err(Error::NoObject)));
    arena.entry("f", object, "f").expect_err("the object publishes f");
    arena.entry("entry", object, "f").unwrap();
    assert_says(
        &arena.entry("entry", object, "f").err().unwrap().to_string(),
        &["`entry`", "taken"],
    );
}

#[test]
fn a_symbol_of_a_section_that_is_not_loaded_is_undefined_for_others() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "__asm__(\".section .notes\\n.globl noted\\n.long 0\\nnoted:\\n.text\");";
    let notes = workshop.c("notes.c", text);
    let user = workshop.c("user.c", "extern char noted; char *f(void) { return &noted; }");
    assert_says(&refused(&arena, &[notes.clone(), user]), &["user.c.o", "`noted`", "undefined"]);
    load(&arena, notes);
    assert!(arena.find("noted").is_none());
}

// Loads with pages of their own have room for their stubs in these pages.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_full_arena_is_no_undefined_entry() {
    let workshop = Workshop::open();
    let arena = Arena::open(Options {
        size: 1 << 20,
        writing: masu_code::Writing::Dual,
        ..fixture::options()
    })
    .unwrap();
    arena.entry_at("entry", std::ptr::null()).unwrap();
    let user = workshop.c("user.c", "void entry(void); void f(void) { entry(); }").private();
    let code = |size, align| arena.load_code("code", size, align, |_, _| {});
    while code(60 << 10, 16).is_ok() {}
    let blocks: Vec<_> = std::iter::from_fn(|| code(16, 16).ok()).collect();
    while code(1, 1).is_ok() {}
    // The function has room now, but there is no room behind it for a stub.
    arena.unload(blocks[0]).unwrap();
    let said = refused(&arena, &[user]);
    assert!(said.contains("full"), "{said}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_branch_to_a_far_absolute_symbol_has_a_stub_in_every_way() {
    let workshop = Workshop::open();
    let text = "void one(void); void two(void); void f(void) { one(); two(); }";
    workshop.compile(CC, "far.c", text, &["-O2", "-fPIC"]);
    let values = ["--defsym", "one=0x123456789abc", "--defsym", "two=0x123456789abe"];
    workshop.run("ld", &[&["-r", "far.c.o", "-o", "far.o"], &values[..]].concat());
    let source = Source::file(workshop.path("far.o")).unwrap();
    for &writing in fixture::WAYS {
        let arena = Arena::open(Options { writing, ..fixture::options() }).unwrap();
        load(&arena, &source);
        assert_eq!(arena.report().stubs, 2);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_jump_behind_a_far_symbol_arrives_there() {
    extern "C" fn goal() -> i64 {
        77
    }
    let workshop = Workshop::open();
    let text = r#"asm(".globl f\nf: jmp far + 16\n.globl g\ng: jmp far");"#;
    let source = workshop.c("behind.c", text);
    let symbol = goal as *const () as usize;
    for (name, before) in [("f", 16), ("g", 0)] {
        let resolver = move |name: &[u8]| (name == b"far").then_some(symbol - before);
        let resolver: Option<masu_code::Resolver> = Some(Box::new(resolver));
        let place = masu_code::Place::Low;
        let arena = Arena::open(Options { place, resolver, ..fixture::options() }).unwrap();
        let object = load(&arena, &source);
        assert_eq!((fixture::call(&arena, object, name), arena.report().stubs), (77, 2));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn relocations_that_would_be_left_out_are_refused() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "extern char **environ; long f(void) { return (long)environ; }";
    let object = std::fs::read(workshop.compile(CC, "f.c", text, &["-O2", "-fPIC"])).unwrap();
    let word = |at: usize| u64::from_le_bytes(object[at..at + 8].try_into().unwrap()) as usize;
    // The headers of tables of relocations (SHT_RELA): that of the code, and that of the unwind table.
    let headers = (word(40)..object.len()).step_by(64);
    let tables: Vec<usize> = headers.filter(|&at| object[at + 4] == 4).collect();
    let mut twice = object.clone();
    twice.copy_within(tables[0] + 44..tables[0] + 48, tables[1] + 44);
    assert_says(&refused(&arena, &[Source::new("twice.o", twice)]), &["twice.o", "two tables"]);
    let mut short = object.clone();
    // SHT_CREL, the form that few linkers know.
    short[tables[0] + 4..][..4].copy_from_slice(&0x4000_0014_u32.to_le_bytes());
    assert_says(&refused(&arena, &[Source::new("short.o", short)]), &["short.o", "SHT_RELA"]);
}
