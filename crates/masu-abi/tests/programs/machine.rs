//! Settings of the whole machine that a test may change, and the lock that keeps the other tests
//! still in that time.
//!
//! Relies on a lock file in the folder for temporary files, so that it holds between threads of one test program and
//! between programs alike. Everyone who needs the settings as they are holds the lock shared, a thread that changes
//! them holds it alone, and a guard puts the setting back when the test ends, also by a panic.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Whether the kernel backs memory with huge pages unasked: one word of a list is in brackets.
const TRANSPARENT_HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct Unchanged(#[expect(dead_code, reason = "closing it releases the lock")] File);

/// Keeps the machine's settings as they are while the result lives.
pub(crate) fn unchanged() -> Unchanged {
    let file = lock_file();
    file.lock_shared().expect("lock the machine's settings");
    Unchanged(file)
}

fn lock_file() -> File {
    let path = env::temp_dir().join("masu-machine-settings.lock");
    File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()))
}

/// The machine with another policy for transparent huge pages, until it is dropped.
#[derive(Debug)]
pub(crate) struct HugePages {
    before: String,
    _alone: File,
}

impl HugePages {
    /// Sets the policy `policy`; `None`, said on stderr, where this machine does not let us.
    pub(crate) fn set(policy: &str) -> Option<HugePages> {
        let alone = lock_file();
        alone.lock().expect("lock the machine's settings");
        let path = Path::new(TRANSPARENT_HUGE_PAGES);
        let before = fs::read_to_string(path).and_then(|list| chosen(&list));
        let set = before.and_then(|before| fs::write(path, policy).map(|()| before));
        match set {
            Ok(before) => Some(HugePages { before, _alone: alone }),
            Err(error) => {
                eprintln!("not shown: {TRANSPARENT_HUGE_PAGES} cannot be set (root can): {error}");
                None
            }
        }
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Err(error) = fs::write(TRANSPARENT_HUGE_PAGES, &self.before) {
            eprintln!("write {} to {TRANSPARENT_HUGE_PAGES} by hand: {error}", self.before);
        }
    }
}

/// The word in brackets.
fn chosen(list: &str) -> io::Result<String> {
    list.split_ascii_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .map(str::to_owned)
        .ok_or_else(|| io::Error::other(format!("no choice in `{list}`")))
}
