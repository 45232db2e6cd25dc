//! The causes: the parameters of each, and the function that runs it.

use crate::work::Work;
use crate::{memory, other, threads};

/// The values that a parameter may have.
pub struct Range {
    pub least: usize,
    pub usual: usize,
    pub most: usize,
}

/// A cause and its parameters. No cause holds more than 512 MiB, whatever its arguments.
pub struct Cause {
    pub name: &'static str,
    /// The cause takes no number of threads if the usual one is 0.
    pub threads: Range,
    pub size: Range,
    /// The unit of the size.
    pub unit: &'static str,
    pub rounds: usize,
    /// Returns a checksum of the contents that were read back from memory.
    pub run: fn(&Work) -> u64,
    pub about: &'static str,
}

const fn range(least: usize, usual: usize, most: usize) -> Range {
    Range { least, usual, most }
}

const ONE_THREAD: Range = range(0, 0, 0);
const MIB: usize = 1 << 20;

pub const CAUSES: [Cause; 13] = [
    Cause {
        name: "brk-storm",
        threads: ONE_THREAD,
        // A longer text has a buffer of 128 KiB, which glibc maps by itself.
        size: range(30_000, 60_000, 65_000),
        unit: "bytes",
        rounds: 5_000,
        run: memory::brk_storm,
        about: "texts that grow and go at the top of the heap",
    },
    Cause {
        name: "eager-return",
        threads: ONE_THREAD,
        // Above 32 MiB glibc never learns to keep a mapping.
        size: range(33 * MIB, 48 * MIB, 400 * MIB),
        unit: "bytes",
        rounds: 50,
        run: memory::eager_return,
        about: "a large vector made, summed and dropped each round",
    },
    Cause {
        name: "phase-change",
        threads: ONE_THREAD,
        size: range(MIB, 200 * MIB, 400 * MIB),
        unit: "bytes",
        rounds: 10_000,
        run: memory::phase_change,
        about: "one entry of a map in 50 outlives a phase and holds the heap",
    },
    Cause {
        name: "growth",
        threads: ONE_THREAD,
        size: range(16 << 10, 48 << 10, MIB),
        unit: "bytes",
        rounds: 9_000,
        run: memory::growth,
        about: "a cache without a bound keeps an answer for each key, up to 440 MiB",
    },
    Cause {
        name: "huge-page-waste",
        threads: ONE_THREAD,
        size: range(2 * MIB, 240 * MIB, 448 * MIB),
        unit: "bytes",
        rounds: 50_000_000,
        run: memory::huge_page_waste,
        about: "a huge page for each session of a few kilobytes",
    },
    Cause {
        name: "arena-lock",
        threads: range(2, 4, 64),
        size: range(2_000, 3_000, 65_536),
        unit: "bytes",
        rounds: 4_000_000,
        run: threads::arena_lock,
        about: "threads whose buffers grow in one arena wait for its lock",
    },
    Cause {
        name: "thread-per-task",
        threads: range(1, 16, 64),
        size: range(8, 800, MIB),
        unit: "bytes",
        rounds: 30_000,
        run: threads::thread_per_task,
        about: "a thread started for a microsecond of work",
    },
    Cause {
        name: "producer-consumer",
        threads: range(2, 2, 64),
        size: range(256, 500, 4_096),
        unit: "bytes",
        rounds: 8_000_000,
        run: threads::producer_consumer,
        about: "one thread allocates what another drops",
    },
    Cause {
        name: "serial-phase",
        threads: range(2, 2, 64),
        size: range(8, 8 * MIB, 200 * MIB),
        unit: "bytes",
        rounds: 20,
        run: threads::serial_phase,
        about: "one thread reads text for long before all work on it",
    },
    Cause {
        name: "spinning",
        threads: range(2, 3, 64),
        size: range(1, 40_000, 1_000_000),
        unit: "steps",
        rounds: 10_000,
        run: threads::spinning,
        about: "workers that look for work without sleeping",
    },
    Cause {
        name: "fork-storm",
        threads: ONE_THREAD,
        size: range(1, 2, 100),
        unit: "arguments",
        rounds: 1_000,
        run: other::fork_storm,
        about: "a program started for each small thing",
    },
    Cause {
        name: "small-writes",
        threads: ONE_THREAD,
        size: range(2, 12, 64),
        unit: "bytes",
        rounds: 400_000,
        run: other::small_writes,
        about: "a system call for each short line",
    },
    Cause {
        name: "scattered-libraries",
        threads: ONE_THREAD,
        size: range(1, 1_000, 1_000),
        unit: "libraries",
        rounds: 30_000,
        run: other::scattered_libraries,
        about: "each small function in a library of its own, called out of order",
    },
];
