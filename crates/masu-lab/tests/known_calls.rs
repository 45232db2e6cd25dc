//! The counts of programs whose calls are known: this test starts itself. So it needs no compiler,
//! no shell and no strace, and runs under a guest's kernel too (docs/diagnose.md).

mod ending;

use std::ffi::{CString, OsString, c_long};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ending::{is_gone, wait_until};
use masu_lab::calls::{self, Call, Calls, Moves, OwnMoves};
use masu_lab::diagnose::{Hold, Options, diagnose_running};
use masu_lab::execute::Conditions;
use masu_lab::{Catalogue, Ending, Input, Places, Run, Stop, Variant, Workload, diagnose};

/// The calls of [`make_calls`].
const CALLS: [(Call, u64); 16] = [
    (Call::Brk, 1 + 2 * BREAKS),
    (Call::Mmap, MAPS),
    (Call::Munmap, MAPS),
    (Call::Madvise, PURGES),
    (Call::ProcessMadvise, PURGES_OF_TWO),
    (Call::Mprotect, 3),
    (Call::Mremap, DOUBLED),
    (Call::Futex, WAITS + WAKES),
    (Call::SchedYield, YIELDS),
    (Call::Write, TENS + 1),
    (Call::Pwrite64, 2),
    (Call::Writev, 3),
    (Call::Pwritev, 2),
    (Call::Pwritev2, 1),
    (Call::Sendto, 8),
    (Call::Execveat, 2),
];
/// Those of them that other threads of the test program make, too.
const MADE_BY_OTHERS: [Call; 8] = [
    Call::Brk,
    Call::Mmap,
    Call::Munmap,
    Call::Madvise,
    Call::Mprotect,
    Call::Futex,
    Call::SchedYield,
    Call::Write,
];

/// The number of times that [`make_calls`] makes a call.
fn known(call: Call) -> u64 {
    CALLS.iter().find(|(known, _)| *known == call).map_or(0, |(_, count)| *count)
}

const BREAKS: u64 = 50;
const MAPS: u64 = 30;
const PURGES: u64 = 5;
/// Purges by one call that names both halves of a mapping.
const PURGES_OF_TWO: u64 = 2;
const DOUBLED: u64 = 7;
const WAITS: u64 = 3;
const WAKES: u64 = 6;
const TENS: u64 = 36;

/// Bytes of a mapping before it is doubled, and of a step of the break: OS pages wherever this runs.
const MAPPED: u64 = 256 << 10;
const STEP: u64 = 64 << 10;

/// The moves of memory that [`make_calls`] asks for.
const MOVES: Moves = Moves {
    break_ups: BREAKS,
    break_downs: BREAKS,
    maps: MAPS,
    unmaps: MAPS,
    purges: PURGES + PURGES_OF_TWO,
    offers: 0,
    grows: 3,
    // The size of the first step is not seen.
    asked_bytes: (BREAKS - 1) * STEP + (MAPS + 3 + DOUBLED) * MAPPED,
    returned_bytes: BREAKS * STEP + (PURGES + PURGES_OF_TWO + MAPS + DOUBLED) * MAPPED,
    // The program makes these calls itself.
    own: OwnMoves {
        maps: MAPS,
        unmaps: MAPS,
        purges: PURGES + PURGES_OF_TWO,
        asked_bytes: (MAPS + 3 + DOUBLED) * MAPPED,
        returned_bytes: (PURGES + PURGES_OF_TWO + MAPS + DOUBLED) * MAPPED,
    },
};

const YIELDS: u64 = 4;

/// The threads and processes that [`the_starter`] starts, and the number of times that each tries to write.
const THREADS: usize = 9;
const PROCESSES: usize = 2;
const TRIES: u64 = 5;

/// Makes a system call by its number, so that no library adds calls or makes another one.
fn call(number: c_long, arguments: [usize; 6]) -> usize {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: Addresses among the arguments are those of memory that lives through the call, or that is unmapped by
    // it and used by nobody.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    result as usize
}

/// The address of a value, for the kernel.
fn place<T: ?Sized>(of: &T) -> usize {
    (&raw const *of).cast::<u8>().expose_provenance()
}

