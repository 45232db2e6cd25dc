//! The resident memory of this process.

use std::fs;

/// Resident bytes.
pub(crate) fn resident_bytes() -> usize {
    // `status` may lack the last 64 faults of each thread; `smaps_rollup` of Linux 6.1 leaves a mapping out while
    // another thread maps.
    let smaps = fs::read_to_string("/proc/self/smaps").expect("proc is mounted");
    let kilobytes = |line: &str| line.trim().strip_suffix(" kB")?.parse::<usize>().ok();
    let lines = smaps.lines().filter_map(|line| line.strip_prefix("Rss:"));
    lines.map(|line| kilobytes(line).expect("a number of kB") << 10).sum()
}
