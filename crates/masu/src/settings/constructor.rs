//! Options that a program sets when it is built: the `const` functions of [`Masu`].
//!
//! It relies on the table, each row of which becomes a function. There may be several [`Masu`] in a
//! program, but one heap: what the first that is used has chosen holds, unless the environment
//! says otherwise.

use core::hint;

use super::rule::accepts;
use super::table::{BYTES_MAX, MILLISECONDS_MAX};
use super::{COUNT, Index, SOURCES, Source, UNSET};
use crate::Masu;
use crate::platform::sync::{AtomicBool, Ordering};

/// Whether anyone allocated by a `Layout`, and so applied what was chosen.
static APPLIED: AtomicBool = AtomicBool::new(false);

/// Whether this program allocates by Rust's layouts.
pub(crate) fn layouts_are_used() -> bool {
    // ORDERING: Relaxed: the thread that asks set it itself where its own blocks are concerned.
    APPLIED.load(Ordering::Relaxed)
}

/// The options that a program chose when it was built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen([usize; COUNT]);

impl Chosen {
    /// None of them.
    pub(crate) const NONE: Chosen = Chosen([UNSET; COUNT]);

    const fn with(mut self, index: Index, value: usize) -> Chosen {
        self.0[index as usize] = value;
        self
    }

    /// Has these hold from now on, unless others did already.
    #[inline]
    pub(crate) fn apply(&self) {
        // ORDERING: Relaxed: a thread that begins waits in `settle` for the lock under which this was set.
        if !APPLIED.load(Ordering::Relaxed) {
            self.hold();
        }
    }

    #[cold]
    #[inline(never)]
    fn hold(&self) {
        let mut sources = SOURCES.lock();
        // ORDERING: Relaxed, as above; of those that come here the lock lets one through.
        if APPLIED.swap(true, Ordering::Relaxed) {
            return;
        }
        // A length that is not known beforehand: unrolled, this is eight times as long.
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
