//! Everything with everything else: all tools on, objects kept, loads, calls, exceptions, thread-local variables, replaced
//! entries, compaction, generated code, forks and other arenas, at once.
//!
//! A second in CI, a minute with `MASU_SOAK=1`.
#![cfg(target_arch = "x86_64")]

mod fixture;
#[path = "fixture/program.rs"]
mod program;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fixture::{CXX, WAYS, Workshop, call, load};
use masu_code::{Arena, Entry, Error, Handle, Memory, Options, Source, Tools, Writing};

/// All entries lead to `long f(long x)`, which returns `x + 1`.
type Body = extern "C" fn(i64) -> i64;

const ENTRIES: usize = 64;
const LOADERS: usize = 3;
/// Far longer than a busy machine takes to move an object: nothing moves them any more.
const HANGS: Duration = Duration::from_secs(300);

fn sources(workshop: &Workshop) -> [Source; 3] {
    let throws = "thread_local long calls; extern \"C\" long f(long x) {\n\
        calls++; try { if (x & 1) throw x; } catch (long y) { return y + 1; } return x + 1; }";
    let ends = "struct One { long v = 1; ~One() { v = 0; } }; thread_local One one;\n\
        extern \"C\" long f(long x) { return x + one.v; }";
    let plain = "extern \"C\" long f(long x) { return x + 1; }";
    [("throws.cpp", throws), ("ends.cpp", ends), ("plain.cpp", plain)]
        .map(|(name, text)| workshop.source(CXX, name, text, &["-O1", "-fPIC"]).private())
}

/// The threads of one arena.
struct Together {
    arena: Arena,
    entries: Vec<Entry>,
    sources: [Source; 3],
    writing: Writing,
    end: Instant,
    moved: AtomicUsize,
}

impl Together {
    /// Runs one kind of work again and again, until objects were moved too, however late a busy machine moves them.
    fn each_round(&self, work: impl FnMut(usize)) {
        let has_moved = || self.moved.load(Ordering::Relaxed) > 0;
        let hangs = self.end + HANGS;
        let goes_on = |now| now < self.end || now < hangs && !has_moved();
        let rounds = (0..).take_while(|_| goes_on(Instant::now()));
        rounds.for_each(work);
    }

    /// Replaces the target of every third entry, and unloads the old target.
    fn replace(&self, loader: usize) {
        let mut objects: [Option<Handle>; ENTRIES] = [None; ENTRIES];
        self.each_round(|round| {
            let object = load(&self.arena, &self.sources[round % self.sources.len()]);
            let at = round % (ENTRIES / LOADERS) * LOADERS + loader;
            self.entries[at].replace(object, "f").unwrap();
            if let Some(before) = objects[at].replace(object) {
                self.arena.unload(before).unwrap();
            }
        });
        for (entry, object) in self.entries.iter().zip(objects) {
            if let Some(object) = object {
                entry.replace_at(std::ptr::null()).unwrap();
                self.arena.unload(object).unwrap();
            }
        }
    }

    /// Calls entries in threads that come and go.
    fn call(&self) {
        let calls = || {
            let reader = self.arena.reader();
            for number in 0..1000 {
                let entry = &self.entries[number * 13 % ENTRIES];
                // SAFETY: The type is right, and this thread has a reader.
                let f = unsafe { entry.get::<Option<Body>>() };
                let number = number as i64;
                assert!(f.is_none_or(|f| f(number) == number + 1));
                if number % 16 == 0 {
                    reader.quiescent();
                }
                if number % 100 == 0 {
                    reader.away();
                    std::thread::yield_now();
                    reader.back();
                }
            }
        };
        self.each_round(|_| std::thread::scope(|scope| scope.spawn(calls).join()).unwrap());
    }

    fn compact(&self) {
        self.each_round(|_| {
            self.moved.fetch_add(self.arena.compact().unwrap(), Ordering::Relaxed);
            assert!(self.arena.report().to_string().contains("objects"));
            std::thread::sleep(Duration::from_millis(3));
        });
    }

