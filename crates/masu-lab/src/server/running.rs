//! One running server: started in its place, watched, ended with everything it started.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::outputs::Outputs;
use super::place::Place;
use super::process_groups::Family;
use masu_run::error::Doing;
use masu_run::execute::last_error::last_error;
use masu_run::execute::{self, Ending, Tree};
use masu_run::kernel::{self, Status};
use masu_run::{Error, Row, launch};

/// The time in which a server must end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A server, which is killed on drop; [`Running::end`] asks it to end first.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) family: Arc<Family>,
    outputs: Outputs,
    /// Bytes by which the server's environment was made longer.
    pub(super) offset_bytes: u32,
    /// This field follows the processes, so that the folder is removed when they are gone.
    pub(super) place: Place,
}

impl Running {
    pub(super) fn start(row: &Row, place: Place, offset_bytes: u32) -> Result<Running, Error> {
        kernel::become_subreaper().doing(|| "asking to inherit orphaned processes")?;
        let workload = place.workload(row);
        let mut command = launch::command(&workload, &row.variant, None);
        command.envs(execute::offset_variables(&workload, &row.variant, offset_bytes));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        kernel::start_apart(&mut command, false);
        let before = Tree::children_here();
        let mut child = command.spawn().map_err(|source| launch::refused(&workload, source))?;
        let family = Arc::new(Family::new(child.id().cast_signed(), before));
        let pipes = (child.stdout.take(), child.stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else { unreachable!("both were asked for") };
        let outputs = Outputs::follow(stdout.into(), stderr.into());
        match outputs {
            Ok(outputs) => Ok(Running { family, outputs, offset_bytes, place }),
            Err(error) => {
                family.kill();
                family.bury();
                Err(error)
            }
        }
    }

    /// The server's ending, if it has ended: a server in the background goes on as long as its other processes do.
    pub(super) fn ended(&self) -> Option<Ending> {
        match kernel::ended(self.family.root)? {
            Status::Exited(0) if !self.family.alive().is_empty() => None,
            Status::Exited(code) => Some(Ending::Exited(code)),
            Status::Signalled(signal) => Some(Ending::Signalled(signal)),
        }
    }

    /// The description of a server that ended as `ending`, with its last words.
    pub(super) fn last_words(&mut self, ending: &Ending) -> String {
        self.family.kill();
        match last_error(&self.outputs.finish()) {
            Some(said) => format!("{ending}; it said: {said}"),
            None => format!("{ending}, without a word"),
        }
    }

    /// Asks all servers to end at once and kills those that do not. Returns each ending; none for a killed server.
    pub(super) fn end(servers: Vec<Running>) -> Vec<Option<Ending>> {
        for server in &servers {
            server.family.terminate();
        }
        let deadline = Instant::now() + GRACE;
        let end = |server: Running| {
            let by_itself = server.family.wait(deadline);
            server.ended().filter(|_| by_itself)
        };
        servers.into_iter().map(end).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.family.kill();
        self.family.bury();
        self.outputs.finish();
    }
}
