//! Statistics pages as a hostile or broken process may have them: this one, which is its own victim.
//!
//! It relies on the kernel's files in memory, which it makes and maps as masu does. Whatever they
//! hold, a reader gets an answer within the time that is given to a page that is being written.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use masu_run::Error;
use masu_run::process::Observer;
use masu_run::process::page::PAGE_BYTES;
use rustix::fs::MemfdFlags;

const NAME: &str = "masu-statistics";

/// A file in memory that is mapped, until this is dropped.
struct Mapped {
    file: File,
    start: *mut libc::c_void,
}

impl Mapped {
    fn holding(bytes: &[u8]) -> Mapped {
        let descriptor = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC).unwrap();
        let file = File::from(descriptor);
        file.set_len(PAGE_BYTES as u64).unwrap();
        // SAFETY: A new mapping that replaces nothing; nobody reads through it.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                PAGE_BYTES,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        file.write_all_at(bytes, 0).unwrap();
        Mapped { file, start }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: The mapping was made here and nothing refers to it.
        unsafe { libc::munmap(self.start, PAGE_BYTES) };
    }
}

/// A page that this process might have written.
fn page() -> Vec<u8> {
    let mut words = vec![0_u64; PAGE_BYTES / 8];
    words[0] = u64::from_ne_bytes(*b"masustat");
    words[1..12].copy_from_slice(&[
        1,
        0,
        2,
        u64::from(std::process::id()),
        0,
        0,
        28,
        80,
        12,
        1,
        14,
    ]);
    words[16] = 4711;
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The result of observing this process; its pages take turns.
fn look(bytes: &[u8], beside: impl FnOnce(&File) + Send) -> Result<u64, Error> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mapped = Mapped::holding(bytes);
    let file = &mapped.file;
    thread::scope(|scope| {
        scope.spawn(move || beside(file));
        let seen = Observer::new(std::process::id())?.observe()?;
        // The JSON form must be possible too.
        assert!(serde_json::to_string(&seen).unwrap().contains("\"schema\":\"masu-top\""));
        Ok(seen.total.live_bytes)
    })
}

/// Checks that nothing of this is believed, with a reason.
fn is_refused(bytes: &[u8], word: &str) {
    let message = look(bytes, |_| {}).unwrap_err().to_string();
    assert!(message.contains(word), "{message}");
}

#[test]
fn a_page_is_read() {
    assert_eq!(look(&page(), |_| {}).unwrap(), 4711);
}

#[test]
fn what_is_no_page_is_refused_with_a_reason() {
    is_refused(&[], "none");
    is_refused(&[0xff; 4096], "none");
    is_refused(&[b'x'; PAGE_BYTES], "none");
    let with = |place: usize, value: u64| {
        let mut bytes = page();
        bytes[place * 8..][..8].copy_from_slice(&value.to_ne_bytes());
        bytes
    };
    is_refused(&with(1, 99), "version 99");
    is_refused(&with(3, 7), "never complete");
    is_refused(&with(4, 1 << 40), "parent's");
}

#[test]
fn a_page_that_is_cut_off_is_refused() {
    for length in [0, 1, 8, 100, PAGE_BYTES as u64 - 1] {
        let outcome = look(&page(), |file| file.set_len(length).unwrap());
        // The page may have been read before it was cut.
        assert!(
            outcome.as_ref().is_ok_and(|live| *live == 4711) || outcome.is_err(),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_page_that_never_rests_is_given_up() {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let outcome = look(&page(), |file| {
                let mut sequence = 2_u64;
                while !done.load(Ordering::Relaxed) {
                    sequence += 2;
                    file.write_all_at(&sequence.to_ne_bytes(), 24).unwrap();
                }
            });
            outcome.is_ok() || outcome.is_err()
        });
        // Looking ends by itself; the writer learns it only after a time in which it has to.
        thread::sleep(std::time::Duration::from_millis(300));
        done.store(true, Ordering::Relaxed);
        assert!(looking.join().unwrap());
    });
}
