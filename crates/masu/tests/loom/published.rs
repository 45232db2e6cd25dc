//! Lock-free reads under loom: the pair of the class map, the table of arenas.
//!
//! It relies on `src/platform/sync/pair.rs` and `src/platform/sync/table.rs` taking their atomics from the module
//! around them. As for the lock, doors with one weakened ordering hold the same sources, and loom must find each fault.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, AtomicUsize};
use loom::thread;

/// Makes a door with pair and table and these orderings.
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

/// A value that a writer writes before it publishes; loom finds unordered reads.
struct Written(UnsafeCell<usize>);

// SAFETY: The value is written before it is published, and read after that; loom checks this here.
unsafe impl Sync for Written {}

impl Written {
    fn new() -> &'static Written {
        Box::leak(Box::new(Written(UnsafeCell::new(0))))
    }

    fn write(&self) {
        // SAFETY: The value is not published yet, so no thread reads it.
        self.0.with_mut(|value| unsafe { *value = 7 });
    }

    fn read(&self) -> usize {
        // SAFETY: The value is published, so no thread writes it.
        self.0.with(|value| unsafe { *value })
    }
}

/// A reader that sees the new number sees the new pointer and its target.
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

/// A reader finds only entries, with everything written before they were entered, and all entries that are in the
/// table from before its start to its end.
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
                assert!(found.contains(&2), "older entries are found");
                assert!(found.iter().all(|entry| [1, 2, 3].contains(entry)));
                if found.contains(&3) {
                    assert_eq!(written.read(), 7);
                }
            });
            table.leave(gone);
            written.write();
            assert_eq!(table.enter(3), Some(gone), "the place is reused");
            reader.join().expect("the reader ends");
        })
    };
}

/// A test for each door; broken doors must fail with the message.
macro_rules! tests {
    ($($model:ident($door:ident) $name:ident $(, $message:literal)?;)*) => {$(
        #[test]
        $(#[should_panic(expected = $message)])?
        fn $name() {
            $model!($door);
        }
    )*};
}

tests! {
    pair_model(sound) a_pair_with_the_new_number_has_the_new_pointer;
    pair_model(without_acquire) a_pair_read_without_acquire_is_found, "the number is new, the pointer old";
    pair_model(without_release) a_pair_published_without_release_is_found, "the number is new, the pointer old";
    table_model(sound) an_entry_is_published_with_everything_written_before;
    table_model(without_acquire) a_table_read_without_acquire_is_found, "Causality violation";
    table_model(without_release) a_table_filled_without_release_is_found, "Causality violation";
}
