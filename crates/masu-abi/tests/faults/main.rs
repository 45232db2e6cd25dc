//! The kernel refuses a call of the allocator's: the N-th of its kind, or the N-th and all after it. A request then
//! gives null with ENOMEM, or succeeds; nothing crashes, hangs or loses a byte, and the statistics agree afterwards.
//!
//! It relies on programs with every kind of request (`programs.rs`: in C under the library, in Rust with the allocator
//! in it), and on `supervisor.rs`, which refuses the calls. CI tries the first uses of each call and some random ones;
//! `cargo xtask faults` (`MASU_FAULTS=FOLDER`) tries every use of every call with every error, alone and with all uses
//! after it, and writes a table of them into FOLDER, a file for each program; `MASU_FAULTS_CALL=mmap` tries `mmap`
//! alone.
#![cfg(target_arch = "x86_64")]

#[path = "../library/mod.rs"]
mod library;
mod programs;
mod scarce;
mod supervisor;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::{env, fs, thread};

use programs::Program;
use supervisor::{Ended, Fault, Uses};

/// The calls of `crates/masu/src/platform/kernel.rs` that can be refused, and four that it may make later.
const CALLS: [(&str, i64); 26] = [
    ("mmap", libc::SYS_mmap),
    ("munmap", libc::SYS_munmap),
    ("mprotect", libc::SYS_mprotect),
    ("madvise", libc::SYS_madvise),
    ("process_madvise", libc::SYS_process_madvise),
    ("pread64", libc::SYS_pread64),
    ("futex", libc::SYS_futex),
    ("prlimit64", libc::SYS_prlimit64),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("clock_gettime", libc::SYS_clock_gettime),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    ("memfd_create", libc::SYS_memfd_create),
    ("ftruncate", libc::SYS_ftruncate),
    ("fcntl", libc::SYS_fcntl),
    ("fstat", libc::SYS_fstat),
    ("openat", libc::SYS_openat),
    ("read", libc::SYS_read),
    ("write", libc::SYS_write),
    ("close", libc::SYS_close),
    ("faccessat", libc::SYS_faccessat),
    ("unlinkat", libc::SYS_unlinkat),
    ("getcwd", libc::SYS_getcwd),
    ("mremap", libc::SYS_mremap),
    ("membarrier", libc::SYS_membarrier),
    ("prctl", libc::SYS_prctl),
    ("getrandom", libc::SYS_getrandom),
];

const ERRORS: [(&str, i32); 5] = [
    ("ENOMEM", libc::ENOMEM),
    ("EPERM", libc::EPERM),
    ("ENOSYS", libc::ENOSYS),
    ("EINTR", libc::EINTR),
    ("EAGAIN", libc::EAGAIN),
];

/// The folder for the tables of a whole run, if requested.
fn whole() -> Option<OsString> {
    env::var_os("MASU_FAULTS").filter(|folder| !folder.is_empty())
}

/// Whether this call is tried.
fn is_tried(name: &str) -> bool {
    env::var("MASU_FAULTS_CALL").map_or(true, |only| only == name)
}

fn is_whole() -> bool {
    whole().is_some()
}

fn run(program: &Program, fault: Fault) -> std::io::Result<Ended> {
    let mut command = program.command();
    if matches!(fault.uses, Uses::Only(_)) {
        command.arg("recovers");
    }
    supervisor::run(command, &program.code, fault)
}

/// The runs of one call with one error.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    runs: u64,
    /// Refusals in all runs.
    refused: u64,
    /// Runs in which a request was null.
    nulls: u64,
}

fn survived(ended: &Ended) -> bool {
    ended.status.success() && !ended.expired
}

impl Tried {
    /// Adds a run; returns `Err` with the run's fault.
    fn add(&mut self, name: &str, error: &str, fault: Fault, ended: &Ended) -> Result<(), String> {
        if !survived(ended) {
            let Ended { status, refused, uses, printed, .. } = ended;
            let hung = if ended.expired { ", killed after a long wait" } else { "" };
            let done = format!("{status}{hung}, {refused} of {uses} refused");
            return Err(format!("{name} {error} {:?}: {done}\n{printed}", fault.uses));
        }
        self.runs += 1;
        self.refused += ended.refused;
        self.nulls += u64::from(!ended.printed.starts_with("0 refused"));
        Ok(())
    }
}

/// A pseudo-random number below `below`.
fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below.max(1)
}

