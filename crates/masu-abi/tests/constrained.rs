//! Constrained machines: sandboxes that refuse system calls, few addresses, no mappings left, strict
//! overcommit. The library works there, or reports why not.
//!
//! It relies on `tests/c/constrained.c`, one program with a group of checks for each test here, on
//! seccomp filters for the sandboxes, and for `vm.overcommit_memory=2`, which is a setting of the whole
//! machine, on a kernel of its own that runs as a program (Debian's user-mode-linux).

mod library;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use library::program;

program!("constrained.c", &[]);

/// The program's exit code if the kernel takes no filter.
const NO_FILTER: Option<i32> = Some(77);

fn run(group: &str, answer: &str) -> Output {
    let mut command = library::preloaded(program());
    let output = command.args([group, answer]).output().expect("the program starts");
    if output.status.code() == NO_FILTER {
        eprintln!("not tested: the kernel takes no seccomp filter here");
    }
    output
}

/// The ways in which a filter refuses a call.
const REFUSALS: [&str; 4] = ["EPERM", "ENOSYS", "EINVAL", "EACCES"];

fn works(group: &str, answers: &[&str]) {
    for answer in answers {
        let output = run(group, answer);
        let fine = output.status.success() || output.status.code() == NO_FILTER;
        assert!(fine, "{answer}: {}\n{}", output.status, library::printed(&output));
    }
}

#[test]
fn everything_works_where_a_sandbox_refuses_madvise() {
    works("madvise_is_refused", &REFUSALS);
}

#[test]
fn ranges_go_back_one_by_one_where_a_sandbox_refuses_process_madvise() {
    works("process_madvise_is_refused", &REFUSALS);
    works("process_madvise_is_refused", &["nothing"]);
}

#[test]
fn zeros_are_zeros_where_madvise_does_nothing_and_succeeds() {
    works("madvise_is_refused", &["nothing"]);
}

#[test]
fn everything_works_where_a_sandbox_refuses_to_make_memory_writable_by_mprotect() {
    works("mprotect_is_refused", &REFUSALS);
}

#[test]
fn malloc_gives_null_with_a_message_where_nothing_can_be_mapped() {
    let output = run("mapping_is_refused", "EPERM");
    if output.status.code() != NO_FILTER {
        let printed = library::printed(&output);
        assert!(output.status.success(), "{}\n{printed}", output.status);
        let said = printed.matches("masu: the kernel refuses to map memory").count();
        assert_eq!(said, 1, "{printed}");
    }
}

/// The kernel ends the program at once; the shell reports "Bad system call".
#[test]
fn a_sandbox_that_kills_at_madvise_or_mprotect_kills() {
    const SIGSYS: i32 = 31;
    for group in ["madvise_is_refused", "mprotect_is_refused"] {
        let output = run(group, "kill");
        let ended = output.status.signal() == Some(SIGSYS);
        assert!(ended || output.status.code() == NO_FILTER, "{group}: {}", output.status);
    }
}

#[test]
fn a_program_without_mappings_left_still_allocates() {
    library::succeeds(library::preloaded(program()).arg("mappings_are_used_up"));
}

#[test]
fn few_addresses_are_used_up() {
    for kilobytes in ["32768", "65536", "131072", "524288", "4194304", "33554432", "134217728"] {
        let mut command = library::limited(&format!("ulimit -v {kilobytes}"), program());
        command.arg("few_addresses");
        println!("{kilobytes}: {}", library::printed(&command.output().expect("sh starts")));
        library::succeeds(&mut command);
    }
}

/// The last line that the user-mode kernel prints.
const ALL_KEPT: &str = "promises were counted and kept";

#[test]
fn memory_is_committed_in_small_steps_under_strict_overcommit() {
    if Command::new("linux.uml").arg("--version").output().is_err() {
        eprintln!("not tested: there is no linux.uml (Debian: user-mode-linux)");
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let init = folder.path().join("init");
    let script = format!(
        "#!/bin/sh\nmount -t proc proc /proc\n\
         echo 100 > /proc/sys/vm/overcommit_ratio\necho 2 > /proc/sys/vm/overcommit_memory\n\
         LD_PRELOAD={0} {1} promises_are_counted && LD_PRELOAD={0} {2} && echo {ALL_KEPT}\n\
         echo o > /proc/sysrq-trigger\nsleep 60\n",
        library::path().display(),
        program().display(),
        library::faulted().display(),
    );
    fs::write(&init, script).expect("the folder is writable");
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut kernel = Command::new("timeout");
    kernel.args(["600", "linux.uml", "mem=256M", "root=/dev/root", "rootfstype=hostfs"]);
    kernel.args(["rootflags=/", "ro", "quiet", "con=null", "con0=null,fd:1"]);
    kernel.arg(format!("init={}", init.display())).current_dir(folder.path());
    // The kernel's own files are removed with the folder.
    kernel.env("TMPDIR", folder.path()).env("HOME", folder.path()).stdin(Stdio::null());
    let output = kernel.output().expect("timeout starts");
    let printed = library::printed(&output);
    if !printed.contains("a small program's promise") && !printed.contains("constrained.c") {
        eprintln!("not tested: the kernel did not start the program here:\n{printed}");
        return;
    }
    assert!(printed.contains(ALL_KEPT), "{printed}");
    println!("{printed}");
}
