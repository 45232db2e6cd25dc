//! [`Masu`], the allocator as a program's `#[global_allocator]`, and the options that a program is built with.
//!
//! On Linux, x86-64 and aarch64, every request goes to masu's heap (`global/linux.rs`), elsewhere to the system's allocator
//! (`global/elsewhere.rs`). The type and its functions are the same on all of them.

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[macro_use]
mod elsewhere;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use elsewhere::options;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
use elsewhere::{BYTES_MAX, BuildOptions, Index, MILLISECONDS_MAX};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use crate::settings::{BYTES_MAX, BuildOptions, Index, MILLISECONDS_MAX};

/// The allocator, to be a program's `#[global_allocator]`.
///
/// A program may have several values of this type; they share one heap, and the options of the first value that
/// allocates hold.
///
/// ```
/// #[global_allocator]
/// static GLOBAL: masu::Masu = masu::Masu::new().cache_size(128 << 10).huge_pages(false);
/// # let one = Box::new(1);
/// # assert_eq!(*one, 1);
/// ```
///
/// # Other systems
///
/// On another operating system than Linux, and on other CPUs than x86-64 and aarch64, `Masu` hands every request to
/// [`std::alloc::System`] and its options have no effect, so a program for several systems can name it without conditions.
/// [`Masu::IS_NATIVE`] says which of the two holds. The rest of this crate exists only where it does.
///
/// [`std::alloc::System`]: https://doc.rust-lang.org/std/alloc/struct.System.html
#[derive(Clone, Copy, Debug)]
pub struct Masu(BuildOptions);

impl Masu {
    /// Whether requests go to masu's own heap: false where the system's allocator serves them.
    pub const IS_NATIVE: bool =
        cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

    /// The allocator with the default of every option. The functions below, one for each option, change them.
    #[must_use]
    pub const fn new() -> Masu {
        Masu(BuildOptions::NONE)
    }
}

impl Default for Masu {
    fn default() -> Masu {
        Masu::new()
    }
}

const fn is_within(least: usize, most: usize, value: usize) -> bool {
    least <= value && value <= most
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
            #[doc = concat!("By default: ", $default, ". The variable `", $variable, "` overrides this.")]
            ///
            /// # Panics
            ///
            #[doc = concat!("If the argument is not ", $accepted, "; in a `static`, at compile time.")]
            #[must_use]
            pub const fn $name(self, $argument: $kind) -> Masu {
                let value = $argument as usize;
                assert!(
                    is_within($least, $most, value),
                    concat!("this option must be ", $accepted)
                );
                Masu(self.0.with(Index::$index, value))
            }
        )+}
    };
}

option_rows!(constructors);
