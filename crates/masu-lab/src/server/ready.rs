//! The check whether a server is ready: repeated for a limited time.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::place::Place;
use super::{Load, ServerPlan};
use crate::load::{self, Target, Unanswered};
use masu_run::workload::unlinked_file;
use masu_run::{Error, Row, hooks, kernel};

/// The first pause between two checks; each next pause is longer, up to a limit.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A server that denies a URL this often one time after the other has no such URL. At the pauses above that takes five
/// seconds, in which a server may still add what it serves.
const DENIALS: u32 = 50;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The longest time for a connection that no server should accept.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);

/// The check whether a server is ready. Placeholders are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// The server takes connections at `{port}`.
    Port,
    /// The server takes connections at this `HOST:PORT`.
    Address(String),
    /// This URL is answered with a status below 400.
    Url(String),
    /// This command of the shell returns 0.
    Command(String),
}

impl Ready {
    /// A URL if it begins like one, an address if it is `HOST:PORT`, otherwise a command.
    pub fn parse(text: &str) -> Result<Ready, Error> {
        if load::is_url(text) {
            Target::check(text)?;
            return Ok(Ready::Url(text.to_owned()));
        }
        if is_address(text) {
            return Ok(Ready::Address(text.to_owned()));
        }
        Ok(Ready::Command(text.to_owned()))
    }

    /// The words of the check; none for the port.
    pub(super) fn text(&self) -> Option<&String> {
        match self {
            Ready::Port => None,
            Ready::Address(text) | Ready::Url(text) | Ready::Command(text) => Some(text),
        }
    }
}

/// Whether `text` is `HOST:PORT`, even with a placeholder for the port: no command is a word, a colon and a number.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_port = port == "{port}" || port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_of_host = |c: char| c.is_ascii_alphanumeric() || "-._[]:{}".contains(c);
    is_port && !host.is_empty() && host.chars().all(is_of_host)
}

#[derive(Debug)]
pub(super) struct NotReady {
    /// The words that follow "was not ready".
    pub(super) reason: String,
    pub(super) is_impossible: bool,
}

enum Refusal {
    NotYet(String),
    /// The server answers that the question is wrong.
    Denied(String),
    Never(String),
}

