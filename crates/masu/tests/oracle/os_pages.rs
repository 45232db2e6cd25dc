//! Simulated OS pages of 16 or 64 KiB: the same binary must work on all of them.
//!
//! It relies on a seccomp filter, which sees a system call's arguments and its place in the program. masu makes its
//! calls itself, from the program's own code; all others come from the C library's. An address that is no multiple of
//! the simulated page is refused in the call by which masu finds the size, and ends the program in every other call; so
//! does a length that such a kernel would round up, over live memory. The hard idea is the order: masu finds the size
//! when it first purges, which must be after the filter is set.

use std::io::Error;
use std::{env, fs};

use libc::{sock_filter, sock_fprog};

use crate::{alone, operations};

/// The variable with the size to simulate, in bytes.
const VARIABLE: &str = "MASU_OS_PAGE";

/// Printed by the child once the filter is set.
const SIMULATED: &str = "simulating OS pages";

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

/// The filter for OS pages of `size` bytes and code between these bounds, which lie in one range of 4 GiB.
fn instructions(size: u32, code: (u64, u64)) -> Vec<sock_filter> {
    let calls = [libc::SYS_mprotect, libc::SYS_munmap, libc::SYS_madvise];
    let [protect, unmap, advise] = calls.map(|call| call as u32);
    // Offsets in `struct seccomp_data`; the lower half of a number comes first.
    let (number, place, start, length, advice) = (0, 8, 16, 24, 32);
    // The targets of jumps.
    let (whole_call, length_only, probe, allow, kill, refuse) = (11, 13, 15, 17, 18, 19);
    let mask = size - 1;
    // The operation of a step, its value, and the next step if true and if false.
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
        // Normal advice changes nothing: masu probes the size with it.
        (EQUAL, 0, probe, whole_call),
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
        .map(|(at, (code, k, if_true, if_false))| sock_filter {
            code,
            jt: relative(at, if_true),
            jf: relative(at, if_false),
            k,
        })
        .collect()
}

/// Simulates OS pages of `size` bytes for this thread and the threads that it starts; returns whether that is possible
/// here.
fn simulate(size: u32) -> bool {
    if cfg!(target_feature = "crt-static") {
        println!("not tested: the C library's calls come from the program's own code too");
        return false;
    }
    let code = own_code();
    assert_eq!(code.0 >> 32, (code.1 - 1) >> 32, "the filter compares the lower halves only");
    let mut instructions = instructions(size, code);
    let filter = sock_fprog { len: instructions.len() as u16, filter: instructions.as_mut_ptr() };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: The kernel reads the filter, and the calls change nothing else of this process's memory.
    let is_set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) == 0
    };
    if is_set {
        println!("{SIMULATED} of {size} bytes");
    } else {
        println!("not tested: the kernel takes no filter: {}", Error::last_os_error());
    }
    is_set
}

/// Simulates the OS pages that the parent requested, if any.
pub(crate) fn simulate_if_requested() {
    if let Ok(size) = env::var(VARIABLE) {
        simulate(size.parse().expect("the parent gives bytes"));
    }
}

/// Runs tests of this program again on OS pages of `size` bytes, with the default retention and without retention.
fn run_again(size: u32) {
    let tests = [
        ("random_operations_of_four_walkers_are_sound", None),
        ("random_operations_of_one_walker_are_sound", None),
        ("random_operations_of_one_walker_are_sound", Some("0")),
    ];
    for (test, retain) in tests {
        let mut command = alone::again(test);
        command.env(VARIABLE, size.to_string());
        // A part of the main tests' operations.
        command.env("MASU_OPERATIONS", (operations() / 8).to_string());
        retain.map(|value| command.env("MASU_RETAIN", value));
        let printed = alone::passes(&mut command);
        let is_reported = printed.contains(SIMULATED) || printed.contains("not tested: ");
        assert!(is_reported, "{test}: {printed}");
        println!("{printed}");
    }
}

#[test]
fn random_operations_are_sound_on_os_pages_of_16_and_64_kib() {
    run_again(16 << 10);
    run_again(64 << 10);
}

/// Frees nearly all of many blocks, so that masu purges OS pages between live ones.
fn leave_few_blocks_of_many() {
    let mut blocks: Vec<_> = (0..200_000).map(|_| masu::c::malloc(64)).collect();
    let is_kept = |index: usize| index.is_multiple_of(200);
    for index in (0..blocks.len()).filter(|index| !is_kept(*index)) {
        // SAFETY: The block is live and nothing uses it.
        unsafe { masu::c::free(blocks[index]) };
    }
    masu::c::trim(0);
    let kept = blocks.drain(..).enumerate().filter(|(index, _)| is_kept(*index));
    // SAFETY: As above.
    kept.for_each(|(_, block)| unsafe { masu::c::free(block) });
}

#[test]
#[ignore = "run by the next test"]
fn simulated_after_the_first_purge() {
    // SAFETY: The call reads a constant.
    if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } >= 64 << 10 {
        println!("not tested: OS pages are as long here");
        return;
    }
    leave_few_blocks_of_many();
    if simulate(64 << 10) {
        leave_few_blocks_of_many();
    }
}

#[test]
#[ignore = "run by the next test"]
fn simulated_before_the_first_purge() {
    simulate(64 << 10);
    leave_few_blocks_of_many();
}

/// The signal that ended a run of an ignored test above, if one did. `None` where simulation is not
/// possible.
fn signal_of(test: &str) -> Option<Option<i32>> {
    use std::os::unix::process::ExitStatusExt;
    let output = alone::again(&format!("os_pages::{test}")).output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{test}: {}\n{printed}", output.status);
    (!printed.contains("not tested: ")).then(|| output.status.signal())
}

#[test]
#[cfg_attr(feature = "secure", ignore = "it meets the fault only by chance there")]
fn an_allocator_that_assumes_shorter_os_pages_is_found() {
    const SIGSYS: i32 = 31;
    assert!(
        signal_of("simulated_after_the_first_purge").is_none_or(|signal| signal == Some(SIGSYS))
    );
    assert!(signal_of("simulated_before_the_first_purge").is_none_or(|signal| signal.is_none()));
}
