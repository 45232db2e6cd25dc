//! Whether a server is ready: asked again and again, for a limited time.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::place::Place;
use crate::load::{self, Target};
use crate::{Error, Row, kernel};

/// The first pause between two questions; each next one is longer, up to a limit.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// How long one question may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How long a connection may take that nobody should be there to take.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

/// How to find out whether a server is ready. Placeholders are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// It takes connections at `{port}`.
    Port,
    /// This URL is answered with a status below 400.
    Url(String),
    /// This command of the shell returns 0.
    Command(String),
}

impl Ready {
    /// A URL if it begins like one, otherwise a command.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] for a URL that cannot be asked.
    pub fn parse(text: &str) -> Result<Ready, Error> {
        if load::is_url(text) {
            Target::check(&text.replace("{port}", "1"))?;
            return Ok(Ready::Url(text.to_owned()));
        }
        Ok(Ready::Command(text.to_owned()))
    }
}

/// Asks until the server in `place` is ready, `sooner` tells that there is no use in waiting, or
/// `within` has passed; then the reason of the last refusal is returned. Whether it is ready.
pub(super) fn wait(
    ready: &Ready,
    place: &Place,
    row: &Row,
    within: Duration,
    sooner: &mut dyn FnMut() -> bool,
) -> Result<bool, String> {
    let deadline = Instant::now() + within;
    let mut pause = PAUSE_MIN;
    loop {
        if sooner() {
            return Ok(false);
        }
        let Err(reason) = ask(ready, place, row, sooner) else { return Ok(true) };
        if Instant::now() >= deadline {
            return Err(reason);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Where the question goes, as far as that can be known: a command asks where it likes.
pub(super) fn address(ready: &Ready, place: &Place, row: &Row) -> Result<Vec<SocketAddr>, Error> {
    Ok(match ready {
        Ready::Port => vec![SocketAddr::from(([127, 0, 0, 1], place.port))],
        Ready::Url(url) => Target::new(&place.text(url, row))?.addresses().to_vec(),
        Ready::Command(_) => Vec::new(),
    })
}

/// Whether somebody takes connections there.
pub(super) fn is_taken(address: &SocketAddr) -> bool {
    TcpStream::connect_timeout(address, TAKEN_WITHIN).is_ok()
}

/// One question; why it is not ready.
fn ask(
    ready: &Ready,
    place: &Place,
    row: &Row,
    sooner: &mut dyn FnMut() -> bool,
) -> Result<(), String> {
    match ready {
        Ready::Port => {
            let address = SocketAddr::from(([127, 0, 0, 1], place.port));
            let connected = TcpStream::connect_timeout(&address, ANSWER_WITHIN);
            connected.map(drop).map_err(|error| format!("port {}: {error}", place.port))
        }
        Ready::Url(url) => {
            let url = place.text(url, row);
            load::ask_once(&url, ANSWER_WITHIN).map_err(|reason| format!("{url}: {reason}"))
        }
        Ready::Command(command) => {
            let command = place.text(command, row);
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &command]).stdin(Stdio::null());
            if let Some(folder) = &row.workload.folder {
                shell.current_dir(folder).env("PWD", folder);
            }
            // A group of its own, so that what it starts can be ended with it.
            shell.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
            let child = shell.spawn().map_err(|error| format!("`{command}`: {error}"))?;
            returned_zero(child, sooner).map_err(|reason| format!("`{command}` {reason}"))
        }
    }
}

fn returned_zero(mut child: Child, sooner: &mut dyn FnMut() -> bool) -> Result<(), String> {
    let group = child.id().cast_signed();
    let deadline = Instant::now() + ANSWER_WITHIN;
    let has_ended = loop {
        if kernel::ended(group).is_some() {
            break true;
        }
        if Instant::now() >= deadline || sooner() {
            break false;
        }
        std::thread::sleep(PAUSE_MIN);
    };
    // Before it is waited for: until then the group's number is nobody else's.
    kernel::kill_group(group);
    let outcome = match child.wait() {
        Ok(status) if has_ended && status.success() => Ok(()),
        Ok(status) if has_ended => Err(format!("ended with {status}")),
        Ok(_) => Err(format!("did not end within {} s", ANSWER_WITHIN.as_secs())),
        Err(error) => Err(format!("cannot be waited for: {error}")),
    };
    kernel::reap_group(group);
    outcome
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Whether the command was seen to return 0, and the process whose number it wrote.
    fn ask_with(command: &str, patient: bool) -> (bool, String) {
        let file = std::env::temp_dir().join(format!("masu-ready-{}", std::process::id()));
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).env("FILE", &file).process_group(0);
        let mut is_written = || !patient && fs::read(&file).is_ok_and(|pid| pid.ends_with(b"\n"));
        let answer = returned_zero(shell.spawn().unwrap(), &mut is_written).is_ok();
        let pid = fs::read_to_string(&file).unwrap();
        fs::remove_file(&file).unwrap();
        (answer, format!("/proc/{}/exe", pid.trim()))
    }

    #[test]
    fn nothing_that_the_command_started_outlives_its_answer() {
        let _alone = crate::execute::alone();
        let answered = ask_with("sleep 1000 & echo $! > $FILE", true);
        let unanswered = ask_with("sleep 1000 & echo $! > $FILE; wait", false);
        assert!(answered.0 && !unanswered.0);
        for (_, process) in [answered, unanswered] {
            let deadline = Instant::now() + ANSWER_WITHIN;
            while fs::exists(&process).unwrap_or(true) {
                assert!(Instant::now() < deadline, "{process} lives");
                std::thread::sleep(PAUSE_MIN);
            }
        }
    }
}
