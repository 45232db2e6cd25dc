//! System calls with an effect that another process can see: files written, names made, locks, sockets, sessions.
//!
//! A call that is not known to stay inside a process and its pipes counts as seen.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The effect of a call that other processes can see, besides writing to files that are open already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outward {
    No,
    /// The call opens a file for writing, whose path is at this address.
    Opens(u64),
    Surely,
    /// The call is about to trace another process, or to be traced by one.
    Traces,
}

/// Calls that others can see whatever their arguments are.
const SURELY: &[libc::c_long] = &[
    libc::SYS_openat2,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_truncate,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_flock,
    libc::SYS_socket,
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    libc::SYS_inotify_init1,
    libc::SYS_fanotify_init,
    libc::SYS_mount,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Only its session shows to which of several runs a process without parents belongs.
    libc::SYS_setsid,
    // No stop shows the calls of such a ring.
    libc::SYS_io_uring_setup,
];

#[cfg(target_arch = "x86_64")]
const SURELY_HERE: &[libc::c_long] = &[
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_creat,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_inotify_init,
];
#[cfg(not(target_arch = "x86_64"))]
const SURELY_HERE: &[libc::c_long] = &[libc::SYS_renameat];

/// The effect of the call with this number that others can see.
pub(super) fn outward(number: i64, arguments: &[u64; 6]) -> Outward {
    let writes = |flags: u64| {
        let writing = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
        flags & u64::from(writing.cast_unsigned()) != 0
    };
    let opens = |path: u64, flags: u64| {
        if writes(flags) { Outward::Opens(path) } else { Outward::No }
    };
    let is_lock = |command: u64| {
        let locks = [libc::F_SETLK, libc::F_SETLKW, libc::F_OFD_SETLK, libc::F_OFD_SETLKW];
        let leases = [libc::F_SETLEASE, libc::F_NOTIFY];
        let is_one = |one: &i32| i32::try_from(command).is_ok_and(|command| command == *one);
        locks.iter().any(is_one) || leases.iter().any(is_one)
    };
    match number {
        libc::SYS_openat => opens(arguments[1], arguments[2]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => opens(arguments[0], arguments[1]),
        libc::SYS_fcntl if is_lock(arguments[1]) => Outward::Surely,
        libc::SYS_ptrace => Outward::Traces,
        number if SURELY.contains(&number) || SURELY_HERE.contains(&number) => Outward::Surely,
        _ => Outward::No,
    }
}

/// True if the path at `address` in a stopped thread is that of a device which keeps nothing, such as `/dev/null`.
pub(crate) fn is_harmless(thread: libc::pid_t, address: u64) -> bool {
    const HARMLESS: [&[u8]; 3] = [b"/dev/null\0", b"/dev/zero\0", b"/dev/tty\0"];
    let read = || -> io::Result<[u8; 10]> {
        let mut start = [0; 10];
        File::open(format!("/proc/{thread}/mem"))?.read_exact_at(&mut start, address)?;
        Ok(start)
    };
    read().is_ok_and(|start| HARMLESS.iter().any(|path| start.starts_with(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_files_locking_and_talking_can_be_seen_and_reading_cannot() {
        let seen = |number, arguments| outward(number, &arguments);
        let flags = |flags: i32| u64::from(flags.cast_unsigned());
        let open = |mode| seen(libc::SYS_openat, [0, 7, flags(mode), 0, 0, 0]);
        assert_eq!(open(libc::O_RDONLY | libc::O_CLOEXEC), Outward::No);
        assert_eq!(open(libc::O_WRONLY | libc::O_CREAT), Outward::Opens(7));
        assert_eq!(open(libc::O_RDWR), Outward::Opens(7));
        assert_eq!(seen(libc::SYS_socket, [1, 1, 0, 0, 0, 0]), Outward::Surely);
        assert_eq!(seen(libc::SYS_unlinkat, [0; 6]), Outward::Surely);
        assert_eq!(seen(libc::SYS_setsid, [0; 6]), Outward::Surely);
        let lock = |command| seen(libc::SYS_fcntl, [3, flags(command), 0, 0, 0, 0]);
        assert_eq!(lock(libc::F_SETLK), Outward::Surely);
        assert_eq!(lock(libc::F_GETFL), Outward::No);
        assert_eq!(seen(libc::SYS_ptrace, [0; 6]), Outward::Traces);
        assert_eq!(seen(libc::SYS_write, [1, 0, 5, 0, 0, 0]), Outward::No);
    }

    #[test]
    fn the_null_device_keeps_nothing() {
        let own = std::process::id().cast_signed();
        let at = |path: &[u8]| is_harmless(own, path.as_ptr().addr() as u64);
        assert!(at(b"/dev/null\0 and more"));
        assert!(!at(b"/dev/nullable\0 more"));
        assert!(!at(b"/dev/shm/x\0 and more"));
        assert!(!is_harmless(own, 0));
    }
}
