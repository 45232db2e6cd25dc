//! The table of options, as data only.
//!
//! Relies on nothing, because two programs compile this file: the allocator, and the `masu` command, which lists the
//! options without linking an allocator. The hard idea: a row is written once. A module that needs something of every
//! row, such as the constructors or the rules, passes the name of a macro to `option_rows`.

/// The unit of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes. In a variable `K`, `M` and `G` behind the number stand for 2¹⁰, 2²⁰ and 2³⁰ of them.
    Bytes,
    /// A count.
    Count,
    /// Milliseconds. In a variable -1 stands for never, which is the greatest value.
    Milliseconds,
    /// Off or on: 0 or 1 in a variable.
    Switch,
}

/// One option.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Description {
    /// The option's name, which is also the function of `Masu` that sets it, and the name for `get` and `set`.
    pub name: &'static str,
    /// The option's environment variable: `MASU_` and the name in capitals.
    pub variable: &'static str,
    /// The option's unit.
    pub unit: Unit,
    /// The least value accepted.
    pub least: usize,
    /// The greatest value accepted.
    pub most: usize,
    /// The accepted values, in words.
    pub accepted: &'static str,
    /// The default: a value, or words if it follows the program.
    pub default: &'static str,
    /// The time at which a change takes effect while the program runs, in words.
    pub holds: &'static str,
    /// The option's effect, in words.
    pub meaning: &'static str,
}

/// The greatest number of bytes: no block is longer.
pub(crate) const BYTES_MAX: usize = isize::MAX as usize;

/// The greatest number of milliseconds, seven weeks; it stands for never.
pub(crate) const MILLISECONDS_MAX: usize = u32::MAX as usize;