/// The uses of each call in a run without refusals; `None` if the kernel takes no filter.
fn uses(program: &Program) -> Option<Vec<u64>> {
    let count = |&(name, call): &(&str, i64)| {
        if !is_tried(name) {
            return Some(0);
        }
        let ended = run(program, Fault { call, error: 0, uses: Uses::Only(0) })
            .map_err(|error| eprintln!("not tested: no filter for {name}: {error}"))
            .ok()?;
        assert!(survived(&ended), "{name}: {} {}", ended.status, ended.printed);
        // Contention for a lock varies from run to run.
        let least = if name == "futex" { 40 } else { 0 };
        Some(ended.uses.max(least))
    };
    thread::scope(|scope| {
        let counts: Vec<_> = CALLS.iter().map(|call| scope.spawn(|| count(call))).collect();
        counts.into_iter().map(|count| count.join().expect("no panic")).collect()
    })
}

/// Runs every fault, some at a time; returns the runs by call and error, or the faults found.
fn run_all(
    program: &Program,
    faults: Vec<(usize, usize, Uses)>,
) -> BTreeMap<(usize, usize), Tried> {
    let faults = Mutex::new(faults.into_iter());
    let tried: Mutex<BTreeMap<(usize, usize), Tried>> = Mutex::default();
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        // A run and its supervisor wait for each other.
        for _ in 0..thread::available_parallelism().map_or(1, |cpus| (2 * cpus.get()).min(8)) {
            scope.spawn(|| {
                loop {
                    let next = faults.lock().expect("no panic").next();
                    let Some((call, error, uses)) = next else { break };
                    let (name, number) = CALLS[call];
                    let fault = Fault { call: number, error: ERRORS[error].1, uses };
                    let ended = run(program, fault).expect("it ran before");
                    let mut tried = tried.lock().expect("no panic");
                    let row = tried.entry((call, error)).or_default();
                    if let Err(text) = row.add(name, ERRORS[error].0, fault, &ended) {
                        wrong.lock().expect("no panic").push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
    tried.into_inner().expect("no panic")
}

#[test]
fn a_refused_call_gives_null_or_success_and_right_statistics() {
    assert_survived(&Program::in_c());
}

#[test]
fn a_refused_call_is_survived_by_a_rust_program() {
    assert_survived(&Program::in_rust("rust-glibc", "x86_64-unknown-linux-gnu"));
}

#[test]
fn a_refused_call_is_survived_by_a_rust_program_without_a_c_library() {
    assert_survived(&Program::in_rust("rust-musl", "x86_64-unknown-linux-musl"));
}

fn assert_survived(program: &Program) {
    let Some(uses) = uses(program) else { return };
    assert!(uses.iter().any(|uses| *uses > 0), "{}: no call is the allocator's", program.name);
    let mut faults = Vec::new();
    for (call, &count) in uses.iter().enumerate() {
        for error in 0..ERRORS.len() {
            // With threads the number of uses varies from run to run.
            let last = count + count / 4;
            faults.extend((1..=last).map(|n| (call, error, Uses::Only(n))));
            faults.extend((1..=count).map(|n| (call, error, Uses::From(n))));
        }
    }
    if !is_whole() {
        // The Rust programs differ only in the allocator's interface.
        faults = sample(&faults, if program.is_preloaded() { 30 } else { 8 });
    }
    let tried = run_all(program, faults);
    let table = table(&uses, &tried);
    println!("{}:\n{table}", program.name);
    if let Some(folder) = whole() {
        let file = Path::new(&folder).join(program.name).with_extension("md");
        fs::write(file, table).expect("the file is writable");
    }
}

/// The first use of each call with the errors in turn, and `drawn` random faults.
fn sample(all: &[(usize, usize, Uses)], drawn: usize) -> Vec<(usize, usize, Uses)> {
    let mut state = 1;
    let is_first = |&(call, error, uses): &(usize, usize, Uses)| match uses {
        Uses::Only(n) => n == 1 && call % 5 == error,
        Uses::From(n) => n == 1 && (call + 1) % 5 == error,
    };
    let mut chosen: Vec<_> = all.iter().copied().filter(is_first).collect();
    for _ in 0..drawn {
        let at = draw(&mut state, all.len() as u64);
        chosen.push(all[usize::try_from(at).expect("an index")]);
    }
    chosen
}

/// The table of the runs, in Markdown.
fn table(uses: &[u64], tried: &BTreeMap<(usize, usize), Tried>) -> String {
    let mut text = String::from("| call | uses in a run |");
    for (name, _) in ERRORS {
        let _ = write!(text, " {name} |");
    }
    text.push_str(" a request was null |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for (call, (name, _)) in CALLS.iter().enumerate() {
        let _ = write!(text, "| {name} | {} |", uses[call]);
        let mut nulls = 0;
        for error in 0..ERRORS.len() {
            let one = tried.get(&(call, error)).copied().unwrap_or_default();
            let _ = write!(text, " {} ({}) |", one.runs, one.refused);
            nulls += one.nulls;
        }
        let _ = writeln!(text, " {nulls} |");
    }
    text
}
