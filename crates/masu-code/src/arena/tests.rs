//! Counts the steps of loading and unloading: the same with a hundred objects as with thousands.

use super::Arena;
use crate::options::Options;
use crate::source::Source;

/// A function of some instructions with an unwind table.
const OBJECT: &[u8] = include_bytes!("../../tests/corpus/gcc-tiny.o");

/// The objects and unwind tables that were inspected or copied for each of 200 unloads and loads among `live` objects,
/// and the number of registrations that libgcc has to walk.
fn work(live: usize) -> (usize, usize, usize) {
    let arena = Arena::open(Options::default()).unwrap();
    let source = Source::new("tiny.o", OBJECT).private();
    // SAFETY: The object has no initializers.
    let load = || unsafe { arena.load(&source) }.unwrap();
    let mut objects: Vec<_> = (0..live).map(|_| load()).collect();
    let counts = || {
        let state = arena.shared.lock();
        (state.looked_at, state.frames.copied, state.frames.sections())
    };
    let before = counts();
    for round in 0..200 {
        let at = round * 7919 % live;
        arena.unload(objects[at]).unwrap();
        objects[at] = load();
    }
    let after = counts();
    ((after.0 - before.0) / 200, (after.1 - before.1) / 200, after.2)
}

#[test]
fn unloading_looks_at_no_more_where_more_is_loaded() {
    for live in [100, 1_000, 10_000] {
        let (looked_at, copied, sections) = work(live);
        // One unload and one load each.
        assert!(looked_at <= 1 && copied <= 2 * 1024, "{live}: {looked_at} and {copied}");
        assert!(sections <= 1 + live / 100, "{live}: {sections} registrations");
    }
}

/// An object whose function `NAME` calls `USED`; both have five letters.
fn link_of_a_chain(name: &str, used: &str) -> Source {
    let mut object = include_bytes!("../../tests/corpus/gcc-chain.o").to_vec();
    for (old, new) in [("fuser", name), ("fused", used)] {
        let at = object.windows(5).position(|bytes| bytes == old.as_bytes()).unwrap();
        object[at..at + 5].copy_from_slice(new.as_bytes());
    }
    Source::new(name, object)
}

#[test]
fn a_chain_of_objects_that_its_last_one_keeps_is_inspected_once() {
    let arena = Arena::open(Options::default()).unwrap();
    let count = 500;
    // SAFETY: No initializers.
    let load = |source| unsafe { arena.load(source) }.unwrap();
    let mut code = load(link_of_a_chain("f0000", "abort"));
    let mut chain = vec![code];
    for number in 1..count {
        code = load(link_of_a_chain(&format!("f{number:04}"), &format!("f{:04}", number - 1)));
        chain.push(code);
    }
    arena.unload_all(&chain[..count - 1]).unwrap();
    let before = arena.shared.lock().looked_at;
    assert_eq!(arena.collect(), 0);
    let looked_at = arena.shared.lock().looked_at - before;
    assert!(looked_at <= 4 * count, "{looked_at}");
    arena.unload(code).unwrap();
    assert_eq!((arena.waiting(), arena.report().objects), (0, 0));
}
