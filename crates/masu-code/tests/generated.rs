//! Code without object files: packed, or written in place, called through entries, freed one by one.
//!
//! Relies on machine code of two instructions that returns a number.

mod fixture;

use std::ffi::c_void;

use fixture::{Workshop, load};
use masu_code::{Arena, Error, Memory, Options, Place, Writing};

type Body = extern "C" fn() -> i32;

/// `int body(void) { return number; }`
fn code(number: u16) -> Vec<u8> {
    let [low, high] = number.to_le_bytes();
    if cfg!(target_arch = "x86_64") {
        vec![0xb8, low, high, 0, 0, 0xc3]
    } else {
        let moved = 0x5280_0000_u32 | u32::from(number) << 5;
        [moved.to_le_bytes(), 0xd65f_03c0_u32.to_le_bytes()].concat()
    }
}

fn open(writing: Writing) -> Arena {
    let options = Options { writing, size: 4 << 20, ..Options::default() };
    Arena::open(options).expect("an arena opens")
}

/// Each way to write that this machine has.
fn each_way(test: impl Fn(&Arena)) {
    for writing in [Writing::Dual, Writing::Batches] {
        // qemu before 8.1 runs stale code where memory is mapped twice.
        if writing == Writing::Batches || cfg!(target_arch = "x86_64") {
            test(&open(writing));
        }
    }
}

/// The access of an address, as `rwxp`.
fn access(address: usize) -> String {
    fixture::access(&fixture::mapping_of(address)).to_owned()
}

/// A function that is written while it is loaded.
fn loaded(arena: &Arena, number: u16) -> masu_code::Handle {
    let code = code(number);
    let write = |at: usize, bytes: &mut [u8]| {
        assert!(at.is_multiple_of(16));
        bytes.copy_from_slice(&code);
    };
    arena.load_code("body", code.len(), 1, write).expect("there is room")
}

/// The number that a function returns.
fn returned(arena: &Arena, object: masu_code::Handle) -> i32 {
    // SAFETY: That is the symbol's type.
    unsafe { arena.function::<Body>(object, "body") }.expect("it has the symbol")()
}

fn put(memory: &mut masu_code::InPlace, number: u16) -> (masu_code::Handle, usize) {
    let code = code(number);
    let (object, at) =
        memory.allocate("body", Memory::Code, code.len(), 16).expect("there is room");
    // SAFETY: The block is new and writable.
    unsafe { at.as_ptr().copy_from_nonoverlapping(code.as_ptr(), code.len()) };
    (object, at.as_ptr() as usize)
}

#[test]
fn generated_functions_are_packed_and_freed_one_by_one() {
    let arena = open(if cfg!(target_arch = "x86_64") { Writing::Dual } else { Writing::Batches });
    let before = arena.report().text.used;
    let mut objects: Vec<_> = (0..1000).map(|number| loaded(&arena, number)).collect();
    if arena.report().dual {
        assert_eq!(arena.report().text.used - before, 16 * 1000);
    }
    for round in 0..3000_usize {
        let at = round * 7919 % objects.len();
        arena.unload(objects[at]).expect("it is loaded");
        objects[at] = loaded(&arena, at as u16);
    }
    for (number, object) in objects.iter().enumerate() {
        assert_eq!(returned(&arena, *object), number as i32);
    }
    arena.unload_all(&objects).expect("all are loaded");
    assert_eq!((arena.report().text.used, arena.waiting()), (before, 0));
}

#[test]
fn a_generator_that_panics_leaves_nothing_behind() {
    each_way(|arena| {
        let before = arena.report();
        for _ in 0..3 {
            let write = |_: usize, _: &mut [u8]| std::panic::resume_unwind(Box::new("no code"));
            let load = || arena.load_code("body", 100, 16, write);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).expect_err("it panics");
        }
        let after = arena.report();
        assert_eq!((after.objects, after.waiting), (before.objects, 0));
        assert_eq!(after.text.used, before.text.used);
        assert_eq!(returned(arena, loaded(arena, 7)), 7);
    });
}

#[test]
fn what_is_written_in_place_is_never_writable_and_executable() {
    each_way(|arena| {
        let before = arena.report();
        let mut memory = arena.in_place();
        let blocks: Vec<_> = (0..700).map(|number| put(&mut memory, number)).collect();
        let (constants, table) =
            memory.allocate("table", Memory::Constants, 16, 1).expect("there is room");
        let (data, cell) = memory.allocate("cell", Memory::Data, 8, 64).expect("there is room");
        // SAFETY: Both are writable now.
        unsafe { (*table.cast::<[u8; 16]>().as_ptr(), *cell.as_ptr()) = ([7; 16], 8) };
        let (table, cell) = (table.as_ptr() as usize, cell.as_ptr() as usize);
        let kinds =
            || [access(blocks[0].1), access(table), access(cell)].map(|it| it[..3].to_owned());
        assert_eq!(kinds(), ["rw-", "rw-", "rw-"]);
        memory.seal().expect("the machine can seal");
        assert_eq!(kinds(), ["r-x", "r--", "rw-"]);
        for (number, (object, at)) in blocks.iter().enumerate() {
            assert_eq!(arena.symbol(*object, "body").unwrap() as usize, *at);
            assert_eq!(returned(arena, *object), number as i32);
        }
        // The next batch is on pages of its own.
        let (next, at) = put(&mut memory, 1);
        assert_eq!((&access(at)[..3], &access(blocks[699].1)[..3]), ("rw-", "r-x"));
        drop(memory);
        assert_eq!(&access(at)[..3], "r-x");
        for object in blocks.iter().map(|(object, _)| *object).chain([constants, data, next]) {
            arena.unload(object).expect("it is loaded");
        }
        let after = arena.report();
        assert_eq!((after.text.used, after.sealed.used), (before.text.used, before.sealed.used));
        assert_eq!((after.data.used, after.waiting), (before.data.used, 0));
    });
}

