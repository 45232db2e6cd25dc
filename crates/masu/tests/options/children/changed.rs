//! Options changed at run time: each must take effect in a thread that has allocated before.
//!
//! A child has the name of its option and a process of its own, and checks both sides of the change.

use std::thread;

use masu::options::{self, Refusal};

use super::{
    advice, allocate_up_to, block, free, kept_of_64_mib, most_cached, shards_of, use_every_class,
    wanted_after,
};
use crate::MIB;
use crate::resident::resident_bytes;

/// Runs the child of this option.
pub(crate) fn run(option: &str) {
    call! { option, panic!("no child {option}"),
        cache_size retain retain_min purge_delay_ms memory_limit arena_size
        shards huge_pages huge_pages_from abort_on_oom verbose statistics_page
        statistics_at_exit deepbind profile_interval profile_leaks against_the_environment
        guard_rate guard_slots shuffle
    }
}

fn set(name: &str, value: usize) {
    options::set(name, Some(value)).expect("accepted");
    assert_eq!(options::get(name), Ok(Some(value)));
}

fn unset(name: &str) {
    let default =
        options::ALL.iter().find(|option| option.name == name).expect("an option").default;
    options::set(name, None).expect("every option has a default");
    let held = options::get(name).expect("an option");
    assert!(held.is_none() || default.starts_with(|first: char| first.is_ascii_digit()));
}

fn cache_size() {
    let before = most_cached();
    assert!(before > 256 << 10, "{before}");
    set("cache_size", 16 << 10);
    // Some hundred slow calls, by which the cache notices the change.
    use_every_class(500, || {});
    let after = most_cached();
    assert!((4 << 10..=16 << 10).contains(&after), "{after}");
    set("cache_size", 0);
    use_every_class(500, || {});
    assert_eq!(most_cached(), 0);
    unset("cache_size");
    assert!(most_cached() > 256 << 10);
}

fn retain() {
    let before = kept_of_64_mib();
    set("retain", 1 << 30);
    assert!(kept_of_64_mib() > 60 * MIB);
    let resident = resident_bytes();
    set("retain", 0);
    assert_eq!(kept_of_64_mib(), 0);
    assert!(resident_bytes() + 50 * MIB < resident, "retained memory is purged");
    unset("retain");
    // Resets the retention that masu increased because it had purged too early.
    masu::c::trim(0);
    assert!(kept_of_64_mib() <= before + MIB);
}

fn retain_min() {
    assert!(kept_of_64_mib() <= 69 * MIB);
    set("retain_min", 48 * MIB);
    assert!(kept_of_64_mib() >= 40 * MIB);
    masu::c::trim(0);
    set("retain_min", 0);
    assert!(kept_of_64_mib() < 4 * MIB);
}

fn purge_delay_ms() {
    assert!(kept_of_64_mib() <= 69 * MIB);
    // The delay is an hour, so all memory stays.
    set("purge_delay_ms", 3_600_000);
    assert!(kept_of_64_mib() >= 60 * MIB);
    assert!(kept_of_64_mib() >= 60 * MIB, "and is reused");
    set("purge_delay_ms", 1);
    // The purge delay ends several times, each time with enough requests that masu reads the clock.
    for _ in 0..3 {
        thread::sleep(std::time::Duration::from_millis(20));
        let blocks: Vec<_> = (0..20).map(|step| block((2 + step % 2) * (64 << 10))).collect();
        free(blocks);
    }
    let kept = masu::c::statistics().kept_bytes;
    assert!(kept < 8 * MIB, "{kept} kept");
    set("purge_delay_ms", 0);
    assert_eq!(kept_of_64_mib(), 0);
    unset("purge_delay_ms");
}

fn memory_limit() {
    let blocks = allocate_up_to(MIB, 64);
    assert_eq!(blocks.len(), 64);
    set("memory_limit", 32 * MIB);
    // Blocks over the limit stay live, and no memory is added.
    assert!(masu::c::malloc(MIB).is_null());
    free(blocks);
    let blocks = allocate_up_to(MIB, 64);
    assert!((20..=31).contains(&blocks.len()), "{}", blocks.len());
    assert!(masu::c::statistics().kept_bytes <= 32 * MIB);
    unset("memory_limit");
    let more = allocate_up_to(MIB, 64);
    assert_eq!(more.len(), 64);
    free(blocks.into_iter().chain(more));
}

fn arena_size() {
    let first = block(64);
    let before = masu::c::statistics().reserved_bytes;
    set("arena_size", 16 * MIB);
    // The arena in use is filled first.
    let filler = masu::c::malloc(before - before / 64);
    let blocks = allocate_up_to(MIB, 64);
    let grown = masu::c::statistics().reserved_bytes - before;
    assert!((16 * MIB..before / 2).contains(&grown), "{grown}");
    free(blocks.into_iter().chain([first, filler]));
}

fn shards() {
    set("shards", 1);
    assert_eq!(shards_of(4), 1);
    set("shards", 5);
    let after = shards_of(12);
    assert!((3..=5).contains(&after), "{after}");
}

fn huge_pages() {
    if let Some(bytes) = crate::huge_page_bytes() {
        let is_enough = crate::are_for_64_mib(bytes);
        assert_eq!(advice(64), (is_enough, false));
        set("huge_pages", 0);
        assert_eq!(advice(64), (false, true));
        unset("huge_pages");
        assert_eq!(advice(64), (is_enough, false));
    }
}

