//! The table of patterns: name, default work, and the function that does it.
//!
//! The hard idea is the checksum: a sum of the contents that were read back from memory. A sum does not depend on
//! order, so threads may take any order, and an allocator that loses contents changes the sum.

use crate::work::Work;
use crate::{boxes, collections, server, threads};

pub struct Pattern {
    pub name: &'static str,
    /// The kind of program that the pattern stands for.
    pub group: &'static str,
    /// The default number of threads, and the fewest that make sense.
    pub threads: u64,
    pub threads_min: u64,
    /// Operations unless they are set otherwise: about a second with the system's allocator.
    pub ops: u64,
    /// Does the work; returns the checksum.
    pub run: fn(Work) -> u64,
    pub about: &'static str,
}

/// Patterns of one thread.
const fn single(
    name: &'static str,
    group: &'static str,
    ops: u64,
    run: fn(Work) -> u64,
    about: &'static str,
) -> Pattern {
    Pattern { name, group, threads: 1, threads_min: 1, ops, run, about }
}

pub const PATTERNS: &[Pattern] = &[
    single("box-u64", "small", 250_000_000, boxes::pair, "Box<u64>, made and dropped at once"),
    single("box-million", "small", 60_000_000, boxes::many, "a million Box<u64>, then all dropped"),
    single(
        "box-dyn",
        "small",
        60_000_000,
        boxes::objects,
        "trait objects of six sizes, 1,000 live",
    ),
    single(
        "vec-replace",
        "small",
        15_000_000,
        collections::replaced,
        "100,000 vectors of 8 to 512 bytes, replaced at random",
    ),
    single("vec-growth", "collections", 600_000_000, collections::vectors, "16 vectors pushed to"),
    single("vec-large", "collections", 5_000_000, collections::buffer, "4 KiB at a time to 16 MiB"),
    single("btreemap", "collections", 10_000_000, collections::tree, "BTreeMap, 10,000 live"),
    single(
        "hashmap-string",
        "collections",
        6_000_000,
        collections::words,
        "HashMap<String, String>, 10,000 live",
    ),
    Pattern {
        name: "arc-threads",
        group: "threads",
        threads: 2,
        threads_min: 2,
        ops: 20_000_000,
        run: threads::arcs,
        about: "Arcs made in one thread, dropped in another",
    },
    Pattern {
        name: "server",
        group: "threads",
        threads: 2,
        threads_min: 1,
        ops: 700_000,
        run: server::requests,
        about: "requests parsed, sessions kept, answers handed on",
    },
];
