//! Tests of single runs, all on real commands of this machine.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::thread;

use super::*;
use crate::Input;
use crate::hooks::Hook;

fn system() -> Variant {
    Variant { label: "system".to_owned(), allocator: "system".to_owned(), ..Variant::default() }
}

fn run_with(arguments: &[&str], input: Input, limits: &Limits, stop: &Stop) -> Run {
    let workload = Workload::new(arguments.iter().map(OsString::from), input).unwrap();
    execute(&workload, &system(), &limits.clone().into(), stop).unwrap()
}

fn run(arguments: &[&str]) -> Run {
    run_with(arguments, Input::Empty, &Limits::default(), &Stop::never())
}

#[test]
fn exit_codes_and_signals_are_distinguished() {
    assert_eq!(run(&["true"]).ending, Ending::Exited(0));
    assert_eq!(run(&["sh", "-c", "exit 7"]).ending, Ending::Exited(7));
    assert_eq!(run(&["sh", "-c", "kill -SEGV $$"]).ending, Ending::Signalled(11));
}

#[test]
fn output_is_counted_and_hashed_to_the_last_byte() {
    let long = run(&["sh", "-c", "head -c 3000000 /dev/zero; echo over >&2"]);
    assert_eq!(long.stdout.bytes, 3_000_000);
    assert_eq!(long.stderr.tail, "over\n");
    let expected = xxhash_rust::xxh3::xxh3_128(&vec![0; 3_000_000]);
    assert_eq!(long.stdout.hash, format!("{expected:032x}"));
    assert_eq!(long.stdout.tail, "");
}

#[test]
fn only_the_end_of_standard_error_is_kept() {
    let run = run(&["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2"]);
    assert_eq!(run.stderr.bytes, 100_004);
    assert_eq!(run.stderr.tail.len(), Output::TAIL_BYTES);
    assert!(run.stderr.tail.ends_with("xend\n"));
}

#[test]
fn every_run_reads_the_kept_input_from_its_start() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let writing = thread::spawn(move || writer.write_all(b"a\nb\nc\n"));
    let input = Input::keep(File::from(std::os::fd::OwnedFd::from(reader))).unwrap();
    writing.join().unwrap().unwrap();
    let workload = Workload::new(["sed", "s/^/x/"], input).unwrap();
    let conditions = Conditions::default();
    let made = || execute(&workload, &system(), &conditions, &Stop::never()).unwrap();
    let runs = [made(), made()];
    assert_eq!(runs[0].stdout.bytes, 9);
    assert_eq!(runs[0].stdout, runs[1].stdout);
}

#[test]
fn without_input_the_program_meets_the_end_at_once() {
    assert_eq!(run(&["cat"]).stdout.bytes, 0);
}

#[test]
fn cpu_time_memory_and_faults_are_those_of_the_program() {
    let run = run(&["sh", "-c", "x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ${#x}"]);
    assert_eq!(run.ending, Ending::Exited(0));
    assert!(run.peak_rss_bytes > 20_000_000, "{run:?}");
    // Few faults happen where huge pages are always on.
    assert!(run.minor_faults > 20, "{run:?}");
    assert!(run.wall_s > 0.0 && run.user_s + run.sys_s > 0.0, "{run:?}");
}

#[test]
fn a_run_over_its_time_is_killed_with_its_children() {
    let limits = Limits { time: Some(Duration::from_millis(50)), memory_bytes: None };
    let run =
        run_with(&["sh", "-c", "sleep 1000 & sleep 1000"], Input::Empty, &limits, &Stop::never());
    assert_eq!(run.ending, Ending::TimedOut);
}

#[test]
fn a_runaway_is_killed_and_named() {
    let limits = Limits { time: None, memory_bytes: Some(64 << 20) };
    // The program grows by a megabyte a step, so that it cannot outrun the watch by much.
    let script = "y=$(head -c 1000000 /dev/zero | tr '\\0' x); while :; do x=$x$y; done";
    let run = run_with(&["sh", "-c", script], Input::Empty, &limits, &Stop::never());
    let Ending::OutOfMemory { process, bytes } = run.ending else { panic!("{:?}", run.ending) };
    assert!(process.starts_with("sh (") && process.ends_with(" MiB"), "{process}");
    assert!(bytes > 64 << 20);
}

#[test]
fn a_request_to_stop_ends_the_run() {
    let stop = Stop::never();
    stop.request();
    let run = run_with(&["sleep", "1000"], Input::Empty, &Limits::default(), &stop);
    assert_eq!(run.ending, Ending::Stopped);
}

#[test]
fn processes_left_behind_are_named_and_killed_even_in_sessions_of_their_own() {
    let run = run(&["sh", "-c", "setsid sleep infinity & sleep infinity & exit 0"]);
    assert_eq!(run.ending, Ending::Exited(0));
    assert_eq!(run.left_behind.len(), 2, "{:?}", run.left_behind);
    assert!(run.wall_s < 100.0);
    for left in &run.left_behind {
        let pid = left.rsplit_once('(').unwrap().1.trim_end_matches(')');
        // A killed process ends when the kernel lets it.
        while tree::is_alive(pid.parse().unwrap()) {
            thread::yield_now();
        }
    }
}

