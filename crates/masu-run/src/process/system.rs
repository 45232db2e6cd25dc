//! The kernel's facts about a process in `/proc`.
//!
//! A process chooses its name and arguments, so control characters are taken out of them.

use std::fs::{self, File};
use std::io::Read;

use crate::proc_files::{self, Stat};

/// The number of bytes after which names and lines are cut.
const TEXT_BYTES: u64 = 4096;

pub(super) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

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

pub(super) fn resident_bytes(pid: u32) -> Option<u64> {
    proc_files::resident_bytes(&format!("/proc/{pid}"))
}

/// Bytes of the process that lie in huge pages. The kernel walks all memory of the process for that.
pub(super) fn huge_bytes(pid: u32) -> Option<u64> {
    proc_files::size(&file(pid, "smaps_rollup")?, "AnonHugePages")
}

/// Text in one line, without the characters that would move a terminal's cursor.
fn printable(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known_to_itself() {
        let pid = std::process::id();
        assert!(is_alive(pid) && processes().any(|other| other == pid));
        assert!(is_called(pid, u64::from(pid)) || !command(pid).is_empty());
        assert!(!name(pid).is_empty());
        assert!(resident_bytes(pid).is_some_and(|bytes| bytes > 1 << 16));
        assert!(start(pid).is_some() && start(pid) == start(pid));
        assert!(!is_alive(u32::MAX) && start(u32::MAX).is_none());
    }

    #[test]
    fn names_cannot_command_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\0c\nd\r\n"), "a [2Jb c d");
        assert_eq!(printable("\u{9b}31mred"), " 31mred");
    }
}
