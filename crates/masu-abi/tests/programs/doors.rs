//! The doors of `libmasu.so`: where in its image each allocating function begins.
//!
//! Relies on the library's own dynamic symbol table, read with `object`. Functions that only free
//! or report are left out: to enter one proves nothing about where blocks come from.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use object::{Object, ObjectSection, ObjectSymbol};

use crate::library;

/// C's functions that hand out a block.
const FUNCTIONS: [&str; 7] =
    ["malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign", "memalign"];

/// How the mangled names of C++'s `operator new` and `operator new[]` begin, in all their forms.
const OPERATORS: [&str; 2] = ["_Znw", "_Zna"];

/// The library and its doors, as offsets from where its first byte is mapped.
#[derive(Debug)]
pub(crate) struct Doors {
    library: PathBuf,
    first_bytes: BTreeMap<u64, u8>,
}

impl Doors {
    /// The doors of the release `libmasu.so`, built and read once for all tests.
    pub(crate) fn of_masu() -> &'static Doors {
        static DOORS: OnceLock<Doors> = OnceLock::new();
        DOORS.get_or_init(|| Doors::of(&library::path().canonicalize().expect("find libmasu.so")))
    }

    /// Reads the doors of a library.
    fn of(library: &Path) -> Doors {
        let bytes = fs::read(library)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", library.display()));
        let file = object::File::parse(&*bytes)
            .unwrap_or_else(|error| panic!("{} is no library: {error}", library.display()));
        let mut first_bytes = BTreeMap::new();
        let mut exports_malloc = false;
        for symbol in file.dynamic_symbols().filter(ObjectSymbol::is_definition) {
            let name = symbol.name().unwrap_or_default();
            let is_operator = OPERATORS.iter().any(|operator| name.starts_with(operator));
            if !is_operator && !FUNCTIONS.contains(&name) {
                continue;
            }
            exports_malloc |= name == "malloc";
            let byte = symbol
                .section_index()
                .and_then(|index| file.section_by_index(index).ok())
                .and_then(|section| section.data_range(symbol.address(), 1).ok().flatten())
                .unwrap_or_else(|| panic!("{name} of {} has no code", library.display()));
            first_bytes.insert(symbol.address(), byte[0]);
        }
        assert!(exports_malloc, "{} does not export malloc", library.display());
        Doors { library: library.to_owned(), first_bytes }
    }

    /// The library's file.
    pub(crate) fn library(&self) -> &Path {
        &self.library
    }

    /// Where the doors begin.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = u64> {
        self.first_bytes.keys().copied()
    }

    /// The byte that belongs at a door; `None` where there is no door.
    pub(crate) fn first_byte(&self, offset: u64) -> Option<u8> {
        self.first_bytes.get(&offset).copied()
    }
}
