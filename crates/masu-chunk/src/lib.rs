//! Chunks of data through a function, on all cores.
//!
//! ```
//! use masu_chunk::Executor;
//!
//! let data: Vec<i64> = (1..=1_000_000).collect();
//! let sums = Executor::new().chunk(100).slice(&data).map(|chunk| chunk.iter().sum::<i64>())?;
//! assert_eq!(sums.value.len(), 10_000);
//! assert_eq!(sums.value.iter().sum::<i64>(), 500_000_500_000);
//! # Ok::<(), masu_chunk::Failure<std::convert::Infallible>>(())
//! ```
//!
//! [`join`] runs two functions, which may fork again. [`background`] awaits a job in asynchronous code.
//!
//! The data may be a slice (borrowed, or changed in place), an owned vector, a range of numbers, an
//! iterator, or a reader cut into blocks or whole records. The results may be collected, combined, or
//! taken one by one; in order or as they come. Any error in a chunk is returned as a [`Failure`] with
//! the chunk's [`Place`], and the rest stops.
//!
//! Relies on the standard library, on one system call of Linux where there is one, and with the
//! feature `timely` on the crate of that name, for jobs of several processes in `cluster`. The one hard
//! idea, chunks that cost nothing and are shared all the same, is in `indexed.rs`, `batch.rs` and
//! `idle.rs`; that of streams is in `window.rs`.

// The layers, bottom up: a module imports from its own layer and those above it in this list.

// The system, and the reports of a job.
mod control;
mod failure;
mod kernel;
mod limit;
mod owned;
mod place;
mod statistics;
mod sync;

// Sharing of chunks.
mod alone;
mod batch;
mod idle;
mod pace;
mod pool;
mod spans;
mod tasks;
#[cfg(test)]
mod uneven;
mod window;

// The settings, and the engines: data at hand, data that comes, and functions that fork.
mod executor;
mod fork;
mod indexed;
mod stream;

// Data and jobs.
mod reader;
mod source;

mod items;

mod background;
mod job;

#[cfg(feature = "timely")]
pub mod cluster;

pub use background::{Background, background};
pub use control::{Cancel, Progress};
pub use executor::Executor;
pub use failure::{Cause, Failure};
pub use fork::join;
pub use items::Zip;
pub use job::{Finished, Job};
pub use owned::Owned;
pub use place::{Chunk, Place};
pub use reader::{Block, Blocks, Items, Records};
pub use source::{At, Numbers, Slice, SliceMut, Source, Stream, Vector};
pub use statistics::{Statistics, Worker};

use std::convert::Infallible;

/// Puts a vector through a function, chunk by chunk, and returns the results in order: the whole
/// library in one call.
///
/// ```
/// let data: Vec<i64> = (1..=1000).collect();
/// let sums = masu_chunk::execute(|chunk| chunk.iter().sum::<i64>(), data, 100, 4)?;
/// assert_eq!(sums[0], 5050);
/// # Ok::<(), masu_chunk::Failure<std::convert::Infallible>>(())
/// ```
///
/// # Errors
///
/// The first chunk that panicked.
pub fn execute<T: Send, R: Send>(
    function: impl for<'c> Fn(Chunk<Owned<'c, T>>) -> R + Sync,
    data: Vec<T>,
    chunk: usize,
    workers: usize,
) -> Result<Vec<R>, Failure<Infallible>> {
    let executor = Executor::new().chunk(chunk).workers(workers);
    Ok(executor.vec(data).map(function)?.value)
}
