//! The table of options: each one as data, and nothing that acts.
//!
//! It relies on nothing, so that two programs are compiled with this very file: the allocator, which
//! obeys the options, and the `masu` command, which lists them without linking an allocator. The
//! hard idea is that a row is written once: a module that needs something of every row (the constructor's
//! functions, the rules for variables) hands [`option_rows`] the name of a macro that takes them.

/// What an option counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; in a variable `K`, `M` and `G` behind the number stand for 2¹⁰, 2²⁰ and 2³⁰ of them.
    Bytes,
    /// Things.
    Count,
    /// Thousandths of a second; -1 in a variable stands for never, which is the greatest.
    Milliseconds,
    /// Off or on, 0 or 1 in a variable.
    Switch,
}

/// One option, as the table has it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Description {
    /// Its name: the function of `Masu` that sets it, and what `get` and `set` call it.
    pub name: &'static str,
    /// The environment variable that sets it: `MASU_` and the name in capitals.
    pub variable: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The least value that is accepted.
    pub least: usize,
    /// The greatest value that is accepted.
    pub most: usize,
    /// What is accepted, in words.
    pub accepted: &'static str,
    /// What holds where nobody sets it: a value, or words where it follows the program.
    pub default: &'static str,
    /// From when on a change under way holds, in words.
    pub holds: &'static str,
    /// What it does, in words.
    pub meaning: &'static str,
}

/// The greatest number of bytes: no block is longer.
pub(super) const BYTES_MAX: usize = isize::MAX as usize;

/// The greatest number of milliseconds, seven weeks: stands for never too.
pub(super) const MILLISECONDS_MAX: usize = u32::MAX as usize;

