//! The same program with few addresses, few mappings, a memory cgroup, or without `/proc`.
//!
//! It relies on root for the last two; without root the tests report that they did nothing.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{is_whole, library};

fn command() -> Command {
    let mut command = Command::new(library::faulted());
    command.env("LD_PRELOAD", library::path());
    command
}

#[test]
fn with_few_addresses() {
    let step = if is_whole() { 1 } else { 7 };
    // The limits range from the program's own need to more than enough.
    for mebibytes in (12..120).step_by(step).chain([200, 400, 1000, 3000, 8000]) {
        let limit = format!("ulimit -v {}", mebibytes << 10);
        library::succeeds(&mut library::limited(&limit, library::faulted()));
    }
}

#[test]
fn with_few_mappings_left() {
    let few: Vec<u32> = if is_whole() { (0..60).collect() } else { vec![0, 4, 10, 30] };
    for few in few {
        library::succeeds(command().arg(few.to_string()));
    }
}

/// Unmounts `/proc`, in a mount namespace of its own.
fn take_proc_away() -> io::Result<()> {
    let checked = |result| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let none = std::ptr::null();
    // SAFETY: The calls change this process's view of the file system, and no memory.
    unsafe {
        checked(libc::unshare(libc::CLONE_NEWNS))?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        checked(libc::mount(none, c"/".as_ptr(), none, private, none.cast()))?;
        checked(libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH))
    }
}

#[test]
fn without_proc() {
    let mut command = command();
    // SAFETY: Between fork and exec only system calls are made.
    unsafe { command.pre_exec(take_proc_away) };
    match command.arg("recovers").output() {
        Ok(output) => {
            assert!(output.status.success(), "{}\n{}", output.status, library::printed(&output));
        }
        Err(error) => eprintln!("not tested: /proc cannot be taken away: {error}"),
    }
}

/// A memory cgroup for one test, of the first or the second version.
struct Group(PathBuf);

impl Group {
    fn new(limit_mebibytes: u64) -> io::Result<Group> {
        let first = Path::new("/sys/fs/cgroup/memory");
        let (root, limit) = if first.is_dir() {
            (first, "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let folder = root.join(format!("masu-faults-{}-{limit_mebibytes}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Group(folder);
        fs::write(group.0.join(limit), (limit_mebibytes << 20).to_string())?;
        Ok(group)
    }

    /// Makes the command run in the group.
    fn hold(&self, command: &mut Command) {
        let list = self.0.join("cgroup.procs").into_os_string().into_encoded_bytes();
        let list = CString::new(list).expect("a path");
        let enter = move || {
            // SAFETY: The path is a string; the process itself is number 0.
            let written = unsafe {
                let file = libc::open(list.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                libc::write(file, c"0".as_ptr().cast(), 1)
            };
            if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: Between fork and exec only system calls are made.
        unsafe { command.pre_exec(enter) };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process may still be exiting.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// The kernel kills a process of the group when its memory runs out.
const SIGKILL: Option<i32> = Some(9);

#[test]
fn in_a_memory_cgroup() {
    for mebibytes in [8, 16, 24, 32, 48, 64, 256] {
        let group = match Group::new(mebibytes) {
            Ok(group) => group,
            Err(error) => {
                eprintln!("not tested: no memory cgroup can be made here: {error}");
                return;
            }
        };
        let mut command = command();
        group.hold(&mut command);
        let output = command.output().expect("the program starts");
        let ended =
            output.status.success() || (mebibytes < 256 && output.status.signal() == SIGKILL);
        let printed = library::printed(&output);
        // The parent reports a killed child.
        let child = mebibytes < 256 && printed.contains("WIFEXITED(status)");
        assert!(ended || child, "{mebibytes} MiB: {}\n{printed}", output.status);
        println!("{mebibytes} MiB: {}", output.status);
    }
}
