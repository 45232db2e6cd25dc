//! The failure of a job, with its place: no error of a chunk is lost.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::place::Place;
use crate::statistics::Statistics;

/// The reason why a job ended early.
///
/// The rest of the job was stopped; unfinished results were dropped.
#[derive(Debug)]
pub struct Failure<E> {
    /// The chunk; if the job was cancelled, the first that was not begun or not delivered.
    pub place: Place,
    /// The cause of the failure.
    pub cause: Cause<E>,
    /// The work done until then.
    pub statistics: Statistics,
}

/// The cause of a chunk's failure.
pub enum Cause<E> {
    /// The function, or the callback for the progress, panicked with this payload.
    Panic(Box<dyn Any + Send>),
    /// The function, or the taker of results, returned an error.
    Error(E),
    /// The chunk could not be read.
    Read(io::Error),
    /// The job was cancelled.
    Cancelled,
}

impl<E> Failure<E> {
    /// Resumes the chunk's panic; other causes are returned.
    ///
    /// # Errors
    ///
    /// The failure, if the cause is no panic.
    pub fn resume(self) -> Result<std::convert::Infallible, Self> {
        match self.cause {
            Cause::Panic(payload) => std::panic::resume_unwind(payload),
            cause => Err(Self { cause, ..self }),
        }
    }
}

/// The result of a user's function, whose panic is a cause, too.
pub(crate) fn caught<R, E>(function: impl FnOnce() -> Result<R, E>) -> Result<R, Cause<E>> {
    match catch_unwind(AssertUnwindSafe(function)) {
        Ok(returned) => returned.map_err(Cause::Error),
        Err(payload) => Err(Cause::Panic(payload)),
    }
}

impl<E> Cause<E> {
    /// The message of a panic, if it has one.
    pub fn panic_message(&self) -> Option<&str> {
        let Self::Panic(payload) = self else { return None };
        let owned = payload.downcast_ref::<String>().map(String::as_str);
        owned.or_else(|| payload.downcast_ref::<&str>().copied())
    }
}

impl<E: fmt::Debug> fmt::Debug for Cause<E> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(_) => write!(to, "Panic({:?})", self.panic_message()),
            Self::Error(error) => to.debug_tuple("Error").field(error).finish(),
            Self::Read(error) => to.debug_tuple("Read").field(error).finish(),
            Self::Cancelled => to.write_str("Cancelled"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match &self.cause {
            Cause::Panic(_) => match self.cause.panic_message() {
                Some(message) => write!(to, "{place}, panicked: {message}"),
                None => write!(to, "{place}, panicked without words"),
            },
            Cause::Error(error) => write!(to, "{place}, failed: {error}"),
            Cause::Read(error) => write!(to, "{place}, cannot be read: {error}"),
            Cause::Cancelled => write!(to, "cancelled before {place}"),
        }
    }
}

impl<E: Error + 'static> Error for Failure<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Error(error) => Some(error),
            Cause::Read(error) => Some(error),
            Cause::Panic(_) | Cause::Cancelled => None,
        }
    }
}
