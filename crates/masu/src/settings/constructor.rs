//! Options that a program sets when it is built, by the functions of [`Masu`](crate::Masu).
//!
//! A program may have several `Masu` values but has one heap: the first value that is used decides, and the environment
//! overrides it.

use core::hint;

use super::{COUNT, Index, SOURCES, Source, UNSET};
use crate::platform::sync::{AtomicBool, Ordering};

/// Whether a [`Masu`](crate::Masu) was used, and so its options applied.
static APPLIED: AtomicBool = AtomicBool::new(false);

/// Whether this program allocates by Rust's layouts.
pub(crate) fn layouts_are_used() -> bool {
    // ORDERING: Relaxed: a thread that allocates by a layout has set the flag itself.
    APPLIED.load(Ordering::Relaxed)
}

/// The options that a program was built with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildOptions([usize; COUNT]);

impl BuildOptions {
    /// No option set.
    pub(crate) const NONE: BuildOptions = BuildOptions([UNSET; COUNT]);

    /// These options, and `value` for the option at `index`.
    pub(crate) const fn with(mut self, index: Index, value: usize) -> BuildOptions {
        self.0[index as usize] = value;
        self
    }

    /// Applies these options, unless those of another [`Masu`] were.
    #[inline]
    pub(crate) fn apply(&self) {
        // ORDERING: Relaxed: a thread that starts waits in `read_once` for the lock under which this was set.
        if !APPLIED.load(Ordering::Relaxed) {
            self.apply_slow();
        }
    }

    #[cold]
    #[inline(never)]
    fn apply_slow(&self) {
        let mut sources = SOURCES.lock();
        // ORDERING: Relaxed, as above; the lock lets one thread through.
        if APPLIED.swap(true, Ordering::Relaxed) {
            return;
        }
        // `black_box` hides the length: the unrolled loop is eight times as long.
        for (place, value) in hint::black_box(&self.0[..]).iter().enumerate() {
            if *value != UNSET {
                sources.put(place, *value, Source::Built);
            }
        }
    }
}
