//! Reads the facts in `cases.txt`, whose head says how.

use std::path::PathBuf;

use super::super::super::facts::{Build, Facts, Failure, ProgramTime, Site, ThreadTime, Waiting};
use super::super::super::samples::{Place, Sampled};
use masu_run::calls::{CallKind, Lock, Owner, Sampling};
use masu_run::prices::{Price, Service};
use masu_run::{Ending, Scatter};

/// The lines below a headline.
pub(super) fn below(head: &str) -> impl Iterator<Item = &'static str> {
    let mut lines = include_str!("cases.txt").lines();
    assert!(lines.any(|line| line == head), "cases.txt has no `{head}`");
    lines.map_while(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with('#'))
}

/// The facts of a base.
pub(super) fn base(name: &str) -> Facts {
    read(below(&format!("= {name}")))
}

/// Facts that stand in lines like those of a base.
pub(crate) fn facts(text: &str) -> Facts {
    read(text.lines().map(str::trim).filter(|line| !line.is_empty()))
}

fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Facts {
    let mut facts = Facts::default();
    for line in lines {
        assert!(change(&mut facts, line), "{line}");
    }
    facts
}

/// The value of a fact.
trait Read {
    fn read(text: &str) -> Self;
}

/// A number: factors, each with a unit of memory or without one.
impl Read for f64 {
    fn read(text: &str) -> f64 {
        let factor = |text: &str| {
            let digits = text.trim_end_matches(['K', 'M', 'G']);
            let power = ["", "K", "M", "G"].iter().position(|unit| *unit == &text[digits.len()..]);
            let number = match digits.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16).map(|number| number as f64).ok(),
                None => digits.replace('_', "").parse().ok(),
            };
            let (number, power) = number.zip(power).unwrap_or_else(|| panic!("no number: {text}"));
            number * 1024_f64.powi(power as i32)
        };
        text.split('*').map(factor).product()
    }
}

impl Read for u64 {
    fn read(text: &str) -> u64 {
        f64::read(text) as u64
    }
}

impl Read for usize {
    fn read(text: &str) -> usize {
        f64::read(text) as usize
    }
}

impl Read for String {
    fn read(text: &str) -> String {
        text.to_owned()
    }
}

impl<T: Read> Read for Option<T> {
    fn read(text: &str) -> Option<T> {
        (text != "none").then(|| T::read(text))
    }
}

impl Read for Owner {
    fn read(text: &str) -> Owner {
        if text == "malloc" { Owner::Malloc } else { Owner::Program }
    }
}

/// Sets fields of a part of the facts.
macro_rules! set {
    ($part:expr, $is_new:expr, $values:expr; $($field:ident)+) => {{
        let part = &mut $part;
        if $is_new {
            *part = Default::default();
        }
        for value in $values.split(", ").filter(|value| !value.is_empty()) {
            let (field, value) = value.split_once(' ').expect("a field and its value");
            match field {
                $(stringify!($field) => part.$field = Read::read(value),)+
                _ => panic!("no field {field}"),
            }
        }
    }};
}

