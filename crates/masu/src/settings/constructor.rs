//! Options that a program sets at build time: the `const` functions of [`Masu`].
//!
//! Relies on the table, each row of which becomes a function. A program may have several [`Masu`], but it has one heap: the
//! options of the first that is used hold, unless the environment overrides them.

use core::hint;

use super::rule::accepts;
use super::table::{BYTES_MAX, MILLISECONDS_MAX};
use super::{COUNT, Index, SOURCES, Source, UNSET};
use crate::Masu;
use crate::platform::sync::{AtomicBool, Ordering};

/// Whether a [`Masu`] was used, and so its options applied.
static APPLIED: AtomicBool = AtomicBool::new(false);

/// Whether this program allocates by Rust's layouts.
pub(crate) fn layouts_are_used() -> bool {
    // ORDERING: Relaxed: a thread that allocates by a layout has set the flag itself.
    APPLIED.load(Ordering::Relaxed)
}

/// The options that a program was built with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen([usize; COUNT]);

impl Chosen {
    /// No option set.
    pub(crate) const NONE: Chosen = Chosen([UNSET; COUNT]);

    const fn with(mut self, index: Index, value: usize) -> Chosen {
        self.0[index as usize] = value;
        self
    }

    /// Applies these options, unless those of another [`Masu`] were.
    #[inline]
    pub(crate) fn apply(&self) {
        // ORDERING: Relaxed: a thread that starts waits in `settle` for the lock under which this was set.
        if !APPLIED.load(Ordering::Relaxed) {
            self.hold();
        }
    }

    #[cold]
    #[inline(never)]
    fn hold(&self) {
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

macro_rules! constructors {
    ($(
        $(#[doc = $meaning:literal])+
        $index:ident, $name:ident($argument:ident: $kind:ty), $variable:literal,
        $unit:ident $least:literal to $most:expr, accepts $accepted:literal,
        default $default:literal, holds $holds:literal;
    )+) => {
        /// Building an allocator with options; see `masu::options` for all of them.
        impl Masu {$(
            $(#[doc = $meaning])+
            ///
            #[doc = concat!("By default: ", $default, ". The variable `", $variable, "` counts more.")]
            ///
            /// # Panics
            ///
            #[doc = concat!("If the argument is not ", $accepted, "; in a `static`, at compile time.")]
            #[must_use]
            pub const fn $name(self, $argument: $kind) -> Masu {
                let value = $argument as usize;
                assert!(
                    accepts($least, $most, value),
                    concat!("this option must be ", $accepted)
                );
                Masu(self.0.with(Index::$index, value))
            }
        )+}
    };
}

option_rows!(constructors);
