//! The `libmasu.so` that travels inside `masu`: one for programs on glibc, one for musl.
//!
//! Relies on the build script, which leaves both files in `OUT_DIR`; an empty file is one that
//! could not be built, and the build script's reason is kept to be told. The dynamic linker only
//! loads from files, so the bytes are laid into a folder first: see [`extract`].

mod extract;
mod place;

use std::path::PathBuf;

use anyhow::{Result, bail};

use self::place::Surroundings;

/// The C library a program runs on, and so the `libmasu.so` that fits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Libc {
    Glibc,
    Musl,
}

impl Libc {
    /// The library's bytes; empty where it was not built.
    fn library(self) -> &'static [u8] {
        match self {
            Self::Glibc => include_bytes!(concat!(env!("OUT_DIR"), "/libmasu-glibc.so")),
            Self::Musl => include_bytes!(concat!(env!("OUT_DIR"), "/libmasu-musl.so")),
        }
    }

    /// Why the library was not built; empty where it was.
    fn absence(self) -> &'static str {
        match self {
            Self::Glibc => env!("LIBMASU_GLIBC_ABSENT"),
            Self::Musl => env!("LIBMASU_MUSL_ABSENT"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Musl => "musl",
        }
    }
}

/// Lays the library for programs on `libc` into a private folder and returns its path, fit for
/// `LD_PRELOAD`.
///
/// # Errors
///
/// This `masu` was built without it, or no folder is fit to hold it.
pub(crate) fn lay_out(libc: Libc) -> Result<PathBuf> {
    let library = libc.library();
    if library.is_empty() {
        bail!("this masu carries no libmasu.so for {} programs: {}", libc.name(), libc.absence());
    }
    let name = format!("libmasu-{}-{:016x}.so", libc.name(), fingerprint(library));
    extract::extract(library, &name, &place::candidates(&Surroundings::of_this_process()))
}

/// FNV-1a over `bytes`: names the content so that two versions of masu keep two files. It proves
/// nothing; extraction compares the bytes themselves.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