fn set(facts: &mut Facts, part: &str, is_new: bool, values: &str) {
    match part {
        "clock" => set!(facts.clock, is_new, values; wall_s user_s sys_s own_sys_s stops queued_s
            counting_s kernel_share_before voluntary_switches involuntary_switches),
        "others" => set!(facts.others, is_new, values; share stolen_share waited_share),
        "memory" => set!(facts.memory, is_new, values; peak_rss_bytes late_rss_bytes minor_faults
            major_faults refaults os_page_bytes swapped_bytes huge_bytes huge_unused),
        "heap" => set!(*facts.memory.heap.get_or_insert_default(), is_new, values; bytes
            walked_bytes free_bytes at_s),
        "growth" => set!(*facts.memory.growth.get_or_insert_default(), is_new, values; bytes
            over_s),
        "threads" => set!(facts.threads, is_new, values; looks looked_s most_at_once cpu_s alone_s
            together_s parallel_cpu_s idle_s stopped_s lock_share_before arenas),
        "malloc" => set!(facts.malloc, is_new, values; name refusal),
        "samples" => set!(*facts.samples.get_or_insert_default(), is_new, values; samples
            malloc_share),
        "inside" => set!(*facts.inside.get_or_insert_default(), is_new, values; fetched_blocks
            remote_blocks live_late_bytes resident_late_bytes),
        _ => {
            let calls = facts.calls.get_or_insert_default();
            match part {
                "calls" => set!(*calls, is_new, values; futex_waits more_lock_waits threads_started
                    processes outward),
                "moves" => set!(calls.moves, is_new, values; break_ups break_downs maps unmaps
                    purges asked_bytes returned_bytes),
                "own" => set!(calls.moves.own, is_new, values; maps unmaps asked_bytes
                    returned_bytes),
                "writes" => set!(calls.small_writes, is_new, values; files pipes terminals sockets
                    bytes),
                _ => panic!("the facts have no part {part}"),
            }
        }
    }
}

/// Changes the facts as a line says; false if the line is not one of facts.
pub(super) fn change(facts: &mut Facts, line: &str) -> bool {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    if let Some(part) = word.strip_suffix(':') {
        set(facts, part, false, rest);
        return true;
    }
    if let Some(values) = rest.strip_prefix('=') {
        set(facts, word, true, values.trim());
        return true;
    }
    let words: Vec<&str> = rest.split(' ').collect();
    let number = |index: usize| words.get(index).map(|word| f64::read(word));
    let starred = words[0].strip_suffix('*');
    let name = starred.unwrap_or(words[0]);
    match (word, &mut facts.calls) {
        ("from", _) => *facts = base(rest),
        ("ending", _) => facts.ending = Read::read(rest),
        ("ends", _) => {
            let (how, stderr) = rest.split_once(" | ").unwrap_or((rest, ""));
            let ending = ending(how);
            facts.ending = Some(ending.to_string());
            facts.failure =
                Failure::of(&ending, &stderr.replace("\\n", "\n").replace("\\e", "\u{1b}"));
        }
        ("without-rights", Some(calls)) => calls.without_rights.push(rest.to_owned()),
        ("cpus", _) => facts.cpus = Read::read(rest),
        ("no", _) => forget(facts, rest),
        ("thread", _) => facts.threads.busiest.push(ThreadTime {
            name: name.replace('_', " "),
            process: number(5).unwrap_or(7.0) as i32,
            is_first: starred.is_some(),
            cpu_s: f64::read(words[1]),
            alone_s: f64::read(words[2]),
            serial_s: number(4).unwrap_or(f64::read(words[2])),
            together_s: f64::read(words[3]),
        }),
        ("waited", _) => facts.threads.lock_waited = vec![(Read::read(name), f64::read(words[1]))],
        ("waited-idle", _) => {
            facts.threads.lock_waited_idle.push((Read::read(name), f64::read(words[1])));
        }
        ("idle", _) => {
            let reason = if name == "data" { Waiting::Data } else { Waiting::Time };
            facts.threads.idle_for.push((reason, f64::read(words[1])));
        }
        ("lock" | "another-lock", Some(calls)) => {
            if word == "lock" {
                calls.locks.clear();
            }
            calls.locks.push(Lock {
                process: 7,
                address: words.get(3).map_or(0x7f00_0000_0030, |word| u64::read(word)),
                owner: Read::read(name),
                waits: Read::read(words[1]),
                threads: Read::read(words[2]),
            });
        }
        ("count", Some(calls)) => {
            calls.counts.insert(name.to_owned().leak(), Read::read(words[1]));
        }
        ("kind", Some(calls)) => calls.kinds.push(CallKind {
            name: name.to_owned(),
            calls: Read::read(words[1]),
            seconds: Read::read(words[2]),
        }),
        ("sampling", Some(calls)) => {
            let (from_s, share) = (f64::read(words[0]), f64::read(words[1]));
            let (unseen_sys_s, paused_s) = (number(2).unwrap_or(0.0), number(3).unwrap_or(0.0));
            calls.sampled =
                Some(Sampling { from_s, share, unseen_sys_s, paused_s, ..Sampling::default() });
        }
        ("price", _) => {
            let service: Service = serde_json::from_value(name.into()).expect("a service");
            facts.prices.known.retain(|price| price.service != service);
            let ns = f64::read(words[1]);
            let (median_ns, lower_ns, upper_ns) = (ns, ns, ns);
            let (batches, batch, remark) = (41, 1, None);
            let price = Price { service, median_ns, lower_ns, upper_ns, batches, batch, remark };
            facts.prices.known.push(price);
        }
        ("scattered", _) => {
            let small = usize::read(rest);
            facts.code = Some(Scatter { small, mappings: small + 10, ..Scatter::default() });
        }
        ("wrapper", _) => facts.wrapper = Some(rest.to_owned()),
        ("debug-build", _) => {
            let unoptimized = Some("it lies in cargo's folder for debug builds".to_owned());
            facts.build = Build { path: rest.into(), unoptimized, is_certain: false };
        }
        ("program", _) => facts.programs.push(ProgramTime {
            path: name.into(),
            cpu_s: f64::read(words[1]),
            stops: number(2).unwrap_or(0.0) as u64,
            is_command: starred.is_some(),
        }),
        ("requests", _) => {
            let inside = facts.inside.get_or_insert_default();
            inside.requests = Some((Read::read(words[0]), f64::read(words[1])));
        }
        ("site", _) => facts.inside.get_or_insert_default().sites.push(Site {
            function: name.to_owned(),
            place: Some(words[1].to_owned()),
            share: f64::read(words[2]),
        }),
        ("sampled", _) => facts.samples = Some(sampled(f64::read(name), words.get(1).copied())),
        ("sampled-in", _) => {
            let place = Place { file: name.into(), share: f64::read(words[1]), ..Place::default() };
            let places = vec![place];
            facts.samples = Some(Sampled { samples: 5_000, places, ..Sampled::default() });
        }
        _ => return false,
    }
    true
}

