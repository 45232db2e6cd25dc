//! The shared parts of the chores: steps that are announced and timed, the needs of a machine, and dated records.
//!
//! Two programs use it: `xtask`, which builds in seconds, and `xtask-measure`, which links the lab.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "the callers are the two programs beside it; they print every error"
)]

// The layers, bottom up: a module imports from its own layer and those above it in this list.

pub mod links;
pub mod options;
pub mod table;

pub mod commands;

pub mod files;
pub mod machine;

pub mod benchmarks;
pub mod page_part;
pub mod registry;

pub mod records;

use std::path::Path;

use anyhow::{Context, Result};

pub fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in no workspace")
}