#[test]
fn functions_that_are_sealed_one_by_one_compete_for_no_cache_set() {
    each_way(|arena| {
        let mut memory = arena.in_place();
        let mut sets = [0; 64];
        for number in 0..256 {
            let (object, at) = put(&mut memory, number);
            memory.seal().expect("the machine can seal");
            sets[at / 64 % 64] += 1;
            assert_eq!(returned(arena, object), i32::from(number));
        }
        // Without colors all are in one set; with the best colors two are in each set.
        assert!(sets.iter().all(|count| *count <= 16), "{sets:?}");
    });
}

#[test]
fn a_block_that_goes_before_it_is_sealed_leaves_its_page_alone() {
    each_way(|arena| {
        let mut memory = arena.in_place();
        let (first, at) = put(&mut memory, 1);
        let (second, _) = put(&mut memory, 2);
        arena.unload(first).expect("it is loaded");
        assert_eq!(arena.waiting(), 1);
        for (object, number) in [(loaded(arena, 3), 3), (second, 2)] {
            if number == 2 {
                memory.seal().expect("the machine can seal");
                assert_eq!(arena.waiting(), 0);
            }
            assert_eq!(returned(arena, object), number);
            assert_ne!(arena.symbol(object, "body").unwrap() as usize, at);
        }
    });
}

#[test]
fn an_entry_leads_to_generated_code_and_its_readers_keep_it() {
    each_way(|arena| {
        let mut memory = arena.in_place();
        let (first, _) = put(&mut memory, 1);
        memory.seal().expect("the machine can seal");
        let entry = arena.entry("method", first, "body").expect("the name is free");
        let reader = arena.reader();
        // SAFETY: That is the entry's type.
        let old = unsafe { entry.get::<Body>() };
        let (second, _) = put(&mut memory, 2);
        memory.seal().expect("the machine can seal");
        entry.replace(second, "body").expect("it is there");
        arena.unload(first).expect("it is loaded");
        // SAFETY: That is the entry's type.
        let new = unsafe { entry.get::<Body>() };
        assert_eq!((old(), new(), arena.collect()), (1, 2, 0));
        reader.quiescent();
        assert_eq!((arena.collect(), arena.waiting()), (1, 0));
    });
}

#[test]
fn generated_code_reaches_the_program_and_objects_do_not_see_it() {
    let arena = Arena::open(Options { place: Place::NearProgram, ..Options::default() });
    let arena = arena.expect("an arena opens");
    let object = arena.load_code("quiet", 8, 16, |_, bytes| bytes.fill(0)).expect("there is room");
    let at = arena.symbol(object, "quiet").expect("it has the symbol");
    let here = generated_code_reaches_the_program_and_objects_do_not_see_it as *const c_void;
    assert!((at as usize).abs_diff(here as usize) < 1 << 31);
    assert_eq!(arena.find("quiet"), None);
}

#[test]
fn sizes_and_alignments_that_cannot_be_are_errors() {
    each_way(|arena| {
        let mut memory = arena.in_place();
        for (size, align) in [(8, 3), (8, 0), (8, 1 << 40), (usize::MAX, 16), (usize::MAX - 64, 1)]
        {
            for kind in [Memory::Code, Memory::Constants, Memory::Data] {
                let why = memory.allocate("odd", kind, size, align).expect_err("it cannot be");
                assert!(matches!(why, Error::Unsupported { .. } | Error::Full { .. }), "{why}");
            }
            arena.load_code("odd", size, align, |_, _| {}).expect_err("it cannot be");
        }
        // An empty block has an address of its own, too.
        let empty: Vec<_> =
            (0..2).map(|_| memory.allocate("", Memory::Data, 0, 1).expect("room").1).collect();
        assert_ne!(empty[0], empty[1]);
        let large = memory.allocate("large", Memory::Code, 1 << 20, 256 << 10).expect("room").1;
        assert!((large.as_ptr() as usize).is_multiple_of(256 << 10));
    });
}

#[test]
fn loads_leave_pages_writable_that_a_generator_writes_in_place() {
    let workshop = Workshop::open();
    // Entries of the GOT in two places: thread-local variables have pairs of their own.
    let text = "__thread long t[2]; extern char **environ;\n\
        long f(void) { return t[0]; } char **g(void) { return environ; }";
    let source = workshop.c("f.c", text).private();
    each_way(|arena| {
        let mut memory = arena.in_place();
        let (_, at) = memory.allocate("table", Memory::Constants, 8, 8).unwrap();
        for _ in 0..3 {
            load(arena, &source);
        }
        assert_eq!(access(at.as_ptr() as usize)[..2], *"rw");
        memory.seal().unwrap();
    });
}
