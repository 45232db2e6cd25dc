//! Small writes, by the kind of their target.
//!
//! It relies on `/proc/PID/fd`. The target of a descriptor is looked up seldom, because a program that writes a million
//! lines writes them to the same place: at its first small write, and each time the number of them has doubled.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::{Call, Pid};

/// Calls that wrote fewer than `SmallWrites::BELOW` bytes, by the kind of their target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SmallWrites {
    pub files: u64,
    pub pipes: u64,
    pub terminals: u64,
    /// To sockets, where an answer may be as small as it has to be.
    pub sockets: u64,
    /// Writes to none of these targets, or to an unknown one.
    pub others: u64,
    /// Bytes of the writes to files, pipes and terminals.
    pub bytes: u64,
}

impl SmallWrites {
    /// A write of this many bytes or more is none of the small ones: where a buffer of the usual 4 KiB or more stands
    /// in between, only the last write is small.
    pub(crate) const BELOW: u64 = 512;

    /// The number of writes that a buffer would have saved.
    pub fn buffered(&self) -> u64 {
        self.files + self.pipes + self.terminals
    }

    pub(super) fn add(&mut self, other: &SmallWrites, times: u64) {
        self.files += times * other.files;
        self.pipes += times * other.pipes;
        self.terminals += times * other.terminals;
        self.sockets += times * other.sockets;
        self.others += times * other.others;
        self.bytes = self.bytes.saturating_add(other.bytes.saturating_mul(times));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    File,
    Pipe,
    Terminal,
    Socket,
    Other,
}

/// The descriptors of a tree that were written to in small pieces.
#[derive(Debug, Default)]
pub(super) struct Targets {
    known: HashMap<(Pid, u64), (Target, u64)>,
}

/// The most descriptors that are kept apart; all are forgotten when there are more.
const KEPT_MAX: usize = 4096;

impl Targets {
    /// Classifies a write of `bytes` that `process` makes by `call`, by the target of the descriptor.
    pub(super) fn note(
        &mut self,
        process: Pid,
        call: Call,
        descriptor: u64,
        bytes: u64,
    ) -> SmallWrites {
        let mut write = SmallWrites::default();
        if bytes >= SmallWrites::BELOW {
            return write;
        }
        if call == Call::Sendto {
            write.sockets = 1;
            return write;
        }
        if self.known.len() == KEPT_MAX {
            self.known.clear();
        }
        let entry = self.known.entry((process, descriptor)).or_insert((Target::Other, 0));
        entry.1 += 1;
        if entry.1.is_power_of_two() {
            entry.0 = target(process, descriptor);
        }
        *match entry.0 {
            Target::File => &mut write.files,
            Target::Pipe => &mut write.pipes,
            Target::Terminal => &mut write.terminals,
            Target::Socket => &mut write.sockets,
            Target::Other => &mut write.others,
        } = 1;
        if matches!(entry.0, Target::File | Target::Pipe | Target::Terminal) {
            write.bytes = bytes;
        }
        write
    }
}

fn target(process: Pid, descriptor: u64) -> Target {
    match fs::read_link(format!("/proc/{process}/fd/{descriptor}")) {
        Ok(path) => kind(&path),
        Err(_) => Target::Other,
    }
}

fn kind(path: &Path) -> Target {
    let text = path.to_string_lossy();
    if text.starts_with("pipe:") {
        Target::Pipe
    } else if text.starts_with("socket:") {
        Target::Socket
    } else if text.starts_with("/dev/pts/") || text.starts_with("/dev/tty") {
        Target::Terminal
    } else if text.starts_with('/') && !text.starts_with("/dev/") {
        Target::File
    } else {
        // Devices (a write to /dev/null costs next to nothing) and counters of events.
        Target::Other
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn what_a_descriptor_leads_to_is_recognized_by_its_link() {
        let cases = [
            ("pipe:[123]", Target::Pipe),
            ("socket:[123]", Target::Socket),
            ("/dev/pts/3", Target::Terminal),
            ("/dev/null", Target::Other),
            ("/tmp/out", Target::File),
            ("anon_inode:[eventfd]", Target::Other),
        ];
        for (link, expected) in cases {
            assert_eq!(kind(Path::new(link)), expected, "{link}");
        }
    }

    #[test]
    fn small_writes_are_counted_by_target_and_large_ones_are_not() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let process = Pid::try_from(std::process::id()).unwrap();
        let descriptor = u64::try_from(writer.as_raw_fd()).unwrap();
        let mut targets = Targets::default();
        let mut writes = SmallWrites::default();
        for bytes in [1, 2, 511, 512, 4096] {
            writes.add(&targets.note(process, Call::Write, descriptor, bytes), 1);
        }
        writes.add(&targets.note(process, Call::Sendto, descriptor, 5), 1);
        let expected = SmallWrites { pipes: 3, sockets: 1, bytes: 514, ..SmallWrites::default() };
        assert_eq!(writes, expected);
        assert_eq!(writes.buffered(), 3);
    }
}
