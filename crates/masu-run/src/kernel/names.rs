//! Names of system calls by their numbers on this CPU.

use syscalls::Sysno;

/// The name of a call; `call 999` where the kernel's headers have none.
pub(crate) fn of_call(number: i64) -> String {
    let known = usize::try_from(number).ok().and_then(Sysno::new);
    known.map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_c_library() {
        for (number, name) in [
            (libc::SYS_getdents64, "getdents64"),
            (libc::SYS_exit_group, "exit_group"),
            (libc::SYS_process_madvise, "process_madvise"),
        ] {
            assert_eq!(of_call(number), name);
        }
        assert_eq!(of_call(9_999), "call 9999");
    }
}
