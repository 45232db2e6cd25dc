//! Options of the environment, each by what it does: bytes in caches, memory that stays resident,
//! shards in use, advice that the kernel recorded.
//!
//! Options are read once in a process, so each test here runs this program again with variables
//! set; what that does and reports is in `children.rs`.

mod children;
mod page;

use std::collections::{HashMap, HashSet};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const MIB: usize = 1 << 20;

/// What a child reported, and what it wrote to standard error.
struct Report {
    figures: HashMap<String, usize>,
    errors: String,
}

impl Report {
    fn get(&self, figure: &str) -> usize {
        *self.figures.get(figure).unwrap_or_else(|| panic!("no {figure}: {}", self.errors))
    }
}

/// The child called `name`, to be run with these variables.
fn child(name: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
    for option in masu::options::ALL {
        command.env_remove(option.variable);
    }
    let name = format!("children::{name}");
    command.args(["--exact", &name, "--ignored", "--nocapture"]).envs(variables.iter().copied());
    command
}

/// Runs the child called `name` with these variables.
fn run(name: &str, variables: &[(&str, &str)]) -> Report {
    let output = child(name, variables).output().expect("this program starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name} {variables:?}: {printed}{errors}");
    let figures = printed.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("figure ")?.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Report { figures: figures.collect(), errors }
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn a_thread_s_cache_holds_no_more_than_its_size() {
    let most = |size| run("cached", &[("MASU_CACHE_SIZE", size)]).get("most");
    let unset = run("cached", &[]).get("most");
    assert!(unset > 256 << 10, "by default {unset} bytes");
    for (text, bytes) in [("4K", 4 << 10), ("64K", 64 << 10), ("262144", 256 << 10)] {
        let most = most(text);
        assert!((bytes / 4..=bytes).contains(&most), "{text}: {most}");
    }
    let large = most("16M");
    assert!(large > 2 * unset, "16M: {large}, by default {unset}");
}

#[test]
fn without_a_cache_no_block_is_cached() {
    assert_eq!(run("cached", &[("MASU_CACHE_SIZE", "0")]).get("most"), 0);
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn a_class_that_comes_late_gets_a_place_in_a_small_cache() {
    assert_eq!(run("late", &[("MASU_CACHE_SIZE", "32K")]).get("cached"), 1);
    assert_eq!(run("late", &[("MASU_CACHE_SIZE", "0")]).get("cached"), 0);
}

#[test]
#[cfg_attr(
    feature = "secure",
    ignore = "freed large blocks rest in the hardened build, none is kept"
)]
fn free_memory_is_kept_up_to_what_is_retained() {
    let kept = |bytes| {
        let report = run("freed", &[("MASU_RETAIN", bytes)]);
        (report.get("kept"), report.get("resident"))
    };
    let (none, resident) = kept("0");
    assert_eq!(none, 0);
    assert!(resident < 4 * MIB, "{resident} bytes resident");
    let (some, resident) = kept("16M");
    assert!((8 * MIB..=16 * MIB).contains(&some), "{some}");
    assert!((8 * MIB..20 * MIB).contains(&resident), "{some} kept, {resident} resident");
    let (all, resident) = kept("1G");
    // Some of it may be in use again, as memory of the allocator's own.
    assert!(all >= 63 * MIB, "{all}");
    assert!(resident >= 63 * MIB, "{resident} bytes resident");
}

#[test]
fn memory_of_small_blocks_is_kept_as_well() {
    let resident = |bytes| run("freed_small", &[("MASU_RETAIN", bytes)]).get("resident");
    let (none, all) = (resident("0"), resident("1G"));
    assert!(none < 16 * MIB, "{none} bytes resident");
    assert!(all >= 60 * MIB, "{all} bytes resident");
}

#[test]
#[cfg_attr(
    feature = "secure",
    ignore = "freed large blocks rest in the hardened build, none is kept"
)]
fn an_arena_that_is_all_free_is_kept_too() {
    let reserved = |bytes| run("freed_arena", &[("MASU_RETAIN", bytes)]).get("given_back");
    assert!(reserved("0") >= 512 * MIB);
    assert_eq!(reserved("8G"), 0);
}

#[test]
fn threads_use_as_many_shards_as_there_are_to_be() {
    for shards in [1, 2, 5, 16] {
        let used = run("threads", &[("MASU_SHARDS", &shards.to_string())]).get("shards");
        // The child has eight threads, and the one that started them may have begun before.
        let expected = if shards == 16 { 8..=9 } else { shards..=shards };
        assert!(expected.contains(&used), "{used} of {shards}");
    }
}

/// Bytes of a huge page, `None` where the kernel has none to give.
fn huge_page_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    text.ok().map(|text| text.trim().parse().expect("a number of bytes"))
}

