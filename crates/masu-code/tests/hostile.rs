//! Objects that are cut off, broken at random, or made to hurt: an error or a load, never a crash.
//!
//! Bounded in CI, long with `MASU_SOAK=1`; `fuzz/` has the same as a target for a fuzzer. A failure
//! prints the seed and writes the object beside.

mod fixture;

use fixture::{CC, CXX, Workshop, quiet, text};
use masu_code::{Arena, Options, Source, Tools};

/// A generator of random numbers, the same everywhere (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn corpus(workshop: &Workshop) -> Vec<Vec<u8>> {
    std::fs::write(workshop.path("shapes.h"), text("shapes.h")).unwrap();
    let mut corpus = Vec::new();
    let mut add = |path| corpus.push(std::fs::read(path).unwrap());
    add(workshop.compile(
        CC,
        "a.c",
        &text("constructs.c"),
        &["-O2", "-fPIC", "-ffunction-sections", "-fcommon"],
    ));
    add(workshop.compile(CC, "b.c", "long f(void) { return 3; }", &["-O1", "-fPIC"]));
    add(workshop.compile(CXX, "c.cpp", &text("shapes.cpp"), &["-O1", "-fPIC", "-DPART=2"]));
    let tls = "extern _Thread_local int t; int c; long f(void) { return t + c; }\n\
               __attribute__((constructor, weak)) void g(void) {}";
    add(workshop.compile(CC, "d.c", tls, &["-O1", "-fPIC", "-fcommon", "-g"]));
    corpus
}

/// Loads and unloads; nothing in the object is run.
fn attempt(arena: &Arena, bytes: &[u8]) -> bool {
    let source = Source::new("hostile.o", bytes).inert().private();
    // SAFETY: Initialisers are not run, and nothing is called.
    match unsafe { arena.load(&source) } {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
        Ok(object) => {
            arena.unload(object).unwrap();
            true
        }
    }
}

fn arena() -> Arena {
    let tools = Tools { debugger: false, ..Tools::default() };
    // A resolver that has every name lets more of each object be reached.
    let resolver: masu_code::Resolver =
        Box::new(|name| (name.len() % 7 != 0).then_some(0x1234_5678_9abc));
    Arena::open(Options { size: 4 << 20, tools, resolver: Some(resolver), ..Options::default() })
        .unwrap()
}

#[test]
fn objects_cut_off_anywhere_are_refused() {
    let workshop = Workshop::open();
    let arena = arena();
    for object in corpus(&workshop) {
        assert!(attempt(&arena, &object) || object.len() > 100);
        let step = object.len() / 300 + 1;
        for length in (0..object.len()).step_by(step) {
            attempt(&arena, &object[..length]);
        }
    }
    assert_eq!(arena.report().text.used, 0);
}

#[test]
fn objects_broken_at_random_are_an_error_or_load() {
    let soak = std::env::var_os("MASU_SOAK").is_some();
    let rounds = if soak { 2_000_000 } else { 20_000 };
    let seed = std::env::var("MASU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let workshop = Workshop::open();
    let (arena, corpus) = (arena(), corpus(&workshop));
    let mut random = Random(seed);
    let mut loaded = 0;
    for round in 0..rounds {
        let mut object = corpus[random.below(corpus.len())].clone();
        break_up(&mut object, &mut random);
        let file = workshop.path("last.o");
        if soak && round % 1000 == 0 {
            std::fs::write(&file, &object).unwrap();
        }
        loaded += usize::from(attempt(&arena, &object));
    }
    // Both happen often, or the test tests nothing.
    assert!(loaded > rounds / 100 && loaded < rounds * 99 / 100, "{loaded} of {rounds}");
    assert_eq!((arena.report().text.used, arena.report().data.used), (0, 0), "seed {seed}");
}

/// Changes a few places, most of them where tables are.
fn break_up(object: &mut Vec<u8>, random: &mut Random) {
    let table = u64::from_le_bytes(object[40..48].try_into().unwrap()) as usize;
    for _ in 0..1 + random.below(4) {
        let at = match random.below(4) {
            0 => random.below(64),
            1 | 2 => table + random.below(object.len().saturating_sub(table)),
            _ => random.below(object.len()),
        };
        if at + 8 > object.len() {
            continue;
        }
        match random.below(6) {
            0 => object[at] ^= 1 << random.below(8),
            1 => object[at] = random.next() as u8,
            2 => object[at..at + 4].copy_from_slice(&(random.below(64) as u32).to_le_bytes()),
            3 => object[at..at + 8].fill(0xff),
            4 => object[at..at + 8]
                .copy_from_slice(&(random.next() >> random.below(64)).to_le_bytes()),
            _ => object[at..at + 8].copy_from_slice(&(1_u64 << random.below(64)).to_le_bytes()),
        }
    }
    if random.below(8) == 0 {
        object.truncate(random.below(object.len()).max(48));
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let (workshop, arena) = (Workshop::open(), quiet());
    let text = "char huge[1ull << 40]; long f(void) { return huge[5]; }";
    let huge = workshop.source(CC, "huge.c", text, &["-O2", "-fPIC"]);
    // SAFETY: No initialisers.
    let error = unsafe { arena.load(&huge) }.unwrap_err();
    assert!(matches!(error, masu_code::Error::Full { .. }), "{error}");
}
