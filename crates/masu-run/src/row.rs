//! A row of a table, looked up: the unit that is run again and again.

use crate::{Variant, Workload};

/// One row of a table: a variant and the workload with the row's parameters in it.
#[derive(Debug, Clone)]
pub struct Row {
    /// What the row is called, and its malloc.
    pub variant: Variant,
    pub workload: Workload,
    /// Whether it is left out where it does not work, instead of ending everything.
    pub optional: bool,
}
