//! The parameters of one run.

use std::path::PathBuf;

pub struct Work {
    pub threads: usize,
    pub size: usize,
    pub rounds: usize,
    /// Present only if libraries are loaded.
    pub libraries: Option<PathBuf>,
}
