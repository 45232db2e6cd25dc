//! The lab: variants, runs, measures and statistics, as a library without a terminal.
//!
//! The modules stand in layers, bottom up: imports only go down, which `cargo xtask tidy` checks.
//!
//! The road through it, in the order the modules are used:
//!
//! 1. [`catalogue`] finds the allocators of this machine;
//! 2. `program` looks the command up and says whether an allocator can be preloaded into it;
//! 3. [`variant`] turns `glibc:top_pad=64M` into an allocator with settings, ready to run;
//! 4. [`mod@launch`] becomes the program under one variant (`masu run`), or
//! 5. [`mod@compare`] runs it many times: [`verify`] proves in a traced warm-up that each preload took
//!    effect, [`execute`] makes the timed runs, [`statistics`] says which differences are real,
//!    [`results`] keeps everything, [`report`] shows it.
//!
//! The lab never links the allocators it judges: it runs processes. It prints nothing; progress
//! reaches the caller through a callback, and only [`Stop`] touches signal handlers, when asked to.
//!
//! # Example
//!
//! ```
//! use masu_lab::results::Rounds;
//! use masu_lab::{compare, Catalogue, CompareOptions, Input, Places, Plan, Stop, Workload};
//!
//! # fn main() -> Result<(), masu_lab::Error> {
//! let catalogue = Catalogue::find(&Places::default());
//! let workload = Workload::new(["sh", "-c", "echo hello"], Input::Empty)?;
//! let variants = [catalogue.resolve(&"system".parse()?, &workload.program)?];
//! let plan = Plan::single(&workload, &variants, Rounds::Fixed(2));
//! let options = CompareOptions::default();
//! let comparison = compare(&plan, &options, &Stop::never(), &mut |_event| {})?;
//! assert_eq!(comparison.tables[0].runs.len(), 2);
//! # Ok(())
//! # }
//! ```
#![expect(missing_docs, reason = "names of the command's parts need no sentence")]
#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("masu-lab reads /proc and preloads libraries: it works on Linux only");

// What everything rests on.
mod books;
mod error;
mod kernel;
pub mod mapping;
mod named;
mod quantity;
mod random;

// Programs, variants and this machine.
pub mod launch;
mod machine;
mod parameter;
pub mod process;
mod program;
mod row;
mod scatter;
mod stop;
pub mod terminal;
pub mod variant;
mod workload;

// One run, timed or traced.
pub mod calls;
pub mod catalogue;
mod count;
pub mod execute;
mod executor;
mod hooks;
pub mod prices;
mod scratch;
mod trace;
pub mod verify;

// Judgement.
mod order;
mod redact;
pub mod results;
pub mod statistics;
pub mod summary;
pub mod tables;

// Comparisons.
pub mod compare;
pub mod load;
pub mod plan;
pub mod server;
pub mod suite;

// Why a program is slow, and what helps.
pub mod diagnose;
pub mod heap;
pub mod prove;
pub mod tune;

// Pages.
pub mod page;
pub mod report;

// The machine, and field reports.
pub mod doctor;
pub mod experiment;

pub use calls::{Call, Calls};
pub use catalogue::{Allocator, Catalogue, Places};
pub use compare::{Comparison, Event, Options as CompareOptions, Until, compare};
pub use count::{CountPage, Totals};
pub use diagnose::{Diagnosis, diagnose};
pub use doctor::Checkup;
pub use error::Error;
pub use execute::{Ending, Limits, Output, Run};
pub use hooks::Hooks;
pub use launch::launch;
pub use load::{LoadPlan, Pace};
pub use machine::Machine;
pub use parameter::Parameter;
pub use plan::Plan;
pub use prices::Prices;
pub use program::{Libc, Program};
pub use prove::{Proof, prove};
pub use redact::Redact;
pub use results::{Header, Summary};
pub use row::Row;
pub use scatter::Scatter;
pub use scratch::{Scratch, ScratchFolder};
pub use server::ServerPlan;
pub use statistics::{Measure, Verdict};
pub use stop::Stop;
pub use suite::Suite;
pub use tune::{Tuning, tune};
pub use variant::{Spec, Variant};
pub use verify::Evidence;
pub use workload::{Input, Workload};
