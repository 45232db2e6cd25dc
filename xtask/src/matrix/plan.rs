//! The plan of runs: targets, groups of tests, and the tests that run nowhere or not everywhere.
//!
//! The plan is data. A test that an emulator breaks by itself is listed here with the reason, which the table
//! repeats.

use std::fmt;

use Machine::{Guest, Here, QemuUser};

use crate::machine::{HOST, MUSL, OTHER_CPU, OTHER_CPU_MUSL};

/// A target in one profile: a row.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) triple: &'static str,
    pub(super) profile: &'static str,
    pub(super) machine: Machine,
    pub(super) is_quick: bool,
}

/// The machine that runs a target's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Machine {
    Here,
    /// An emulator of the CPU alone; the kernel is this machine's.
    QemuUser,
    /// An emulator of a whole machine, with a kernel of its own that has OS pages of so many KiB.
    Guest(u32),
}

impl Target {
    pub(super) fn is_emulated(&self) -> bool {
        self.machine != Machine::Here
    }
}

/// Tests of one package: a column.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    /// Behind `cargo test`.
    pub(super) tests: &'static str,
    /// Whether the tests run programs in C under `libmasu.so`.
    pub(super) runs_programs: bool,
    pub(super) is_quick: bool,
}

/// A test that is left out on some targets.
pub(super) struct LeftOut {
    pub(super) test: &'static str,
    group: &'static str,
    pub(super) reason: &'static str,
    pub(super) place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    QemuUser,
    Guests,
    Debug,
}

impl LeftOut {
    pub(super) fn has(&self, target: &Target, group: &Group) -> bool {
        let is_there = match self.place {
            Place::QemuUser => target.machine == Machine::QemuUser,
            Place::Guests => matches!(target.machine, Machine::Guest(_)),
            Place::Debug => target.profile == "dev",
        };
        self.group == group.name && is_there
    }
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Place::QemuUser => "on aarch64 under qemu-user",
            Place::Guests => "under a kernel of its own",
            Place::Debug => "debug",
        })
    }
}

/// Cargo's linkers and runners for programs of aarch64; `boot.sh` runs a guest's programs instead.
pub(super) const BY_QEMU: [(&str, &str); 4] = [
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    // No compiler of C is needed here.
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld"),
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER", "qemu-aarch64"),
];

const fn target(
    name: &'static str,
    triple: &'static str,
    profile: &'static str,
    machine: Machine,
) -> Target {
    Target { name, triple, profile, machine, is_quick: false }
}

pub(super) const TARGETS: &[Target] = &[
    target("x86-64 glibc, release", HOST, "release", Here),
    target("x86-64 glibc, debug", HOST, "dev", Here),
    target("x86-64 musl, release", MUSL, "release", Here),
    target("x86-64 musl, debug", MUSL, "dev", Here),
    Target { is_quick: true, ..target("aarch64 glibc, release", OTHER_CPU, "release", QemuUser) },
    target("aarch64 glibc, debug", OTHER_CPU, "dev", QemuUser),
    target("aarch64 musl, release", OTHER_CPU_MUSL, "release", QemuUser),
    target("aarch64 musl, debug", OTHER_CPU_MUSL, "dev", QemuUser),
    target("aarch64 musl, OS pages of 4 KiB", OTHER_CPU_MUSL, "release", Guest(4)),
    target("aarch64 musl, OS pages of 16 KiB", OTHER_CPU_MUSL, "release", Guest(16)),
    target("aarch64 musl, OS pages of 64 KiB", OTHER_CPU_MUSL, "release", Guest(64)),
    target("aarch64 glibc, OS pages of 16 KiB", OTHER_CPU, "release", Guest(16)),
    target("aarch64 glibc, OS pages of 64 KiB", OTHER_CPU, "release", Guest(64)),
];

const fn rust(name: &'static str, tests: &'static str, is_quick: bool) -> Group {
    Group { name, package: "masu", tests, runs_programs: false, is_quick }
}

const fn c(name: &'static str, tests: &'static str, is_quick: bool) -> Group {
    Group { name, package: "masu-abi", tests, runs_programs: true, is_quick }
}

pub(super) const GROUPS: &[Group] = &[
    rust("unit", "--lib", true),
    rust("global", "--test global", true),
    rust("oracle", "--test oracle", true),
    rust("properties", "--test properties", false),
    rust("heaps", "--test heaps", false),
    rust("profile", "--features profile --test profile", false),
    rust("options", "--test options --test chosen", false),
    rust("plugins", "--test plugins --test adoption", false),
    c("semantics", "--test semantics", true),
    c("life", "--test life", false),
    c("limits", "--test limits", false),
    c("cxx", "--test cxx", false),
    c("constrained", "--test constrained", false),
    c("kinds", "--test kinds", false),
    // Tests of the code arena, which compile and load C of the target's CPU.
    Group {
        name: "code",
        package: "masu-code",
        tests: "--lib --test constructs --test archives --test defaults --test errors --test lifetime --test mappings
            --test storage",
        runs_programs: false,
        is_quick: true,
    },
];

