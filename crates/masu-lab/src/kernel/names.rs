//! Names of system calls by their numbers, as the kernel's headers have them for this CPU.

#[cfg(target_arch = "x86_64")]
const TABLE: &str = include_str!("numbers/x86_64.txt");
#[cfg(target_arch = "aarch64")]
const TABLE: &str = include_str!("numbers/aarch64.txt");

/// The name of a call; `call 999` where the table has none.
pub(crate) fn of_call(number: i64) -> String {
    let mut words = TABLE.split_ascii_whitespace();
    while let (Some(known), Some(name)) = (words.next(), words.next()) {
        if known.parse() == Ok(number) {
            return name.to_owned();
        }
    }
    format!("call {number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_c_library() {
        for (number, name) in [
            (libc::SYS_read, "read"),
            (libc::SYS_getdents64, "getdents64"),
            (libc::SYS_exit_group, "exit_group"),
            (libc::SYS_clone3, "clone3"),
            (libc::SYS_process_madvise, "process_madvise"),
        ] {
            assert_eq!(of_call(number), name);
        }
        assert_eq!(of_call(9_999), "call 9999");
    }
}
