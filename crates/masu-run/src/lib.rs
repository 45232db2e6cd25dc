//! Programs, mallocs and runs: the parts of the lab below all comparisons and judgements.
//!
//! The modules are in layers, bottom up: imports only go down, which `cargo xtask tidy` checks.
//!
//! 1. [`catalogue`] finds the allocators of this machine;
//! 2. `program` looks a command up and says whether an allocator can be preloaded into it;
//! 3. [`variant`] turns `glibc:top_pad=64M` into an allocator with settings, ready to run;
//! 4. [`mod@launch`] becomes the program under one variant (`masu run`), or
//! 5. [`execute`] runs and times it, [`verify`] proves in a traced run that the preload took effect, [`calls`] counts
//!    its system calls, and [`prices`] has the cost of such a call.
//!
//! The crate prints nothing, and only [`Stop`] touches signal handlers, when asked to.
#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "the public items are for this workspace alone: their names say what they are, and their errors, \
              which end on a page or a terminal, say what was wrong and with which input"
)]
#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("masu-run reads /proc and preloads libraries: it works on Linux only");

// The base of all other modules.
pub mod error;
pub mod kernel;
pub mod mapping;
pub mod named;
pub mod once;
pub mod proc_files;
pub mod quantity;
pub mod random;

// Programs, variants and this machine.
pub mod launch;
pub mod machine;
pub mod parameter;
pub mod process;
pub mod program;
mod row;
mod scatter;
mod stop;
pub mod terminal;
pub mod variant;
pub mod workload;

// One run, timed or traced.
pub mod calls;
pub mod catalogue;
pub mod count;
pub mod execute;
pub mod executor;
pub mod hooks;
pub mod prices;
pub mod scratch;
mod trace;
pub mod verify;

pub use calls::{Call, Calls};
pub use catalogue::{Allocator, Catalogue, Places};
pub use count::{CountPage, Totals};
pub use error::Error;
pub use execute::{Ending, Limits, Output, Run};
pub use hooks::Hooks;
pub use launch::launch;
pub use machine::Machine;
pub use parameter::Parameter;
pub use prices::Prices;
pub use program::{Libc, Program};
pub use row::Row;
pub use scatter::Scatter;
pub use scratch::{Scratch, ScratchFolder};
pub use stop::Stop;
pub use variant::{Spec, Variant};
pub use verify::Evidence;
pub use workload::{Input, Workload};