/// An exit code, a signal, or a word.
fn ending(how: &str) -> Ending {
    match how.split_once(' ') {
        Some(("code", code)) => Ending::Exited(code.parse().expect("an exit code")),
        Some((_, number)) => Ending::Signalled(number.parse().expect("a signal")),
        None if how == "stopped" => Ending::Stopped,
        None if how == "timed-out" => Ending::TimedOut,
        None => Ending::OutOfMemory { process: "job (7), 900 MiB".to_owned(), bytes: 1 << 30 },
    }
}

fn forget(facts: &mut Facts, what: &str) {
    match what {
        "calls" => facts.calls = None,
        "sampling" => facts.calls.get_or_insert_default().sampled = None,
        "heap" => facts.memory.heap = None,
        "prices" => facts.prices.known.clear(),
        "programs" => facts.programs.clear(),
        "samples" => facts.samples = None,
        "threads" => facts.threads.busiest.clear(),
        "waited" => facts.threads.lock_waited.clear(),
        "waited-idle" => facts.threads.lock_waited_idle.clear(),
        _ => panic!("nothing is forgotten as {what}"),
    }
}

/// A malloc that takes a share of two thousand samples, perhaps in this function.
fn sampled(malloc_share: f64, malloc: Option<&str>) -> Sampled {
    let place = |function: Option<&str>, file: &str, share, is_malloc| Place {
        function: function.map(str::to_owned),
        file: PathBuf::from(file),
        share,
        is_malloc,
        caller: is_malloc.then(|| "parse".to_owned()),
    };
    let places = vec![
        place(Some("work"), "/usr/bin/program", 0.5, false),
        place(malloc, "/lib/libc.so.6", malloc_share, true),
        place(None, "/lib/libz.so.1", 0.1, false),
    ];
    Sampled { samples: 2_000, malloc_share, places, ..Sampled::default() }
}
