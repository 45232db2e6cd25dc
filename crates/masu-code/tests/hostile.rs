//! Objects that are cut off, broken at random, or malicious: an error or a load, never a crash.
//!
//! Bounded in CI, long with `MASU_SOAK=1`. `fuzz/` has the same as a target for libFuzzer, which found the files in
//! `corpus/`: objects that compilers write, and objects that once broke the loader. `MASU_SEED=N` gives other changes.
//! A panic writes the object at fault to a file, under the name that it prints.

#[path = "fixture/attempt.rs"]
mod attempt;
mod fixture;
#[path = "fixture/mutation.rs"]
mod mutation;

use std::ops::Range;
use std::path::Path;

use attempt::Attempts;
use fixture::{CC, CXX, Workshop, quiet, text};
use masu_code::Source;
use mutation::{Random, change};

/// The kept objects: objects of compilers, and objects that broke the loader before.
fn kept() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = std::fs::read_dir(&folder).expect("the corpus");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).expect("it is read")).collect()
}

/// The same objects, and larger objects that today's compilers make.
fn corpus(workshop: &Workshop) -> Vec<Vec<u8>> {
    std::fs::write(workshop.path("shapes.h"), text("shapes.h")).unwrap();
    let mut corpus = kept();
    let mut add = |path| corpus.push(std::fs::read(path).unwrap());
    add(workshop.compile(
        CC,
        "a.c",
        &text("constructs.c"),
        &["-O2", "-fPIC", "-ffunction-sections", "-fcommon"],
    ));
    add(workshop.compile(CXX, "c.cpp", &text("shapes.cpp"), &["-O1", "-fPIC", "-DPART=2"]));
    corpus
}

/// An attempt that keeps the object where it panics.
fn attempt(attempts: &mut Attempts, object: &[u8], what: &str) -> bool {
    let load = || attempts.load(object);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).unwrap_or_else(|panic| {
        let file = std::env::temp_dir().join(format!("masu-code-{}.o", std::process::id()));
        std::fs::write(&file, object).expect("the object is kept");
        println!("{what}: the object is kept in {}", file.display());
        std::panic::resume_unwind(panic)
    })
}

#[test]
fn what_is_kept_is_an_error_or_loads() {
    let mut attempts = Attempts::new();
    let kept = kept();
    let loaded = kept.iter().filter(|object| attempt(&mut attempts, object, "kept")).count();
    // Some objects need symbols of a linked program; objects of another CPU never load.
    assert!(loaded >= 5 || cfg!(target_arch = "aarch64"), "{loaded} of {} load", kept.len());
}

#[test]
fn objects_cut_off_anywhere_are_refused() {
    let workshop = Workshop::open();
    let mut attempts = Attempts::new();
    for object in corpus(&workshop) {
        let step = object.len() / 300 + 1;
        for length in (0..object.len()).step_by(step) {
            attempt(&mut attempts, &object[..length], &format!("cut at {length}"));
        }
    }
}

