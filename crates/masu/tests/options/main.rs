//! Options of the environment, each by what it does: bytes in caches, memory that stays resident,
//! shards in use, advice that the kernel recorded.
//!
//! Options are read once in a process, so each test here runs this program again with variables
//! set; what that does and reports is in `children.rs`.

mod children;
mod page;

use std::collections::HashMap;
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

/// Runs the child called `name` with these variables.
fn run(name: &str, variables: &[(&str, &str)]) -> Report {
    let mut command = Command::new(std::env::current_exe().expect("this program has a file"));
    for option in masu::options::ALL {
        command.env_remove(option.variable);
    }
    let name = format!("children::{name}");
    command.args(["--exact", &name, "--ignored", "--nocapture"]).envs(variables.iter().copied());
    let output = command.output().expect("this program starts");
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
fn a_class_that_comes_late_gets_a_place_in_a_small_cache() {
    assert_eq!(run("late", &[("MASU_CACHE_SIZE", "32K")]).get("cached"), 1);
    assert_eq!(run("late", &[("MASU_CACHE_SIZE", "0")]).get("cached"), 0);
}

#[test]
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

#[test]
fn huge_pages_are_advised_or_advised_against() {
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        eprintln!("not tested: this kernel has no huge pages to give");
        return;
    }
    for variables in [&[][..], &[("MASU_HUGE_PAGES", "1")]] {
        let report = run("grown", variables);
        assert_eq!((report.get("wanted"), report.get("refused")), (1, 0), "{variables:?}");
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
        let expected = "masu: MASU_RETAIN must be a number of bytes, such as 0, 4096K or 64M; its \
                        default holds";
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
