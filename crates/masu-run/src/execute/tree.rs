//! The processes of a run: their list, their memory, their end.
//!
//! This process is a *subreaper*: a process whose parent ends becomes our child, so nothing escapes by forking twice.
//! A run's processes are the root's descendants, plus our children that were not there before the run, unless they are
//! in a *session* that was: servers that were started earlier lose children to us too.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use crate::kernel::{self, Usage};
use crate::proc_files::{self, Scheduled, Stat};

pub type Pid = i32;

/// The most lists of children that are compared.
const LISTS_MAX: usize = 8;

#[derive(Debug)]
pub struct Tree {
    pub(crate) root: Pid,
    /// Children of this process that do not belong to the run.
    before: Vec<Pid>,
    /// The sessions of those children and their descendants; a run begins its own session and can enter no other.
    sessions_before: BTreeSet<Pid>,
    /// The nanoseconds that each thread had waited for a CPU at the last look.
    queued: RefCell<HashMap<Pid, u64>>,
    /// The same of processes that were reaped, all together.
    queued_before: Cell<u64>,
    reaped: Cell<Usage>,
}

#[derive(Debug, Default)]
pub struct Sample {
    pub(crate) held: Held,
    pub(crate) threads: usize,
    pub(crate) members: Vec<Pid>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Held {
    pub resident_bytes: u64,
    /// Resident and swapped bytes, which count against a limit: a runaway that is swapped out grows on.
    pub bytes: u64,
    /// The process that holds most of these bytes, and its number of bytes.
    pub largest: Option<(Pid, u64)>,
}

impl Held {
    pub fn of(members: &[Pid]) -> Held {
        let mut held = Held::default();
        for &pid in members {
            if is_counted_with_its_parent(pid, members) {
                continue;
            }
            let resident = rss_bytes(pid).unwrap_or(0);
            let bytes = resident + swapped_bytes(pid);
            held.resident_bytes += resident;
            held.bytes += bytes;
            if bytes > held.largest.map_or(0, |(_, most)| most) {
                held.largest = Some((pid, bytes));
            }
        }
        held
    }
}

/// True for a child of `vfork` before its `exec`: the memory is its parent's, and counted there.
fn is_counted_with_its_parent(pid: Pid, members: &[Pid]) -> bool {
    state_of(pid).is_some_and(|state| {
        members.contains(&state.parent) && kernel::shares_memory(pid, state.parent)
    })
}

impl Tree {
    /// The processes of the run of `root`; `before` are the children this process had earlier.
    pub(crate) fn new(root: Pid, before: Vec<Pid>) -> Tree {
        let older = with_descendants(before.clone());
        let sessions = older.into_iter().filter_map(|pid| Some(state_of(pid)?.session));
        let sessions_before = sessions.filter(|session| *session != root).collect();
        let (queued, queued_before, reaped) =
            (RefCell::default(), Cell::default(), Cell::default());
        Tree { root, before, sessions_before, queued, queued_before, reaped }
    }

    /// Excludes another run whose first process is `root`, and which began after this one.
    pub(crate) fn leave_alone(&mut self, root: Pid) {
        self.before.push(root);
        self.sessions_before.insert(root);
    }

    pub fn children_here() -> Vec<Pid> {
        settled(|| children(std::process::id().cast_signed()))
    }

    /// The processes of the run, zombies included: the root first, parents before children.
    pub(crate) fn members(&self) -> Vec<Pid> {
        let mut members = vec![self.root];
        members.extend(self.adopted());
        with_descendants(members)
    }

    /// The processes of the run that lost their parent and became children of ours.
    fn adopted(&self) -> Vec<Pid> {
        let is_anothers =
            |pid| state_of(pid).is_some_and(|state| self.sessions_before.contains(&state.session));
        let mut adopted = Tree::children_here();
        adopted.retain(|pid| *pid != self.root && !self.before.contains(pid) && !is_anothers(*pid));
        adopted
    }