/// Whether the server gets ready in time; checks until then, or until `sooner` says that waiting is useless.
pub(super) fn wait(
    plan: &ServerPlan,
    place: &Place,
    row: &Row,
    sooner: &mut dyn FnMut() -> bool,
) -> Result<bool, NotReady> {
    let within = plan.ready_within;
    let deadline = Instant::now() + within;
    let mut pause = PAUSE_MIN;
    let mut denials = 0;
    loop {
        if sooner() {
            return Ok(false);
        }
        let answer = ask(plan, place, row, sooner);
        denials = if matches!(answer, Err(Refusal::Denied(_))) { denials + 1 } else { 0 };
        match answer {
            Ok(()) => return Ok(true),
            Err(Refusal::Denied(reason)) if denials == DENIALS => {
                let reason = format!(
                    "though it serves: {reason}, {DENIALS} times; name a URL that it has (--ready), or a command \
                     that waits for longer: --ready 'curl -fs URL'"
                );
                return Err(NotReady { reason, is_impossible: true });
            }
            Err(Refusal::Never(reason)) => {
                let reason = format!("and cannot be seen to be: {reason}");
                return Err(NotReady { reason, is_impossible: true });
            }
            Err(Refusal::NotYet(reason) | Refusal::Denied(reason))
                if Instant::now() >= deadline =>
            {
                let reason = format!("within {} s ({reason})", within.as_secs_f64());
                return Err(NotReady { reason, is_impossible: false });
            }
            Err(Refusal::NotYet(_) | Refusal::Denied(_)) => {}
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// The address of the check, as far as it can be known: a command may ask any address.
pub(super) fn address(ready: &Ready, place: &Place, row: &Row) -> Result<Vec<SocketAddr>, Error> {
    Ok(match ready {
        Ready::Port => vec![SocketAddr::from(([127, 0, 0, 1], place.port))],
        Ready::Url(url) => Target::new(&place.text(url, row))?.addresses().to_vec(),
        // The host is looked up as for a URL: an unknown host is an error before anything starts.
        Ready::Address(text) => {
            let text = place.text(text, row);
            let target = Target::new(&format!("http://{text}/")).map_err(|error| match error {
                Error::Load { reason, .. } => Error::Server {
                    variant: row.variant.label.clone(),
                    reason: format!("cannot be seen to be ready at `{text}`: {reason}"),
                },
                other => other,
            })?;
            target.addresses().to_vec()
        }
        Ready::Command(_) => Vec::new(),
    })
}

pub(super) fn is_taken(address: &SocketAddr) -> bool {
    TcpStream::connect_timeout(address, TAKEN_WITHIN).is_ok()
}

fn ask(
    plan: &ServerPlan,
    place: &Place,
    row: &Row,
    sooner: &mut dyn FnMut() -> bool,
) -> Result<(), Refusal> {
    match &plan.ready {
        Ready::Port => {
            let address = SocketAddr::from(([127, 0, 0, 1], place.port));
            connected(&address).map_err(|error| format!("port {}: {error}", place.port))
        }
        Ready::Address(text) => {
            let addresses = address(&plan.ready, place, row).map_err(|error| error.to_string());
            addresses.and_then(|addresses| {
                let mut refusal = format!("{}: no address", place.text(text, row));
                for address in &addresses {
                    match connected(address) {
                        Ok(()) => return Ok(()),
                        Err(error) => refusal = format!("{address}: {error}"),
                    }
                }
                Err(refusal)
            })
        }
        Ready::Url(url) => {
            // A URL of the load is asked as the load asks it: it may be there for `POST` alone.
            let body = match &plan.load {
                Load::Http { urls, body, .. } if urls.contains(url) => body.clone(),
                _ => None,
            };
            let url = place.text(url, row);
            let asked = load::ask_once(&url, body, ANSWER_WITHIN);
            return asked.map_err(|Unanswered { reason, status }| {
                let is_denied = status.is_some_and(denies);
                let refusal = if is_denied { Refusal::Denied } else { Refusal::NotYet };
                refusal(format!("{url}: {reason}"))
            });
        }
        Ready::Command(command) => return ask_command(command, place, row, sooner),
    }
    .map_err(Refusal::NotYet)
}

/// Whether a status says that the question is wrong, rather than that its time has not come (408, 425, 429).
fn denies(status: u16) -> bool {
    (400..500).contains(&status) && ![408, 425, 429].contains(&status)
}

fn connected(address: &SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(address, ANSWER_WITHIN).map(drop)
}

/// The exit codes of shells for a command that they cannot start, and for one that they do not find.
const CANNOT_RUN: [i32; 2] = [126, 127];

fn ask_command(
    command: &str,
    place: &Place,
    row: &Row,
    sooner: &mut dyn FnMut() -> bool,
) -> Result<(), Refusal> {
    let command = place.text(command, row);
    let said = unlinked_file();
    let said = said.map_err(|error| Refusal::NotYet(error.to_string()))?;
    let stderr = said.try_clone().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &command]).stdin(Stdio::null());
    if let Some(folder) = &row.workload.folder {
        shell.current_dir(folder).env("PWD", folder);
    }
    // The command has a process group of its own, so that its children can be ended with it.
    shell.stdout(Stdio::null()).stderr(stderr).process_group(0);
    let child = shell.spawn();
    let child = child.map_err(|error| Refusal::Never(format!("`{command}`: {error}")))?;
    returned_zero(child, sooner).map_err(|(code, reason)| {
        let line = hooks::last_line(&said);
        let lacks_part = line.as_deref().is_some_and(|line| lacks_part(&command, line));
        let words = line.map(|line| format!(" and said: {line}")).unwrap_or_default();
        let reason = format!("`{command}` {reason}{words}");
        if lacks_part || code.is_some_and(|code| CANNOT_RUN.contains(&code)) {
            Refusal::Never(reason)
        } else {
            Refusal::NotYet(reason)
        }
    })
}

/// Whether the shell's last line says that a command of a pipeline is not there: the pipeline's code is that of another one.
fn lacks_part(command: &str, line: &str) -> bool {
    !command.contains("||") && line.starts_with("/bin/sh: ") && line.ends_with(" not found")
}

/// The exit code, if there is one, and a description of the ending, unless the code is 0.
fn returned_zero(
    mut child: Child,
    sooner: &mut dyn FnMut() -> bool,
) -> Result<(), (Option<i32>, String)> {
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
    // The group is killed before the process is reaped: until then no other group can get its number.
    kernel::kill_group(group);
    let outcome = match child.wait() {
        Ok(status) if has_ended && status.success() => Ok(()),
        Ok(status) if has_ended => Err((status.code(), format!("ended with {status}"))),
        Ok(_) => Err((None, format!("did not end within {} s", ANSWER_WITHIN.as_secs()))),
        Err(error) => Err((None, format!("cannot be waited for: {error}"))),
    };
    kernel::reap_group(group);
    outcome
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_address_takes_connections_and_anything_else_is_a_command() {
        for text in ["127.0.0.1:{port}", "localhost:6379", "[::1]:{port}", "db-1.local:5432"] {
            assert_eq!(Ready::parse(text).unwrap(), Ready::Address(text.to_owned()), "{text}");
        }
        for text in ["redis-cli -p {port} ping", "test -e a:", ":80", "a:0", "a:b", "./ask:8 x:80"]
        {
            assert!(matches!(Ready::parse(text).unwrap(), Ready::Command(_)), "{text}");
        }
    }

    #[test]
    fn a_pipeline_that_lacks_a_command_is_never_ready() {
        let (dash, bash) =
            ("/bin/sh: 1: dig: not found", "/bin/sh: line 1: dig: command not found");
        assert!(lacks_part("dig @::1 | grep -q 10", dash) && lacks_part("dig | grep 1", bash));
        assert!(!lacks_part("dig @::1 || nc -z ::1 53", dash), "the other one may answer");
        assert!(!lacks_part("curl | grep 1", "curl: host not found"));
    }

    /// Whether the command was seen to return 0, and the process number that it wrote.
    fn ask_with(command: &str, patient: bool) -> (bool, String) {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).env("FILE", &*file).process_group(0);
        let mut is_written = || !patient && fs::read(&file).is_ok_and(|pid| pid.ends_with(b"\n"));
        let answer = returned_zero(shell.spawn().unwrap(), &mut is_written).is_ok();
        let pid = fs::read_to_string(&file).unwrap();
        (answer, format!("/proc/{}/exe", pid.trim()))
    }

    #[test]
    fn nothing_that_the_command_started_outlives_its_answer() {
        let _alone = masu_run::execute::alone();
        let answered = ask_with("sleep 1000 & echo $! > $FILE", true);
        let unanswered = ask_with("sleep 1000 & echo $! > $FILE; wait", false);
        assert!(answered.0 && !unanswered.0);
        for (_, process) in [answered, unanswered] {
            while fs::exists(&process).unwrap_or(true) {
                std::thread::sleep(PAUSE_MIN);
            }
        }
    }
}
