//! Runs one named pattern of the requests that Rust programs make to their global allocator, and prints a checksum of
//! the work and its duration.
//!
//! It relies on the features for the allocator (`allocator.rs`) and on the table of patterns. The arguments and
//! both lines printed are those of `workloads/patterns`, so that one reader understands both.

mod allocator;
mod boxes;
mod collections;
mod pattern;
mod random;
mod server;
mod threads;
mod work;

use std::process::ExitCode;
use std::time::Instant;

use pattern::{PATTERNS, Pattern};
use work::Work;

const USAGE: &str =
    "Usage: rust-patterns NAME [--threads T] [--seed N] [--ops N]\n       rust-patterns --list";

/// The exit code for arguments that are not understood.
const EXIT_USAGE: u8 = 2;

/// The most threads that a pattern takes.
const THREADS_MAX: u64 = 1024;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if arguments == ["--list"] {
        PATTERNS.iter().for_each(list);
        return ExitCode::SUCCESS;
    }
    match understand(&arguments) {
        Ok((pattern, work)) => {
            run(pattern, work);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("rust-patterns: {reason}\n{USAGE}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn list(pattern: &Pattern) {
    let Pattern { name, group, threads, ops, about, .. } = pattern;
    println!("{name:<16} {group:<12} threads {threads:<3} ops {ops:<10} {about}");
}

/// The pattern and the work that the arguments request, or the error in the arguments.
fn understand(arguments: &[&str]) -> Result<(&'static Pattern, Work), String> {
    let (name, options) = arguments.split_first().ok_or("name a pattern; --list shows them")?;
    let pattern = PATTERNS
        .iter()
        .find(|pattern| pattern.name == *name)
        .ok_or_else(|| format!("`{name}` is not a pattern; --list shows them"))?;
    let mut work = Work { threads: pattern.threads, seed: 1, ops: pattern.ops };
    for option in options.chunks(2) {
        let value = option.get(1).copied().unwrap_or_default();
        let number = |least: u64, most: u64| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| {
                format!("{} needs a number from {least} to {most}, not `{value}`", option[0])
            })
        };
        match option[0] {
            "--threads" => work.threads = number(pattern.threads_min, THREADS_MAX)?,
            "--seed" => work.seed = number(0, u64::MAX)?,
            "--ops" => work.ops = number(1, u64::MAX)?,
            other => return Err(format!("`{other}` is not an option")),
        }
    }
    Ok((pattern, work))
}

fn run(pattern: &Pattern, work: Work) {
    let begun = Instant::now();
    let sum = (pattern.run)(work);
    let worked = begun.elapsed();
    let Work { threads, seed, ops } = work;
    let ns_per_op = worked.as_nanos() as f64 / ops as f64;
    let name = pattern.name;
    eprintln!("{name} ns_per_op {ns_per_op:.2} rss_kb {}", peak_rss_kb());
    let checksum = random::mix(sum);
    println!("{name} threads {threads} seed {seed} ops {ops} checksum {checksum:016x}");
}

/// Peak RSS in KiB; 0 where the kernel does not say.
fn peak_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
