//! Looks at processes of this machine, checked by their work and not by their timing.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::*;
use masu_run::execute::alone;

/// A shell that has begun its script.
fn shell(script: &str) -> Child {
    let mut child = Command::new("sh")
        .args(["-c", &format!("echo begun; {script}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    child
}

/// Looks at a child until `holds`, and ends it.
fn watched(child: Child, holds: impl Fn(&Looks) -> bool) -> Seen {
    all_watched([child], holds)
}

/// Looks at children, the first one first, until `holds`, and ends them.
fn all_watched<const N: usize>(children: [Child; N], holds: impl Fn(&Looks) -> bool) -> Seen {
    let members = children.each_ref().map(|child| Pid::try_from(child.id()).unwrap());
    let began = std::time::Instant::now();
    let mut looks = Looks::default();
    while !holds(&looks) {
        assert!(began.elapsed() < Duration::from_secs(600), "in vain: {looks:?}");
        looks.look(began.elapsed(), &members);
        thread::sleep(Duration::from_millis(10));
    }
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    looks.finish()
}

#[test]
fn a_thread_that_works_alone_is_reported_with_its_program() {
    let _alone = alone();
    let child = shell("while :; do :; done");
    let seen = watched(child, |looks| looks.tally.alone_s > 0.05 && looks.looks >= CLOSER_FROM);
    assert_eq!(seen.threads.most_at_once, 1);
    let busiest = &seen.threads.busiest[0];
    assert!(busiest.is_first && busiest.cpu_s > 0.0 && busiest.alone_s > 0.0, "{busiest:?}");
    let program = &seen.programs[0];
    assert!(program.is_command && program.path.is_absolute(), "{program:?}");
    assert!(seen.code.is_some_and(|code| code.mappings > 0));
}

#[test]
fn the_parallel_part_is_the_time_of_those_who_work_at_once() {
    let _alone = alone();
    let both = || shell("while :; do :; done");
    let seen = all_watched([both(), both()], |looks| looks.tally.parallel_cpu_s > 0.05);
    assert!(seen.threads.parallel_cpu_s <= seen.threads.cpu_s, "{:?}", seen.threads);
}

/// Looks that have just met these threads, each with its process and its seconds of work.
fn met(threads: &[(Pid, f64)]) -> Looks {
    let mut looks = Looks { looks: 1, ..Looks::default() };
    for (number, &(process, did_s)) in (100..).zip(threads) {
        let time = ThreadTime { process, ..ThreadTime::default() };
        let (look, state) = (1, if did_s > 0.0 { 'R' } else { 'S' });
        let seen =
            ThreadSeen { time, did_s, wanted_s: did_s, look, state, ..ThreadSeen::default() };
        looks.threads.insert(number, seen);
    }
    looks
}

#[test]
fn a_thread_alone_in_its_process_is_found_without_the_processes_that_help_it() {
    // One thread of two works, and a process at the other end of a pipe takes its output.
    let mut looks = met(&[(7, 1.0), (7, 0.0), (8, 0.4)]);
    looks.account(1.0, &[(7, 1.0), (8, 0.4), (9, 0.0)]);
    assert_eq!((looks.tally.alone_s, looks.tally.together_s, looks.only), (1.0, 0.0, Some(100)));
    assert_eq!(looks.threads[&100].time.alone_s, 1.0);
    // The other thread of the process does some work too.
    let mut looks = met(&[(7, 0.9), (7, 0.1), (8, 0.4)]);
    looks.account(1.0, &[(7, 1.0), (8, 0.4)]);
    assert_eq!((looks.tally.alone_s, looks.only), (1.0, None));
    let mut looks = met(&[(7, 0.6), (7, 0.4), (8, 0.4)]);
    looks.account(1.0, &[(7, 1.0), (8, 0.4)]);
    assert_eq!((looks.tally.alone_s, looks.tally.together_s), (0.0, 1.0));
    assert_eq!(looks.threads[&102].time.together_s, 0.0);
}

#[test]
fn a_thread_that_waits_for_a_cpu_counts_as_working() {
    // The other thread is ready, and others on the machine had its CPU.
    let mut looks = met(&[(7, 1.0), (7, 0.0)]);
    looks.threads.get_mut(&101).unwrap().state = 'R';
    looks.account(1.0, &[(7, 1.0)]);
    assert_eq!((looks.tally.alone_s, looks.tally.together_s), (0.0, 1.0));
    // A long wait is known at its end. It counts for no more work than there was time.
    let mut looks = met(&[(7, 0.9), (7, 0.8)]);
    looks.threads.get_mut(&101).unwrap().wanted_s = 20.0;
    looks.account(1.0, &[(7, 1.7)]);
    assert_eq!((looks.tally.alone_s, looks.tally.together_s), (0.0, 1.0));
}

#[test]
fn a_wait_for_a_cpu_that_is_not_over_is_no_idle_time() {
    let idle_s = |queue_s| {
        let mut looks = met(&[(7, 0.05)]);
        let thread = looks.threads.get_mut(&100).unwrap();
        (thread.clock_s, thread.queue_s) = (1.0, queue_s);
        looks.account(1.0, &[(7, 0.05)]);
        looks.tally.idle_s
    };
    // The thread ran for a twentieth of the time and is ready. On a quiet machine it slept; a thread that always waits
    // waited.
    assert_eq!([idle_s(0.1), idle_s(9.0)], [1.0, 0.0]);
}

#[test]
fn processes_that_work_half_as_much_are_no_helpers() {
    let mut looks = met(&[(7, 1.0), (8, 0.6)]);
    looks.account(1.0, &[(7, 1.0), (8, 0.6)]);
    assert_eq!((looks.tally.alone_s, looks.tally.together_s, looks.only), (0.0, 1.0, None));
    // Several processes that do so together are no helpers either.
    let mut looks = met(&[(7, 1.0), (8, 0.3), (9, 0.3)]);
    looks.account(1.0, &[(7, 1.0), (8, 0.3), (9, 0.3)]);
    assert_eq!(looks.tally.together_s, 1.0);
    // Threads that came and went count for their process.
    let mut looks = met(&[(7, 0.5), (8, 0.2)]);
    looks.account(1.0, &[(7, 1.0), (8, 0.2)]);
    assert_eq!((looks.tally.alone_s, looks.tally.together_s), (0.0, 1.0));
}

#[test]
fn a_program_that_sleeps_is_idle_and_the_reason_is_reported() {
    let _alone = alone();
    for (script, expected) in [("read line", Waiting::Data), ("exec sleep 1000", Waiting::Time)] {
        let seen = watched(shell(script), |looks| looks.idle_for.contains_key(&expected));
        assert!(seen.threads.idle_s > 0.0, "{script}: {seen:?}");
    }
}

#[test]
fn a_process_that_is_not_there_has_no_arenas() {
    assert_eq!(arenas(Pid::MAX), 0);
}

#[test]
fn closer_looks_grow_rare() {
    let closer: Vec<u64> = (0..100).filter(|look| is_closer(*look)).collect();
    assert_eq!(closer, [4, 6, 8, 12, 16, 24, 32, 48, 64, 96]);
}

#[test]
fn a_heap_that_is_being_given_back_at_the_end_is_not_what_the_program_held() {
    let at = |at_s, free_bytes| Heap { at_s, free_bytes, ..Heap::default() };
    let heaps = || vec![at(0.5, 10), at(0.8, 20), at(0.95, 900)];
    let chosen = |ending| before_the_end(heaps(), Duration::from_secs_f64(ending));
    assert_eq!(chosen(0.85), Some(at(0.8, 20)));
    assert_eq!(chosen(0.4), None);
}
