//! The share of memory in huge pages that holds nothing but zeros.
//!
//! Relies on `/proc/PID/smaps` for the places of huge pages, on `pagemap` for the OS pages that are there, and on the
//! memory itself. The difficulty is to leave no trace: a read of memory that is not there would make the kernel put a
//! page there, so only huge pages that are there from end to end are read. A page of zeros may be in use; a program
//! that holds many of them is rare.

use std::fs::File;
use std::os::unix::fs::FileExt;

use masu_run::execute::tree::Pid;
use masu_run::kernel;
use masu_run::mapping::Mapping;
use masu_run::proc_files;

const HUGE_PAGE: u64 = 2 << 20;

/// The most huge pages that a look reads, spread over all there are.
const READ_AT_ONCE: usize = 32;

/// The OS pages that the last look read.
#[derive(Debug, Default)]
pub(super) struct Unused {
    pages: u64,
    zeros: u64,
}

impl Unused {
    /// Reads some of a process's huge pages.
    pub(super) fn look(&mut self, process: Pid) {
        let path = |name: &str| format!("/proc/{process}/{name}");
        let smaps = proc_files::text(path("smaps")).unwrap_or_default();
        let (Ok(map), Ok(memory)) = (File::open(path("pagemap")), File::open(path("mem"))) else {
            return;
        };
        let all = huge_pages(&smaps);
        let step = (all.len() / READ_AT_ONCE).max(1);
        let os_page = kernel::os_page_bytes();
        let mut content = vec![0; HUGE_PAGE as usize];
        let nothing = vec![0; os_page as usize];
        let (mut pages, mut zeros) = (0, 0);
        for &at in all.iter().step_by(step).take(READ_AT_ONCE) {
            if !is_there(&map, at, os_page) || memory.read_exact_at(&mut content, at).is_err() {
                continue;
            }
            for page in content.chunks_exact(os_page as usize) {
                pages += 1;
                zeros += u64::from(page == nothing);
            }
        }
        if pages > 0 {
            *self = Unused { pages, zeros };
        }
    }

    /// The share of OS pages that held nothing but zeros; none if no page was read.
    pub(super) fn share(&self) -> Option<f64> {
        (self.pages > 0).then(|| self.zeros as f64 / self.pages as f64)
    }
}

/// Addresses that may be those of huge pages: the aligned ones of mappings that have some.
fn huge_pages(smaps: &str) -> Vec<u64> {
    let mut found = Vec::new();
    let mut range = 0..0;
    for line in smaps.lines() {
        if let Some(Mapping { start, end, .. }) = Mapping::read(line) {
            range = start..end;
        } else if let Some(size) = line.strip_prefix("AnonHugePages:")
            && !size.trim().starts_with("0 ")
        {
            let first = range.start.next_multiple_of(HUGE_PAGE);
            let pages = (first..range.end).step_by(HUGE_PAGE as usize);
            found.extend(pages.filter(|at| at + HUGE_PAGE <= range.end));
        }
    }
    found
}

/// Whether every OS page of the huge page at an address is there.
fn is_there(map: &File, at: u64, os_page: u64) -> bool {
    const WORD: u64 = 8;
    const PRESENT: u64 = 1 << 63;
    let mut words = vec![0; (HUGE_PAGE / os_page * WORD) as usize];
    let read = map.read_exact_at(&mut words, at / os_page * WORD);
    read.is_ok() && words.as_chunks().0.iter().all(|word| u64::from_ne_bytes(*word) & PRESENT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_the_aligned_ones_of_mappings_that_have_some() {
        let smaps = "\
7f0000100000-7f0000700000 rw-p 00000000 00:00 0
Rss:                4096 kB
AnonHugePages:      4096 kB
7f0000800000-7f0000a00000 rw-p 00000000 00:00 0
AnonHugePages:         0 kB
";
        assert_eq!(huge_pages(smaps), [0x7f00_0020_0000, 0x7f00_0040_0000]);
    }

    #[test]
    fn a_process_that_is_gone_has_none() {
        let mut unused = Unused::default();
        unused.look(Pid::MAX);
        assert_eq!(unused.share(), None);
    }
}