/// Makes the calls of [`CALLS`] and others that are not counted.
fn make_calls() {
    ask_for_memory();
    ask_for_locks();
    write_much();
}

fn ask_for_memory() {
    let (length, step) = (MAPPED as usize, STEP as usize);
    let end = call(libc::SYS_brk, [0; 6]);
    for _ in 0..BREAKS {
        call(libc::SYS_brk, [end + step, 0, 0, 0, 0, 0]);
        call(libc::SYS_brk, [end, 0, 0, 0, 0, 0]);
    }
    let writable = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let own = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    for index in 0..MAPS {
        let mut length = length;
        let mut place = call(libc::SYS_mmap, [0, length, writable, own, usize::MAX, 0]);
        if index < PURGES {
            call(libc::SYS_madvise, [place, length, libc::MADV_DONTNEED as usize, 0, 0, 0]);
        }
        if index < PURGES_OF_TWO {
            let halves = [place, length / 2, place + length / 2, length / 2];
            let (this_process, advice) = (usize::MAX - 9999, libc::MADV_DONTNEED as usize);
            call(libc::SYS_process_madvise, [this_process, self::place(&halves), 2, advice, 0, 0]);
        }
        if index < 3 {
            call(libc::SYS_mprotect, [place, length, writable, 0, 0, 0]);
        }
        if index < DOUBLED {
            let moves = libc::MREMAP_MAYMOVE as usize;
            place = call(libc::SYS_mremap, [place, length, 2 * length, moves, 0, 0]);
            length *= 2;
        }
        assert_eq!(call(libc::SYS_munmap, [place, length, 0, 0, 0, 0]), 0);
    }
}

fn ask_for_locks() {
    let word = 1_u32;
    let word = place(&word);
    for _ in 0..WAKES {
        call(libc::SYS_futex, [word, libc::FUTEX_WAKE as usize, 1, 0, 0, 0]);
    }
    for _ in 0..WAITS {
        // The word has another value, so the call returns at once.
        call(libc::SYS_futex, [word, libc::FUTEX_WAIT as usize, 0, 0, 0, 0]);
    }
    for _ in 0..YIELDS {
        call(libc::SYS_sched_yield, [0; 6]);
    }
}

/// Tries to write where nothing can be written, by a call that no library makes.
fn try_to_write() {
    for _ in 0..TRIES {
        call(libc::SYS_pwrite64, [usize::MAX, 0, 0, 0, 0, 0]);
    }
}

fn write_much() {
    let text = [b'x'; 4096];
    let at = place(&text);
    let vector = [at, 100, at, 900];
    let vector = place(&vector);
    let here = libc::AT_FDCWD as usize;
    let null = place(c"/dev/null".to_bytes_with_nul());
    let null = call(libc::SYS_openat, [here, null, libc::O_WRONLY as usize, 0, 0, 0]);
    let mut sockets = [0_i32; 2];
    let both = sockets.as_mut_ptr().expose_provenance();
    let (unix, stream) = (libc::AF_UNIX as usize, libc::SOCK_STREAM as usize);
    assert_eq!(call(libc::SYS_socketpair, [unix, stream, 0, both, 0, 0]), 0);
    for _ in 0..TENS {
        assert_eq!(call(libc::SYS_write, [null, at, 10, 0, 0, 0]), 10);
    }
    call(libc::SYS_write, [null, at, 4096, 0, 0, 0]);
    for (number, length, times) in [
        (libc::SYS_pwrite64, 10, 2),
        (libc::SYS_writev, 2, 3),
        (libc::SYS_pwritev, 2, 2),
        (libc::SYS_pwritev2, 2, 1),
    ] {
        let from = if number == libc::SYS_pwrite64 { at } else { vector };
        for _ in 0..times {
            call(number, [null, from, length, 0, 0, 0]);
        }
    }
    for _ in 0..8 {
        assert_eq!(call(libc::SYS_sendto, [sockets[0] as usize, at, 10, 0, 0, 0]), 10);
    }
    let missing = place(c"/no/such/program".to_bytes_with_nul());
    for _ in 0..2 {
        call(libc::SYS_execveat, [here, missing, 0, 0, 0, 0]);
    }
}

