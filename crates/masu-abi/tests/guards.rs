//! Sampled guards in C programs under `libmasu.so`: each misuse of a guarded block ends the program with a report
//! that has the right stacks; other faults and correct programs are not affected.
//!
//! It relies on `tests/c/guards.c`, which prints the addresses of its functions, to compare with the stacks.

mod library;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use library::program;

const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;

program!("guards.c", &library::linked());

fn command(group: &str, rate: &str) -> Command {
    let mut command = library::preloaded(program());
    command.arg(group).env("MASU_GUARD_RATE", rate);
    command
}

fn run(group: &str, rate: &str) -> Output {
    command(group, rate).output().expect("the program starts")
}

/// The standard error of a program, and the addresses of its functions.
struct Report {
    text: String,
    functions: Vec<usize>,
}

const MAKE: usize = 0;
const DROP: usize = 1;
const WRITE: usize = 2;
const READ: usize = 3;

fn hexadecimal(word: &str) -> usize {
    let digits = word.trim_start_matches("0x");
    usize::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("{word} is no address"))
}

impl Report {
    fn of(output: &Output) -> Report {
        let said = String::from_utf8_lossy(&output.stdout);
        let functions = said.lines().next().expect("a line").split(' ').map(hexadecimal).collect();
        Report { text: String::from_utf8_lossy(&output.stderr).into_owned(), functions }
    }

    /// The addresses of each stack, by the line above the stack; the line is empty for the access.
    fn stacks(&self) -> BTreeMap<&str, Vec<usize>> {
        let (mut stacks, mut head) = (BTreeMap::<&str, Vec<usize>>::new(), "");
        for line in self.text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["allocated" | "freed", "by", "thread", _] => head = words[0],
                [number, address, ..] if number.starts_with('#') => {
                    stacks.entry(head).or_default().push(hexadecimal(address));
                }
                _ => {}
            }
        }
        stacks
    }

    /// Whether a function of the program is among the callers of a stack.
    #[track_caller]
    fn expect(&self, head: &str, function: usize) {
        const LENGTH_MAX: usize = 160;
        let start = self.functions[function];
        let stacks = self.stacks();
        let found = stacks.get(head).is_some_and(|stack| {
            stack.iter().any(|frame| (start..start + LENGTH_MAX).contains(frame))
        });
        assert!(found, "`{head}` without {start:#x}:\n{}", self.text);
        // Each frame has an object and an offset inside it.
        let in_program = self.text.contains("guards.c.program");
        assert!(in_program && self.text.contains("libmasu.so+0x"), "{}", self.text);
    }
}

/// Checks the report of a misuse, its signal, and the functions in its stacks.
fn expect(group: &str, said: &str, signal: i32, access: usize, freed: bool) {
    for size in ["32", "4096", "12000"] {
        let output = command(group, "1").arg(size).output().expect("the program starts");
        let report = Report::of(&output);
        assert_eq!(output.status.signal(), Some(signal), "{group} {size}:\n{}", report.text);
        let first = report.text.lines().next().unwrap_or_default();
        let said = said.replace("SIZE", size);
        let words = said.split('*').all(|part| first.contains(part));
        assert!(first.starts_with("masu: ") && words, "{group} {size}: {said}\n{}", report.text);
        report.expect("", access);
        report.expect("allocated", MAKE);
        assert_eq!(report.stacks().contains_key("freed"), freed, "{}", report.text);
        if freed && !group.contains("realloc") {
            report.expect("freed", DROP);
        }
        assert_eq!(report.text.matches("end of the report").count(), 1, "{}", report.text);
    }
}

/// One test for each misuse: the signal, the accessing or freeing function, whether the block was freed, and the report.
macro_rules! reported {
    ($($group:ident: $signal:ident $function:ident $freed:literal $said:literal)*) => {$(
        #[test]
        fn $group() {
            expect(stringify!($group), $said, $signal, $function, $freed);
        }
    )*};
}

reported! {
    // An access beside a block.
    write_over: SIGSEGV WRITE false "buffer overflow: a write at *, 0 bytes behind the end of a block of SIZE bytes at"
    read_over: SIGSEGV READ false "buffer overflow: a read at *, 0 bytes behind the end of a block of SIZE bytes"
    write_under: SIGSEGV WRITE false "buffer underflow: a write at *, 1 byte before a block of SIZE bytes"
    read_under: SIGSEGV READ false "buffer underflow: a read at *, 1 byte before a block of SIZE bytes"
    far_over: SIGSEGV WRITE false "buffer overflow: a write at *, 10000 bytes behind the end of a block"
    // An access to a freed block.
    write_freed: SIGSEGV WRITE true "use after free: a write at *, 3 bytes into a freed block of SIZE bytes"
    read_freed: SIGSEGV READ true "use after free: a read at *, 3 bytes into a freed block of SIZE bytes"
    read_freed_by_another: SIGSEGV READ true "use after free: a read at "
    freed_by_realloc: SIGSEGV READ true "use after free: a read at "
    // A wrong pointer, at the call.
    free_twice: SIGABRT DROP true "double free: *, 0 bytes into a freed block of SIZE bytes"
    free_inside: SIGABRT DROP false "invalid free: *, 16 bytes into a block of SIZE bytes"
    free_beyond: SIGABRT DROP false "invalid free: *, 0 bytes behind the end of a block of SIZE"
    free_misaligned: SIGABRT DROP false "invalid free: *, 1 byte into a block of SIZE bytes"
}

