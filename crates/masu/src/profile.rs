//! The heap profile: a sample of the blocks that a program allocates, with the call stacks that allocated them.
//!
//! Bytes are sampled, so the chance of a block grows with its size; the figures written are estimates of the whole. While
//! no profile is taken, nothing is counted.
//!
//! A Rust program needs the feature `profile`.
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
//! It does no analysis: symbols, sums by function and pictures are made by the reader of the file (`masu heap`).

use crate::diagnostics::sampling;
pub use crate::diagnostics::sampling::{INTERVAL_BYTES, Refusal, own_bytes, stop, write};
use crate::threads::{cache, thread};

/// Starts an empty profile: one byte in `interval_bytes` is sampled on average, and with it its block. `None` takes the
/// option `profile_interval`, by default [`INTERVAL_BYTES`]. Allocations through C's malloc family count at once in all
/// threads. Allocations by a Rust `Layout` count at once in this thread; in another thread they count as soon as its
/// stack of some size class next runs empty or full, so after some dozens of blocks.
///
/// ```
/// # if !cfg!(feature = "profile") { return Ok(()) }
/// masu::profile::start(Some(64 << 10))?; // a sample each 64 KiB
/// masu::profile::stop();
/// # Ok::<(), masu::profile::Refusal>(())
/// ```
///
/// # Errors
///
/// If a profile is being taken, the interval is 0, there is no memory, the program has more rights than the user
/// who started it, or was built without the feature `profile`.
pub fn start(interval_bytes: Option<usize>) -> Result<(), Refusal> {
    if !sampling::IS_BUILT_IN {
        return Err(Refusal::Feature);
    }
    // Before any lock is taken: this may be the first call into masu, and a variable may start a profile.
    thread::read_options_once();
    // With a cache of its own, this thread is counted at once.
    let _ = thread::cache();
    cache::all::start_profile(interval_bytes)
}

/// The interval in bytes of the profile that is being taken; `None` where no profile is being taken.
///
/// ```
/// # if !cfg!(feature = "profile") { return Ok(()) }
/// assert_eq!(masu::profile::interval(), None);
/// masu::profile::start(Some(4096))?;
/// assert_eq!(masu::profile::interval(), Some(4096));
/// # Ok::<(), masu::profile::Refusal>(())
/// ```
#[must_use]
pub fn interval() -> Option<usize> {
    sampling::current().map(|(interval, _)| interval)
}