#[test]
fn objects_broken_at_random_are_an_error_or_load() {
    let soak = std::env::var_os("MASU_SOAK").is_some();
    let rounds = if soak { 2_000_000 } else { 20_000 };
    let seed = std::env::var("MASU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let workshop = Workshop::open();
    let (mut attempts, corpus) = (Attempts::new(), corpus(&workshop));
    let mut random = Random(seed);
    let mut loaded = 0;
    for round in 0..rounds {
        let mut object = corpus[random.below(corpus.len())].clone();
        for _ in 0..random.below(4) {
            change(&mut object, &mut random);
        }
        // This byte chooses how the object is loaded.
        if object.starts_with(b"\x7fELF") {
            object[attempt::CHOICE] = random.next() as u8;
        }
        if random.below(8) == 0 {
            object.truncate(random.below(object.len()).max(48));
        }
        let what = format!("seed {seed}, round {round}");
        loaded += usize::from(attempt(&mut attempts, &object, &what));
    }
    // Both results happen often, or the test tests nothing.
    assert!(loaded > rounds / 100 && loaded < rounds * 99 / 100, "{loaded} of {rounds}");
}

/// The places of the unwind table's relocations in an object's file.
fn relocations_of_frames(object: &[u8]) -> Vec<Range<usize>> {
    use object::{Object as _, ObjectSection as _};
    let Ok(file) = object::File::parse(object) else { return Vec::new() };
    let tables = file.sections().filter(|section| section.name() == Ok(".rela.eh_frame"));
    let ranges = tables.filter_map(|table| table.file_range());
    ranges.map(|(start, size)| start as usize..(start + size) as usize).collect()
}

#[test]
fn unwind_tables_about_other_code_are_refused_before_an_exception_meets_them() {
    let workshop = Workshop::open();
    let (mut attempts, mut random) = (Attempts::new(), Random(1));
    let (mut loaded, mut refused) = (0, 0);
    for object in corpus(&workshop) {
        for at in relocations_of_frames(&object).into_iter().flatten() {
            let mut object = object.clone();
            object[at] ^= 1 << random.below(8);
            object[attempt::CHOICE] = random.next() as u8;
            let is_loaded = attempt(&mut attempts, &object, &format!("byte {at}"));
            *if is_loaded { &mut loaded } else { &mut refused } += 1;
        }
    }
    // Nearly each change leads a frame to code of other objects.
    assert!(loaded > 0 && refused > loaded, "{loaded} loaded, {refused} refused");
}

#[test]
fn an_unwind_table_without_an_end_is_refused_whatever_lies_behind_it() {
    let mut attempts = Attempts::new();
    for before in kept() {
        attempt(&mut attempts, &before, "before");
        // The table's last entry reaches over the zeros that follow the section.
        let table = include_bytes!("corpus/found-table-without-end.o");
        assert!(!attempt(&mut attempts, table, "without an end"));
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "char huge[SIZE]; long f(void) { return huge[5]; }";
    for (size, common, says) in [
        ("1ull << 40", "-fno-common", "section .bss: it has more than 1 GiB"),
        ("1ull << 40", "-fcommon", "symbol huge: it has more than 1 GiB"),
        ("1ull << 30", "-fno-common", "the arena is full: 1073741824 bytes of writable data"),
    ] {
        let size = format!("-DSIZE={size}");
        let huge = workshop.source(CC, "huge.c", text, &["-O2", "-fPIC", common, &size]);
        // SAFETY: No initializers.
        let error = unsafe { arena.load(&huge) }.unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// An object with a function of `count` names; each name is the end of one string.
fn names(count: usize, length: usize) -> Vec<u8> {
    const TEXT: usize = 16;
    let header = |name: u32, kind: u32, flags: u64, at: usize, size: usize, rest: [u64; 3]| {
        let [links, align, entry] = rest;
        let words = [u64::from(kind) << 32 | u64::from(name), flags, 0, at as u64, size as u64];
        [words.as_slice(), &[links, align, entry]].concat()
    };
    let symbols = 64 + TEXT;
    let symbols_size = (count + 1) * 24;
    let strings = symbols + symbols_size;
    let table = (strings + length + 2).next_multiple_of(8);
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let head = [0x0001_0102_464c_457f, 0, 1 | machine << 16 | 1 << 32, 0, 0, table as u64];
    let tail = [64 << 32, 64 << 16 | 4 << 32 | 3 << 48];
    let mut file: Vec<u64> = [head.as_slice(), &tail].concat();
    file.extend([u64::MAX; TEXT / 8]);
    file.extend([0; 3]);
    // Global functions at the beginning of section 1.
    (0..count).for_each(|name| file.extend([(name as u64 + 1) | 0x12 << 32 | 1 << 48, 0, 8]));
    let mut file: Vec<u8> = file.into_iter().flat_map(u64::to_le_bytes).collect();
    file.push(0);
    file.resize(strings + 1 + length, b'a');
    file.resize(table, 0);
    let headers = [
        vec![0; 8],
        header(0, 1, 6, 64, TEXT, [0, 16, 0]),
        header(0, 2, 0, symbols, symbols_size, [3 | 1 << 32, 8, 24]),
        header(0, 3, 0, strings, length + 2, [0, 1, 0]),
    ];
    file.extend(headers.concat().into_iter().flat_map(u64::to_le_bytes));
    file
}

#[test]
fn names_that_are_pieces_of_one_string_take_no_memory_without_end() {
    let arena = quiet();
    // SAFETY: No initializers.
    let load = |file| unsafe { arena.load(Source::new("names.o", file).private()) };
    load(names(4, 20)).unwrap();
    // The names of a quarter of a megabyte would become 1.3 GB.
    let error = load(names(8_000, 160_000)).unwrap_err();
    assert!(error.to_string().contains("names"), "{error}");
}

#[test]
fn sections_that_lie_over_each_other_are_refused() {
    let arena = quiet();
    let mut file = names(4, 20);
    // The header says that the string table begins at the file's beginning, and reaches to the end.
    let header = file.len() - 64;
    let end = (file.len() as u64).to_le_bytes();
    file[header + 24..header + 32].fill(0);
    file[header + 32..header + 40].copy_from_slice(&end);
    // SAFETY: No initializers.
    let error = unsafe { arena.load(Source::new("over.o", file)) }.unwrap_err();
    assert!(error.to_string().contains("over"), "{error}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn two_unwind_tables_are_not_of_the_same_code() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let table = |flags: &str, code: &str| {
        let common = ".long 16, 0; .byte 1; .asciz \"zR\"; .byte 1, 0x78, 16, 1, 0x1b, 0, 0, 0";
        format!(".section .eh_frame,{flags}; {common}; .long 16, 24, {code} - ., 1, 0; ")
    };
    let object = |name, codes: [&str; 2]| {
        let tables = [table("\"a\"", codes[0]), table("\"aG\",@progbits,g,comdat", codes[1])];
        let text = format!(".text; f: ret; g: ret; .globl f; {}", tables.concat());
        workshop.source(CC, name, &text, &[])
    };
    // SAFETY: No initializers.
    let load = |source: Source| unsafe { arena.load(source.private()) };
    load(object("apart.s", ["f", "g"])).unwrap();
    let error = load(object("same.s", ["f", "f"])).unwrap_err();
    assert!(error.to_string().contains("two unwind tables"), "{error}");
}

#[test]
fn an_index_of_pieces_of_one_name_takes_no_memory_without_end() {
    let (count, length) = (8_000_u32, 160_000);
    let mut index: Vec<u8> = (count * 8).to_le_bytes().to_vec();
    // Pairs of a name's place and a member's, as BSD has them.
    (0..count).for_each(|name| index.extend([name.to_le_bytes(), 0_u32.to_le_bytes()].concat()));
    index.extend((length as u32).to_le_bytes());
    index.resize(index.len() + length - 1, b'a');
    index.push(0);
    let header =
        format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "__.SYMDEF", 0, 0, 0, 0, index.len());
    let library = [b"!<arch>\n", header.as_bytes(), &index].concat();
    let error = masu_code::Archive::new("names.a", &library).unwrap_err();
    assert!(error.to_string().contains("names"), "{error}");
}

/// A static library with the symbols `s0`, `s1`… Each member begins behind the header of the one before, and reaches to
/// the end of the library.
fn nested(count: usize) -> Vec<u8> {
    let header = |name: &str, size: usize| {
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 0).into_bytes()
    };
    let names: Vec<u8> = (0..count).flat_map(|name| format!("s{name}\0").into_bytes()).collect();
    let size = (4 + 4 * count + names.len()).next_multiple_of(2);
    // A header of an object without sections, behind each member's.
    let object = [
        &[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 62, 0, 1][..],
        &[0; 43],
    ];
    let (object, step) = (object.concat(), 60 + 64);
    let (first, end) = (8 + 60 + size, 8 + 60 + size + count * step);
    let at = |member: usize| first + member * step;
    let mut library = [&b"!<arch>\n"[..], &header("/", size)].concat();
    library.extend((count as u32).to_be_bytes());
    (0..count).for_each(|member| library.extend((at(member) as u32).to_be_bytes()));
    library.extend(names);
    library.resize(first, 0);
    for member in 0..count {
        library.extend(header("m/", end - at(member) - 60));
        library.extend(&object);
    }
    library
}

#[test]
fn members_that_lie_in_each_other_take_no_memory_without_end() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let count = 200;
    let calls: String = (0..count).map(|name| format!("s{name}(); ")).collect();
    let declared: String = (0..count).map(|name| format!("void s{name}(void); ")).collect();
    let user = workshop.c("user.c", &format!("{declared} void f(void) {{ {calls} }}"));
    // The 200 members of 25 KB would be copies of 2.5 MB, those of ten times as many 100 times as much.
    let library = masu_code::Archive::new("nested.a", &nested(count)).unwrap();
    // SAFETY: No initializers.
    let error = unsafe { arena.load_with([user], &[library]) }.unwrap_err();
    assert!(error.to_string().contains("over each other"), "{error}");
}

#[test]
fn functions_that_lie_over_each_other_do_not_fill_the_disk() {
    let workshop = Workshop::open();
    let tools = masu_code::Tools { jitdump: Some(workshop.path("")), ..masu_code::Tools::none() };
    let arena = masu_code::Arena::open(masu_code::Options { tools, ..fixture::options() }).unwrap();
    // A hundred functions of 8 bytes at the beginning of 16 bytes.
    // SAFETY: No initializers.
    unsafe { arena.load(Source::new("names.o", names(100, 120)).private()) }.unwrap();
    let dump = std::fs::read(workshop.path(&format!("jit-{}.dump", std::process::id()))).unwrap();
    let copies = dump.windows(8).filter(|bytes| **bytes == [0xff; 8]).count();
    assert_eq!(copies, 16 * 16 / 8);
}