/// Whether a heap of 64 MiB is enough for huge pages: eight of them.
fn are_for_64_mib(huge_page_bytes: usize) -> bool {
    8 * huge_page_bytes <= 64 * MIB
}

#[test]
fn huge_pages_are_advised_or_advised_against() {
    let Some(bytes) = huge_page_bytes() else {
        eprintln!("not tested: this kernel has no huge pages to give");
        return;
    };
    let wanted = usize::from(are_for_64_mib(bytes));
    for variables in [&[][..], &[("MASU_HUGE_PAGES", "1")]] {
        let report = run("grown", variables);
        assert_eq!((report.get("wanted"), report.get("refused")), (wanted, 0), "{variables:?}");
    }
    let report = run("grown", &[("MASU_HUGE_PAGES", "0")]);
    assert_eq!((report.get("wanted"), report.get("refused")), (0, 1));
    assert_eq!(report.get("huge_bytes"), 0);
}

#[test]
fn a_bad_value_is_said_once_and_the_default_holds() {
    let unset = run("freed", &[]);
    assert_eq!(unset.errors.lines().filter(|line| line.starts_with("masu: ")).count(), 0);
    for bad in ["", "none", "12Q", "-1", "99999999999G"] {
        let report = run("freed", &[("MASU_RETAIN", bad)]);
        let said: Vec<&str> =
            report.errors.lines().filter(|line| line.starts_with("masu: ")).collect();
        let expected = "masu: MASU_RETAIN must be a number of bytes, such as 65536, 64K or 1M; \
                        its default holds";
        assert_eq!(said, [expected], "{bad:?}");
        assert_eq!(report.get("kept"), unset.get("kept"), "{bad:?}");
    }
}

#[test]
fn each_bad_value_is_said() {
    let variables: Vec<(&str, &str)> =
        masu::options::ALL.iter().map(|option| (option.variable, "?")).collect();
    let report = run("freed", &variables);
    for (variable, _) in variables {
        let said = report.errors.matches(&format!("masu: {variable} must be ")).count();
        assert_eq!(said, 1, "{}", report.errors);
    }
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn a_small_block_of_another_shard_is_not_used_again_beside_blocks_of_that_shard() {
    let many = run("sharing", &[("MASU_SHARDS", "4")]);
    let one = run("sharing", &[("MASU_SHARDS", "1")]);
    for size in [8, 16, 32, 48] {
        assert_eq!(many.get(&format!("shared{size}")), 0, "blocks of {size} bytes");
        assert_eq!(many.get(&format!("back{size}")), 64, "blocks of {size} bytes come home");
        // Where both threads are of one shard, the blocks are used at once.
        assert!(one.get(&format!("shared{size}")) > 32, "blocks of {size} bytes");
    }
}

/// The lines of a report that are masu's.
fn said(report: &Report) -> Vec<&str> {
    report.errors.lines().filter(|line| line.starts_with("masu: ")).collect()
}

#[test]
fn a_variable_that_is_no_option_is_named_with_the_one_that_was_meant() {
    let report = run("freed", &[("MASU_RETIAN", "0"), ("MASU_TEST_THIS", "1")]);
    assert_eq!(said(&report), ["masu: there is no option MASU_RETIAN; is MASU_RETAIN meant?"]);
    let report = run("freed", &[("MASU_\u{1b}[31m", "0")]);
    assert!(
        said(&report)[0].starts_with("masu: there is no option MASU_?[31m;"),
        "{}",
        report.errors
    );
    let report = run("freed", &[("MASU_PURGE", "0")]);
    let line = "masu: there is no option MASU_PURGE; `masu list --options` shows those there are";
    assert_eq!(said(&report), [line]);
}

#[test]
fn what_is_said_can_be_less_and_more() {
    let wrong = [("MASU_RETIAN", "0"), ("MASU_SHARDS", "many")];
    assert_eq!(said(&run("freed", &wrong)).len(), 2);
    let quiet = [&wrong[..], &[("MASU_VERBOSE", "0")]].concat();
    assert!(said(&run("freed", &quiet)).is_empty());
    let talkative = [("MASU_VERBOSE", "2"), ("MASU_RETAIN", "6144K")];
    let lines = ["masu: retain is 6M by the environment", "masu: verbose is 2 by the environment"];
    assert_eq!(said(&run("freed", &talkative)), lines);
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn what_threads_pass_on_is_bounded() {
    let passed = |size: &[_]| run("passed", size).get("most");
    let unset = passed(&[]);
    assert!(unset > 32 << 10, "by default {unset} bytes");
    assert_eq!(passed(&[("MASU_TRANSFER_SIZE", "0")]), 0);
    let some = passed(&[("MASU_TRANSFER_SIZE", "8K")]);
    // Besides the class that is asked for, one or two of the harness's.
    assert!((1..=3 * (8 << 10)).contains(&some), "{some}");
}

#[test]
#[cfg_attr(
    feature = "secure",
    ignore = "freed large blocks rest in the hardened build, none is kept"
)]
fn free_memory_is_kept_at_least_as_was_said() {
    let kept = |bytes| run("freed", &[("MASU_RETAIN_MIN", bytes)]).get("kept");
    let unset = run("freed", &[]).get("kept");
    assert!(unset < 8 * MIB, "by default {unset}");
    let some = kept("24M");
    assert!((20 * MIB..=24 * MIB).contains(&some), "{some}");
    assert!(kept("1G") >= 63 * MIB);
    assert!(kept("0") < MIB);
}

