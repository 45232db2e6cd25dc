//! Options, each by its effect: bytes in caches, resident memory, shards in use, advice to the kernel.
//!
//! A process reads its options once, so each test runs this program again with variables set; `children.rs` has the
//! children.

#[path = "../../src/platform/alone.rs"]
mod alone;
mod children;
mod page;
#[path = "../properties/resident.rs"]
mod resident;
mod section;

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

const MIB: usize = 1 << 20;

/// The figures of a child, and its standard error.
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
    let mut command = alone::again("children::child");
    for option in masu::options::ALL {
        command.env_remove(option.variable);
    }
    // With one thread, as on one CPU by default, the harness begins the first line of the output itself.
    command.arg("--test-threads=2").env("CHILD", name);
    command.envs(variables.iter().copied());
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
    assert_eq!(most("0"), 0);
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
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn a_class_used_late_gets_room_in_a_small_cache() {
    assert_eq!(run("late", &[("MASU_CACHE_SIZE", "32K")]).get("cached"), 1);
    assert_eq!(run("late", &[("MASU_CACHE_SIZE", "0")]).get("cached"), 0);
}

#[test]
#[cfg_attr(feature = "secure", ignore = "the hardened build retains no large blocks")]
fn retained_memory_lies_between_retain_min_and_retain() {
    let kept = |variables: &[_]| {
        let report = run("freed", variables);
        (report.get("kept"), report.get("resident"))
    };
    let (none, resident) = kept(&[("MASU_RETAIN", "0")]);
    assert_eq!(none, 0);
    assert!(resident < 4 * MIB, "{resident} bytes resident");
    let (some, resident) = kept(&[("MASU_RETAIN", "16M")]);
    assert!((8 * MIB..=16 * MIB).contains(&some), "{some}");
    assert!((8 * MIB..20 * MIB).contains(&resident), "{some} kept, {resident} resident");
    let (all, resident) = kept(&[("MASU_RETAIN", "1G")]);
    // The allocator's own memory may use some of the limit.
    assert!(all >= 63 * MIB, "{all}");
    assert!(resident >= 63 * MIB, "{resident} bytes resident");
    let least = |bytes| kept(&[("MASU_RETAIN_MIN", bytes)]).0;
    // Memory that was freed last is kept for another tenth of a second.
    assert!(kept(&[]).0 <= 69 * MIB);
    assert!(least("4M") < 8 * MIB);
    assert!((20 * MIB..=24 * MIB).contains(&least("24M")));
    assert!(least("1G") >= 63 * MIB && least("0") < MIB);
    let arenas = |bytes| run("freed_arena", &[("MASU_RETAIN", bytes)]);
    for blocks in ["released", "released_short"] {
        assert!(arenas("0").get(blocks) >= 512 * MIB, "{blocks}");
        assert_eq!(arenas("8G").get(blocks), 0, "free arenas are retained too: {blocks}");
    }
}

#[test]
fn memory_of_small_blocks_is_retained_too() {
    let resident = |bytes| run("freed_small", &[("MASU_RETAIN", bytes)]).get("resident");
    let (none, all) = (resident("0"), resident("1G"));
    assert!(none < 16 * MIB, "{none} bytes resident");
    assert!(all >= 60 * MIB, "{all} bytes resident");
}

#[test]
fn threads_use_all_shards_and_no_more() {
    for shards in [1, 2, 5, 16] {
        let used = run("threads", &[("MASU_SHARDS", &shards.to_string())]).get("shards");
        // The child has eight threads, besides the one that started them.
        let expected = if shards == 16 { 8..=9 } else { shards..=shards };
        assert!(expected.contains(&used), "{used} of {shards}");
    }
}

/// Bytes of a huge page; `None` where the kernel has none.
fn huge_page_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    text.ok().map(|text| text.trim().parse().expect("a number of bytes"))
}

/// Whether 64 MiB are enough for huge pages: eight of them.
fn are_for_64_mib(huge_page_bytes: usize) -> bool {
    8 * huge_page_bytes <= 64 * MIB
}

/// A block that moved to grow has huge pages earlier, a zeroed block if a shorter one was filled, and any block unless
/// those that were freed were little used.
#[test]
#[cfg_attr(feature = "secure", ignore = "blocks lie between guards there")]
fn huge_pages_follow_what_was_used() {
    let has = |fits: fn(usize) -> bool| usize::from(huge_page_bytes().is_some_and(fits));
    for (child, [used, unused], wanted) in [
        ("grown_after", [MIB, 64], has(are_for_64_mib)),
        ("moved", [2, 3], has(|bytes| bytes == 2 * MIB)),
        ("zeroed_after", [16 * MIB, MIB], has(|bytes| 8 * bytes <= 16 * MIB)),
    ] {
        let get = |number| run(&format!("{child} {number}"), &[]).get("wanted");
        assert_eq!([get(used), get(unused)], [wanted, 0], "{child}");
    }
}

