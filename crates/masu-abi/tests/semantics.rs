//! The malloc family conforms to C23, POSIX and glibc's manual.
//!
//! It relies on `tests/c/semantics.c`, one program with a group of checks for each test here.

mod library;

/// One test for each group of the program.
macro_rules! groups {
    ($($group:ident)*) => {$(
        #[test]
        fn $group() {
            let program = program();
            library::succeeds(library::preloaded(program).arg(stringify!($group)));
        }
    )*};
}

groups! {
    zero_sizes
    every_size_is_aligned_and_writable
    impossible_sizes_fail
    realloc_rules
    calloc_is_zero_after_dirty_reuse
    alignments
    bad_alignments
    whole_pages
    errno_is_kept_by_free
    sized_frees_do_not_believe_the_size
    second_names
}

fn program() -> &'static std::path::Path {
    static PROGRAM: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    PROGRAM.get_or_init(|| {
        // Some of the functions are newer or older than the C library.
        let library = library::path().to_str().expect("the target folder has a plain name");
        library::compile("semantics.c", "program", &[library])
    })
}