/// Why a group does not run on some targets; the table has the letter.
pub(super) const REASONS: [(char, &str); 7] = [
    ('a', "these tests build for glibc and for musl themselves, released: see x86-64 glibc, debug"),
    (
        'b',
        "C on musl, shared and static, is in `kinds`; there is no aarch64 compiler of C for musl here",
    ),
    ('c', "these tests build for glibc and for musl themselves: see the first rows"),
    ('d', "a static program has no dynamic linker that the code arena could ask for symbols"),
    ('e', "the tests start themselves again, which qemu-user does not do without binfmt_misc"),
    ('f', "qemu-user passes neither seccomp filters nor RLIMIT_AS on"),
    ('g', "these tests compile while they run, and there is no compiler in a guest"),
];

/// The letter of the reason why a group does not run on a target, where it does not.
pub(super) fn not_run(target: &Target, group: &Group) -> Option<char> {
    let on_musl = target.triple.ends_with("musl");
    let by_qemu_user = target.machine == QemuUser;
    match group.name {
        "plugins" if target.triple != HOST || target.profile != "dev" => Some('a'),
        "kinds" if target.triple != HOST => Some('c'),
        "options" if by_qemu_user => Some('e'),
        "code" if on_musl => Some('d'),
        "code" if target.is_emulated() && !by_qemu_user => Some('g'),
        "constrained" if by_qemu_user => Some('f'),
        _ if group.runs_programs && on_musl => Some('b'),
        _ => None,
    }
}

const FORKED: &str = "qemu 7.2 ends a child that starts a thread after `fork` (plugins/core.c:221), without masu too";
const RESIDENT: &str = "resident memory is the emulator's, without masu too";
const LIMITED: &str = "qemu-user does not keep RLIMIT_AS";
const STARTED: &str = "qemu-user starts no other program of its CPU without binfmt_misc";

const NO_SHELL: &str = "a guest has no shell";
const NO_KERNEL: &str = "it brings a kernel of its own, which is one for x86-64";

const fn left_out(
    group: &'static str,
    test: &'static str,
    reason: &'static str,
    place: Place,
) -> LeftOut {
    LeftOut { test, group, reason, place }
}

/// Tests that an emulator breaks, and tests of behavior that only a released library has.
pub(super) const LEFT_OUT: &[LeftOut] = &[
    left_out("unit", "memory::ranges::model", STARTED, Place::QemuUser),
    left_out("unit", "memory::ranges::stripes::tests", STARTED, Place::QemuUser),
    left_out("unit", "platform::bounds::tests", STARTED, Place::QemuUser),
    left_out("unit", "threads::cache::depth::refill::tests", STARTED, Place::QemuUser),
    left_out("unit", "threads::cache::depth::tests", STARTED, Place::QemuUser),
    left_out("unit", "threads::fork::tests", STARTED, Place::QemuUser),
    left_out("unit", "threads::statistics::page::tests", STARTED, Place::QemuUser),
    left_out("unit", "threads::thread::tests", STARTED, Place::QemuUser),
    left_out("oracle", "os_pages", STARTED, Place::QemuUser),
    left_out("oracle", "combinations", STARTED, Place::QemuUser),
    left_out("heaps", "misuse_ends_the_program", STARTED, Place::QemuUser),
    left_out("heaps", "dropping_a_heap_returns_its_memory", STARTED, Place::QemuUser),
    left_out("profile", "a_profile_from_the_environment", STARTED, Place::QemuUser),
    left_out("life", "fork_while_threads_allocate", FORKED, Place::QemuUser),
    left_out("life", "fork_handlers_may_allocate", FORKED, Place::QemuUser),
    left_out("life", "a_search_is_interrupted_by_fork", FORKED, Place::QemuUser),
    left_out("life", "threads_one_after_another", RESIDENT, Place::QemuUser),
    left_out("life", "exec_while_threads_allocate", STARTED, Place::QemuUser),
    left_out("limits", "memory_locked", RESIDENT, Place::QemuUser),
    left_out("limits", "limit_that_comes_and_goes", LIMITED, Place::QemuUser),
    left_out("limits", "up_to_the_limit", LIMITED, Place::QemuUser),
    left_out("cxx", "handler_that_finds_memory", LIMITED, Place::QemuUser),
    left_out("code", "a_limit_of_addresses_is_an_error", LIMITED, Place::QemuUser),
    left_out("life", "spawned_while_threads_allocate", NO_SHELL, Place::Guests),
    left_out("limits", "up_to_the_limit", NO_SHELL, Place::Guests),
    left_out("constrained", "memory_is_committed_in_small_steps", NO_KERNEL, Place::Guests),
    left_out("constrained", "few_addresses", NO_SHELL, Place::Guests),
    left_out(
        "life",
        "threads_with_the_smallest_stack",
        "a library that is not optimized takes more than such a stack has",
        Place::Debug,
    ),
];
