//! Whether a server is ready: asked again and again, for a limited time.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::place::Place;
use crate::load::{self, Target};
use crate::{Error, Row};

/// The first pause between two questions; each next one is longer, up to a limit.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// How long one question may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

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
            shell.stdout(Stdio::null()).stderr(Stdio::null());
            let child = shell.spawn().map_err(|error| format!("`{command}`: {error}"))?;
            returned_zero(child, sooner).map_err(|reason| format!("`{command}` {reason}"))
        }
    }
}

fn returned_zero(mut child: Child, sooner: &mut dyn FnMut() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + ANSWER_WITHIN;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("ended with {status}")),
            Ok(None) if Instant::now() < deadline && !sooner() => {
                std::thread::sleep(PAUSE_MIN);
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not end within {} s", ANSWER_WITHIN.as_secs()));
            }
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
}
