//! The cost of unloading an object by the number of loaded objects, with the tables of debugger and unwinder, or without
//! (`untold`).
//!
//! `unload LIVE ROUNDS [untold]` prints the median of that many rounds, and the resident bytes of an object. Under
//! `valgrind --tool=callgrind` with two numbers of rounds, the difference counts instructions.

use std::time::Instant;

use masu_code::{Arena, Handle, Options, Source, Tools};

/// A function of some instructions, with its unwind table.
const OBJECT: &[u8] = include_bytes!("../tests/corpus/gcc-tiny.o");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = |at| std::env::args().nth(at).and_then(|word| word.parse().ok());
    let (Some(live), Some(rounds)) = (number(1), number(2)) else {
        return Err("unload LIVE ROUNDS [untold]".into());
    };
    let (live, rounds): (usize, usize) = (live, rounds);
    let untold = std::env::args().nth(3).is_some_and(|word| word == "untold");
    let tools = if untold { Tools::none() } else { Tools::default() };
    let arena = Arena::open(Options { tools, ..Options::default() })?;
    let source = Source::new("tiny.o", OBJECT).private();
    let load = || -> Result<Handle, masu_code::Error> {
        // SAFETY: The object has no initializers.
        unsafe { arena.load(&source) }
    };
    let before = resident()?;
    let mut objects = (0..live).map(|_| load()).collect::<Result<Vec<_>, _>>()?;
    println!("resident with {live} live: {} bytes each", (resident()? - before) / live);
    let (mut loads, mut unloads) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let at = round * 7919 % live;
        let start = Instant::now();
        arena.unload(objects[at])?;
        unloads.push(start.elapsed());
        let start = Instant::now();
        objects[at] = load()?;
        loads.push(start.elapsed());
    }
    for (what, mut times) in [("unload", unloads), ("load", loads)] {
        times.sort_unstable();
        if let Some(median) = times.get(rounds / 2) {
            println!("{what} with {live} live: {median:?}");
        }
    }
    Ok(())
}

fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}
