//! The kernel's figures of one process (`/proc/PID`) or one thread (`/proc/PID/task/TID`), as proc(5) explains them.
//!
//! A kernel may keep fewer of them; a process that has ended has none.

use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::string::FromUtf8Error;

use crate::kernel;

/// The text of a file. The names in it, of programs and of files, may be no UTF-8: what is not, is replaced. The kernel
/// cuts the name of a process off after 15 bytes, perhaps within a letter.
pub fn text(path: impl AsRef<Path>) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let replaced = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    Some(String::from_utf8(bytes).unwrap_or_else(replaced))
}

/// The text of a process's `maps`; empty where it is gone.
pub(crate) fn maps(process: i32) -> String {
    text(format!("/proc/{process}/maps")).unwrap_or_default()
}

#[derive(Debug)]
pub struct Stat {
    /// The fields from the state on. The name before them may hold anything, parentheses and spaces too.
    fields: String,
}

impl Stat {
    pub fn of(folder: &str) -> Option<Stat> {
        Stat::parse(&text(format!("{folder}/stat"))?)
    }

    fn parse(line: &str) -> Option<Stat> {
        Some(Stat { fields: line.rsplit_once(") ")?.1.trim_end().to_owned() })
    }

    /// The field that proc(5) gives this number; none for the first two, the process's number and name.
    pub fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.fields.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// The state of the process: `R`, `S`, `Z` and so on.
    pub fn state(&self) -> Option<char> {
        self.field(3)
    }
}

/// The numbers among the names in a folder: of the processes in `/proc`, of a process's threads in `/proc/PID/task`.
pub(crate) fn numbers<T: FromStr>(folder: &str) -> impl Iterator<Item = T> + use<T> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The value behind `name` in lines such as those of `status`: `Name: value`.
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The same value if it is a size, in bytes.
pub fn size(text: &str, name: &str) -> Option<u64> {
    value(text, name)?.strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

pub(crate) fn resident_bytes(folder: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("{folder}/statm")).ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(kernel::os_page_bytes())
}

/// The time that a thread ran and the time that it waited for a CPU, in nanoseconds; for a process, those of its first
/// thread alone.
#[derive(Debug, Clone, Copy)]
pub struct Scheduled {
    pub ran_ns: u64,
    pub queued_ns: u64,
}

impl Scheduled {
    pub fn of(folder: &str) -> Option<Scheduled> {
        let line = fs::read_to_string(format!("{folder}/schedstat")).ok()?;
        let mut words = line.split_ascii_whitespace();
        Some(Scheduled {
            ran_ns: words.next()?.parse().ok()?,
            queued_ns: words.next()?.parse().ok()?,
        })
    }
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Switches {
    pub voluntary: u64,
    pub involuntary: u64,
}

impl Switches {
    pub fn of(folder: &str) -> Option<Switches> {
        let status = text(format!("{folder}/status"))?;
        let count = |name| value(&status, name).and_then(|it| it.parse().ok()).unwrap_or(0);
        Some(Switches {
            voluntary: count("voluntary_ctxt_switches"),
            involuntary: count("nonvoluntary_ctxt_switches"),
        })
    }
}

/// The ticks that a CPU has spent since the machine's start.
#[derive(Debug, Clone, Copy)]
pub struct CpuTicks {
    pub(crate) number: usize,
    pub user: u64,
    pub system: u64,
    pub idle: u64,
    /// Ticks that the hypervisor gave to other machines.
    pub(crate) stolen: u64,
}

impl CpuTicks {
    /// Those of every CPU.
    pub fn of_all() -> Vec<CpuTicks> {
        CpuTicks::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Reads the lines `cpu0 user nice system idle iowait irq softirq steal …` of `/proc/stat`.
    pub fn read(stat: &str) -> Vec<CpuTicks> {
        let of_cpu = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let number = words.next()?.strip_prefix("cpu")?.parse().ok()?;
            let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
            let (user, system) = (at(0) + at(1), at(2) + at(5) + at(6));
            Some(CpuTicks { number, user, system, idle: at(3) + at(4), stolen: at(7) })
        };
        stat.lines().filter_map(of_cpu).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_looks_like_fields_is_skipped() {
        let stat = Stat::parse("7 (a) R 1 (b)) S 5 6 7 0\n").unwrap();
        assert_eq!(stat.state(), Some('S'));
        assert_eq!((stat.field(4), stat.field(7)), (Some(5), Some(0)));
        assert_eq!((stat.field::<u64>(8), stat.field::<u64>(2)), (None, None));
        assert!(Stat::parse("7 without a name").is_none());
    }

    #[test]
    fn values_and_sizes_are_those_of_their_names() {
        let status = "Name:\tp\nVmRSS:\t    8 kB\nVmSwap:\t    12 kB\nThreads:\t1\n";
        assert_eq!((value(status, "Threads"), value(status, "Vm")), (Some("1"), None));
        assert_eq!((size(status, "VmSwap"), size(status, "Threads")), (Some(12 << 10), None));
        let own = fs::read_to_string("/proc/self/status").unwrap();
        assert!(size(&own, "VmSwap").is_some(), "{own}");
    }

    #[test]
    fn this_thread_has_books() {
        assert_eq!(Stat::of("/proc/thread-self").unwrap().state(), Some('R'));
        // A kernel may keep none; a thread that has only begun may have 0 in them.
        let is_kept = fs::exists("/proc/thread-self/schedstat").unwrap();
        assert_eq!(Scheduled::of("/proc/thread-self").is_some(), is_kept);
        assert!(Switches::of("/proc/thread-self").is_some());
        assert!(Stat::of("/proc/0").is_none() && Switches::of("/proc/0").is_none());
    }
}
