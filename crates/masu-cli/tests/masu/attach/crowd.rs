//! Many threads attached to at once (`tests/c/crowd.c`): each of them is counted, and so are the threads and children
//! that begin in that time; and whatever ends masu, none of them stays stopped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{diagnosis, signal};
use crate::ending::wait_until;
use crate::guest::Folder;
use crate::masu;

/// The threads from the start, the threads that each turn adds, and the steps of each in a turn: as in the program.
const FIRST: usize = 4;
const MORE: usize = 2;
const TIMES: usize = 100;

/// The program, killed at the end of the test.
pub(super) struct Crowd {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
    _folder: Folder,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Crowd {
    pub(super) fn new(mode: &str) -> Crowd {
        let folder = Folder::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/crowd.c");
        let program = folder.path().join("crowd");
        let compiled =
            Command::new("gcc").args(["-pthread", "-o"]).args([&program, &source]).status();
        assert!(compiled.expect("this test needs gcc").success());
        let mut child = Command::new(program)
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was just made");
        let orders = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut crowd = Crowd { child, orders, lines, _folder: folder };
        crowd.line();
        crowd
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("it says text");
        assert!(line.ends_with('\n'), "it has ended: {line}");
        line.trim_end().to_owned()
    }

    /// Has every thread work a turn; returns the path in `/proc` of the child that was made in it.
    pub(super) fn turn(&mut self) -> PathBuf {
        self.orders.write_all(b"turn\n").expect("it reads");
        let line = self.line();
        Path::new("/proc").join(line.strip_prefix("done ").expect("a turn ends so"))
    }

    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The thread that traces its first thread; `0` where none does.
    pub(super) fn tracer(&self) -> String {
        standings(&self.process())[0].tracer.clone()
    }

    fn process(&self) -> PathBuf {
        Path::new("/proc").join(self.pid())
    }

    /// masu, attached for an hour.
    pub(super) fn attached(&self) -> Child {
        let mut command = masu(&["diagnose", "--attach", "--for", "1h", "--json", "-p"]);
        let command = command.arg(self.pid()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let masu = command.spawn().expect("masu starts");
        wait_until("all threads are traced", || {
            let threads = standings(&self.process());
            !threads.is_empty() && threads.iter().all(|it| it.tracer != "0")
        });
        masu
    }
}

/// A thread as `/proc` has it.
#[derive(Debug)]
struct Standing {
    state: String,
    tracer: String,
}

/// The standings of all threads of a process; none where it is gone.
fn standings(process: &Path) -> Vec<Standing> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let read = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let value = |name| status.lines().find_map(|line| line.strip_prefix(name));
        let word = |name| value(name)?.split_whitespace().next().map(str::to_owned);
        Some(Standing { state: word("State:")?, tracer: word("TracerPid:")? })
    };
    threads.filter_map(read).collect()
}

/// True if no thread of the process is traced or stopped.
fn are_free(process: &Path) -> bool {
    let is_free = |it: &Standing| it.tracer == "0" && !["t", "T"].contains(&it.state.as_str());
    standings(process).iter().all(is_free)
}

#[test]
fn every_thread_is_counted_those_that_begin_and_children_too_and_none_stays_stopped() {
    for name in ["-INT", "-TERM"] {
        let mut crowd = Crowd::new("turns");
        // Work from before masu attached is not counted.
        let before = crowd.turn();
        let masu = crowd.attached();
        assert_eq!(standings(&crowd.process()).len(), 1 + FIRST + MORE);
        let turns = 3;
        let mut children = vec![before];
        children.extend((0..turns).map(|_| crowd.turn()));
        signal(name, &masu.id().to_string());
        let diagnosis = diagnosis(&masu.wait_with_output().unwrap());
        let calls = &diagnosis["facts"]["calls"];
        // The threads of the turn before are there, and each turn adds to them; the child works too.
        let at_work = |turn: usize| FIRST + MORE * (1 + turn) + 1;
        let said = turns;
        let writes = TIMES * (1..=turns).map(at_work).sum::<usize>() + said;
        assert_eq!(calls["counts"]["write"], writes, "{calls}");
        assert_eq!(calls["small_writes"]["pipes"], said, "{calls}");
        let not_seen = diagnosis["not_seen"].to_string();
        assert!(not_seen.contains("system calls of children that it had before"), "{not_seen}");
        assert_eq!(calls["processes"], 1 + turns, "{calls}");
        assert_eq!(calls["threads_started"], FIRST + MORE * (1 + turns), "{calls}");
        go_on(crowd, &children);
    }
}

#[test]
fn when_masu_is_killed_every_thread_goes_on_and_children_do() {
    let mut crowd = Crowd::new("turns");
    let mut masu = crowd.attached();
    let mut children = vec![crowd.turn()];
    crowd.orders.write_all(b"turn\n").unwrap();
    // masu is killed in the middle of a turn, or at its end.
    masu.kill().unwrap();
    masu.wait().unwrap();
    let line = crowd.line();
    children.push(Path::new("/proc").join(line.strip_prefix("done ").unwrap()));
    go_on(crowd, &children);
}

/// Checks that all threads are free and work, and that the children end with their parent: a stopped child would not.
fn go_on(mut crowd: Crowd, children: &[PathBuf]) {
    let process = crowd.process();
    let mut children = children.to_vec();
    wait_until("all are free", || children.iter().chain([&process]).all(|it| are_free(it)));
    children.push(crowd.turn());
    let are_there = |it: &PathBuf| !standings(it).is_empty();
    assert!(children.iter().all(are_there), "children have ended: {children:?}");
    drop(crowd);
    wait_until("the children have ended", || {
        children.iter().all(|it| standings(it).iter().all(|it| it.state == "Z"))
    });
}

#[test]
fn a_process_whose_threads_come_and_go_is_taken_hold_of_and_let_go() {
    let mut crowd = Crowd::new("churn");
    let goes_on = |crowd: &mut Crowd| {
        wait_until("all are free", || are_free(&crowd.process()));
        // More than a pipe holds.
        for _ in 0..15_000 {
            assert_eq!(crowd.line(), "line");
        }
    };
    for turn in 0..4 {
        let mut command = masu(&["diagnose", "--attach", "--for", "50ms", "--json", "-p"]);
        let mut masu = command.arg(crowd.pid()).stdout(Stdio::null()).spawn().unwrap();
        if turn % 2 == 1 {
            wait_until("it is attached to", || {
                standings(&crowd.process()).iter().any(|it| it.tracer != "0")
            });
            masu.kill().unwrap();
            masu.wait().unwrap();
        } else {
            // A thread that cannot write does not come and go.
            while masu.try_wait().unwrap().is_none() {
                crowd.line();
            }
            assert!(masu.wait().unwrap().success());
        }
        goes_on(&mut crowd);
    }
}
