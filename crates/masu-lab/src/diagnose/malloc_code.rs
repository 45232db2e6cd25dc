//! The place of a malloc's code in a file, where most of its functions have no names.
//!
//! Relies on the functions that a file exports. A C library's malloc is compiled from one file or one folder, so the
//! linker puts its functions side by side, and its hidden functions lie among the exported ones. If any other exported
//! function lies among them, this does not hold, and nothing is claimed.

use std::ops::Range;
use std::path::Path;

use crate::heap::is_allocator;
use masu_run::program::elf::{exported_functions, is_malloc_library};

/// The malloc functions that a C library exports. glibc keeps the first for old programs; it lies before all others.
const OF_MALLOC: [&str; 30] = [
    "__default_morecore", "malloc", "free", "cfree", "calloc", "realloc", "memalign",
    "aligned_alloc", "posix_memalign", "valloc", "pvalloc", "malloc_usable_size", "malloc_trim",
    "malloc_stats", "malloc_info", "malloc_get_state", "malloc_set_state", "mallinfo", "mallinfo2",
    "mallopt", "__libc_malloc", "__libc_free", "__libc_cfree", "__libc_calloc", "__libc_realloc",
    "__libc_memalign", "__libc_valloc", "__libc_pvalloc", "__libc_mallinfo", "__libc_mallopt",
];

/// Only glibc exports it. A program that exports a malloc of its own has other code before it.
const OF_GLIBC: &str = "__libc_mallopt";