/// Passes every row to the macro `$take`.
macro_rules! option_rows {
    ($take:ident) => {
        $take! {
            /// The most that one thread's cache of free blocks may hold, in bytes. A smaller cache saves memory in
            /// programs with many threads. A larger one saves time where threads free much before they allocate again.
            /// With 0 only blocks of heaps are cached: every other one comes from a page, under a lock.
            CacheSize, cache_size(bytes: usize), "MASU_CACHE_SIZE",
            Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
            default "about 512K, and 1M once there is a second thread; a share of 64M where there are more than 64 threads and than CPUs, at least 128K, unless the thread is busy; or half of what is live, shared by all threads, where that is more. Blocks of one size take at most a sixteenth of it, of up to 8K a sixteenth of an eighth of what is live",
            holds "in each thread after some hundred calls that its cache could not serve";

            /// Free memory to keep for later use instead of returning it to the kernel, in bytes. With 0 it is returned
            /// at once; with more than the program ever uses, never. Blocks of 1 GiB and more are always returned when
            /// they are freed.
            Retain, retain(bytes: usize), "MASU_RETAIN",
            Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
            default "4M or an eighth of what is live, whichever is more, and what is wanted back soon",
            holds "at the next free of a block over 64K or of a whole page of blocks";

            /// The least free memory to keep, in bytes, while the rest of what `retain` keeps follows the program: for
            /// programs that reach their full size again after a long pause.
            RetainMin, retain_min(bytes: usize), "MASU_RETAIN_MIN",
            Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
            default "4M",
            holds "as for `retain`";

            /// The time that free memory stays before it is returned, in milliseconds, in place of the policy of
            /// `retain`: memory that was free all that time is returned. No thread waits for the time: it is checked
            /// when runs of memory are taken or freed, and now and then when a thread's cache is empty or full. So it
            /// takes up to twice as long, and an idle program returns nothing. With 0 free memory is returned at once.
            PurgeDelayMs, purge_delay_ms(delay: usize), "MASU_PURGE_DELAY_MS",
            Milliseconds 0 to MILLISECONDS_MAX,
            accepts "a number of milliseconds from 0 to 4294967295, or -1 for never",
            default "100, for at most 64M beyond what `retain` keeps, or 256M where that was returned too early before; 0 where `retain` or `retain_min` is set",
            holds "as for `retain`";

            /// The most memory that blocks may take, in bytes, free memory that is kept included. At the limit free
            /// memory is returned to the kernel, then allocations fail. Mappings of the program, its stacks and its libraries do not
            /// count.
            MemoryLimit, memory_limit(bytes: usize), "MASU_MEMORY_LIMIT",
            Bytes 1048576 to BYTES_MAX, accepts "a number of bytes, at least 1M",
            default "none",
            holds "at the next request that takes memory from the kernel; what is over it stays";

            /// Bytes of addresses to reserve at a time, rounded up to 2 MiB. Smaller values suit programs that
            /// lock their memory or whose addresses are limited; larger ones need fewer mappings. There are at most
            /// 16,384 of them, so with 16M no more than 256G of memory.
            ArenaSize, arena_size(bytes: usize), "MASU_ARENA_SIZE",
            Bytes 16777216 to 1073741824,
            accepts "a number of bytes from 16M to 1G",
            default "1G, or a 32nd of the limit on addresses",
            holds "for addresses that are reserved from then on";

            /// The number of shards that own pages. Threads of different shards do not wait for each other when their
            /// caches run empty or full. Each shard has its own partly used pages.
            Shards, shards(count: usize), "MASU_SHARDS",
            Count 1 to 60, accepts "a count from 1 to 60",
            default "one for each CPU that the program may run on, at most 60",
            holds "for threads that begin from then on and do not go on with the cache of one that ended";

            /// Whether to ask the kernel for huge pages. With 1, masu asks for memory that is added to a heap of at
            /// least `huge_pages_from`, unless the kernel's policy is `never`. With 0, masu asks for none, even where
            /// the policy is `always`. masu cancels the request where freed memory was hardly used.
            HugePages, huge_pages(on: bool), "MASU_HUGE_PAGES",
            Switch 0 to 1, accepts "0 or 1",
            default "1",
            holds "for memory that is added from then on";

            /// The size of a heap from which on masu asks for huge pages, in bytes. With 0 it asks for all memory: that
            /// is faster where most of the memory is used, and takes more memory where it is not.
            HugePagesFrom, huge_pages_from(bytes: usize), "MASU_HUGE_PAGES_FROM",
            Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
            default "2 huge pages for small blocks and large ones that grew, 8 for another large one: 4M and 16M where OS pages are of 4 KiB, 64M and 256M of 16 KiB, 1G and 4G of 64 KiB; 3 more for each shard where four or more have blocks; from 4 on a long block gets those that it fills",
            holds "for memory that is added from then on";

            /// Whether to end the program with a message when there is no memory, instead of returning null: for
            /// programs that do not check.
            AbortOnOom, abort_on_oom(on: bool), "MASU_ABORT_ON_OOM",
            Switch 0 to 1, accepts "0 or 1",
            default "0",
            holds "at once";

            /// Messages about options on standard error. 1: wrong variables. 2: also every option that is set, when the
            /// variables are read. 0: none.
            Verbose, verbose(count: usize), "MASU_VERBOSE",
            Count 0 to 2, accepts "a count from 0 to 2",
            default "1",
            holds "when the variables are read";

            /// Whether to publish statistics for `masu top` and other processes with the right to read them: on a page
            /// that is updated up to ten times a second while the program allocates. Programs with more rights than
            /// their user never have one.
            StatisticsPage, statistics_page(on: bool), "MASU_STATISTICS_PAGE",
            Switch 0 to 1, accepts "0 or 1",
            default "0",
            holds "after some dozen calls that a thread's cache could not serve";

            /// Whether `libmasu.so` writes statistics to standard error when the program ends, by `exit` or
            /// by its `main`.
            StatisticsAtExit, statistics_at_exit(on: bool), "MASU_STATISTICS_AT_EXIT",
            Switch 0 to 1, accepts "0 or 1",
            default "0",
            holds "when the variables are read";

            /// Whether `libmasu.so` lets `dlopen` obey `RTLD_DEEPBIND`. With 0 masu removes the flag: libraries that
            /// are opened with it, as PHP's modules are, would free masu's blocks with the C library's `free`.
            Deepbind, deepbind(on: bool), "MASU_DEEPBIND",
            Switch 0 to 1, accepts "0 or 1",
            default "0",
            holds "for libraries that are opened from then on";

            /// The average number of bytes between two samples of a heap profile, started by `MASU_PROFILE` or by the
            /// program. A block of as many bytes is in the profile with a chance of 63 %. With 1 every block is, and
            /// the program takes several times as long.
            ProfileInterval, profile_interval(bytes: usize), "MASU_PROFILE_INTERVAL",
            Bytes 1 to BYTES_MAX, accepts "a number of bytes, at least 1",
            default "512K",
            holds "for a profile that starts from then on";

            /// Whether a program whose profile `MASU_PROFILE` started reports at exit how many bytes were never freed,
            /// and in which file the profile is.
            ProfileLeaks, profile_leaks(on: bool), "MASU_PROFILE_LEAKS",
            Switch 0 to 1, accepts "0 or 1",
            default "0",
            holds "when the program ends";

            /// One block in this many, chosen at random in each thread, lies between inaccessible OS pages. A program
            /// that writes beyond such a block, or uses it after it was freed, ends there, with a report of the stacks
            /// that allocated and freed it. 0: none. 1: every block, while there are slots (`guard_slots`). Blocks of
            /// first-class heaps and blocks over 60K are never guarded.
            GuardRate, guard_rate(count: usize), "MASU_GUARD_RATE",
            Count 0 to 1000000000, accepts "a count from 0 to 1000000000",
            default "0",
            holds "at once for C's functions, and in a thread that allocates by Rust's layouts after some dozens of blocks";

            /// The most guarded blocks, live ones and freed ones that are still watched. While all slots
            /// hold a live block, no more are guarded. Each slot takes 64K of addresses, 1K, and its block's OS pages.
            GuardSlots, guard_slots(count: usize), "MASU_GUARD_SLOTS",
            Count 1 to 8000, accepts "a count from 1 to 8000",
            default "256",
            holds "when `guard_rate` is first more than 0";

            /// The seed of random placement, for measurements; `masu compare --shuffle-heap` draws one for each run. A
            /// thread that needs blocks gets neighbors from a random place of a page on, and not those with the lowest
            /// addresses. With the same seed a program of one thread has the same placement again. 0: none. Blocks
            /// over 64K begin at multiples of 64K as always. The hardened build places all blocks at random by itself
            /// but those of first-class heaps.
            Shuffle, shuffle(seed: usize), "MASU_SHUFFLE",
            Count 0 to 4294967295, accepts "a count from 0 to 4294967295",
            default "0",
            holds "for blocks that are taken from pages from then on";
        }
    };
}