fn huge_pages_from() {
    if let Some(bytes) = crate::huge_page_bytes() {
        set("huge_pages_from", 1 << 30);
        assert_eq!(advice(64), (false, false));
        unset("huge_pages_from");
        assert_eq!(advice(64), (crate::are_for_64_mib(bytes), false));
        // A program that hardly used its memory gets them, if it says so.
        wanted_after(64);
        set("huge_pages_from", 0);
        assert!(advice(150).0);
    }
}

fn abort_on_oom() {
    assert!(masu::c::malloc(1 << 62).is_null());
    set("abort_on_oom", 1);
    let child = std::process::Command::new("/nonexistent").spawn();
    assert!(child.is_err(), "the program goes on");
    set("abort_on_oom", 0);
    assert!(masu::c::malloc(1 << 62).is_null(), "the option is off again");
}

fn verbose() {
    // The program read the option with the variables, before this.
    set("verbose", 0);
}

/// Whether a statistics page is mapped, after enough slow calls to notice the option.
fn has_statistics_page() -> bool {
    use_every_class(500, || {});
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is there");
    maps.contains("/memfd:masu-statistics")
}

fn statistics_page() {
    assert!(!has_statistics_page());
    set("statistics_page", 1);
    assert!(has_statistics_page());
    // The page stays mapped and is not written any more.
    set("statistics_page", 0);
    assert!(has_statistics_page());
}

fn statistics_at_exit() {
    assert!(!masu::statistics::is_wanted_at_exit());
    set("statistics_at_exit", 1);
    // `libmasu.so` reads the option at the start, before this.
    assert!(masu::statistics::is_wanted_at_exit());
}

fn deepbind() {
    assert_eq!(options::get("deepbind"), Ok(Some(0)));
    // The tests of `libmasu.so` check its effect.
    set("deepbind", 1);
}

fn profile_interval() {
    if !cfg!(feature = "profile") {
        assert_eq!(masu::profile::start(None), Err(masu::profile::Refusal::Feature));
        set("profile_interval", 4096);
        return;
    }
    let taken = || {
        masu::profile::start(None).expect("none is taken");
        let interval = masu::profile::interval();
        masu::profile::stop();
        interval
    };
    assert_eq!(taken(), Some(masu::profile::INTERVAL_BYTES));
    set("profile_interval", 4096);
    assert_eq!(taken(), Some(4096));
    unset("profile_interval");
    assert_eq!(taken(), Some(512 << 10));
}

fn profile_leaks() {
    // The program reads the option when it ends.
    set("profile_leaks", 1);
}

fn against_the_environment() {
    assert_eq!(options::get("retain"), Ok(Some(MIB)));
    assert!(kept_of_64_mib() <= MIB);
    assert_eq!(options::parse("retain", "128M"), Ok(()));
    // The hardened build retains no large blocks.
    assert!(kept_of_64_mib() > 60 * MIB || cfg!(feature = "secure"));
    assert_eq!(options::set("retain", None), Ok(()));
    assert_eq!(options::get("retain"), Ok(None), "the default, not the variable");
    masu::c::trim(0);
    assert!(kept_of_64_mib() <= 69 * MIB);
    for (name, text, refusal) in [
        ("retain", "64 M", Refusal::Value),
        ("memory_limit", "1", Refusal::Value),
        ("MASU_RETAIN", "1M", Refusal::Unknown),
        ("", "1", Refusal::Unknown),
        ("huge_page", "1", Refusal::Unknown),
    ] {
        assert_eq!(options::parse(name, text), Err(refusal), "{name} {text}");
    }
}

/// The number of guarded blocks among two thousand more blocks, half of them live at once.
fn guarded_of_two_thousand() -> usize {
    let before = masu::c::statistics().guarded_made;
    for _ in 0..2 {
        let blocks: Vec<_> = (0..1000).map(|_| block(100)).collect();
        free(blocks);
    }
    masu::c::statistics().guarded_made - before
}

/// Whether this program has guards.
const HAS_GUARDS: bool = cfg!(all(feature = "guards", not(feature = "secure")));

fn guard_rate() {
    assert_eq!(guarded_of_two_thousand(), 0);
    set("guard_rate", 100);
    assert_eq!(guarded_of_two_thousand() > 5, HAS_GUARDS);
    set("guard_rate", 0);
    assert_eq!(guarded_of_two_thousand(), 0);
    set("guard_rate", 1);
    assert_eq!(guarded_of_two_thousand() > 100, HAS_GUARDS);
    unset("guard_rate");
    assert_eq!(guarded_of_two_thousand(), 0);
}

fn guard_slots() {
    block(100);
    set("guard_slots", 7);
    set("guard_rate", 1);
    let guarded = guarded_of_two_thousand();
    assert!(if HAS_GUARDS { (7..=50).contains(&guarded) } else { guarded == 0 }, "{guarded}");
    // The number of slots is now fixed.
    unset("guard_slots");
    assert!(guarded_of_two_thousand() <= 50);
}

/// Whether the first blocks of these sizes, which the process has not used, are the first blocks of their pages.
fn begin_pages(sizes: &[usize]) -> bool {
    sizes.iter().all(|size| block(*size).addr().is_multiple_of(64 << 10))
}

fn shuffle() {
    assert!(begin_pages(&[200, 900, 5_000]));
    set("shuffle", 1);
    assert!(!begin_pages(&[300, 1_200, 2_400, 7_000, 14_000]));
    unset("shuffle");
    assert!(begin_pages(&[1_800, 9_000, 20_000]));
}