#[test]
fn blocks_take_no_more_than_the_limit_and_what_is_free_counts() {
    let report = run("limited", &[("MASU_MEMORY_LIMIT", "64M")]);
    assert!((48..=63).contains(&report.get("had")), "{} MiB of 64", report.get("had"));
    assert_eq!(report.get("errno"), 12, "ENOMEM");
    assert_eq!(report.get("again"), report.get("had"), "what was freed can be had again");
    assert!(report.get("small") >= 40, "{} MiB in small blocks", report.get("small"));
    assert!(report.get("grown") < 64, "{} MiB in one block that grew", report.get("grown"));
    assert!(run("limited", &[]).get("had") >= 100);
}

#[test]
fn addresses_are_reserved_as_many_at_a_time_as_was_said() {
    let reserved = |variables: &[_]| run("reserved", variables).get("bytes");
    if reserved(&[]) != 1 << 30 {
        eprintln!("not tested: addresses are limited here");
        return;
    }
    assert_eq!(reserved(&[("MASU_ARENA_SIZE", "16M")]), 16 * MIB);
    assert_eq!(reserved(&[("MASU_ARENA_SIZE", "65M")]), 66 * MIB);
    // A block that is longer gets an arena that holds it.
    let report = run("reserved", &[("MASU_ARENA_SIZE", "16M")]);
    assert!((128 * MIB..160 * MIB).contains(&report.get("with_a_long_block")));
}

#[test]
fn huge_pages_begin_where_was_said() {
    if huge_page_bytes().is_none() {
        eprintln!("not tested: this kernel has no huge pages to give");
        return;
    }
    let wanted = |from| run("grown", &[("MASU_HUGE_PAGES_FROM", from)]).get("wanted");
    assert_eq!(wanted("1G"), 0);
    assert_eq!(wanted("0"), 1);
    let small = |variables: &[_]| run("a_few", variables).get("wanted");
    assert_eq!(small(&[]), 0);
    assert_eq!(small(&[("MASU_HUGE_PAGES_FROM", "0")]), 1);
}

#[test]
fn a_program_that_is_to_end_without_memory_does() {
    for way in ["c", "global", "global_zeroed", "global_grown"] {
        let mut command = child("without_memory", &[("MASU_ABORT_ON_OOM", "1"), ("WAY", way)]);
        let output = command.output().expect("this program starts");
        assert_eq!(output.status.signal(), Some(6), "{way}: {output:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("masu: there is no memory for a block; stopping"),
            "{way}: {errors}"
        );
        let output = child("without_memory", &[("WAY", way)]).output().expect("it starts");
        assert!(output.status.success(), "{way}: {output:?}");
    }
}

/// Options about caches and about freed large blocks that are kept: the hardened build has neither.
const WITHOUT_EFFECT_IF_SECURE: &[&str] =
    &["cache_size", "transfer_size", "retain", "retain_min", "purge_delay_ms"];

#[test]
fn every_option_changes_under_way() {
    let names: HashSet<&str> = children::changed::ALL.iter().map(|(option, _)| *option).collect();
    for option in masu::options::ALL {
        assert!(names.contains(option.name), "no test changes {}", option.name);
    }
    for (option, child) in children::changed::ALL {
        if cfg!(feature = "secure") && WITHOUT_EFFECT_IF_SECURE.contains(option) {
            continue;
        }
        let report = run(&format!("changed::{child}"), &[]);
        assert_eq!(report.get("took_effect"), 1, "{option}");
    }
}

#[test]
fn shards_may_become_more_while_threads_free_each_other_s_blocks() {
    for _ in 0..3 {
        assert_eq!(run("changed::more_shards", &[]).get("took_effect"), 1);
    }
}

#[test]
fn what_the_program_sets_counts_more_than_its_variables() {
    let report = run("changed::against_the_environment", &[("MASU_RETAIN", "1M")]);
    assert_eq!(report.get("took_effect"), 1);
}
