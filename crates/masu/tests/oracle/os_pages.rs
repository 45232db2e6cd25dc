//! A kernel with OS pages of 16 or 64 KiB, as far as this program's allocator can tell: the same
//! binary must do on all of them.
//!
//! It relies on a seccomp filter, which sees what each system call is handed and where in the program
//! it was made: masu makes its calls itself, so they come from the program's own code and all others
//! from the C library's. What no kernel with such pages would take (an address that is no multiple
//! of them) is refused where masu asks for the size, and ends the program everywhere else; so does a
//! length that such a kernel would round up, over memory that nobody gave up. The hard idea is the
//! order: masu asks at the first time it purges, which must be after the filter.

use std::ffi::c_long;
use std::io::Error;
use std::process::Command;
use std::{env, fs};

use crate::operations;

/// The variable that says which size to pretend to a run of this program, in bytes.
const VARIABLE: &str = "MASU_OS_PAGE";

/// What the child prints once the filter holds.
const PRETENDED: &str = "pretending OS pages";

/// An instruction of the filter's machine: `struct sock_filter` of `linux/filter.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    value: u32,
}

/// `struct sock_fprog` of `linux/filter.h`.
#[repr(C)]
struct Filter {
    length: u16,
    instructions: *const Instruction,
}

unsafe extern "C" {
    safe fn prctl(option: i32, a: usize, b: *const Filter, c: usize, d: usize) -> i32;
    safe fn sysconf(name: i32) -> c_long;
}

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const EINVAL: u32 = 0x0005_0000 | 22;

/// The bounds of this program's own code.
fn own_code() -> (u64, u64) {
    let program = env::current_exe().expect("this program has a file");
    let program = program.to_str().expect("the target folder has a plain name");
    let maps = fs::read_to_string("/proc/self/maps").expect("proc is mounted");
    let code = maps.lines().find(|line| line.contains(" r-xp ") && line.ends_with(program));
    let bounds = code.and_then(|line| line.split_once(' ')?.0.split_once('-'));
    let (start, end) = bounds.expect("this program has code");
    let parse = |text| u64::from_str_radix(text, 16).expect("bounds are hexadecimal");
    (parse(start), parse(end))
}

/// The filter for OS pages of `size` bytes and code between these bounds, which lie in one 4 GiB.
fn instructions(size: u32, code: (u64, u64)) -> Vec<Instruction> {
    #[cfg(target_arch = "x86_64")]
    let (protect, unmap, advise) = (10, 11, 28);
    #[cfg(target_arch = "aarch64")]
    let (protect, unmap, advise) = (226, 215, 233);
    // Where `struct seccomp_data` has what the kernel tells; the lower half of a number first.
    let (number, place, start, length, advice) = (0, 8, 16, 24, 32);
    // The places of the steps that others go to.
    let (whole_call, length_only, question, allow, kill, refuse) = (11, 13, 15, 17, 18, 19);
    let mask = size - 1;
    // What a step does with which value, and where it goes on if that is so and if it is not.
    let steps: [(u16, u32, usize, usize); 20] = [
        (LOAD, place + 4, 1, 1),
        (EQUAL, (code.0 >> 32) as u32, 2, allow),
        (LOAD, place, 3, 3),
        (AT_LEAST, code.0 as u32, 4, allow),
        (AT_LEAST, code.1 as u32, allow, 5),
        (LOAD, number, 6, 6),
        (EQUAL, protect, whole_call, 7),
        (EQUAL, unmap, length_only, 8),
        (EQUAL, advise, 9, allow),
        (LOAD, advice, 10, 10),
        // Normal advice changes nothing: masu asks for the size by it.
        (EQUAL, 0, question, whole_call),
        (LOAD, start, 12, 12),
        (ANY_BIT, mask, kill, length_only),
        (LOAD, length, 14, 14),
        (ANY_BIT, mask, kill, allow),
        (LOAD, start, 16, 16),
        (ANY_BIT, mask, refuse, allow),
        (RETURN, ALLOW, 18, 18),
        (RETURN, KILL, 19, 19),
        (RETURN, EINVAL, 20, 20),
    ];
    let relative = |at: usize, to: usize| (to - at - 1) as u8;
    let steps = steps.into_iter().enumerate();
    steps
        .map(|(at, (code, value, so, not_so))| Instruction {
            code,
            jump_true: relative(at, so),
            jump_false: relative(at, not_so),
            value,
        })
        .collect()
}