#[test]
#[cfg_attr(feature = "secure", ignore = "blocks have other addresses there")]
fn a_table_of_which_little_is_used_stays_small_where_its_memory_is_retained() {
    let resident = run("zeroed_again", &[("MASU_RETAIN", "1G")]).get("resident");
    assert!(resident < 8 * MIB, "{resident} bytes resident");
}

#[test]
#[cfg_attr(feature = "secure", ignore = "the bytes behind a block are written there")]
fn blocks_that_live_and_are_little_used_have_small_pages() {
    const SMALL: &str = "little_used 20480";
    const LARGE: &str = "little_used 71680";
    const LONG: &str = "little_used 18874368";
    // With short arenas, each long block has one to itself, as blocks over 512 MiB have otherwise.
    for (child, variables) in
        [(SMALL, &[][..]), (LARGE, &[]), (LONG, &[]), (LONG, &[("MASU_ARENA_SIZE", "32M")])]
    {
        let resident = run(child, variables).get("resident");
        assert!(resident < 150 * MIB, "{child} {variables:?}: {resident} resident of 300 MiB");
    }
    // A program that says when huge pages begin gets them.
    let is_refused = |variables| run(LARGE, variables).get("refused");
    assert_eq!(is_refused(&[("MASU_HUGE_PAGES_FROM", "4M")]), 0);
    assert_eq!(is_refused(&[]), usize::from(huge_page_bytes().is_some_and(are_for_64_mib)));
}

#[test]
#[cfg_attr(feature = "secure", ignore = "blocks lie between guards there")]
fn blocks_that_cannot_be_read_are_freed() {
    assert_eq!(run("protected", &[]).get("freed"), 2);
}

#[test]
#[cfg_attr(feature = "secure", ignore = "a freed block is not used again soon there")]
fn zeros_that_are_resident_are_written_not_faulted_in() {
    let faults = run("wiped", &[]).get("faults");
    assert!(faults < 3_000, "{faults} faults for 100 blocks of 1 and 2 MiB");
}

