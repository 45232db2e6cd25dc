//! Everything that can go wrong in the lab, in one enum whose messages name the input, its fault and the remedy.

use std::io;
use std::path::PathBuf;

/// An error; the message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variant's text could not be understood, or asks for what this version cannot do.
    #[error("variant `{variant}`: {reason}")]
    Variant { variant: String, reason: String },
    #[error("no allocator `{name}` here; found: {known} (a path to a library works too)")]
    UnknownAllocator {
        name: String,
        /// The names that would have been understood, separated by commas.
        known: String,
    },
    /// A library that cannot be preloaded as a malloc.
    #[error("{}: {reason}", path.display())]
    Library { path: PathBuf, reason: String },
    /// A file that is no heap profile, or cannot be read.
    #[error("{}: {reason}", path.display())]
    HeapProfile { path: PathBuf, reason: String },
    /// The command could not be looked up or cannot be run on this machine.
    #[error("{command}: {reason}")]
    Program { command: String, reason: String },
    /// The system lets nothing be traced.
    #[error(
        "{command}: cannot be traced: ptrace is forbidden here; allow it (in a container --cap-add SYS_PTRACE, or a \
         seccomp profile that has ptrace)"
    )]
    NotTraced { command: String },
    /// The program runs, but no other malloc can be put under it.
    #[error("{}: no malloc can be preloaded: {reason}", program.display())]
    NoPreload { program: PathBuf, reason: String },
    /// The warm-up run showed that the variant's library did not do its work.
    #[error("variant `{variant}` did not take effect: {reason}")]
    NotInEffect {
        variant: String,
        /// The process that was not served, and the reason.
        reason: String,
    },
    /// The program does not run under the variant: it crashes, hangs or runs away where it does not
    /// under the reference, or the variant crashes under any program.
    #[error("variant `{variant}` cannot run this program: {reason}")]
    CannotRun {
        variant: String,
        /// The ending, the other mallocs under which the program ends in the same way, and a remedy.
        reason: String,
    },
    /// The warm-up run of a variant failed, so there is nothing to compare.
    #[error("the warm-up run under `{variant}` {reason}")]
    WarmUp { variant: String, reason: String },
    #[error("parameter `{parameter}`: {reason}")]
    Parameter { parameter: String, reason: String },
    #[error("{}, line {line}: {reason}", path.display())]
    Suite {
        path: PathBuf,
        /// The line counted from one.
        line: usize,
        reason: String,
    },
    /// A comparison that cannot go on where it was cut off.
    #[error("cannot resume {}: {reason}", path.display())]
    Resume {
        path: PathBuf,
        /// The first difference from the earlier comparison, and a remedy.
        reason: String,
    },
    /// A server that does not start, does not get ready, or ends before its time.
    #[error("the server under `{variant}` {reason}")]
    Server {
        variant: String,
        /// The failure, the server's last words, and a remedy.
        reason: String,
    },
    /// A load that cannot be made, or that failed.
    #[error("load `{load}`: {reason}")]
    Load { load: String, reason: String },
    /// A shell command of the user's around the runs failed.
    #[error("the {hook} command `{command}` failed: {reason}; run it by itself to see why")]
    Hook {
        /// The hook's name: `setup`, `prepare` or `cleanup`.
        hook: &'static str,
        command: String,
        /// The hook's ending and its last words.
        reason: String,
    },
    /// The start folder of the runs could not be made or removed.
    #[error("scratch folder {}: {reason}", path.display())]
    Scratch { path: PathBuf, reason: String },
    /// Something that cannot be made as asked.
    #[error("{0}")]
    Request(String),
    #[error("{}, line {line}: {reason}", path.display())]
    Results { path: PathBuf, line: usize, reason: String },
    /// A process that cannot be looked into, or tells nothing.
    #[error("process {pid}: {reason}")]
    Process { pid: u32, reason: String },
    /// A process that is not there, or no longer.
    #[error("process {pid} has ended, or never was")]
    Ended { pid: u32 },
    /// Stopped by [`Stop`](crate::Stop) before there was anything to return.
    #[error("stopped before anything was measured")]
    Stopped,
    /// The operating system refused something.
    #[error("{doing}: {source}")]
    System {
        /// The lab's action, with the file or program it was for.
        doing: String,
        source: io::Error,
    },
}

/// Adds the lab's action to a system error.
pub trait Doing<T> {
    /// Turns an [`io::Error`] into [`Error::System`]; `doing` is called only then.
    fn doing<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T, Error> {
        self.map_err(|source| Error::System { doing: doing().into(), source })
    }
}