/// Pretends OS pages of `size` bytes to this thread and those that it starts; whether that can be
/// done here.
fn pretend(size: u32) -> bool {
    const PR_SET_NO_NEW_PRIVS: i32 = 38;
    const PR_SET_SECCOMP: i32 = 22;
    const FILTER: usize = 2;
    if cfg!(target_feature = "crt-static") {
        println!("not tested: here the C library's calls come from the program's own code too");
        return false;
    }
    let code = own_code();
    assert_eq!(code.0 >> 32, (code.1 - 1) >> 32, "the filter compares the lower halves only");
    let instructions = instructions(size, code);
    let filter = Filter { length: instructions.len() as u16, instructions: instructions.as_ptr() };
    let holds = prctl(PR_SET_NO_NEW_PRIVS, 1, std::ptr::null(), 0, 0) == 0
        && prctl(PR_SET_SECCOMP, FILTER, &filter, 0, 0) == 0;
    if holds {
        println!("{PRETENDED} of {size} bytes");
    } else {
        println!("not tested: the kernel takes no filter: {}", Error::last_os_error());
    }
    holds
}

/// As [`pretend`], where this run of the program was asked to.
pub(crate) fn pretend_if_asked() {
    if let Ok(size) = env::var(VARIABLE) {
        pretend(size.parse().expect("the parent gives bytes"));
    }
}

/// Runs tests of this program again where OS pages are of `size` bytes, with free memory kept as by
/// default, and with all of it given back at once.
fn again(size: u32) {
    let tests = [
        ("random_operations_of_four_workers_find_every_promise_kept", None),
        ("random_operations_of_one_worker_find_every_promise_kept", None),
        ("random_operations_of_one_worker_find_every_promise_kept", Some("0")),
    ];
    for (test, retain) in tests {
        let mut command = Command::new(env::current_exe().expect("this program has a file"));
        command.args(["--exact", test, "--nocapture"]).env(VARIABLE, size.to_string());
        // A part of what the main tests do on the OS pages that there are.
        command.env("MASU_OPERATIONS", (operations() / 8).to_string());
        retain.map(|value| command.env("MASU_RETAIN", value));
        let output = command.output().expect("this program starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{test}: {}\n{printed}{errors}", output.status);
        let is_said = printed.contains(PRETENDED) || printed.contains("not tested: ");
        assert!(is_said && printed.contains("1 passed"), "{test}: {printed}");
        println!("{printed}");
    }
}

#[test]
fn every_promise_is_kept_on_os_pages_of_16_kib() {
    again(16 << 10);
}

#[test]
fn every_promise_is_kept_on_os_pages_of_64_kib() {
    again(64 << 10);
}

/// Frees nearly all of many blocks, so that masu gives back OS pages between those that live.
fn leave_few_blocks_of_many() {
    let mut blocks: Vec<_> = (0..200_000).map(|_| masu::c::malloc(64)).collect();
    let is_kept = |index: usize| index.is_multiple_of(200);
    for index in (0..blocks.len()).filter(|index| !is_kept(*index)) {
        // SAFETY: The block is live and nobody uses it.
        unsafe { masu::c::free(blocks[index]) };
    }
    masu::c::trim(0);
    let kept = blocks.drain(..).enumerate().filter(|(index, _)| is_kept(*index));
    // SAFETY: As above.
    kept.for_each(|(_, block)| unsafe { masu::c::free(block) });
}

#[test]
#[ignore = "run by the next test"]
fn believes_the_wrong_size() {
    const PAGE_SIZE: i32 = 30;
    if sysconf(PAGE_SIZE) >= 64 << 10 {
        println!("not tested: OS pages are as long here");
        return;
    }
    leave_few_blocks_of_many();
    if pretend(64 << 10) {
        leave_few_blocks_of_many();
    }
}

#[test]
#[ignore = "run by the next test"]
fn believes_the_right_size() {
    pretend(64 << 10);
    leave_few_blocks_of_many();
}

/// How a run of an ignored test above ended: a signal's number, if one ended it. `None` where nothing
/// can be pretended.
fn ended_by(test: &str) -> Option<Option<i32>> {
    use std::os::unix::process::ExitStatusExt;
    let mut command = Command::new(env::current_exe().expect("this program has a file"));
    command.args(["--exact", &format!("os_pages::{test}"), "--ignored", "--nocapture"]);
    let output = command.output().expect("this program starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{test}: {}\n{printed}", output.status);
    (!printed.contains("not tested: ")).then(|| output.status.signal())
}

#[test]
#[cfg_attr(
    feature = "secure",
    ignore = "its program does not meet the fault where blocks are chosen by chance"
)]
fn an_allocator_that_takes_os_pages_for_shorter_ones_is_found() {
    const SIGSYS: i32 = 31;
    assert!(ended_by("believes_the_wrong_size").is_none_or(|signal| signal == Some(SIGSYS)));
    assert!(ended_by("believes_the_right_size").is_none_or(|signal| signal.is_none()));
}
