//! Errors, with the object, section, offset and symbol at fault.
//!
//! One enum for the whole library. An object's error leaves the arena unchanged: a batch is loaded
//! as a whole or not at all.

use std::fmt;
use std::io;

/// A relocation's place and its symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The object's name, as it was given to the arena.
    pub object: String,
    /// The section that is to be patched.
    pub section: String,
    /// The offset in the section, in bytes.
    pub offset: u64,
    /// The relocation's type, by the ELF specification's name or by number.
    pub relocation: String,
    /// The symbol, or the section that stands for a symbol.
    pub symbol: String,
}

impl fmt::Display for Site {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { object, section, offset, relocation, symbol } = self;
        write!(to, "{object}: {section}+{offset:#x}: {relocation} against `{symbol}`")
    }
}

/// The reason why a call of the arena failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no object file, or contradict themselves.
    #[error("{object}: not a relocatable object that can be loaded: {why}")]
    Malformed {
        /// The object's name.
        object: String,
        /// The fault, and its place.
        why: String,
    },
    /// The object uses a feature that the arena does not support.
    #[error("{object}: {what}")]
    Unsupported {
        /// The object's name.
        object: String,
        /// The feature, by name, and the remedy.
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
    /// The value that a relocation computes does not fit its field.
    #[error("{site}: out of range: {value:#x} does not fit{remedy}")]
    OutOfRange {
        /// The relocation's place.
        site: Box<Site>,
        /// The value that was to be stored, as computed.
        value: i128,
        /// The remedy, where one is known.
        remedy: &'static str,
    },
    /// A relocation refers to a section that was dropped because another object has the same COMDAT
    /// group.
    #[error("{0}: it lies in a discarded COMDAT section")]
    Discarded(Box<Site>),
    /// Thread-local storage that the code cannot reach in the way that it uses.
    #[error("{site}: {why}")]
    ThreadLocal {
        /// The relocation's place.
        site: Box<Site>,
        /// The reason, and the remedy.
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
        /// The object that has the symbol already.
        earlier: String,
    },
    /// An object has no such symbol.
    #[error("{object}: it defines no symbol `{symbol}`")]
    NoSymbol {
        /// The object.
        object: String,
        /// The requested symbol.
        symbol: String,
    },
    /// The handle's object is no longer loaded.
    #[error("no object is loaded under this handle: it was unloaded, or is another arena's")]
    NoObject,
    /// An entry of this name exists already, or no entry of this name exists.
    #[error("entry `{name}`: {why}")]
    Entry {
        /// The entry's name.
        name: String,
        /// The fault.
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
    /// This process was forked from the process that opened the arena, and both see the same code.
    #[error("the arena belongs to the process that opened it: a forked child must open its own")]
    Forked,
    /// Options that contradict each other or the machine.
    #[error("cannot open an arena: {0}")]
    Options(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    Kernel {
        /// The action that was tried.
        what: String,
        /// The kernel's error.
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
