//! masu-code: a code arena. Relocatable ELF objects are loaded densely into one range near the
//! program, seen by debuggers and profilers, and unloaded safely while threads run.
//!
//! For JITs that compile each method with a C compiler, and for plug-ins. Linux, x86-64 and
//! aarch64. The rooms, bottom up, each using only those below: `kernel` and `process` (what is
//! around), `sync` and `quiescence` (when code may go), `memory`, `space`, `slots` (where things
//! lie), `relocation` and `object` (what a file says), `unwind`, `debugger`, `perf` (the tools),
//! `state` (the books), `link` (a batch becomes memory), `arena` (what users see).
//!
//! What it does not do: thread-local variables that an object defines, IFUNCs, 32-bit code,
//! portability beyond ELF on Linux. No page is ever writable and executable at once.

mod arena;
mod debugger;
mod error;
mod evict;
mod kernel;
mod link;
mod memory;
mod object;
mod options;
mod perf;
mod process;
mod quiescence;
mod relink;
mod relocation;
mod slots;
mod source;
mod space;
mod state;
mod sync;
mod unwind;

pub use arena::{Arena, Entry, Function, Handle, Report, Usage};
pub use error::{Error, Site};
pub use evict::{Method, evict};
pub use options::{Options, Place, Resolver, Tools, Writing};
pub use quiescence::Reader;
pub use relink::{Library, relink};
pub use source::Source;
