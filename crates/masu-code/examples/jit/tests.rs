//! Tests without a clock: every way and regime gives one answer, and kept files are found, complete and of their source.

use std::path::Path;

use super::*;

/// Few enough for gcc to be quick, and more than are linked into one library at first.
const METHODS: usize = 20;

fn asked<'a>(folder: &'a Path, regime: Regime, way: &'a str) -> Asked<'a> {
    Asked { folder, regime, way, methods: METHODS, calls: 500, requests: 4 }
}

#[test]
fn every_way_and_regime_gives_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    Kept::at(folder.path()).unwrap().make(&Methods::new(METHODS).all).unwrap();
    let right = asked(folder.path(), Regime::Cold, "interpreter").run().unwrap().sum;
    for regime in [Regime::Cold, Regime::Warm] {
        for way in ["interpreter", "own", "single", "arena"] {
            let asked = asked(folder.path(), regime, way);
            let answered = asked.run().unwrap();
            let line = answered.line(&asked);
            assert_eq!(answered.sum, right, "{line}");
            assert_eq!(answered.times.len(), asked.requests, "{line}");
            let all = matches!(regime, Regime::Warm) && way != "interpreter";
            assert!(!all || answered.compiled == METHODS, "{line}");
            assert_eq!(all, line.contains("load_ms"), "{line}");
        }
    }
}

#[test]
fn methods_are_compiled_once() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, methods) = (Kept::at(folder.path()).unwrap(), Methods::new(3).all);
    kept.make(&methods[..2]).unwrap();
    let first = kept.find(&methods[..2]).unwrap();
    let files = [&first.objects[..], &first.libraries].concat();
    let written = || files.iter().map(|file| fs::metadata(file).unwrap().modified().unwrap());
    let then: Vec<_> = written().collect();
    kept.make(&methods).unwrap();
    assert!(written().eq(then));
    assert_eq!(kept.find(&methods).unwrap().objects[..2], first.objects);
    // An object and a library each, and nothing of the making.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
}

#[test]
fn what_was_cut_off_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, methods) = (Kept::at(folder.path()).unwrap(), Methods::new(1).all);
    kept.make(&methods).unwrap();
    let library = kept.find(&methods).unwrap().libraries.remove(0);
    fs::remove_file(&library).unwrap();
    // What a run left that was ended while gcc wrote.
    fs::create_dir(folder.path().join("left")).unwrap();
    fs::write(folder.path().join("left/m00000.so"), "half").unwrap();
    kept.make(&methods).unwrap();
    assert!(library.exists());
}

#[test]
fn what_is_not_there_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let asked = asked(folder.path(), Regime::Warm, "own");
    let said = asked.run().err().unwrap().to_string();
    assert!(said.contains("m00000-") && said.contains("jit prepare"), "{said}");
}

#[test]
fn another_source_is_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::at(folder.path()).unwrap();
    let (one, mut other) = (Method::new(1), Method::new(2));
    other.number = one.number;
    kept.make(&[one]).unwrap();
    assert!(kept.find(&[other]).is_err());
}
