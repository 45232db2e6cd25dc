//! Runs one named cause: a program that is slow, or large, for one reason that was put into it.
//!
//! The causes are the same as in the C program beside it. The work is not the same, so that rules
//! learned from one program can be judged on the other. The contents of memory are checked: a panic says which check
//! failed.

mod kernel;
mod memory;
mod other;
#[path = "../../../rust/src/random.rs"]
mod random;
mod threads;

use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "\
Usage: rust-causes NAME [--libraries DIR]
       rust-causes --list";

/// The exit code for arguments that are not understood.
const EXIT_USAGE: u8 = 2;

/// A name, the function that runs the cause, and a line about it.
type Cause = (&'static str, fn() -> u64, &'static str);

/// Each function returns a checksum of the contents that were read back from memory.
const CAUSES: [Cause; 13] = [
    ("brk-storm", memory::brk_storm, "texts that grow and go at the top of the heap"),
    ("eager-return", memory::eager_return, "a large vector made, summed and dropped each round"),
    (
        "phase-change",
        memory::phase_change,
        "one entry of a map in 50 outlives a phase and holds the heap",
    ),
    ("growth", memory::growth, "a cache without a bound keeps an answer for each key"),
    ("huge-page-waste", memory::huge_page_waste, "a huge page for each session of a few kilobytes"),
    (
        "arena-lock",
        threads::arena_lock,
        "threads whose buffers grow in one arena wait for its lock",
    ),
    ("thread-per-task", threads::thread_per_task, "a thread started for a microsecond of work"),
    ("producer-consumer", threads::producer_consumer, "one thread allocates what another drops"),
    ("serial-phase", threads::serial_phase, "one thread reads text for long before all work on it"),
    ("spinning", threads::spinning, "workers that look for work without sleeping"),
    ("fork-storm", other::fork_storm, "a program started for each small thing"),
    ("small-writes", other::small_writes, "a system call for each short line"),
    (
        "scattered-libraries",
        other::scattered_libraries,
        "each small function in a library of its own, called out of order",
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let name = match arguments[..] {
        ["--list"] => {
            CAUSES.iter().for_each(|(name, _, about)| println!("{name:<20} {about}"));
            return ExitCode::SUCCESS;
        }
        [name] => name,
        [name, "--libraries", folder] => {
            other::LIBRARIES.get_or_init(|| folder.into());
            name
        }
        _ => return refuse("name a cause; --list shows them"),
    };
    let Some((_, run, _)) = CAUSES.iter().find(|cause| cause.0 == name) else {
        return refuse(&format!("`{name}` is not a cause; --list shows them"));
    };
    let begun = Instant::now();
    let sum = run();
    let ms = begun.elapsed().as_millis();
    eprintln!("{name} ms {ms} rss_kb {}", kernel::peak_rss_kb());
    println!("{name} checksum {:016x}", random::mix(sum));
    ExitCode::SUCCESS
}

fn refuse(reason: &str) -> ExitCode {
    eprintln!("rust-causes: {reason}\n{USAGE}");
    ExitCode::from(EXIT_USAGE)
}
