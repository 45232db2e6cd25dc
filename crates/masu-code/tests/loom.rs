//! The protocol of `src/quiescence/README.md` under loom, which runs every interleaving and every
//! value that the memory model allows.
//!
//! `cargo xtask ci` runs it; by hand: `RUSTFLAGS="--cfg loom" cargo test -p masu-code --release --test loom`.
//!
//! The protocol's source is the crate's own, with loom's atomics under it. Readers that break the rules are run too,
//! and loom has to notice each reader: this shows that the check can fail.
#![cfg(loom)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// The module that `quiescence.rs` takes its atomics from.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

#[path = "../src/quiescence.rs"]
#[expect(dead_code, reason = "the models use a part of it")]
mod quiescence;

use quiescence::{Reader, Readers};
use sync::Arc;

/// Two versions of a method, each a cell that freeing writes and running reads: loom reports a
/// read concurrent with a write.
struct Method {
    entry: AtomicUsize,
    versions: [loom::cell::UnsafeCell<usize>; 2],
    readers: Arc<Readers>,
}

// SAFETY: Loom checks every access of the cells.
unsafe impl Sync for Method {}
// SAFETY: As above.
unsafe impl Send for Method {}

impl Method {
    fn new() -> Arc<Method> {
        let versions = [1, 1].map(loom::cell::UnsafeCell::new);
        let entry = AtomicUsize::new(0);
        Arc::new(Method { entry, versions, readers: Readers::new() })
    }

    fn call(&self) {
        let version = self.entry.load(Ordering::Acquire);
        // SAFETY: Loom checks the access.
        let alive = self.versions[version].with(|version| unsafe { *version });
        assert_eq!(alive, 1, "it ran what was freed");
    }

    /// Replaces the first version, and frees it if that is allowed.
    fn swap_and_free(&self) {
        self.entry.store(1, Ordering::Release);
        let epoch = self.readers.retire();
        if self.readers.passed(epoch) {
            // SAFETY: Loom checks the access.
            self.versions[0].with_mut(|version| unsafe { *version = 0 });
        }
    }
}

fn model(reads: fn(&Method, &Reader)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let method = Method::new();
        let reader = Reader::register(&method.readers, Box::new(()));
        let thread = {
            let method = Arc::clone(&method);
            thread::spawn(move || {
                reads(&method, &reader);
                // The reader reports no other quiescent state, and does not leave either.
                reader
            })
        };
        method.swap_and_free();
        drop(thread.join().unwrap());
    });
}

#[test]
fn what_a_reader_may_run_is_not_freed() {
    model(|method, reader| {
        method.call();
        reader.quiescent();
        method.call();
    });
}

#[test]
fn a_reader_that_comes_back_runs_nothing_that_was_freed() {
    model(|method, reader| {
        reader.away();
        reader.back();
        method.call();
    });
}

#[test]
fn a_reader_that_registers_late_runs_nothing_that_was_freed() {
    loom::model(|| {
        let method = Method::new();
        let thread = {
            let method = Arc::clone(&method);
            thread::spawn(move || {
                let reader = Reader::register(&method.readers, Box::new(()));
                method.call();
                drop(reader);
            })
        };
        method.swap_and_free();
        thread.join().unwrap();
    });
}

#[test]
#[should_panic]
fn loom_notices_a_call_after_the_quiescent_state() {
    model(|method, reader| {
        let version = method.entry.load(Ordering::Acquire);
        reader.quiescent();
        // SAFETY: Loom checks the access, and must object.
        method.versions[version].with(|version| assert_eq!(unsafe { *version }, 1));
    });
}

#[test]
#[should_panic]
fn loom_notices_a_call_while_away() {
    model(|method, reader| {
        reader.away();
        method.call();
    });
}