/// Functions of the family that may be compiled separately, and lie elsewhere.
const APART: [&str; 4] =
    ["reallocarray", "__libc_reallocarray", "free_sized", "free_aligned_sized"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MallocCode {
    /// All of it: the file is a malloc.
    All,
    /// The code between these addresses of the linker's.
    Between(Range<u64>),
    /// The functions with a malloc's names.
    Named,
}

impl MallocCode {
    pub(super) fn of(path: &Path) -> MallocCode {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if is_malloc_library(&file) || file.starts_with("libmasu") || is_collector_library(&file) {
            return MallocCode::All;
        }
        between(&exported_functions(path).unwrap_or_default())
    }

    /// Whether an address of the linker's is the malloc's; `function` is the name of the function there.
    pub(super) fn holds(&self, linked: u64, function: Option<&str>) -> bool {
        match self {
            MallocCode::All => true,
            MallocCode::Between(range) => range.contains(&linked),
            MallocCode::Named => function.is_some_and(is_of_malloc),
        }
    }
}

/// Whether a function requests memory or gives it back, by its name.
fn is_of_malloc(function: &str) -> bool {
    /// Hidden functions of glibc's malloc and of musl's, which have names in a statically linked program.
    const HIDDEN: [&str; 16] = [
        "_int_malloc", "_int_free", "_int_realloc", "_int_memalign", "malloc_consolidate",
        "unlink_chunk", "sysmalloc", "systrim", "__libc_malloc_impl", "__malloc_alloc_meta",
        "__malloc_allzerop", "alloc_slot", "get_meta", "nontrivial_free", "try_avail", "enframe",
    ];
    let plain = function.split('.').next().unwrap_or_default();
    is_of_collector(function)
        || OF_MALLOC.contains(&plain)
        || APART.contains(&plain)
        || HIDDEN.contains(&plain)
        || is_allocator(function)
        || function.starts_with("operator delete")
        || plain.starts_with("__rust_dealloc")
        || plain.starts_with("__rdl_dealloc")
}

/// Whether a library is a collector: Boehm's, which hands out the memory of w3m, Guile and others.
pub(super) fn is_collector_library(file: &str) -> bool {
    file.starts_with("libgc.so")
}

/// Whether a function belongs to the memory of a language's run-time, by its name: it hands memory out, or collects
/// garbage. The known run-times are those of Go, Java (HotSpot), V8 and Ruby.
pub(super) fn is_of_collector(function: &str) -> bool {
    const GO: [&str; 15] = [
        "(*gcWork)", "(*mcache)", "(*mcentral)", "(*mheap)", "(*mspan)", "findObject", "gc",
        "greyobject", "heapSetType", "mallocgc", "markroot", "nextFreeFast", "scan", "sweep",
        "tryDefer",
    ];
    const JAVA: [&str; 9] = [
        "G1", "GCTask", "OopOopIterate", "PSPromotion", "PSParallel", "MarkSweep", "Shenandoah",
        "ZMark", "ZRelocate",
    ];
    const V8: [&str; 7] = [
        "Scaveng", "MarkCompact", "MarkingVisitor", "ConcurrentMarking", "MarkingBarrier",
        "Sweeper", "Evacuat",
    ];
    const RUBY: [&str; 4] = ["gc_mark", "gc_sweep", "rgengc_", "newobj_"];
    if let Some(go) = function.strip_prefix("runtime.") {
        return GO.iter().any(|start| go.starts_with(start));
    }
    if let Some(v8) = function.strip_prefix("v8::internal::") {
        return V8.iter().any(|start| v8.starts_with(start));
    }
    // A name of HotSpot's contains the arguments of its templates.
    let is_java = function.contains("::") && JAVA.iter().any(|start| function.starts_with(start));
    is_java || RUBY.iter().any(|start| function.starts_with(start))
}

/// The code from the malloc's first function to its last, if no other exported function lies among them.
fn between(exported: &[(String, Range<u64>)]) -> MallocCode {
    let is_own = |(name, _): &&(String, Range<u64>)| OF_MALLOC.contains(&name.as_str());
    if !exported.iter().any(|(name, _)| name == "malloc") {
        return MallocCode::Named;
    }
    let own = || exported.iter().filter(is_own).map(|(_, range)| range);
    let start = own().map(|range| range.start).min().unwrap_or(0);
    let end = own().map(|range| range.end).max().unwrap_or(0);
    let is_among = |(_, range): &(String, Range<u64>)| (start..end).contains(&range.start);
    let is_foreign = |one: &&(String, Range<u64>)| !is_own(one) && !APART.contains(&one.0.as_str());
    if exported.iter().filter(is_foreign).any(is_among) {
        return MallocCode::Named;
    }
    // Hidden functions come first in glibc's malloc: those that unlink and merge free blocks take much of its time.
    let is_glibc = exported.iter().any(|(name, _)| name == OF_GLIBC);
    let ends = exported.iter().map(|(_, range)| range.end).filter(|end| *end <= start);
    let start = ends.max().filter(|_| is_glibc).unwrap_or(start);
    MallocCode::Between(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(list: &[(&str, u64)]) -> Vec<(String, Range<u64>)> {
        list.iter().map(|(name, start)| ((*name).to_owned(), *start..*start + 0x10)).collect()
    }

    #[test]
    fn what_lies_among_functions_of_the_malloc_is_the_mallocs() {
        let code = between(&functions(&[
            ("timer_settime", 0x100),
            ("__default_morecore", 0x200),
            ("malloc", 0x800),
            ("free", 0x900),
            ("malloc_info", 0xa00),
            ("mcheck", 0xa10),
            ("reallocarray", 0xb00),
        ]));
        assert_eq!(code, MallocCode::Between(0x200..0xa10));
        assert!(code.holds(0x400, None) && code.holds(0xa0f, Some("malloc_info")));
        assert!(!code.holds(0xa10, Some("mcheck")));
    }

    #[test]
    fn glibcs_malloc_begins_where_the_file_before_it_ends() {
        let mut list = vec![("timer_settime", 0x100), ("__default_morecore", 0x200)];
        list.extend([("malloc", 0x800), ("free", 0x900)]);
        assert_eq!(between(&functions(&list)), MallocCode::Between(0x200..0x910), "of a program");
        list.push(("__libc_mallopt", 0xa00));
        assert_eq!(between(&functions(&list)), MallocCode::Between(0x110..0xa10));
    }

    #[test]
    fn where_another_function_lies_among_them_only_names_tell() {
        let torn = between(&functions(&[("malloc", 0x100), ("strlen", 0x200), ("free", 0x300)]));
        assert_eq!(torn, MallocCode::Named);
        assert!(torn.holds(0x300, Some("free")) && !torn.holds(0x300, None));
        assert_eq!(between(&functions(&[("main", 0x100)])), MallocCode::Named);
        let names =
            [("_int_free.constprop.0", true), ("operator delete(void*)", true), ("main", false)];
        let of_run_times = [
            ("get_meta", true),
            ("runtime.mallocgcSmallScanNoHeader", true),
            ("runtime.(*mspan).nextFreeIndex", true),
            ("runtime.mapassign_faststr", false),
            ("v8::internal::Scavenger::Process(v8::JobDelegate*)", true),
            ("v8::internal::StringTable::Data::FindEntry<int>(int)", false),
            ("G1RemSet::refine_card_concurrently(unsigned char*, unsigned int)", true),
            ("G1_of_a_program", false),
            ("gc_mark_children", true),
        ];
        for (name, expected) in of_run_times {
            assert_eq!(torn.holds(0, Some(name)), expected, "{name}");
        }
        for (name, expected) in names {
            assert_eq!(torn.holds(0, Some(name)), expected, "{name}");
        }
    }

    #[test]
    fn all_of_a_collectors_library_hands_out_memory() {
        let of = |path| MallocCode::of(Path::new(path));
        assert_eq!(of("/gone/libgc.so.1.5.1"), MallocCode::All);
        assert_eq!(of("/gone/libgcc_s.so.1"), MallocCode::Named);
        assert_eq!(of("/gone/libgcrypt.so.20"), MallocCode::Named);
    }

    #[test]
    fn the_c_library_of_this_machine_has_its_malloc_in_one_place() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let library = maps.lines().find_map(|line| {
            line.find('/').map(|at| &line[at..]).filter(|it| it.contains("/libc.so"))
        });
        let Some(library) = library else { return eprintln!("skipped: no libc.so here") };
        let code = MallocCode::of(Path::new(library));
        let MallocCode::Between(range) = code else { panic!("{code:?}") };
        assert!((0x1000..0x20000).contains(&(range.end - range.start)), "{range:x?}");
    }
}