/// Hands every row to the macro called `$take`.
macro_rules! option_rows {
    ($take:ident) => {
        $take! {
            /// The most that one thread's cache of free blocks may hold, in bytes. Less saves memory where
            /// there are many threads, more saves time where threads free much before they allocate again;
            /// with 0 nothing is cached, and every block comes from a page under a lock.
            CacheSize, cache_size(bytes: usize), "MASU_CACHE_SIZE",
            Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
            default "about 512K, and 1M once there is a second thread",
            holds "in each thread after some hundred calls that its cache could not serve";

            /// The most that threads may pass on to each other of free blocks of one size class, in bytes.
            /// With 0 a thread whose cache is full gives its blocks back to the pages they are of.
            TransferSize, transfer_size(bytes: usize), "MASU_TRANSFER_SIZE",
            Bytes 0 to 65536, accepts "a number of bytes from 0 to 64K",
            default "64K",
            holds "for what is passed on from then on";

            /// Free memory that is kept for the next use instead of going back to the kernel, in bytes. With
            /// 0 it goes back at once; with more than the program ever holds it never does. Blocks of
            /// 1 GiB and more always go back when they are freed.
            Retain, retain(bytes: usize), "MASU_RETAIN",
            Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
            default "4M or an eighth of what is live, whichever is more, and what is wanted back soon",
            holds "at the next free of a block over 64K or of a whole page of blocks";

            /// Free memory that is kept at least, in bytes, while the rest of what `retain` would say still
            /// follows the program: for programs that come back to a size after a long rest.
            RetainMin, retain_min(bytes: usize), "MASU_RETAIN_MIN",
            Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
            default "4M",
            holds "as for `retain`";

            /// How long free memory is kept that nobody wants, in milliseconds, instead of what `retain` says by
            /// itself: what was free all that time goes back. There is no thread that would wait: the time is
            /// looked at when runs of memory are taken or freed, so it takes up to twice as long, and a
            /// program that rests gives nothing back. With 0 free memory goes back at once.
            PurgeDelayMs, purge_delay_ms(delay: usize), "MASU_PURGE_DELAY_MS",
            Milliseconds 0 to MILLISECONDS_MAX,
            accepts "a number of milliseconds from 0 to 4294967295, or -1 for never",
            default "none: `retain` decides",
            holds "as for `retain`";

            /// The most memory that blocks may take, in bytes, with what is free and kept: beyond it free
            /// memory goes back, and then there is none to be had. What the program maps by itself, its
            /// stacks and its libraries are not counted.
            MemoryLimit, memory_limit(bytes: usize), "MASU_MEMORY_LIMIT",
            Bytes 1048576 to BYTES_MAX, accepts "a number of bytes, at least 1M",
            default "none",
            holds "at the next request that takes memory from the kernel; what is over it stays";

            /// How many bytes of addresses are reserved at a time, rounded up to 2 MiB. Less where addresses
            /// count, as in programs that lock their memory; more takes fewer mappings.
            ArenaSize, arena_size(bytes: usize), "MASU_ARENA_SIZE",
            Bytes 16777216 to 1073741824,
            accepts "a number of bytes from 16M to 1G",
            default "1G, or a 32nd of the limit on addresses",
            holds "for addresses that are reserved from then on";

            /// How many shards own pages. Threads of different shards do not wait for each other when their
            /// caches run empty or full; each shard has pages of its own that are not full.
            Shards, shards(count: usize), "MASU_SHARDS",
            Count 1 to 60, accepts "a count from 1 to 60",
            default "one for each CPU that the program may run on, at most 60",
            holds "for threads that begin from then on and do not go on with the cache of one that ended";

            /// Whether the kernel is asked for huge pages. With 1 it is, for memory that is added to a heap of
            /// some size and more (`huge_pages_from`), unless its own policy is `never`; with 0 it is asked to
            /// give none, even where its policy is `always`. masu calls them off where memory that was freed had
            /// hardly been used.
            HugePages, huge_pages(on: bool), "MASU_HUGE_PAGES",
            Switch 0 to 1, accepts "0 or 1",
            default "1",
            holds "for memory that is added from then on";

            /// The size of a heap from which on the kernel is asked for huge pages, in bytes. With 0 it is
            /// asked for all memory: faster where most of it is used, and more resident where not.
            HugePagesFrom, huge_pages_from(bytes: usize), "MASU_HUGE_PAGES_FROM",
            Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
            default "2 huge pages for small blocks, 8 for a large one: 4M and 16M where OS pages are of 4 KiB, 64M and 256M of 16 KiB, 1G and 4G of 64 KiB",
            holds "for memory that is added from then on";

            /// Whether the program ends with a message where there is no memory to be had, instead of
            /// getting null: for programs that do not check.
            AbortOnOom, abort_on_oom(on: bool), "MASU_ABORT_ON_OOM",
            Switch 0 to 1, accepts "0 or 1",
            default "0",
            holds "at once";

            /// What is said on standard error about options. With 1, what is wrong with variables; with 2,
            /// what was set too, when the variables are read; with 0 nothing.
            Verbose, verbose(count: usize), "MASU_VERBOSE",
            Count 0 to 2, accepts "a count from 0 to 2",
            default "1",
            holds "when the variables are read";

            /// Whether `masu top`, and others that may look into the process, find its statistics: on a page
            /// that is written up to ten times a second while the program allocates. Programs with more
            /// rights than their user never have one.
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

            /// Whether `libmasu.so` lets `dlopen` obey `RTLD_DEEPBIND`. With 0 the flag is taken out: libraries that
            /// are opened with it, as PHP's modules are, would free masu's blocks with the C library's `free`.
            Deepbind, deepbind(on: bool), "MASU_DEEPBIND",
            Switch 0 to 1, accepts "0 or 1",
            default "0",
            holds "for libraries that are opened from then on";

            /// How many bytes go by, on average, between two samples of a heap profile, be it one that
            /// `MASU_PROFILE` asks for or one that the program starts without saying otherwise. A block of as many bytes is in the profile with a chance of 63 %; with 1 every block
            /// is, and the program takes a multiple of its time.
            ProfileInterval, profile_interval(bytes: usize), "MASU_PROFILE_INTERVAL",
            Bytes 1 to BYTES_MAX, accepts "a number of bytes, at least 1",
            default "512K",
            holds "for a profile that starts from then on";

            /// Whether a program whose profile `MASU_PROFILE` asks for says on standard error, when it ends,
            /// how many bytes were never freed, and where the file is that says by whom.
            ProfileLeaks, profile_leaks(on: bool), "MASU_PROFILE_LEAKS",
            Switch 0 to 1, accepts "0 or 1",
            default "0",
            holds "when the program ends";

            /// One block in so many, on average and chosen at random in each thread, lies between OS pages that
            /// nobody may touch: a program that writes beyond such a block, or uses it after it was freed, ends
            /// there, with a report of who asked for it and who freed it. With 0 none does, with 1 each does
            /// while there are slots (`guard_slots`). Blocks of first-class heaps and those over 60K are left out.
            GuardRate, guard_rate(count: usize), "MASU_GUARD_RATE",
            Count 0 to 1000000000, accepts "a count from 0 to 1000000000",
            default "0",
            holds "at once for C's functions, and in a thread that allocates by Rust's layouts after some dozens of blocks";

            /// How many blocks may be guarded at once or rest after they were freed. While all slots hold a live
            /// block, none is guarded. Each takes 64K of addresses and 1K, and its block's OS pages while it lives.
            GuardSlots, guard_slots(count: usize), "MASU_GUARD_SLOTS",
            Count 1 to 8000, accepts "a count from 1 to 8000",
            default "256",
            holds "when `guard_rate` is first more than 0";
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
        /// Every option there is.
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
    };
}

option_rows!(describe);

/// A variable that holds a text, and is no option: it is read once, at the start.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Text {
    /// The variable.
    pub variable: &'static str,
    /// What it holds, in words.
    pub accepted: &'static str,
    /// What it does, in words.
    pub meaning: &'static str,
}

/// Every such variable.
pub const TEXTS: &[Text] = &[Text {
    variable: "MASU_PROFILE",
    accepted: "the start of a file's name, at most 1000 bytes, such as /tmp/heap",
    meaning: "Has a heap profile taken from the start, and written to a file whose name begins so when the \
              program ends. The options `profile_…` say how.",
}];
