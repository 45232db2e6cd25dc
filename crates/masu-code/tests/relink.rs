//! The alternative without a loader: methods' objects are kept, linked into one library in the background, and the
//! entries pointed there, while threads go on calling.
#![cfg(target_arch = "x86_64")]

mod fixture;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use fixture::{CC, Workshop, load_all, options};
use masu_code::{Arena, Entry, Error, Library, Source, relink};

const METHODS: usize = 24;

/// Objects of all methods, each `long mN(void)` with the version in its answer.
fn objects(workshop: &Workshop, version: usize) -> Vec<PathBuf> {
    let compile = |number: usize| {
        let text = format!("long m{number}(void) {{ return {}; }}", number * 10 + version);
        // A name that the linker's list of files has to quote.
        let name = format!("method {number} \"v{version}\".c");
        workshop.compile(CC, &name, &text, &["-O1", "-fPIC"])
    };
    (0..METHODS).map(compile).collect()
}

fn linked(workshop: &Workshop, objects: Vec<PathBuf>, name: &str) -> Result<Library, Error> {
    // SAFETY: The methods have no initializers.
    let worker = unsafe { relink(CC, objects, workshop.path(name)) };
    worker.join().expect("the worker does not panic")
}

fn answers(entries: &[Entry]) -> Vec<i64> {
    let answer = |entry: &Entry| {
        // SAFETY: The function that an entry leads to stays until the test replaces it.
        let function = unsafe { entry.get::<extern "C" fn() -> i64>() };
        function()
    };
    entries.iter().map(answer).collect()
}

fn expected(version: usize) -> Vec<i64> {
    (0..METHODS).map(|number| (number * 10 + version) as i64).collect()
}

#[test]
fn many_objects_become_one_library_while_threads_call_them() {
    let (workshop, arena) = (Workshop::open(), Arena::open(options()).unwrap());
    let kept = objects(&workshop, 1);
    let sources: Vec<Source> = kept.iter().map(|path| Source::file(path).unwrap()).collect();
    let handles = load_all(&arena, &sources);
    let name = |number| format!("m{number}");
    let entry = |(number, &object): (usize, &_)| {
        arena.entry(&format!("entry{number}"), object, &name(number)).unwrap()
    };
    let entries: Vec<Entry> = handles.iter().enumerate().map(entry).collect();
    assert_eq!(answers(&entries), expected(1));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reader = arena.reader();
            while !stop.load(Ordering::Relaxed) {
                assert!(answers(&entries).iter().zip(expected(0)).all(|(a, b)| a - b < 3));
                reader.quiescent();
            }
        });
        let first = linked(&workshop, kept, "first.so").unwrap();
        for (number, entry) in entries.iter().enumerate() {
            entry.replace_at(first.symbol(&name(number)).unwrap()).unwrap();
        }
        assert_eq!(answers(&entries), expected(1));
        handles.into_iter().for_each(|object| arena.unload(object).unwrap());
        // The next versions go into a library of another name.
        let second = linked(&workshop, objects(&workshop, 2), "second.so").unwrap();
        for (number, entry) in entries.iter().enumerate() {
            entry.replace_at(second.symbol(&name(number)).unwrap()).unwrap();
        }
        assert_eq!(answers(&entries), expected(2));
        stop.store(true, Ordering::Relaxed);
        // The program closes libraries itself: no thread calls them after the scope.
        (first, second)
    });
    arena.collect();
    assert_eq!((arena.report().objects, arena.waiting()), (0, 0));
    // The list of files for the linker is removed.
    assert!(!workshop.path("first.so.list").exists());
}

#[test]
fn an_error_while_the_library_is_made_is_reported() {
    let workshop = Workshop::open();
    let message = |result: Result<Library, Error>| match result {
        Err(error @ Error::Relink(_)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let twice = vec![
        workshop.compile(CC, "a.c", "long f(void) { return 1; }", &["-fPIC"]),
        workshop.compile(CC, "b.c", "long f(void) { return 2; }", &["-fPIC"]),
    ];
    let said = message(linked(&workshop, twice, "twice.so"));
    assert!(said.contains("multiple definition of `f'") && said.contains("-shared"), "{said}");
    let lacking =
        workshop.compile(CC, "c.c", "long g(void); long h(void) { return g(); }", &["-fPIC"]);
    let said = message(linked(&workshop, vec![lacking.clone()], "lacking.so"));
    assert!(said.contains("lacking.so") && said.contains("undefined symbol: g"), "{said}");
    // SAFETY: Nothing is loaded.
    let none = unsafe { relink("no-such-driver", vec![lacking], workshop.path("none.so")) };
    assert!(message(none.join().unwrap()).starts_with("no-such-driver: "));
    let good = vec![workshop.compile(CC, "d.c", "long d(void) { return 4; }", &["-fPIC"])];
    let library = linked(&workshop, good, "good.so").unwrap();
    let error = library.symbol("nobody").unwrap_err().to_string();
    assert!(error.contains("good.so") && error.contains("`nobody`"), "{error}");
}

#[test]
fn libraries_that_differ_in_the_end_of_their_names_are_linked_at_once() {
    let workshop = Workshop::open();
    std::fs::write(workshop.path("methods.list"), "another file").unwrap();
    let object = workshop.compile(CC, "a.c", "long f(void) { return 1; }", &["-fPIC"]);
    let renamed = workshop.path("").join(OsStr::from_bytes(b"\xff.o"));
    std::fs::rename(object, &renamed).unwrap();
    linked(&workshop, vec![renamed.clone()], "methods.1").unwrap();
    // A name without a folder is that of a file here, as for the linker.
    std::env::set_current_dir(workshop.path("")).unwrap();
    // SAFETY: The method has no initializers.
    let here = unsafe { relink(CC, vec![renamed], "here.so".into()) };
    here.join().unwrap().unwrap();
    let kept = std::fs::read_to_string(workshop.path("methods.list"));
    assert_eq!(kept.ok().as_deref(), Some("another file"));
}