#[test]
fn what_cannot_be_started_is_named() {
    let mut workload = Workload::new(["true"], Input::Empty).unwrap();
    workload.program.path = "/no/such/program".into();
    let error = execute(&workload, &system(), &Conditions::default(), &Stop::never()).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
}

#[test]
fn a_run_starts_in_its_folder_with_a_longer_environment() {
    let script = "printf %s $ENVIRONMENT_OFFSET; pwd >&2";
    let workload = Workload::new(["sh", "-c", script], Input::Empty).unwrap();
    let folder = std::fs::canonicalize(std::env::temp_dir()).unwrap();
    let conditions =
        Conditions { offset_bytes: 123, folder: Some(folder.clone()), ..Conditions::default() };
    let run = execute(&workload, &system(), &conditions, &Stop::never()).unwrap();
    assert_eq!((run.offset_bytes, run.stdout.bytes), (123, 123));
    assert_eq!(run.stderr.tail.trim_end(), folder.to_str().unwrap());
}

#[test]
fn a_run_may_write_to_a_terminal_to_the_last_line() {
    // The child that is left holds the terminal for as long as it is there.
    let script = "test -t 1 && echo is one; seq 20000; sleep 1000 & echo last >&2";
    let workload = Workload::new(["sh", "-c", script], Input::Empty).unwrap();
    let conditions = Conditions { terminal: true, ..Conditions::default() };
    let run = execute(&workload, &system(), &conditions, &Stop::never()).unwrap();
    // On a terminal each line ends with two bytes.
    let lines: u64 = (1..=20_000_u64).map(|line| line.to_string().len() as u64 + 2).sum();
    assert_eq!(run.stdout.bytes, "is one".len() as u64 + 2 + lines, "{run:?}");
    assert_eq!((run.ending, run.stderr.tail.as_str()), (Ending::Exited(0), "last\n"));
    assert_eq!(run.left_behind.len(), 1);
}

#[test]
fn a_run_tells_of_its_memory_over_time_and_of_its_neighbors() {
    // The run goes on until the watch has seen that much memory.
    let limits = Limits { time: None, memory_bytes: Some(16 << 20) };
    let script = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 1000";
    let run = run_with(&["sh", "-c", script], Input::Empty, &limits, &Stop::never());
    let largest = run.rss_over_time.iter().map(|point| point.1).max().unwrap();
    assert!(largest > 1 << 20 && largest <= run.peak_rss_bytes, "{run:?}");
    assert!(run.rss_over_time.iter().all(|point| (0.0..=run.wall_s + 0.1).contains(&point.0)));
    assert!(run.load.is_some() && run.steal_s.is_some() && run.others_s.is_some(), "{run:?}");
}

#[test]
fn a_signal_is_recognized_by_number_and_name() {
    assert_eq!(Ending::Signalled(11).to_string(), "was ended by signal 11 (SIGSEGV)");
    assert_eq!(Ending::Signalled(64).to_string(), "was ended by signal 64");
}

#[test]
fn the_program_goes_first_should_memory_run_out() {
    let run = run(&["sh", "-c", "read worst < /proc/self/oom_score_adj; exit $((worst / 10))"]);
    assert_eq!(run.ending, Ending::Exited(100));
}

#[test]
fn orphans_that_have_ended_are_gone_while_the_run_goes_on() {
    let list = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let script = "i=0; while [ $i -lt 20 ]; do (: & echo $! >> $0); i=$((i+1)); done; \
                  for p in $(cat $0); do while [ -e /proc/$p ]; do sleep 0.01; done; done";
    let limits = Limits { time: Some(Duration::from_secs(600)), memory_bytes: None };
    let words = ["sh", "-c", script, list.to_str().unwrap()];
    let run = run_with(&words, Input::Empty, &limits, &Stop::never());
    assert_eq!((run.ending, run.left_behind.len()), (Ending::Exited(0), 0));
}

#[test]
#[expect(unsafe_code, reason = "only a filter makes the kernel refuse to watch a process")]
fn a_program_or_a_hook_that_cannot_be_watched_is_ended() {
    let code =
        |code: u32, skipped, k| libc::sock_filter { code: code as u16, jt: 0, jf: skipped, k };
    let number = u32::try_from(libc::SYS_pidfd_open).unwrap();
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let mut filter = [
        code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, number),
        code(libc::BPF_RET | libc::BPF_K, 0, refused),
        code(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // The filter is that of a thread, and ends with it.
    let filtered = thread::spawn(move || {
        let _alone = alone();
        let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        // SAFETY: The filter is as long as its head says, and the kernel takes a copy.
        let set = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if set != 0 {
            eprintln!("skipped: no filters here");
            return;
        }
        let before = Tree::children_here();
        let workload = Workload::new(["sleep", "1000"], Input::Empty).unwrap();
        let error =
            execute(&workload, &system(), &Conditions::default(), &Stop::never()).unwrap_err();
        assert!(error.to_string().contains("watching the program"), "{error}");
        let hook = Hook::Cleanup.run("sleep 1000".as_ref(), None, &Stop::never());
        assert!(hook.unwrap_err().to_string().contains("running the cleanup command"));
        assert_eq!(Tree::children_here(), before);
    });
    filtered.join().unwrap();
}
