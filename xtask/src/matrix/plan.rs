//! What there is to run: targets, groups of tests, and what runs nowhere or not everywhere.
//!
//! It is data. A test that an emulator breaks by itself stands here with the reason, which
//! the table repeats.

use crate::machine::{HOST, MUSL, OTHER_CPU, OTHER_CPU_MUSL};

/// A target in one profile: a row.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) triple: &'static str,
    /// Cargo's name of the profile.
    pub(super) profile: &'static str,
    pub(super) machine: Machine,
    pub(super) is_quick: bool,
    /// How cargo links and runs its programs.
    pub(super) variables: &'static [(&'static str, &'static str)],
}

/// What runs a target's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Machine {
    /// This machine and its kernel.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    NotAsked,
    NotRun(&'static str),
    Passed(u64),
    Failed(u64, u64),
}

impl Cell {
    pub(super) fn is_failed(self) -> bool {
        matches!(self, Cell::Failed(..))
    }
}

pub(super) struct LeftOut {
    pub(super) test: &'static str,
    group: &'static str,
    pub(super) reason: &'static str,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    QemuUser,
    Guests,
    Debug,
}

impl LeftOut {
    pub(super) fn has(&self, target: &Target, group: &Group) -> bool {
        self.group == group.name && self.is_of(target)
    }

    pub(super) fn place(&self) -> &'static str {
        match self.place {
            Place::QemuUser => "on aarch64 under qemu-user",
            Place::Guests => "under a kernel of its own",
            Place::Debug => "debug",
        }
    }

    pub(super) fn is_of(&self, target: &Target) -> bool {
        match self.place {
            Place::QemuUser => target.machine == Machine::QemuUser,
            Place::Guests => matches!(target.machine, Machine::Guest(_)),
            Place::Debug => target.profile == "dev",
        }
    }
}

const BY_QEMU: &[(&str, &str)] = &[
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    // No compiler of C is needed here.
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld"),
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER", "qemu-aarch64"),
];

const fn native(name: &'static str, triple: &'static str, profile: &'static str) -> Target {
    Target { name, triple, profile, machine: Machine::Here, is_quick: false, variables: &[] }
}

const fn emulated(
    name: &'static str,
    triple: &'static str,
    profile: &'static str,
    is_quick: bool,
) -> Target {
    Target { name, triple, profile, machine: Machine::QemuUser, is_quick, variables: BY_QEMU }
}

/// Cargo's runner is this very chore's program: see `matrix.rs`.
const fn guest(name: &'static str, triple: &'static str, os_page_kib: u32) -> Target {
    let (profile, machine) = ("release", Machine::Guest(os_page_kib));
    Target { name, triple, profile, machine, is_quick: false, variables: BY_QEMU }
}

pub(super) const TARGETS: &[Target] = &[
    native("x86-64 glibc, release", HOST, "release"),
    native("x86-64 glibc, debug", HOST, "dev"),
    native("x86-64 musl, release", MUSL, "release"),
    native("x86-64 musl, debug", MUSL, "dev"),
    emulated("aarch64 glibc, release", OTHER_CPU, "release", true),
    emulated("aarch64 glibc, debug", OTHER_CPU, "dev", false),
    emulated("aarch64 musl, release", OTHER_CPU_MUSL, "release", false),
    emulated("aarch64 musl, debug", OTHER_CPU_MUSL, "dev", false),
    guest("aarch64 musl, OS pages of 4 KiB", OTHER_CPU_MUSL, 4),
    guest("aarch64 musl, OS pages of 16 KiB", OTHER_CPU_MUSL, 16),
    guest("aarch64 musl, OS pages of 64 KiB", OTHER_CPU_MUSL, 64),
    guest("aarch64 glibc, OS pages of 16 KiB", OTHER_CPU, 16),
    guest("aarch64 glibc, OS pages of 64 KiB", OTHER_CPU, 64),
];

const fn rust(name: &'static str, tests: &'static str, is_quick: bool) -> Group {
    Group { name, package: "masu", tests, runs_programs: false, is_quick }
}

const fn c(name: &'static str, tests: &'static str, is_quick: bool) -> Group {
    Group { name, package: "masu-abi", tests, runs_programs: true, is_quick }
}

