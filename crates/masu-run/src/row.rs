//! A row of a table, looked up: the unit that is run again and again.

use crate::{Variant, Workload};

/// One row of a table: a variant and the workload with the row's parameters in it.
#[derive(Debug, Clone)]
pub struct Row {
    /// The row's label, and its malloc.
    pub variant: Variant,
    pub workload: Workload,
    /// True if the row is left out where it does not work, instead of ending everything.
    pub optional: bool,
}