macro_rules! describe {
    ($(
        $(#[doc = $meaning:literal])+
        $index:ident, $name:ident($argument:ident: $kind:ty), $variable:literal,
        $unit:ident $least:literal to $most:expr, accepts $accepted:literal,
        default $default:literal, holds $holds:literal;
    )+) => {
        /// Every option.
        pub const ALL: &[Description] = &[$(Description {
            name: stringify!($name),
            variable: $variable,
            unit: Unit::$unit,
            least: $least,
            most: $most,
            accepted: $accepted,
            default: $default,
            holds: $holds,
            meaning: concat!($($meaning),+),
        }),+];

        /// An option's place in [`ALL`].
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub(crate) enum Index { $($index),+ }
    };
}

option_rows!(describe);

/// A variable that holds a text and is no option; it is read once, at the start.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Text {
    /// The variable.
    pub variable: &'static str,
    /// The contents of the variable, in words.
    pub accepted: &'static str,
    /// The variable's effect, in words.
    pub meaning: &'static str,
}

/// Every such variable.
pub const TEXTS: &[Text] = &[Text {
    variable: "MASU_PROFILE",
    accepted: "the start of a file's name, at most 1000 bytes, such as /tmp/heap",
    meaning: "Has a heap profile taken from the start, and written to a file whose name begins so when the \
              program ends. The options `profile_…` say how.",
}];
