//! masu-code: a code arena. Relocatable ELF objects are loaded densely into one range near the
//! program, seen by debuggers and profilers, and unloaded safely while threads run.
//!
//! For JITs that compile each method with a C compiler, and for plug-ins. Linux, x86-64 and
//! aarch64.
//!
//! The crate does not support 32-bit code, or systems other than Linux with ELF. No page is ever writable and
//! executable at once.

// The layers, bottom up: a module imports from its own layer and those above it in this list.

// The system, and the options.
mod error;
mod kernel;
mod options;
mod process;

// Threads, and the time from which on code may be freed.
mod exit;
mod outside;
mod quiescence;
mod storage;
mod sync;

// Addresses, and the values that relocations store there.
mod memory;
mod relocation;
mod slots;
mod space;

// Object files.
mod archive;
mod object;
mod source;

// The tools, and the loaded objects.
mod debugger;
mod evict;
mod perf;
mod relink;
mod state;
mod unwind;

// A batch becomes memory.
mod link;

mod arena;

pub use archive::Archive;
pub use arena::{Arena, Entry, Function, Handle, InPlace, Memory, Report, Usage};
pub use error::{Error, Site};
pub use evict::{Method, evict};
pub use options::{Options, Place, Resolver, Tools, Writing};
pub use quiescence::Reader;
pub use relink::{Library, relink};
pub use source::Source;
