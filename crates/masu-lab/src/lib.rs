//! The lab: variants, runs, measures and statistics, as a library without a terminal.
//!
//! The road through it, in the order the modules are used:
//!
//! 1. [`catalogue`] finds the allocators of this machine;
//! 2. [`program`] looks the command up and says whether an allocator can be preloaded into it;
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
#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("masu-lab reads /proc and preloads libraries: it works on Linux only");

pub mod calls;
pub mod catalogue;
pub mod compare;
mod count;
pub mod diagnose;
pub mod doctor;
mod error;
pub mod execute;
mod executor;
pub mod experiment;
pub mod heap;
mod hooks;
mod kernel;
pub mod launch;
pub mod load;
mod machine;
mod named;
mod order;
pub mod page;
mod parameter;
pub mod plan;
pub mod prices;
pub mod process;
mod program;
pub mod prove;
mod quantity;
mod random;
mod redact;
pub mod report;
pub mod results;
mod row;
mod scatter;
mod scratch;
pub mod server;
pub mod statistics;
mod stop;
pub mod suite;
pub mod summary;
pub mod tables;
pub mod terminal;
mod trace;
pub mod tune;
pub mod variant;
pub mod verify;
mod workload;

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
