//! The command line that starts a running process again, with other mallocs.
//!
//! Relies on `/proc`: the process's arguments there, and the ports at which it accepts connections.

use std::collections::HashSet;
use std::fs;

use masu_run::execute::tree::Pid;
use masu_run::workload::quoted;

/// The state, in a line of `/proc/PID/net/tcp`, of a socket that accepts connections.
const LISTENS: &str = "0A";

/// Servers that do not speak HTTP, each with the command that loads it, if every distribution has the same command.
const LOADS: [(&str, Option<&str>); 13] = [
    ("redis-server", Some("redis-benchmark -q -p {port} -n 10000")),
    ("valkey-server", Some("valkey-benchmark -q -p {port} -n 10000")),
    ("memcached", None),
    ("postgres", None),
    ("mysqld", None),
    ("mariadbd", None),
    ("mongod", None),
    ("named", None),
    ("dnsmasq", None),
    ("mosquitto", None),
    ("beanstalkd", None),
    ("slapd", None),
    ("sshd", None),
];

/// The sentence that other mallocs were not tried on a process, with the command line that tries them, or with the
/// refusal of its program.
pub(super) fn untried(process: Pid, command: &[String], refusal: Option<&str>) -> String {
    if let Some(refusal) = refusal {
        return format!("whether another malloc gains: none can be preloaded, {refusal}");
    }
    let port = ports(process).into_iter().min();
    let what = "whether another malloc or a setting would gain, and how much: a process that runs cannot be tried";
    let line = line(command, port);
    match port {
        Some(_) if line.contains("{port}") => format!(
            "{what}; this starts it again under each malloc and loads all (--load takes a command too): {line}"
        ),
        Some(port) => format!(
            "{what}; stop it, for port {port} is taken, then this starts it again under each malloc and loads it \
             (--load takes a command too): {line}"
        ),
        None => format!("{what}; this does the same work again under each malloc: {line}"),
    }
}

/// The command line that compares the same command; `port` is the port at which a server accepts connections.
fn line(command: &[String], port: Option<u16>) -> String {
    // A process title in place of the arguments does not reveal them.
    let words = match command {
        [title] if title.contains(' ') => vec!["COMMAND".to_owned()],
        words => words.iter().map(|word| quoted(word)).collect(),
    };
    let Some(port) = port else { return format!("`masu compare -- {}`", words.join(" ")) };
    let load = load(command);
    let given: Vec<String> = words.iter().map(|word| with_place(word, port)).collect();
    if given == words {
        let load = load.replace("{port}", &port.to_string());
        return format!(
            "`masu compare --server --one-at-a-time --load {load} -- {}`",
            words.join(" ")
        );
    }
    format!("`masu compare --server --load {load} -- {}`", given.join(" "))
}

/// A load for the server of this command, or of this title: a page by HTTP, or a command.
fn load(command: &[String]) -> String {
    let program =
        command.first().and_then(|first| first.split([' ', ':']).next()).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    match LOADS.iter().find(|(server, _)| *server == name) {
        Some((_, load)) => format!("'{}'", load.unwrap_or("LOAD-COMMAND")),
        None => "http://127.0.0.1:{port}/".to_owned(),
    }
}

/// `word` with the number `port` in it replaced by the placeholder that `masu compare` fills in.
fn with_place(word: &str, port: u16) -> String {
    let number = port.to_string();
    let is_digit = |character: Option<char>| character.is_some_and(|one| one.is_ascii_digit());
    let at = word.match_indices(&number).map(|(at, _)| at).find(|&at| {
        let (before, after) = (&word[..at], &word[at + number.len()..]);
        !is_digit(before.chars().next_back()) && !is_digit(after.chars().next())
    });
    at.map_or_else(
        || word.to_owned(),
        |at| format!("{}{{port}}{}", &word[..at], &word[at + number.len()..]),
    )
}

fn ports(process: Pid) -> Vec<u16> {
    let folder = format!("/proc/{process}");
    let descriptors = fs::read_dir(format!("{folder}/fd")).into_iter().flatten().flatten();
    let own: HashSet<String> = descriptors
        .filter_map(|one| fs::read_link(one.path()).ok())
        .filter_map(|link| {
            Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
        })
        .collect();
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("{folder}/net/{table}")));
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines.filter_map(|line| listening(line, &own)).collect()
}

/// The port of one line of `/proc/PID/net/tcp`, if one of the sockets `own` accepts connections there.
fn listening(line: &str, own: &HashSet<String>) -> Option<u16> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (address, state, inode) = (fields.get(1)?, *fields.get(3)?, *fields.get(9)?);
    if state != LISTENS || !own.contains(inode) {
        return None;
    }
    u16::from_str_radix(address.rsplit(':').next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split('\t').map(str::to_owned).collect()
    }

    #[test]
    fn the_line_has_a_place_for_the_port_where_the_command_has_it() {
        for (command, port, expected) in [
            ("sort\ta b", None, "`masu compare -- sort 'a b'`"),
            (
                "./server\t--port=8080",
                Some(8080),
                "`masu compare --server --load http://127.0.0.1:{port}/ -- ./server --port={port}`",
            ),
            (
                "./server\t18080",
                Some(8080),
                "`masu compare --server --one-at-a-time --load http://127.0.0.1:8080/ -- ./server 18080`",
            ),
            (
                "nginx: master process nginx",
                Some(80),
                "`masu compare --server --one-at-a-time --load http://127.0.0.1:80/ -- COMMAND`",
            ),
            (
                "redis-server *:7777",
                Some(7777),
                "`masu compare --server --one-at-a-time --load 'redis-benchmark -q -p 7777 -n 10000' -- COMMAND`",
            ),
            (
                "mosquitto\t-p\t1883",
                Some(1883),
                "`masu compare --server --load 'LOAD-COMMAND' -- mosquitto -p {port}`",
            ),
            (
                "/usr/sbin/mariadbd\t--port=3306",
                Some(3306),
                "`masu compare --server --load 'LOAD-COMMAND' -- /usr/sbin/mariadbd --port={port}`",
            ),
        ] {
            assert_eq!(line(&words(command), port), expected);
        }
    }

    #[test]
    fn a_program_that_refuses_mallocs_gets_no_line() {
        let own = std::process::id().cast_signed();
        let said = |refusal| untried(own, &["job".to_owned()], refusal);
        assert!(said(None).contains("masu compare"));
        let refused = said(Some("it is linked statically"));
        assert!(refused.ends_with("none can be preloaded, it is linked statically"), "{refused}");
    }

    #[test]
    fn a_port_that_this_process_listens_at_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = Pid::try_from(std::process::id()).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(ports(own).contains(&port));
    }
}