/// Runs `body` in a process of its own, which makes no other calls, and waits for it.
fn in_child(body: impl FnOnce()) {
    // SAFETY: The child makes system calls by their numbers, and never returns from here.
    let child = unsafe { libc::fork() };
    if child == 0 {
        body();
        end();
    }
    call(libc::SYS_wait4, [child as usize, 0, 0, 0, 0, 0]);
}

/// Ends the process directly, so that no call follows the known ones.
fn end() -> ! {
    call(libc::SYS_exit_group, [0; 6]);
    unreachable!("it has ended")
}

#[test]
#[ignore = "started by the other tests"]
fn the_caller() {
    in_child(make_calls);
    end();
}

#[test]
#[ignore = "started by the other tests"]
fn the_caller_that_waits_for_the_answer() {
    let mut byte = 0_u8;
    let byte = (&raw mut byte).expose_provenance();
    let wait = || assert_eq!(call(libc::SYS_read, [0, byte, 1, 0, 0, 0]), 1);
    wait();
    in_child(make_calls);
    call(libc::SYS_write, [2, place(b"!"), 1, 0, 0, 0]);
    wait();
    end();
}

#[test]
#[ignore = "started by the other tests"]
fn the_starter() {
    for _ in 0..THREADS {
        thread::spawn(try_to_write).join().unwrap();
    }
    let words = command("--list").map(|word| CString::new(word.into_vec()).unwrap());
    let mut words: Vec<_> = words.iter().map(|word| word.as_ptr().expose_provenance()).collect();
    words.push(0);
    let list = place(&words[..]);
    in_child(try_to_write);
    in_child(|| {
        try_to_write();
        // The program gets no variables: the zero at the end of the arguments is an empty list.
        let none = list + (words.len() - 1) * size_of::<usize>();
        call(libc::SYS_execve, [words[0], list, none, 0, 0, 0]);
    });
    end();
}

#[test]
#[ignore = "started by the other tests"]
fn the_one_that_is_killed() {
    call(libc::SYS_kill, [std::process::id() as usize, libc::SIGKILL as usize, 0, 0, 0, 0]);
}

/// One of the programs above. Its main thread waits for the test as on a machine of several CPUs: with a time limit,
/// so that a wait that is interrupted goes on by a call of its own, which is none of those counted.
fn command(name: &str) -> [OsString; 5] {
    let own = std::env::current_exe().unwrap().into_os_string();
    [own, "--test-threads=2".into(), "--ignored".into(), "--exact".into(), name.into()]
}

/// The lock that lets one test run at a time: a run takes any other child of this process for its own.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn workload(name: &str) -> Workload {
    Workload::new(command(name), Input::Empty).unwrap()
}

/// Counts a program without changes.
fn counted(name: &str) -> (Run, Calls) {
    let (workload, variant) = (workload(name), Variant::default());
    calls::count(&workload, &variant, &Conditions::default(), &Stop::never()).unwrap()
}

#[test]
fn calls_are_counted_with_what_they_ask_for() {
    let _turn = turn();
    let (run, counted) = counted("the_caller");
    assert_eq!(run.ending, Ending::Exited(0), "{run:?}");
    for (call, known) in CALLS {
        let count = counted.total.of(call);
        // The program's start and its main thread make these too.
        let may_be_more = MADE_BY_OTHERS.contains(&call);
        let is_right = if may_be_more { count >= known } else { count == known };
        assert!(is_right, "{}: {count} for {known}: {counted:?}", call.name());
    }
    assert!(counted.total.futex_waits >= WAITS && counted.total.futex_wakes >= WAKES);
    assert!(counted.total.moves.purges >= MOVES.purges && counted.total.moves.maps >= MAPS);
}

#[test]
fn threads_and_processes_and_the_programs_that_they_run_are_counted() {
    let _turn = turn();
    let (run, counted) = counted("the_starter");
    assert_eq!(run.ending, Ending::Exited(0), "{run:?}");
    let writes = counted.total.of(Call::Pwrite64);
    assert_eq!(writes, TRIES * (THREADS + PROCESSES) as u64, "{counted:?}");
    assert_eq!(counted.processes, 1 + PROCESSES as u64, "{counted:?}");
    // The first program, and that of the last child.
    assert_eq!((counted.total.of(Call::Execve), counted.programs.len()), (2, 1), "{counted:?}");
    assert_eq!(counted.programs_begun, 2, "{counted:?}");
    let starts = [Call::Fork, Call::Clone, Call::Clone3, Call::Vfork];
    assert_eq!(counted.total.of_any(&starts), counted.threads_begun - 1, "{counted:?}");
}

