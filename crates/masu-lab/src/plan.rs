//! A plan: what is to be compared, looked up on this machine and ready to run.

use crate::{Variant, Workload};

/// One row of a table: a variant and the workload with the row's parameters in it.
#[derive(Debug, Clone)]
pub struct Row {
    /// What the row is called, and its malloc.
    pub variant: Variant,
    /// What it runs.
    pub workload: Workload,
}
