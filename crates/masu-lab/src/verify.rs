//! Proof that a preload took effect: mapped into the program, and seen to serve an allocation.

use serde::{Deserialize, Serialize};

/// What the traced warm-up run of a variant showed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Processes whose allocations the variant served, by name and pid.
    pub served: Vec<String>,
    /// Processes that had the library mapped but never asked any malloc for memory.
    pub idle: Vec<String>,
    /// Processes the variant did not serve, each with the reason.
    pub not_served: Vec<String>,
    /// What the reader should know about how this was found out.
    pub notes: Vec<String>,
}