#[test]
fn an_invalid_value_is_reported_once_and_the_default_applies() {
    let unset = run("freed", &[]);
    assert!(warnings(&unset).is_empty());
    for bad in ["", "none", "12Q", "-1", "99999999999G"] {
        let report = run("freed", &[("MASU_RETAIN", bad)]);
        let expected = "masu: MASU_RETAIN must be a number of bytes, such as 65536, 64K or 1M; \
                        its default holds";
        assert_eq!(warnings(&report), [expected], "{bad:?}");
        assert_eq!(report.get("kept"), unset.get("kept"), "{bad:?}");
    }
    let all: Vec<_> = masu::options::ALL.iter().map(|option| (option.variable, "?")).collect();
    let report = run("freed", &all);
    for (variable, _) in all {
        let count = report.errors.matches(&format!("masu: {variable} must be ")).count();
        assert_eq!(count, 1, "{}", report.errors);
    }
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn a_small_block_of_another_shard_returns_to_it() {
    let many = run("sharing", &[("MASU_SHARDS", "4")]);
    let one = run("sharing", &[("MASU_SHARDS", "1")]);
    for size in [8, 16, 32, 48] {
        assert_eq!(many.get(&format!("shared{size}")), 0, "blocks of {size} bytes");
        assert_eq!(many.get(&format!("back{size}")), 64, "blocks of {size} bytes return");
        // Threads of one shard reuse each other's blocks at once.
        assert!(one.get(&format!("shared{size}")) > 32, "blocks of {size} bytes");
    }
}

/// masu's lines on standard error.
fn warnings(report: &Report) -> Vec<&str> {
    report.errors.lines().filter(|line| line.starts_with("masu: ")).collect()
}

#[test]
fn an_unknown_variable_is_reported_with_the_nearest_option() {
    let report = run("freed", &[("MASU_RETIAN", "0"), ("MASU_TEST_THIS", "1")]);
    assert_eq!(warnings(&report), ["masu: there is no option MASU_RETIAN; is MASU_RETAIN meant?"]);
    let report = run("freed", &[("MASU_\u{1b}[31m", "0")]);
    let said = "masu: there is no option MASU_?[31m;";
    assert!(warnings(&report)[0].starts_with(said), "{}", report.errors);
    let report = run("freed", &[("MASU_PURGE", "0")]);
    let line = "masu: there is no option MASU_PURGE; `masu list --options` shows those there are";
    assert_eq!(warnings(&report), [line]);
}

#[test]
fn verbose_suppresses_warnings_and_reports_settings() {
    let wrong = [("MASU_RETIAN", "0"), ("MASU_SHARDS", "many")];
    assert_eq!(warnings(&run("freed", &wrong)).len(), 2);
    let quiet = [&wrong[..], &[("MASU_VERBOSE", "0")]].concat();
    assert!(warnings(&run("freed", &quiet)).is_empty());
    let talkative = [("MASU_VERBOSE", "2"), ("MASU_RETAIN", "6144K")];
    let lines = ["masu: retain is 6M by the environment", "masu: verbose is 2 by the environment"];
    assert_eq!(warnings(&run("freed", &talkative)), lines);
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn the_transfer_cache_is_bounded() {
    let most = run("transferred", &[]).get("most");
    // The harness uses one or two other classes.
    assert!((32 << 10..=3 * (64 << 10)).contains(&most), "{most} bytes");
}

#[test]
fn blocks_stay_within_the_limit_and_freed_memory_counts() {
    let report = run("limited", &[("MASU_MEMORY_LIMIT", "64M")]);
    assert!((48..=63).contains(&report.get("had")), "{} MiB of 64", report.get("had"));
    assert_eq!(report.get("errno"), 12, "ENOMEM");
    assert_eq!(report.get("again"), report.get("had"), "freed memory is available again");
    assert!(report.get("small") >= 40, "{} MiB in small blocks", report.get("small"));
    assert!(report.get("grown") < 64, "{} MiB in one block that grew", report.get("grown"));
    assert!(run("limited", &[]).get("had") >= 100);
}

#[test]
#[cfg_attr(feature = "secure", ignore = "quarantined blocks keep their pages")]
fn a_heap_gets_what_caches_keep_before_its_request_fails() {
    assert_eq!(run("limited_heap", &[("MASU_MEMORY_LIMIT", "16M")]).get("served"), 1);
}

#[test]
fn a_block_grows_by_its_layout_into_what_a_heap_keeps() {
    let report = run("limited_grown", &[("MASU_MEMORY_LIMIT", "16M")]);
    assert!(report.get("kept") > 3 * MIB, "{} bytes in empty pages", report.get("kept"));
    assert_eq!(report.get("served"), 1);
}

#[test]
fn addresses_are_reserved_in_arenas_of_the_requested_size() {
    let reserved = |variables: &[_]| run("reserved", variables).get("bytes");
    if reserved(&[]) != 1 << 30 {
        eprintln!("not tested: addresses are limited here");
        return;
    }
    assert_eq!(reserved(&[("MASU_ARENA_SIZE", "16M")]), 16 * MIB);
    assert_eq!(reserved(&[("MASU_ARENA_SIZE", "65M")]), 66 * MIB);
    // A block that is longer than an arena gets an arena that holds it.
    let report = run("reserved", &[("MASU_ARENA_SIZE", "16M")]);
    assert!((128 * MIB..160 * MIB).contains(&report.get("with_a_long_block")));
}

#[test]
fn huge_pages_start_at_the_requested_size() {
    let Some(bytes) = huge_page_bytes() else {
        eprintln!("not tested: this kernel has no huge pages to give");
        return;
    };
    let small = |variables: &[_]| run("grown_little", variables).get("wanted");
    assert_eq!(small(&[]), 0);
    assert_eq!(small(&[("MASU_HUGE_PAGES_FROM", "0")]), 1);
    // In a small program a block gets the huge pages that it fills, unless the option says otherwise.
    let fills = usize::from(bytes == 2 * MIB);
    for (variables, wanted) in [(&[][..], fills), (&[("MASU_HUGE_PAGES_FROM", "1G")], 0)] {
        let report = run("grown_little", variables);
        let figures = ["wanted_in_long", "wanted_at_its_end"].map(|figure| report.get(figure));
        assert_eq!(figures, [wanted; 2], "{variables:?}");
    }
}

#[test]
fn abort_on_oom_ends_the_program() {
    for way in ["c", "global", "global_zeroed", "global_grown"] {
        let mut command = child("without_memory", &[("MASU_ABORT_ON_OOM", "1"), ("WAY", way)]);
        let output = command.output().expect("this program starts");
        assert_eq!(output.status.signal(), Some(6), "{way}: {output:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = "masu: there is no memory for a block, and MASU_ABORT_ON_OOM is set; stopping";
        assert!(errors.contains(said), "{way}: {errors}");
        let output = child("without_memory", &[("WAY", way)]).output().expect("it starts");
        assert!(output.status.success(), "{way}: {output:?}");
    }
}

/// Options of caches, of retained large blocks and of placement: the hardened build has no caches, retains no large
/// blocks, and always places blocks at random.
const WITHOUT_EFFECT_IF_SECURE: &[&str] =
    &["cache_size", "retain", "retain_min", "purge_delay_ms", "shuffle"];

#[test]
fn every_option_takes_effect_at_run_time() {
    for option in masu::options::ALL {
        if cfg!(feature = "secure") && WITHOUT_EFFECT_IF_SECURE.contains(&option.name) {
            continue;
        }
        // The child that changes an option has the option's name.
        run(option.name, &[]);
    }
}

#[test]
fn the_program_overrides_its_variables() {
    run("against_the_environment", &[("MASU_RETAIN", "1M")]);
}
