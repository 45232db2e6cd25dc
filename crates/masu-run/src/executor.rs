//! The executors that the engine drives, whatever a run is: commands and servers.

use crate::once::gathered;
use crate::{Error, Evidence, Run, Stop};

/// Brings the rows of a case to run and measures them, again and again: commands that run to their end, or servers that
/// are kept warm.
pub trait Executor {
    /// Brings the row at `index` to where it can be measured and proves that its variant takes effect. The error says
    /// why it cannot be measured: it does not run, or its malloc did not serve it.
    fn warm_up(&mut self, index: usize, stop: &Stop) -> Result<(Run, Evidence), Error>;

    /// A round begins, in which each of `rows` is run once, in this order.
    fn begin_round(&mut self, _rows: &[usize]) {}

    /// Makes one timed run of the row at `index`.
    fn run(&mut self, index: usize, stop: &Stop) -> Result<Run, Error>;

    /// Ends every process that still runs, also after an error or a stop. The error names those that could not be
    /// ended.
    fn finish(&mut self) -> Result<(), Error>;

    /// Takes in the peak RSS of a run that another executor made of these rows.
    fn recall(&mut self, _peak_rss_bytes: u64) {}

    /// Remarks besides the runs, when everything has ended.
    fn remarks(&self) -> Remarks {
        Remarks::default()
    }

    /// True if the program that [`warm_up`](Self::warm_up) started must still be there for a timed run.
    fn is_kept_warm(&self) -> bool {
        false
    }
}

/// The remarks of an executor about its variants.
#[derive(Debug, Default)]
pub struct Remarks {
    /// Facts that the reader must know before trusting the verdicts, each with advice.
    pub warnings: Vec<String>,
    /// Other facts.
    pub notes: Vec<String>,
}

/// Each of `said`, remarks with the labels of their variants, once: the remark, and all its labels (`masu, jemalloc`).
pub fn once_each<'a>(said: impl Iterator<Item = (&'a str, String)>) -> Vec<(String, String)> {
    let all = gathered(said.map(|(label, remark)| (remark, label))).into_iter();
    all.map(|(remark, labels)| (remark, labels.join(", "))).collect()
}
