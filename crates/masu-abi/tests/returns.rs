//! Memory is purged after a peak of any kind of block, and stays resident if a program requests it repeatedly.
//!
//! It relies on `tests/c/returns.c`, one program with a group of checks for each test here. The peak
//! is 256 MiB, with `MASU_SOAK=1` it is 2 GiB.

mod library;

use std::env;
use std::sync::Mutex;

use library::program;

program!("returns.c", &["-O1"]);

fn run(group: &str) {
    // One peak at a time: several peaks together could be more than a machine has.
    static PEAK: Mutex<()> = Mutex::new(());
    let _peak = PEAK.lock();
    let soak = env::var_os("MASU_SOAK").is_some_and(|value| value == "1");
    let peak_mib = if soak { "2048" } else { "256" };
    library::succeeds(library::preloaded(program()).args([group, peak_mib]));
}

macro_rules! groups {
    ($($group:ident)*) => {$(
        #[test]
        fn $group() {
            run(stringify!($group));
        }
    )*};
}

groups! {
    small_blocks
    small_blocks_beside_a_thread
    blocks_of_pages
    blocks_of_slices
    large_blocks
    up_and_down
    aligned_blocks_far_apart
}