    pub(crate) fn sample(&self) -> Sample {
        let members = self.members();
        let threads = members.iter().map(|&pid| self.note_queued(pid)).sum();
        Sample { held: Held::of(&members), threads, members }
    }

    /// Notes how long the threads of `pid` have waited for a CPU. Works on a zombie too, as long as it was not waited
    /// for, but only for its first thread: the others are gone. Returns the number of threads.
    pub(crate) fn note_queued(&self, pid: Pid) -> usize {
        let threads = threads(pid);
        for &thread in &threads {
            if let Some(scheduled) = Scheduled::of(&format!("/proc/{pid}/task/{thread}")) {
                self.queued.borrow_mut().insert(thread, scheduled.queued_ns);
            }
        }
        threads.len()
    }

    /// Seconds the threads seen so far have waited for a CPU; none where the kernel does not tell.
    /// A thread that came and went between two looks is not counted.
    pub(crate) fn queued_s(&self) -> Option<f64> {
        let queued = self.queued.borrow();
        let nanoseconds = queued.values().sum::<u64>() + self.queued_before.get();
        (!queued.is_empty()).then(|| nanoseconds as f64 / 1e9)
    }

    /// Processes still running, by name, without the root.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let alive = self.members().into_iter().filter(|&pid| pid != self.root && is_alive(pid));
        alive.map(name_with_pid).collect()
    }

    /// Kills every process of the run and waits until none runs, for a second at most. Zombies stay.
    pub(crate) fn kill(&self) {
        kill_all(|| self.members());
    }

    /// Kills every process of the run and reaps the root, too.
    pub(crate) fn end(&self) {
        self.kill();
        // An ended program is gone whether its end could be read or not.
        let _ = kernel::wait_for(self.root);
        self.reap();
    }

    /// Reaps those of `members` that lost their parent and have ended. A run may leave very many, and until they are
    /// reaped they count as processes.
    pub(crate) fn reap_orphans(&self, members: &[Pid]) {
        for &pid in members.iter().filter(|pid| **pid != self.root) {
            let Some(usage) = kernel::reap(pid) else { continue };
            self.reaped.set(self.reaped.get().plus(usage));
            // Another process may get the number.
            let queued = self.queued.borrow_mut().remove(&pid).unwrap_or(0);
            self.queued_before.set(self.queued_before.get() + queued);
        }
    }

    /// Reaps the ended processes of the run, the root excepted, and returns their usage and that of those reaped before.
    pub(crate) fn reap(&self) -> Usage {
        self.reap_orphans(&self.adopted());
        self.reaped.take()
    }
}