/// Tests of the code arena, which compile and load C of the target's CPU.
const fn arena(name: &'static str, tests: &'static str, is_quick: bool) -> Group {
    Group { name, package: "masu-code", tests, runs_programs: false, is_quick }
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
    arena(
        "code",
        "--lib --test constructs --test archives --test defaults --test errors --test lifetime --test mappings
            --test storage",
        true,
    ),
];

/// Why a group does not run on a target, where it does not.
pub(super) fn not_run(target: &Target, group: &Group) -> Option<&'static str> {
    let on_musl = target.triple.ends_with("musl");
    let by_qemu_user = target.machine == Machine::QemuUser;
    match group.name {
        "plugins" if target.triple != HOST || target.profile != "dev" => Some(
            "these tests build for glibc and for musl themselves, released: see x86-64 glibc, debug",
        ),
        "kinds" if target.triple != HOST => {
            Some("these tests build for glibc and for musl themselves: see the first rows")
        }
        "options" if by_qemu_user => Some(
            "the tests start themselves again, which qemu-user does not do without binfmt_misc",
        ),
        "code" if on_musl => {
            Some("a static program has no dynamic linker that the code arena could ask for symbols")
        }
        "code" if target.is_emulated() && !by_qemu_user => {
            Some("these tests compile while they run, and there is no compiler in a guest")
        }
        "constrained" if by_qemu_user => {
            Some("qemu-user passes neither seccomp filters nor RLIMIT_AS on")
        }
        _ if group.runs_programs && on_musl => Some(
            "C on musl, shared and static, is in `kinds`; there is no aarch64 compiler of C for musl here",
        ),
        _ => None,
    }
}

const FORKED: &str = "qemu 7.2 ends a child that starts a thread after `fork` (plugins/core.c:221), without masu too";
const RESIDENT: &str = "resident memory is the emulator's, without masu too";
const LIMITED: &str = "qemu-user does not keep RLIMIT_AS";
const STARTED: &str = "qemu-user starts no other program of its CPU without binfmt_misc";

const NO_SHELL: &str = "a guest has no shell";
const NO_KERNEL: &str = "it brings a kernel of its own, which is one for x86-64";

const fn left_out(group: &'static str, test: &'static str, reason: &'static str) -> LeftOut {
    LeftOut { test, group, reason, place: Place::QemuUser }
}

const fn left_out_in_guests(
    group: &'static str,
    test: &'static str,
    reason: &'static str,
) -> LeftOut {
    LeftOut { test, group, reason, place: Place::Guests }
}

/// Tests that an emulator breaks, and what only a released library does.
pub(super) const LEFT_OUT: &[LeftOut] = &[
    left_out("unit", "memory::ranges::stripes::tests", STARTED),
    left_out("unit", "threads::fork::tests", STARTED),
    left_out("oracle", "os_pages", STARTED),
    left_out("oracle", "combinations", STARTED),
    left_out("heaps", "misuse_ends_the_program", STARTED),
    left_out("heaps", "dropping_a_heap_returns_its_memory", STARTED),
    left_out("profile", "a_profile_from_the_environment", STARTED),
    left_out("life", "fork_while_threads_allocate", FORKED),
    left_out("life", "fork_handlers_may_allocate", FORKED),
    left_out("life", "threads_one_after_another", RESIDENT),
    left_out("life", "exec_while_threads_allocate", STARTED),
    left_out("limits", "memory_locked", RESIDENT),
    left_out("limits", "limit_that_comes_and_goes", LIMITED),
    left_out("limits", "up_to_the_limit", LIMITED),
    left_out("cxx", "handler_that_finds_memory", LIMITED),
    left_out_in_guests("life", "spawned_while_threads_allocate", NO_SHELL),
    left_out_in_guests("limits", "up_to_the_limit", NO_SHELL),
    left_out_in_guests("constrained", "memory_is_committed_in_small_steps", NO_KERNEL),
    left_out_in_guests("constrained", "few_addresses", NO_SHELL),
    LeftOut {
        test: "threads_with_the_smallest_stack",
        group: "life",
        reason: "a library that is not optimised takes more than such a stack has",
        place: Place::Debug,
    },
];
