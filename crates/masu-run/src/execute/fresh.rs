//! Fresh memory that costs every run the same.
//!
//! The host of a virtual machine may take back memory that was free for some seconds, and clears it again at the next
//! touch: the program then takes several times as long. The kernel hands out the memory first that was freed last, so
//! as much memory as a run needs is touched and freed just before it.

use crate::error::Doing;
use crate::{Error, kernel, machine};

const TOUCHED_MAX: u64 = 4 << 30;
/// The most that is touched, as a divisor of the available memory.
const AVAILABLE_SHARE: u64 = 4;

#[derive(Debug)]
pub struct Fresh {
    host_takes: bool,
    most: u64,
}

impl Fresh {
    /// The state for this machine. If no host takes memory, nothing is ever touched.
    pub fn here() -> Fresh {
        Fresh { host_takes: machine::host_takes_free_memory(), most: 0 }
    }

    pub fn note(&mut self, peak_rss_bytes: u64) {
        self.most = self.most.max(peak_rss_bytes);
    }

    /// Touches as much as this many times any run so far has needed, and a quarter more.
    pub fn touch(&self, runs: usize) -> Result<(), Error> {
        let bytes = self.bytes(runs as u64, machine::memory_available().unwrap_or(0));
        if bytes == 0 {
            return Ok(());
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Another thread's run would take the child for one of its own that was left behind.
        let _alone = super::alone();
        kernel::touch_in_child(bytes).doing(|| "touching memory before a run")
    }

    fn bytes(&self, runs: u64, available: u64) -> u64 {
        if !self.host_takes {
            return 0;
        }
        (self.most + self.most / 4)
            .saturating_mul(runs)
            .min(available / AVAILABLE_SHARE)
            .min(TOUCHED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_touched_as_the_largest_run_needed_and_never_most_of_the_memory() {
        let mut fresh = Fresh { host_takes: true, most: 0 };
        assert_eq!(fresh.bytes(1, 1 << 30), 0);
        fresh.note(400);
        fresh.note(100);
        assert_eq!(fresh.bytes(1, 1 << 30), 500);
        assert_eq!(fresh.bytes(3, 1 << 30), 1500);
        assert_eq!(fresh.bytes(1, 1000), 250);
        fresh.most = 1 << 40;
        assert_eq!(fresh.bytes(1, 1 << 50), TOUCHED_MAX);
        assert_eq!(Fresh { host_takes: false, ..fresh }.bytes(1, 1 << 30), 0);
    }

    #[test]
    fn touching_waits_for_the_process_that_does_it() {
        Fresh { host_takes: true, most: 1 << 20 }.touch(1).unwrap();
        Fresh { host_takes: true, most: 0 }.touch(1).unwrap();
    }
}
