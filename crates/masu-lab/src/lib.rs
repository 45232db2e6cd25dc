//! The lab: variants, runs, measures and statistics, as a library without a terminal.
//!
//! The modules are in layers, bottom up: imports only go down, which `cargo xtask tidy` checks.
//!
//! The crate `masu-run` finds mallocs and runs programs under them; its interface is a part of this one. With it
//! [`mod@compare`] runs a program many times: [`verify`] proves in a traced warm-up that each preload took effect,
//! [`execute`] makes the timed runs, [`statistics`] says which differences are real, [`results`] keeps everything,
//! [`report`] shows it.
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
#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "the public items are for this workspace alone: their names say what they are, and their errors, \
              which end on a page or a terminal, say what was wrong and with which input"
)]
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("masu-lab reads /proc and preloads libraries: it works on Linux only");

// Judgement.
mod order;
mod redact;
pub mod results;
pub mod statistics;
pub mod summary;
pub mod tables;
mod written;

// Comparisons.
pub mod compare;
pub mod load;
pub mod plan;
pub mod server;
pub mod suite;

// The cause of a slow program, and the remedies.
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

pub use compare::{Comparison, Event, Options as CompareOptions, Until, compare};
pub use diagnose::{Diagnosis, diagnose};
pub use doctor::Checkup;
pub use load::{LoadPlan, Pace};
pub use masu_run::{
    Allocator, Call, Calls, Catalogue, CountPage, Ending, Error, Evidence, Hooks, Input, Libc,
    Limits, Machine, Output, Parameter, Places, Prices, Program, Row, Run, Scatter, Scratch,
    ScratchFolder, Spec, Stop, Totals, Variant, Workload, calls, catalogue, execute, launch,
    mapping, prices, process, terminal, variant, verify,
};
pub use plan::Plan;
pub use prove::{Proof, prove};
pub use redact::Redact;
pub use results::{Header, Summary};
pub use server::ServerPlan;
pub use statistics::{Measure, Verdict};
pub use suite::Suite;
pub use tune::{Tuning, tune};