    fn generate(&self) {
        // mov $7, %eax; ret
        let code = [0xb8, 7, 0, 0, 0, 0xc3];
        self.each_round(|_| {
            let write = |_, bytes: &mut [u8]| bytes.copy_from_slice(&code);
            let object = self.arena.load_code("seven", code.len(), 16, write).unwrap();
            assert_eq!(call(&self.arena, object, "seven") as i32, 7);
            self.arena.unload(object).unwrap();
            let mut memory = self.arena.in_place();
            let blocks = [Memory::Code, Memory::Constants, Memory::Data].map(|kind| {
                let (object, at) = memory.allocate("block", kind, 1000, 16).unwrap();
                // SAFETY: The block has that many bytes, and is writable.
                unsafe { at.as_ptr().write_bytes(0xc3, 1000) };
                object
            });
            memory.seal().unwrap();
            blocks.into_iter().for_each(|object| self.arena.unload(object).unwrap());
        });
    }

    /// Takes the arena's locks in a child.
    fn fork(&self) {
        self.each_round(|_| {
            assert!(fixture::holds_in_child(|| {
                // Another thread may have held libgcc's lock at the fork, so the child may load only objects that are
                // refused.
                let is_refused = self.writing != Writing::Dual || {
                    // SAFETY: No initializers.
                    let loaded = unsafe { self.arena.load(&self.sources[2]) };
                    matches!(loaded, Err(Error::Forked))
                };
                is_refused && self.arena.report().entries == ENTRIES
            }));
            std::thread::sleep(Duration::from_millis(10));
        });
    }

    /// Opens other arenas and drops them, full or empty.
    fn open_others(&self) {
        self.each_round(|round| {
            let (writing, size) = (WAYS[round % WAYS.len()], 1 << 20);
            let arena = Arena::open(Options { writing, size, ..Options::default() }).unwrap();
            let object = load(&arena, &self.sources[0]);
            // SAFETY: The type is right.
            let f = unsafe { arena.function::<Body>(object, "f") }.unwrap();
            assert_eq!(f(1), 2);
            if round % 3 == 0 {
                arena.unload(object).unwrap();
            }
        });
    }
}

#[test]
fn everything_at_once_leaves_nothing_behind() {
    let workshop = Workshop::open();
    program::share(c"libstdc++.so.6");
    let seconds = if std::env::var_os("MASU_SOAK").is_some() { 60 } else { 1 };
    for &writing in WAYS {
        let folder = workshop.path("dumps");
        std::fs::create_dir_all(&folder).unwrap();
        let tools = Tools { perf_map: true, jitdump: Some(folder), ..Tools::default() };
        let options = Options { writing, tools, keep: true, ..Options::default() };
        let arena = Arena::open(options).unwrap();
        let entry = |number| arena.entry_at(&format!("entry{number}"), std::ptr::null()).unwrap();
        let together = Together {
            entries: (0..ENTRIES).map(entry).collect(),
            sources: sources(&workshop),
            writing,
            end: Instant::now() + Duration::from_secs(seconds),
            moved: AtomicUsize::new(0),
            arena,
        };
        std::thread::scope(|scope| {
            let all = &together;
            let loaders = (0..LOADERS).map(|loader| scope.spawn(move || all.replace(loader)));
            let work: [fn(&Together); 6] = [
                Together::call,
                Together::call,
                Together::compact,
                Together::generate,
                Together::fork,
                Together::open_others,
            ];
            let others = work.into_iter().map(|work| scope.spawn(move || work(all)));
            let threads: Vec<_> = loaders.chain(others).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        together.arena.collect();
        let report = together.arena.report();
        assert_eq!((report.objects, report.waiting, report.text.used), (0, 0, 0), "{report}");
        assert!(together.moved.into_inner() > 0, "no object was ever moved");
    }
    let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", std::process::id()));
}
