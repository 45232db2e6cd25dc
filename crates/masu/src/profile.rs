//! The heap profile: a sample of the blocks that a program allocates, with who asked for them.
//!
//! Bytes are sampled, so a block stands in the profile with a chance that grows with its size; what is written are
//! estimates of the whole. While no profile is taken, nothing is counted.
//!
//! A Rust program has it with the feature `profile`.
//!
//! ```
//! use masu::profile;
//!
//! # if !cfg!(feature = "profile") { return Ok(()) }
//! profile::start(None)?;
//! let kept = vec![0_u8; 1 << 20];
//! # let folder = std::env::temp_dir().join(format!("masu-doc-{}.pb", std::process::id()));
//! # let path = std::ffi::CString::new(folder.to_str().unwrap()).unwrap();
//! profile::write(&path)?;
//! profile::stop();
//! # drop(kept);
//! # std::fs::remove_file(folder).unwrap();
//! # Ok::<(), profile::Refusal>(())
//! ```
//!
//! What it never does: decide what is worth looking at. Symbols, sums by function and pictures are
//! made by the reader of the file (`masu heap`).

use crate::diagnostics::sampling;
pub use crate::diagnostics::sampling::{INTERVAL_BYTES, Refusal, own_bytes, stop, write};
use crate::settings;
use crate::threads::{cache, thread};

/// Starts a profile, empty at first: one byte in `interval_bytes` is sampled on average, and with it
/// its block. `None` is what the option `profile_interval` says, [`INTERVAL_BYTES`] unless that was
/// set. What is allocated from here on is counted, by C's malloc family at once in all
/// threads; by Rust's `Layout` at once in this thread, and in each other one as soon as it next
/// finds its cache of some size empty or full, so after some dozens of blocks.
///
/// # Errors
///
/// If one is being taken already, the interval is 0, there is no memory, the program has more rights than the user
/// who started it, or was built without the feature `profile`.
pub fn start(interval_bytes: Option<usize>) -> Result<(), Refusal> {
    if !sampling::IS_BUILT_IN {
        return Err(Refusal::Feature);
    }
    // Before any lock is held: it may be the first that this program does, and a variable may start a profile.
    thread::settle();
    // This thread's requests are counted too, and at once.
    let _ = thread::cache();
    cache::all::start_profile(interval_bytes)
}

/// The interval of the profile that is being taken, in bytes; `None` where none is.
#[must_use]
pub fn interval() -> Option<usize> {
    sampling::current().map(|(interval, _)| interval)
}

/// Whether the end of a program whose profile `MASU_PROFILE` asked for is to say what lives.
#[must_use]
pub fn reports_leaks() -> bool {
    settings::profile_leaks()
}
