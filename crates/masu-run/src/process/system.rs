//! The kernel's facts about a process in `/proc`.
//!
//! A process chooses its name and arguments, so control characters are taken out of them.

use std::fs::{self, File};
use std::io::{self, Read};

use crate::proc_files::{self, Stat};
use crate::{Error, kernel};

/// The number of bytes after which names and lines are cut.
const TEXT_BYTES: u64 = 4096;

/// A small file whose length the process chooses, up to a limit.
fn file(pid: u32, name: &str) -> Option<String> {
    let file = File::open(format!("/proc/{pid}/{name}")).ok()?;
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// True if there is such a process, and it has not ended.
pub(super) fn is_alive(pid: u32) -> bool {
    // A zombie has no memory any more.
    let state = Stat::of(&format!("/proc/{pid}")).and_then(|stat| stat.state());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The start of the process, in ticks since the machine's start: another process of the same number has another start.
pub(super) fn start(pid: u32) -> Option<u64> {
    Stat::of(&format!("/proc/{pid}"))?.field(22)
}

pub(super) fn name(pid: u32) -> String {
    printable(&file(pid, "comm").unwrap_or_default())
}

pub(super) fn command(pid: u32) -> String {
    printable(file(pid, "cmdline").unwrap_or_default().trim_end_matches('\0'))
}

pub(super) fn thread_name(pid: u32, thread: u64) -> String {
    printable(&file(pid, &format!("task/{thread}/comm")).unwrap_or_default())
}

/// True if a process sees itself as number `number`; in a container that differs from ours.
pub(super) fn is_called(pid: u32, number: u64) -> bool {
    let status = file(pid, "status").unwrap_or_default();
    let numbers = proc_files::value(&status, "NSpid");
    match numbers.and_then(|numbers| numbers.split_ascii_whitespace().last()) {
        Some(own) => own.parse() == Ok(number),
        // The kernel has no namespaces.
        None => u64::from(pid) == number,
    }
}

/// Bytes of the process that lie in huge pages. The kernel walks all memory of the process for that.
pub(super) fn huge_bytes(pid: u32) -> Option<u64> {
    proc_files::size(&file(pid, "smaps_rollup")?, "AnonHugePages")
}

/// Text in one line, without the characters that would move a terminal's cursor.
fn printable(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The mappings of a process, from `name` in its folder: `maps` or `smaps`. [`Error::Process`] if it has no memory, or
/// if this user may not look into it.
pub fn mappings(pid: u32, name: &str) -> Result<String, Error> {
    let maps = fs::read(format!("/proc/{pid}/{name}")).map_err(|error| hidden(pid, &error))?;
    if !maps.is_empty() {
        return Ok(String::from_utf8_lossy(&maps).into_owned());
    }
    if !is_alive(pid) {
        return Err(Error::Ended { pid });
    }
    let reason = "it has no memory: it is a thread of the kernel's, or is ending".to_owned();
    Err(Error::Process { pid, reason })
}

/// The error for a process whose files in `/proc` cannot be read because of `error`.
pub fn hidden(pid: u32, error: &io::Error) -> Error {
    match error.kind() {
        _ if !is_alive(pid) => Error::Ended { pid },
        io::ErrorKind::NotFound => Error::Process {
            pid,
            reason: "its statistics page is gone; it may have become another program".to_owned(),
        },
        io::ErrorKind::PermissionDenied => {
            Error::Process { pid, reason: refused(kernel::effective_ids().0 == 0).to_owned() }
        }
        _ => Error::Process { pid, reason: format!("it cannot be looked into: {error}") },
    }
}

/// The obstacle for a user, or for root.
fn refused(is_root: bool) -> &'static str {
    if is_root {
        "the kernel lets not even this root look into it: it was started outside this container, or has \
         capabilities that this process lacks; look from the host, or give the container \
         --cap-add SYS_PTRACE"
    } else {
        "this user may not look into it; try as its user, or as root"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_sent_to_become_root() {
        assert!(refused(false).contains("as root"));
        assert!(refused(true).contains("SYS_PTRACE") && !refused(true).contains("as root"));
    }

    #[test]
    fn a_process_without_memory_is_named_as_that() {
        let _alone = crate::execute::alone();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while is_alive(child.id()) {
            std::thread::yield_now();
        }
        // Until it is waited for it is a zombie, whose files can be read.
        assert!(matches!(mappings(child.id(), "smaps"), Err(Error::Ended { .. })));
        child.wait().unwrap();
        // In a container, process 2 may not exist, or may be another one.
        if name(2) == "kthreadd" {
            let error = mappings(2, "maps").unwrap_err().to_string();
            assert!(error.contains("thread of the kernel's"), "{error}");
        }
    }

    #[test]
    fn this_process_is_known_to_itself() {
        let pid = std::process::id();
        assert!(is_alive(pid) && proc_files::numbers("/proc").any(|other: u32| other == pid));
        assert!(is_called(pid, u64::from(pid)) || !command(pid).is_empty());
        assert!(!name(pid).is_empty());
        assert!(
            proc_files::resident_bytes(&format!("/proc/{pid}"))
                .is_some_and(|bytes| bytes > 1 << 16)
        );
        assert!(start(pid).is_some() && start(pid) == start(pid));
        assert!(!is_alive(u32::MAX) && start(u32::MAX).is_none());
    }

    #[test]
    fn names_cannot_command_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\0c\nd\r\n"), "a [2Jb c d");
        assert_eq!(printable("\u{9b}31mred"), " 31mred");
    }
}