#[test]
fn a_program_that_is_killed_ends_the_run_as_it_would_alone() {
    let _turn = turn();
    let (run, _) = counted("the_one_that_is_killed");
    assert_eq!((run.ending, run.left_behind), (Ending::Signalled(9), Vec::<String>::new()));
}

#[test]
fn a_diagnosis_has_what_was_counted() {
    let _turn = turn();
    let (workload, variant) = (workload("the_caller"), Variant::default());
    let (catalogue, options) = (Catalogue::find(&Places::default()), Options::default());
    let diagnosis =
        diagnose(&workload, &variant, &catalogue, &options, &Stop::never(), &mut |_| {}).unwrap();
    assert_eq!(diagnosis.facts.ending.as_deref(), Some("returned 0"), "{diagnosis:?}");
    let calls = diagnosis.facts.calls.as_ref().unwrap_or_else(|| panic!("{diagnosis:?}"));
    assert_eq!(calls.counts.get("execveat"), Some(&known(Call::Execveat)));
    assert!(calls.moves.break_pairs() >= BREAKS && calls.moves.purges >= PURGES, "{calls:?}");
}

#[test]
fn a_process_that_is_attached_to_goes_on_with_what_it_sleeps_in_and_is_counted() {
    let _turn = turn();
    let [own, words @ ..] = command("the_caller_that_waits_for_the_answer");
    let mut child = Command::new(own)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut tells, mut said) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    let pid = child.id();
    // Otherwise the main thread's own wait would be counted with the others.
    let waits = format!("{} ", libc::SYS_futex);
    wait_until("its main thread waits", || thread_in(pid, &waits).is_some());
    let reads = format!("{} 0x0 ", libc::SYS_read);
    wait_until("it reads", || thread_in(pid, &reads).is_some());
    let reader = thread_in(pid, &reads).unwrap();
    let slept = sleeps(&reader);
    let stop = Stop::never();
    let diagnosing = thread::spawn({
        let stop = stop.clone();
        move || diagnose_running(pid, Duration::MAX, Hold::Attached, &stop)
    });
    // Three sleeps: the read is interrupted, the thread is stopped where it reads again, and it sleeps in that read.
    wait_until("it reads on", || sleeps(&reader) >= slept + 3);
    tells.write_all(b"!").unwrap();
    let mut done = [0];
    said.read_exact(&mut done).unwrap();
    stop.request();
    let diagnosis = diagnosing.join().unwrap().unwrap();
    // The program goes on by itself.
    assert!(!is_gone(&pid.to_string()));
    tells.write_all(b"!").unwrap();
    assert!(child.wait().unwrap().success());
    let calls = diagnosis.facts.calls.as_ref().unwrap_or_else(|| panic!("{diagnosis:?}"));
    for call in Call::ALL {
        let expected = match call {
            // The program writes once more, when it is done.
            Call::Write => known(call) + 1,
            Call::Fork | Call::Clone | Call::Clone3 | Call::Vfork => continue,
            _ => known(call),
        };
        let count = calls.counts.get(call.name()).copied().unwrap_or(0);
        assert_eq!(count, expected, "{}: {calls:?}", call.name());
    }
    assert_eq!((calls.moves, calls.processes), (MOVES, 2), "{calls:?}");
}

/// The folder in `/proc` of a thread that sleeps in a call whose number and arguments begin so.
fn thread_in(pid: u32, call: &str) -> Option<PathBuf> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut threads = threads.filter_map(|thread| Some(thread.ok()?.path()));
    threads.find(|thread| {
        fs::read_to_string(thread.join("syscall")).is_ok_and(|line| line.starts_with(call))
    })
}

/// The number of times that a thread gave up the CPU of its own accord.
fn sleeps(thread: &Path) -> u64 {
    let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
    let number = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