#[test]
fn a_report_names_the_threads() {
    let report = Report::of(&run("read_freed_by_another", "1"));
    let thread = |head: &str| {
        let (_, behind) = report.text.split_once(head).expect("it is said");
        behind.split(|c: char| !c.is_ascii_digit()).next().expect("a number").to_owned()
    };
    assert_eq!(thread("(thread "), thread("allocated by thread "), "{}", report.text);
    assert_ne!(thread("(thread "), thread("freed by thread "), "{}", report.text);
}

#[test]
fn resizing_or_measuring_a_freed_block_is_reported() {
    for group in ["realloc_freed", "size_of_freed"] {
        let report = Report::of(&run(group, "1"));
        assert!(report.text.starts_with("masu: use after free: realloc or "), "{}", report.text);
        report.expect("allocated", MAKE);
        report.expect("freed", DROP);
    }
}

/// The other side of a block has no guard, but a pattern that is checked when the block is freed.
#[test]
fn a_write_beside_a_block_is_reported_when_it_is_freed() {
    // A block of 100 or 5,000 bytes cannot end with its OS page and be aligned.
    for (group, said, sizes) in [
        ("written_behind", "buffer overflow", &["32", "100", "5000"][..]),
        ("written_before", "buffer underflow", &["32"]),
    ] {
        for size in sizes {
            let output = command(group, "1").arg(size).output().expect("the program starts");
            let report = Report::of(&output);
            let said = format!("masu: {said}: a write seen when the block was freed, at ");
            assert_eq!(output.status.signal(), Some(SIGABRT), "{group} {size}:\n{}", report.text);
            assert!(report.text.starts_with(&said), "{group} {size}:\n{}", report.text);
            report.expect("", DROP);
            report.expect("allocated", MAKE);
        }
    }
}

#[test]
fn a_fault_elsewhere_is_the_program_s_own() {
    for group in ["elsewhere", "sent"] {
        let output = run(group, "1");
        assert_eq!(output.status.signal(), Some(SIGSEGV), "{}", library::printed(&output));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing of masu's is said");
    }
}

/// One test for each group that only has to succeed, at a guard rate.
macro_rules! succeeds {
    ($($group:ident: $($rate:literal),+)*) => {$(
        #[test]
        fn $group() {
            for rate in [$($rate),+] {
                library::success(&mut command(stringify!($group), rate));
            }
        }
    )*};
}

succeeds! {
    handler_before: "0"
    plain_handler_before: "0"
    handler_after: "1"
    full: "1"
    exact_after_realloc: "1"
    on_and_off: "0", "1", "3"
    slots_come_late: "0"
    forks: "1"
    forks_beside_threads: "1", "7"
}

/// The counts of blocks ever guarded, of blocks guarded now, and of blocks that had no slot.
fn counts(output: &Output) -> [usize; 3] {
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().nth(1).expect("a second line");
    let numbers: Vec<usize> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
    numbers.try_into().expect("three numbers")
}

#[test]
fn every_function_works_with_guarded_blocks() {
    for rate in ["1", "7", "1000"] {
        let [made, live, _] = counts(&library::success(&mut command("all_functions", rate)));
        // The C library has a few guarded blocks.
        assert!(made > 50 && live < 50, "{made} made, {live} live");
    }
}

#[test]
fn every_function_works_with_guarded_blocks_in_a_heap_profile() {
    for interval in ["1", "4096"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = command("all_functions", "3");
        command.env("MASU_PROFILE", folder.path().join("heap"));
        command.env("MASU_PROFILE_INTERVAL", interval).env("MASU_PROFILE_LEAKS", "1");
        let output = library::success(&mut command);
        let [made, ..] = counts(&output);
        assert!(made > 1000, "{made}");
        // Freed blocks have left the profile, guarded or not.
        let said = String::from_utf8_lossy(&output.stderr);
        let live = said.strip_prefix("masu: about ").and_then(|text| text.split(' ').next());
        let live: usize = live.and_then(|number| number.parse().ok()).expect("it is said");
        assert!(live < 300 << 10, "{said}");
    }
}

#[test]
fn the_share_of_guarded_blocks_is_the_rate() {
    for (rate, expected) in [(1, 2_000), (1000, 1000), (5000, 200)] {
        let mut command = command("count", &rate.to_string());
        let [made, ..] = counts(&library::success(command.arg((rate * expected).to_string())));
        // The C library's few blocks count too. The standard deviation of 1,000 intervals is 1.8 %, of 200 it is 4.1 %;
        // five of them are allowed.
        let share = made as f64 / expected as f64;
        assert!((share - 1.0).abs() < 0.21, "{made} at 1 in {rate}");
    }
}

#[test]
fn without_addresses_for_slots_no_block_is_guarded_and_nothing_is_reported() {
    for kib in [9_000, 60_000, 400_000] {
        let mut shell = library::limited(&format!("ulimit -v {kib}"), program());
        shell.args(["count", "3000"]).env("MASU_GUARD_RATE", "1");
        let output = shell.output().expect("the shell starts");
        let printed = library::printed(&output);
        // The least limit is too little for the program itself on some machines.
        if kib > 9_000 {
            assert!(output.status.success(), "{kib}: {}\n{printed}", output.status);
            assert!(output.stderr.is_empty(), "{kib}: {printed}");
        }
    }
}

#[test]
fn the_hardened_build_reports_that_it_has_no_guards() {
    let mut command = Command::new("true");
    command.env("LD_PRELOAD", library::hardened()).env("MASU_GUARD_RATE", "1");
    let output = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "masu: MASU_GUARD_RATE has no effect in the hardened build";
    assert!(said.starts_with(expected), "{said}");
}
