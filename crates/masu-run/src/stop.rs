//! Stopping early: one flag that a signal or a caller raises.
//!
//! A signal handler only sets the flag; the waits of the lab wake up every few milliseconds to see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;
use crate::error::Doing;
use crate::kernel;

/// A request to stop; clones share it.
#[derive(Debug, Clone)]
pub struct Stop(Flag);

#[derive(Debug, Clone)]
enum Flag {
    /// Raised by [`Stop::request`].
    Own(Arc<AtomicBool>),
    /// Raised by the handler of SIGINT and SIGTERM too.
    Signals(&'static AtomicBool),
}

impl Stop {
    /// A flag that only [`request`](Self::request) raises.
    pub fn never() -> Stop {
        Stop(Flag::Own(Arc::new(AtomicBool::new(false))))
    }

    /// A flag raised by SIGINT (Ctrl-C), SIGTERM and SIGHUP, whose handlers this installs for the
    /// whole process. A second signal ends the process at once, half a second after the first or
    /// later: `timeout` sends each twice. SIGHUP stays ignored where it is, as under `nohup`.
    ///
    /// # Errors
    ///
    /// [`Error::System`] when the handlers cannot be installed.
    pub fn on_signals() -> Result<Stop, Error> {
        let flag = kernel::catch_stop_signals().doing(|| "installing the handler for Ctrl-C")?;
        Ok(Stop(Flag::Signals(flag)))
    }

    pub fn request(&self) {
        // ORDERING: Relaxed: the flag guards no other data; its reader only stops earlier.
        self.flag().store(true, Ordering::Relaxed);
    }

    pub fn requested(&self) -> bool {
        // ORDERING: Relaxed: see `request`.
        self.flag().load(Ordering::Relaxed)
    }

    fn flag(&self) -> &AtomicBool {
        match &self.0 {
            Flag::Own(flag) => flag,
            Flag::Signals(flag) => flag,
        }
    }
}
