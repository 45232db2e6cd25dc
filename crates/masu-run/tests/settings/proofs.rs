//! The effect that each setting of each malloc must have: two opposite values, the figure that distinguishes them,
//! and its bounds under either.

/// The proof of one cell of the table.
pub(crate) struct Proof {
    pub(crate) malloc: &'static str,
    pub(crate) setting: &'static str,
    /// The scene that the program plays.
    pub(crate) scene: &'static str,
    /// Two values that are each other's opposite.
    pub(crate) values: [&'static str; 2],
    /// The name of the figure to look at.
    pub(crate) figure: &'static str,
    /// True if the figures under the first and the second value are as they must be.
    pub(crate) holds: fn(u64, u64) -> bool,
    /// True if the kernel must give huge pages to programs that ask, and to no others.
    pub(crate) needs_advice: bool,
}

impl Proof {
    /// The figure in words, for people.
    pub(crate) fn evidence(&self) -> &'static str {
        match (self.malloc, self.figure) {
            (_, "heap") => "size of the heap after one small block",
            (_, "resident") => "what stays resident of 64 MiB freed",
            (_, "advised") => "memory marked `hg` in smaps",
            (_, "mallinfo.mapped_blocks") => "blocks mapped, by `mallinfo2`",
            (_, "mallinfo.fastbin") => "free blocks that the thread did not keep, by `mallinfo2`",
            ("glibc", "arenas") => "arenas of 8 threads, by `malloc_info`",
            ("jemalloc", "arenas") => "arenas of 8 threads, by `thread.arena`",
            (_, "jemalloc.tcache_bytes") => "`stats.arenas` … `tcache_bytes`",
            (_, "jemalloc.background") => "`stats.background_thread.num_threads`",
            (_, "tcmalloc.cached") => "`tcmalloc.current_total_thread_cache_bytes`",
            (_, "tcmalloc.unmapped") => "`tcmalloc.pageheap_unmapped_bytes`",
            ("masu", "arenas") => "shards of 8 threads, by `malloc_info`",
            (_, "reused") => "bytes freed last that are handed out again first",
            (malloc, figure) => panic!("what is `{figure}` of {malloc}?"),
        }
    }
}

const fn proof(
    malloc: &'static str,
    setting: &'static str,
    values: [&'static str; 2],
    (scene, figure): (&'static str, &'static str),
    holds: fn(u64, u64) -> bool,
) -> Proof {
    Proof { malloc, setting, scene, values, figure, holds, needs_advice: false }
}

const fn advised(
    malloc: &'static str,
    (scene, figure): (&'static str, &'static str),
    holds: fn(u64, u64) -> bool,
) -> Proof {
    let proof = proof(malloc, "huge_pages", ["1", "0"], (scene, figure), holds);
    Proof { needs_advice: true, ..proof }
}

/// More than 60 MiB against less than 10, of the 64 MiB that the scene frees: a malloc keeps the rest near its threads.
const KEPT: fn(u64, u64) -> bool = |kept, given| kept > 60 << 20 && given < 10 << 20;

/// Nearly all of the 64 MiB that the scene fills, against none. Some mallocs begin without huge pages.
const ALL: fn(u64, u64) -> bool = |all, none| all > 50 << 20 && none == 0;

const SPREAD: fn(u64, u64) -> bool = |one, three| (one, three) == (1, 3);

pub(crate) static PROOFS: &[Proof] = &[
    // The heap of a program that asks for 100 bytes.
    proof("glibc", "top_pad", ["64M", "0"], ("one", "heap"), |padded, bare| {
        padded > 64 << 20 && bare < 64 << 10
    }),
    proof("glibc", "trim_threshold", ["1G", "0"], ("trim", "resident"), KEPT),
    // Four blocks of 1 MiB.
    proof(
        "glibc",
        "mmap_threshold",
        ["64K", "32M"],
        ("large", "mallinfo.mapped_blocks"),
        |a, b| (a, b) == (4, 0),
    ),
    proof("glibc", "mmap_max", ["1", "0"], ("large", "mallinfo.mapped_blocks"), |a, b| {
        (a, b) == (1, 0)
    }),
    proof("glibc", "arenas", ["1", "3"], ("threads", "arenas"), SPREAD),
    advised("glibc", ("huge", "advised"), ALL),
    // 4,096 blocks of 64 bytes are freed, each 80 with its header: the blocks that the thread does not keep go to the
    // fast bins. By default a thread keeps seven.
    proof("glibc", "tcache_count", ["0", "1000"], ("cache", "mallinfo.fastbin"), |none, kept| {
        none == kept + 1000 * 80
    }),
    proof("glibc", "tcache_max", ["32", "1032"], ("cache", "mallinfo.fastbin"), |none, seven| {
        none == seven + 7 * 80
    }),
    proof("jemalloc", "arenas", ["1", "3"], ("threads", "arenas"), SPREAD),
    proof("jemalloc", "purge_delay", ["-1", "0"], ("trim", "resident"), KEPT),
    advised("jemalloc", ("huge", "advised"), ALL),
    proof(
        "jemalloc",
        "tcache_max",
        ["1024", "32"],
        ("cache", "jemalloc.tcache_bytes"),
        |all, none| all > 4096 && none == 0,
    ),
    proof("jemalloc", "tcache", ["1", "0"], ("cache", "jemalloc.tcache_bytes"), |on, off| {
        on > 4096 && off == 0
    }),
    proof(
        "jemalloc",
        "background_thread",
        ["1", "0"],
        ("one", "jemalloc.background"),
        |on, off| on >= 1 && off == 0,
    ),
    proof(
        "tcmalloc",
        "max_total_thread_cache_bytes",
        ["64M", "512K"],
        ("trim", "tcmalloc.cached"),
        |much, little| much > 4 << 20 && little <= 512 << 10,
    ),
    proof(
        "tcmalloc",
        "release_rate",
        ["10", "0"],
        ("churn", "tcmalloc.unmapped"),
        |fast, never| fast > 2 << 20 && never == 0,
    ),
    proof("tcmalloc", "aggressive_decommit", ["0", "1"], ("trim", "resident"), KEPT),
    proof("mimalloc", "purge_delay", ["-1", "0"], ("trim", "resident"), KEPT),
    advised("mimalloc", ("huge", "advised"), ALL),
    proof("masu", "trim_threshold", ["1G", "0"], ("trim", "resident"), KEPT),
    proof("masu", "purge_delay", ["-1", "0"], ("trim", "resident"), KEPT),
    proof("masu", "arenas", ["1", "3"], ("threads", "arenas"), SPREAD),
    advised("masu", ("huge", "advised"), ALL),
    proof("masu", "cache_size", ["64M", "0"], ("reuse", "reused"), |all, none| {
        all > 200 << 10 && none == 0
    }),
];