/// The children that `list` lists: the kernel leaves a child out where it reaps one before it while it lists them. That one
/// is missing in the next list, so two equal lists are whole. Where orphans come and go all the time, no two lists are
/// equal, and all that a few of them have is taken.
fn settled(mut list: impl FnMut() -> Vec<Pid>) -> Vec<Pid> {
    let mut lists = vec![list()];
    while lists.len() < LISTS_MAX {
        let again = list();
        if lists.last() == Some(&again) {
            return again;
        }
        lists.push(again);
    }
    let mut all = lists.concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// Kills the processes that `members` names until none of them runs, for a second at most. Zombies stay.
pub fn kill_all(members: impl Fn() -> Vec<Pid>) {
    for _ in 0..500 {
        let alive: Vec<Pid> = members().into_iter().filter(|&pid| is_alive(pid)).collect();
        if alive.is_empty() {
            return;
        }
        alive.into_iter().for_each(kernel::kill);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// These processes and all that descend from them, parents before children.
pub fn with_descendants(mut members: Vec<Pid>) -> Vec<Pid> {
    let mut next = 0;
    while next < members.len() {
        members.extend(children(members[next]));
        next += 1;
    }
    members
}

/// The name the kernel knows a process by, with its pid: `sed (4711)`.
pub fn name_with_pid(pid: Pid) -> String {
    let name = proc_files::text(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = name.trim_end();
    format!("{} ({pid})", if name.is_empty() { "process" } else { name })
}

pub fn threads(pid: Pid) -> Vec<Pid> {
    proc_files::numbers(&format!("/proc/{pid}/task")).collect()
}

/// The processes whose parent is `pid`, zombies included.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    static ARE_LISTED: OnceLock<bool> = OnceLock::new();
    let are_listed = ARE_LISTED.get_or_init(|| Path::new("/proc/thread-self/children").exists());
    if *are_listed { listed_children(pid) } else { searched_children(pid) }
}

/// The kernel's list for each thread, where the kernel was built to keep it.
fn listed_children(pid: Pid) -> Vec<Pid> {
    let mut children = Vec::new();
    for thread in threads(pid) {
        let path = format!("/proc/{pid}/task/{thread}/children");
        let text = fs::read_to_string(path).unwrap_or_default();
        children.extend(text.split_ascii_whitespace().filter_map(|word| word.parse::<Pid>().ok()));
    }
    children
}

/// The same list, by asking every process of the machine for its parent.
fn searched_children(parent: Pid) -> Vec<Pid> {
    proc_files::numbers("/proc")
        .filter(|&pid| state_of(pid).is_some_and(|state| state.parent == parent))
        .collect()
}

#[derive(Debug, Clone, Copy)]
pub struct State {
    letter: char,
    pub(crate) parent: Pid,
    pub session: Pid,
}

impl State {
    /// True if the process is a zombie, or about to vanish.
    pub fn is_gone(self) -> bool {
        matches!(self.letter, 'Z' | 'X' | 'x')
    }
}

pub fn state_of(pid: Pid) -> Option<State> {
    let stat = Stat::of(&format!("/proc/{pid}"))?;
    Some(State { letter: stat.state()?, parent: stat.field(4)?, session: stat.field(6)? })
}

pub fn rss_bytes(pid: Pid) -> Option<u64> {
    proc_files::resident_bytes(&format!("/proc/{pid}"))
}

/// Bytes of a process that are swapped out; not looked for where there is nothing to swap to.
pub fn swapped_bytes(pid: Pid) -> u64 {
    static HAS_SWAP: OnceLock<bool> = OnceLock::new();
    if !HAS_SWAP.get_or_init(has_swap) {
        return 0;
    }
    let status = proc_files::text(format!("/proc/{pid}/status")).unwrap_or_default();
    proc_files::size(&status, "VmSwap").unwrap_or(0)
}

/// True if there is anything to swap to: a line after the heading.
fn has_swap() -> bool {
    fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1)
}

pub fn is_alive(pid: Pid) -> bool {
    state_of(pid).is_some_and(|state| !state.is_gone())
}

#[cfg(test)]
mod tests {
    use std::ffi::{CString, OsStr};
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn children_that_come_and_go_all_the_time_are_listed_all_the_same() {
        let mut lists = 0;
        let all = settled(|| {
            lists += 1;
            assert!(lists <= LISTS_MAX, "it lists them for ever");
            vec![7, 10 + lists as Pid]
        });
        assert_eq!(all, [7, 11, 12, 13, 14, 15, 16, 17, 18]);
        let mut left = vec![vec![1, 2, 3], vec![1, 2, 3], vec![1, 3]];
        assert_eq!(settled(|| left.pop().unwrap()), [1, 2, 3]);
    }

    #[test]
    fn searching_for_children_finds_those_that_are_listed() {
        let _alone = super::super::alone();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let here = std::process::id().cast_signed();
        let (mut listed, mut searched) = (listed_children(here), searched_children(here));
        child.kill().unwrap();
        child.wait().unwrap();
        listed.sort_unstable();
        searched.sort_unstable();
        assert!(searched.contains(&child.id().cast_signed()), "{searched:?}");
        assert_eq!(listed, searched);
    }

    #[test]
    fn a_program_whose_name_is_no_text_lives_until_it_is_killed() {
        let _alone = super::super::alone();
        let folder = tempfile::tempdir().unwrap();
        // The kernel names a process by the link that started it.
        let link = folder.path().join(OsStr::from_bytes(b"\xffcat"));
        let cat = crate::Program::find(OsStr::new("cat")).unwrap().path;
        std::os::unix::fs::symlink(cat, &link).unwrap();
        let mut cat = Command::new(&link);
        let mut child =
            cat.arg0("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // `spawn` may return before the process has its name. An answer shows that it has.
        child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = child.id().cast_signed();
        let (lives, name) = (is_alive(pid), name_with_pid(pid));
        kill_all(|| vec![pid]);
        let ended = child.wait().unwrap();
        assert!(lives && ended.signal() == Some(libc::SIGKILL), "{ended}");
        assert_eq!(name, format!("\u{fffd}cat ({pid})"));
    }

    #[test]
    #[expect(unsafe_code, reason = "the standard library opens no file in a child")]
    fn memory_that_a_child_shares_before_its_exec_is_counted_once() {
        let _alone = super::super::alone();
        let own = std::process::id().cast_signed();
        if !kernel::shares_memory(own, own) {
            eprintln!("skipped: this kernel does not compare processes");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let path = CString::new(fifo.as_os_str().as_bytes()).unwrap();
        let before = Tree::children_here();
        // The child stops in its opening of the FIFO, before `exec`; so does the thread that started it.
        let spawn = std::thread::spawn(move || {
            let arguments = [c"true".as_ptr().cast_mut(), std::ptr::null_mut()];
            let mut child = 0;
            // SAFETY: All pointers are to live values that end in zeros where they must.
            unsafe {
                let mut actions = std::mem::zeroed();
                libc::posix_spawn_file_actions_init(&mut actions);
                libc::posix_spawn_file_actions_addopen(
                    &mut actions,
                    0,
                    path.as_ptr(),
                    libc::O_RDONLY,
                    0,
                );
                let none = std::ptr::null();
                let started = libc::posix_spawnp(
                    &mut child,
                    c"true".as_ptr(),
                    &actions,
                    none,
                    arguments.as_ptr(),
                    none.cast(),
                );
                libc::posix_spawn_file_actions_destroy(&mut actions);
                assert_eq!(started, 0);
            }
            child
        });
        let child = loop {
            let mut new = Tree::children_here();
            new.retain(|pid| !before.contains(pid));
            if let Some(child) = new.first() {
                break *child;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let (together, alone) = (Held::of(&[own, child]), Held::of(&[child]));
        drop(fs::OpenOptions::new().write(true).open(&fifo).unwrap());
        assert_eq!(spawn.join().unwrap(), child);
        kernel::wait_for(child).unwrap();
        assert!(together.resident_bytes < alone.resident_bytes * 3 / 2, "{together:?} {alone:?}");
    }

    #[test]
    fn an_orphan_of_what_ran_before_is_none_of_the_run() {
        let _alone = super::super::alone();
        kernel::become_subreaper().unwrap();
        let start = |script: &str| {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            kernel::start_apart(&mut shell, false);
            shell.spawn().unwrap()
        };
        // Each child, when asked to, leaves an orphan and prints its number.
        let leave = "read now; (sleep 1000 > /dev/null & echo $!); read end";
        let orphan_of = |child: &mut Child| {
            writeln!(child.stdin.as_mut().unwrap()).unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            let orphan: Pid = line.trim().parse().unwrap();
            // The orphan's number is printed before its parent has gone.
            while state_of(orphan).unwrap().parent != std::process::id().cast_signed() {
                std::thread::sleep(Duration::from_millis(1));
            }
            orphan
        };
        let mut server = start(leave);
        let before = Tree::children_here();
        let mut root = start(leave);
        let tree = Tree::new(root.id().cast_signed(), before);
        let (servers, runs) = (orphan_of(&mut server), orphan_of(&mut root));
        let members = tree.members();
        tree.kill();
        let lives = is_alive(servers);
        for pid in [server.id().cast_signed(), servers] {
            kernel::kill(pid);
            kernel::wait_for(pid).unwrap();
        }
        root.wait().unwrap();
        tree.reap();
        assert!(lives && !members.contains(&servers), "{members:?}");
        assert!(members.contains(&runs), "{members:?}");
    }
}
