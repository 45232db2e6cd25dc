//! Errors, with the object, section, offset and symbol at fault.
//!
//! One enum for the whole library. An object's error leaves the arena unchanged: a batch is loaded
//! as a whole or not at all.

use std::fmt;
use std::io;

/// A relocation's place and what it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The object's name, as it was given to the arena.
    pub object: String,
    /// The section that is to be patched.
    pub section: String,
    /// Where in the section, in bytes.
    pub offset: u64,
    /// The relocation's type, by the ELF specification's name or by number.
    pub relocation: String,
    /// The symbol, or the section that stands for one.
    pub symbol: String,
}

impl fmt::Display for Site {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { object, section, offset, relocation, symbol } = self;
        write!(to, "{object}: {section}+{offset:#x}: {relocation} against `{symbol}`")
    }
}

/// Why a call of the arena failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no object file, or one that contradicts itself.
    #[error("{object}: not a relocatable object that can be loaded: {why}")]
    Malformed {
        /// The object's name.
        object: String,
        /// What is wrong, and where.
        why: String,
    },
    /// The object uses something that the arena does not do.
    #[error("{object}: {what}")]
    Unsupported {
        /// The object's name.
        object: String,
        /// What it uses, by name, and what to do.
        what: String,
    },
    /// A relocation of a type that is not in the CPU's table.
    #[error("{0}: this type of relocation is not supported")]
    Relocation(Box<Site>),
    /// A symbol without a definition.
    #[error(
        "{0}: undefined: neither a loaded object nor the process (as `dlsym` sees it) nor the \
         resolver has it"
    )]
    Undefined(Box<Site>),
    /// What a relocation computes does not fit its field.
    #[error("{site}: out of range: {value:#x} does not fit{remedy}")]
    OutOfRange {
        /// Where.
        site: Box<Site>,
        /// What was to be stored, as computed.
        value: i128,
        /// What to do, where that is known.
        remedy: &'static str,
    },
    /// A relocation refers to a section that was dropped because another object has the same COMDAT
    /// group.
    #[error("{0}: it lies in a discarded COMDAT section")]
    Discarded(Box<Site>),
    /// Thread-local storage that cannot be reached in the way the code wants to.
    #[error("{site}: {why}")]
    ThreadLocal {
        /// Where.
        site: Box<Site>,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// Two objects define the same symbol.
    #[error(
        "{object}: `{symbol}` is defined by {earlier} already; load it as private, or unload that one"
    )]
    Duplicate {
        /// The later object.
        object: String,
        /// The symbol.
        symbol: String,
        /// The object that has it.
        earlier: String,
    },
    /// No such symbol in an object.
    #[error("{object}: it defines no symbol `{symbol}`")]
    NoSymbol {
        /// The object.
        object: String,
        /// The request.
        symbol: String,
    },
    /// The handle's object is no longer loaded.
    #[error("no object is loaded under this handle: it was unloaded, or is another arena's")]
    NoObject,
    /// An entry of this name exists, or none does.
    #[error("entry `{name}`: {why}")]
    Entry {
        /// Its name.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The arena's range has no room.
    #[error(
        "the arena is full: {wanted} bytes of {region} wanted, {free} free, {largest} of them in \
         one piece; unload something, or open it with a larger size"
    )]
    Full {
        /// `text`, `read-only data` or `writable data`.
        region: &'static str,
        /// Bytes requested.
        wanted: usize,
        /// Bytes that are free.
        free: usize,
        /// Bytes of the largest free piece.
        largest: usize,
    },
    /// This process was forked from the one that opened the arena, and both see the same code.
    #[error("the arena belongs to the process that opened it: a forked child must open its own")]
    Forked,
    /// Options that contradict each other or the machine.
    #[error("cannot open an arena: {0}")]
    Options(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    Kernel {
        /// What was tried.
        what: String,
        /// The kernel's word.
        source: io::Error,
    },
    /// Linking or loading the library of [`crate::relink()`] failed.
    #[error("{0}")]
    Relink(String),
}

impl Error {
    pub(crate) fn kernel(what: impl Into<String>, source: io::Error) -> Error {
        Error::Kernel { what: what.into(), source }
    }

    pub(crate) fn malformed(object: &str, why: impl Into<String>) -> Error {
        Error::Malformed { object: object.to_owned(), why: why.into() }
    }
}
