//! What is read without a lock, under loom: the pair behind the class map, the table of arenas.
//!
//! It relies on `src/platform/sync/pair.rs` and `src/platform/sync/table.rs` taking their atomics from the module
//! around them. As for the lock, the same sources stand behind doors with one ordering weakened,
//! and loom has to notice.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, AtomicUsize};
use loom::thread;

/// Puts pair and table behind a door of this name, with these orderings.
macro_rules! door {
    ($name:ident, $orderings:path) => {
        #[path = "."]
        mod $name {
            use loom::sync::atomic::{AtomicPtr, AtomicUsize};

            use $orderings as Ordering;

            #[path = "../../src/platform/sync/pair.rs"]
            mod pair;
            #[path = "../../src/platform/sync/table.rs"]
            mod table;

            pub(crate) use pair::Pair;
            pub(crate) use table::Table;
        }
    };
}

door!(sound, crate::orderings::Sound);
door!(without_acquire, crate::orderings::NoAcquire);
door!(without_release, crate::orderings::NoRelease);

/// What a writer writes before it publishes; loom notices a read that nothing orders after it.
struct Written(UnsafeCell<usize>);

// SAFETY: It is written before it is published, and read by the thread that found it published: what loom
// checks here.
unsafe impl Sync for Written {}

impl Written {
    fn new() -> &'static Written {
        Box::leak(Box::new(Written(UnsafeCell::new(0))))
    }

    fn write(&self) {
        // SAFETY: Nobody reads what is not yet published.
        self.0.with_mut(|value| unsafe { *value = 7 });
    }

    fn read(&self) -> usize {
        // SAFETY: What is published is not written any more.
        self.0.with(|value| unsafe { *value })
    }
}

/// A reader that sees the new number sees the new pointer and what lies behind it.
macro_rules! pair_model {
    ($door:ident) => {
        loom::model(|| {
            let (old, new) = (Box::leak(Box::new(1_u8)), Box::leak(Box::new(2_u8)));
            let (old, new) = (&raw mut *old, &raw mut *new);
            let pair = $door::Pair::of(AtomicUsize::new(0), AtomicPtr::new(old));
            let pair: &'static $door::Pair<u8> = Box::leak(Box::new(pair));
            let written = Written::new();
            let new_address = new.addr();
            let reader = thread::spawn(move || {
                let (number, pointer) = pair.read();
                if number == 9 {
                    assert_eq!(pointer.addr(), new_address, "the number is new, the pointer old");
                    assert_eq!(written.read(), 7);
                }
            });
            written.write();
            pair.publish(9, new);
            reader.join().expect("the reader ends");
        })
    };
}

/// A reader finds nothing that was not entered, and sees what was written before entering; what
/// was entered before the reader began is found, whatever leaves or comes in that time.
macro_rules! table_model {
    ($door:ident) => {
        loom::model(|| {
            let places = [AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)];
            let table = $door::Table::of(places, AtomicUsize::new(0));
            let table: &'static $door::Table<3> = Box::leak(Box::new(table));
            let written = Written::new();
            let gone = table.enter(1).expect("three places");
            table.enter(2).expect("two places");
            let reader = thread::spawn(move || {
                let found: Vec<usize> = table.entries().collect();
                assert!(found.contains(&2), "what was there before is found");
                assert!(found.iter().all(|entry| [1, 2, 3].contains(entry)));
                if found.contains(&3) {
                    assert_eq!(written.read(), 7);
                }
            });
            table.leave(gone);
            written.write();
            assert_eq!(table.enter(3), Some(gone), "the place is used again");
            reader.join().expect("the reader ends");
        })
    };
}

#[test]
fn who_sees_the_number_of_a_pair_sees_its_pointer() {
    pair_model!(sound);
}

#[test]
#[should_panic(expected = "the number is new, the pointer old")]
fn a_pair_read_without_acquire_is_found() {
    pair_model!(without_acquire);
}

#[test]
#[should_panic(expected = "the number is new, the pointer old")]
fn a_pair_published_without_release_is_found() {
    pair_model!(without_release);
}

#[test]
fn who_finds_an_entry_sees_what_was_written_before_it() {
    table_model!(sound);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_table_read_without_acquire_is_found() {
    table_model!(without_acquire);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_table_filled_without_release_is_found() {
    table_model!(without_release);
}
