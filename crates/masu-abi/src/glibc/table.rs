//! The settings of glibc's malloc and their meaning for masu, as data.
//!
//! It relies on nothing, because the `masu` command compiles this file too. As with masu's own
//! options, a row is written once: [`glibc_rows`] passes all of them to a macro.

/// The effect of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Becomes {
    /// The option `retain_min`, if the setting is larger.
    RetainMin,
    /// The option `huge_pages_from`: one huge page.
    HugePagesFrom,
    /// Nothing.
    Ignored,
}

/// A setting of glibc's malloc.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setting {
    /// The parameter of `mallopt`; empty where there is none.
    pub parameter: &'static str,
    /// The parameter's number; 0 where there is none.
    pub number: i32,
    /// The environment variable; empty where there is none.
    pub variable: &'static str,
    /// The tunable, in `GLIBC_TUNABLES`; empty where there is none.
    pub tunable: &'static str,
    /// The effect of the setting.
    pub becomes: Becomes,
    /// The reason, in words.
    pub remark: &'static str,
}

/// Passes every row to the macro `$take`.
macro_rules! glibc_rows {
    ($take:ident) => {
        $take! {
            /// Free memory that is kept: counts where it is more than masu keeps anyway. glibc looks at it
            /// only when the end of its heap is free, masu would at every free; so little that suits
            /// glibc, its own 128K among them, would have masu give back and fetch memory all the time.
            "M_TRIM_THRESHOLD", -1, "MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold", RetainMin;

            /// Counts as `M_TRIM_THRESHOLD` does: what is asked for beyond need is what is kept.
            "M_TOP_PAD", -2, "MALLOC_TOP_PAD_", "glibc.malloc.top_pad", RetainMin;

            /// 1 or more: huge pages for memory from 2 MiB on, whatever the size of a page. 0 is glibc's default,
            /// and masu's own holds then; `MASU_HUGE_PAGES=0` does without.
            "", 0, "", "glibc.malloc.hugetlb", HugePagesFrom;

            /// It is set so that glibc's arenas, eight for each CPU, take less memory. masu has at most a
            /// shard for each CPU, and few of them save next to nothing: `MASU_SHARDS`.
            "M_ARENA_MAX", -8, "MALLOC_ARENA_MAX", "glibc.malloc.arena_max", Ignored;

            /// As `M_ARENA_MAX`.
            "M_ARENA_TEST", -7, "MALLOC_ARENA_TEST", "glibc.malloc.arena_test", Ignored;

            /// No block has a mapping of its own, and large ones go back when they are freed all the same.
            "M_MMAP_THRESHOLD", -3, "MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold", Ignored;

            /// As `M_MMAP_THRESHOLD`.
            "M_MMAP_MAX", -4, "MALLOC_MMAP_MAX_", "glibc.malloc.mmap_max", Ignored;

            /// Filling blocks would have every malloc and free ask whether to. valgrind and the compilers'
            /// sanitizers find what this is set to find.
            "M_PERTURB", -6, "MALLOC_PERTURB_", "glibc.malloc.perturb", Ignored;

            /// A wrong pointer that masu notices ends the program, whatever this says.
            "M_CHECK_ACTION", -5, "MALLOC_CHECK_", "glibc.malloc.check", Ignored;

            /// Caches of small blocks are bounded in bytes: `MASU_CACHE_SIZE`.
            "M_MXFAST", 1, "", "glibc.malloc.mxfast", Ignored;

            /// As `M_MXFAST`.
            "", 0, "", "glibc.malloc.tcache_count", Ignored;

            /// As `M_MXFAST`.
            "", 0, "", "glibc.malloc.tcache_max", Ignored;

            /// There is no such list.
            "", 0, "", "glibc.malloc.tcache_unsorted_limit", Ignored;
        }
    };
}

macro_rules! settings {
    ($(
        $(#[doc = $remark:literal])+
        $parameter:literal, $number:literal, $variable:literal, $tunable:literal, $becomes:ident;
    )+) => {
        /// Every setting that glibc documents.
        pub const ALL: &[Setting] = &[$(Setting {
            parameter: $parameter,
            number: $number,
            variable: $variable,
            tunable: $tunable,
            becomes: Becomes::$becomes,
            remark: concat!($($remark),+),
        }),+];
    };
}

glibc_rows!(settings);
