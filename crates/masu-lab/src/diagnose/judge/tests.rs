//! Tests of every finding on made-up facts, just beyond its limits and just within them.

use std::path::PathBuf;

use super::super::facts::{
    Build, CallFacts, Clock, Facts, Heap, Inside, Malloc, Memory, ProgramTime, Site, ThreadTime,
    Threads, Waiting,
};
use super::super::finding::{Confidence, Finding, Id, Kind, RemedyKind};
use super::super::samples::{Place, Sampled};
use super::judge;
use masu_run::Scatter;
use masu_run::calls::{Lock, Moves, OwnMoves, Owner, SmallWrites};
use masu_run::prices::{Price, Prices, Service};

mod doubt;
mod failure;
mod processes;
mod system;
mod threads;
mod touch;

use threads::{contended, serial};

const MIB: u64 = 1 << 20;

fn price(service: Service, median_ns: f64) -> Price {
    Price {
        service,
        median_ns,
        lower_ns: median_ns,
        upper_ns: median_ns,
        batches: 41,
        batch: 1,
        remark: None,
    }
}

/// Prices that are easy to calculate with, in nanoseconds.
fn prices() -> Prices {
    let known = [
        (Service::SystemCall, 100.0),
        (Service::PageFault, 600.0),
        (Service::PageReturn, 400.0),
        (Service::BreakPair, 1_000.0),
        (Service::MapPair, 2_000.0),
        (Service::Thread, 20_000.0),
        (Service::ContextSwitch, 3_000.0),
        (Service::FutexWake, 2_000.0),
        (Service::SmallWrite, 1_000.0),
        (Service::CountedCall, 5_000.0),
    ];
    Prices { known: known.map(|(service, ns)| price(service, ns)).to_vec(), unknown: Vec::new() }
}

/// A program of one thread that computes for ten seconds.
fn quiet() -> Facts {
    Facts {
        ending: Some("returned 0".to_owned()),
        clock: Clock { wall_s: 10.0, user_s: 9.9, sys_s: 0.1, own_sys_s: 0.1, ..Clock::default() },
        memory: Memory {
            peak_rss_bytes: 40 * MIB,
            late_rss_bytes: 40 * MIB,
            minor_faults: 10_000,
            refaults: Some(200),
            os_page_bytes: 4096,
            ..Memory::default()
        },
        calls: Some(CallFacts { processes: 1, ..CallFacts::default() }),
        threads: Threads {
            looks: 1_000,
            looked_s: 10.0,
            most_at_once: 1,
            cpu_s: 10.0,
            busiest: vec![thread("program", true, 10.0, 10.0, 0.0)],
            alone_s: 10.0,
            ..Threads::default()
        },
        malloc: Malloc { name: "glibc".to_owned(), refusal: None },
        prices: prices(),
        cpus: 2,
        ..Facts::default()
    }
}

fn thread(name: &str, is_first: bool, cpu_s: f64, alone_s: f64, together_s: f64) -> ThreadTime {
    let (name, process, serial_s) = (name.to_owned(), 7, alone_s);
    ThreadTime { name, process, is_first, cpu_s, alone_s, serial_s, together_s }
}

fn ids(facts: &Facts) -> Vec<Id> {
    judge(facts).iter().map(|finding| finding.id).collect()
}

fn causes(facts: &Facts) -> Vec<Id> {
    ids(facts).into_iter().filter(|id| id.kind() == Kind::Cause).collect()
}

fn first(facts: &Facts) -> Finding {
    judge(facts).into_iter().next().expect("something is always found of ten seconds")
}

fn variants(finding: &Finding, kind: RemedyKind) -> Vec<&str> {
    let remedies = finding.remedies.iter().filter(|remedy| remedy.kind == kind);
    remedies.filter_map(|remedy| remedy.variant.as_deref()).collect()
}

/// The same facts with other calls.
fn calling(facts: Facts, change: impl FnOnce(&mut CallFacts)) -> Facts {
    let mut facts = facts;
    change(facts.calls.as_mut().expect("they were counted"));
    facts
}

#[test]
fn a_quiet_program_computes_and_memory_is_fine() {
    assert_eq!(ids(&quiet()), [Id::CpuBound, Id::MemoryIsFine]);
}

#[test]
fn a_program_that_is_over_at_once_has_no_cause() {
    let clock =
        Clock { wall_s: 0.004, user_s: 0.001, sys_s: 0.002, own_sys_s: 0.002, ..Clock::default() };
    let facts = calling(Facts { clock, ..quiet() }, |calls| {
        calls.moves = Moves { break_ups: 900, break_downs: 900, ..Moves::default() };
    });
    assert_eq!(causes(&facts), []);
}

/// 17,000 times up and down, 118 pages each.
fn storm() -> Facts {
    let moves = Moves {
        break_ups: 17_300,
        break_downs: 17_100,
        returned_bytes: 17_100 * 118 * 4096,
        ..Moves::default()
    };
    let memory = Memory { refaults: Some(2_000_000), minor_faults: 2_010_000, ..quiet().memory };
    calling(Facts { memory, ..quiet() }, |calls| calls.moves = moves)
}

#[test]
fn a_storm_of_heap_calls_names_the_settings_together_and_the_other_rungs() {
    let storm = first(&storm());
    assert_eq!((storm.id, storm.confidence), (Id::HeapCallStorm, Confidence::High));
    // 17,100 pairs at 1 µs and two million pages at 1 µs, of ten seconds.
    assert!((storm.share.unwrap() - 0.2017).abs() < 0.001, "{storm:?}");
    let settings = variants(&storm, RemedyKind::Setting);
    assert_eq!(settings, ["glibc:top_pad=64M,trim_threshold=64M"]);
    assert_eq!(variants(&storm, RemedyKind::Allocator), ["masu"]);
    let rungs: Vec<u8> = storm.remedies.iter().map(|remedy| remedy.rung).collect();
    assert_eq!(rungs, [1, 2, 3]);
    assert!(!ids(&self::storm()).contains(&Id::FaultStorm), "the same seconds twice");
}

#[test]
fn a_storm_that_costs_nothing_is_none() {
    let cheap = Facts { prices: Prices::default(), ..storm() };
    assert_eq!(causes(&cheap), []);
    let few = calling(storm(), |calls| {
        calls.moves.break_downs = 100;
        calls.moves.returned_bytes = 100 * 4096;
    });
    // The same page faults, of memory that was never given back, are first touches.
    assert_eq!(causes(&few), [Id::FirstTouch]);
}

#[test]
fn where_mappings_come_and_go_their_threshold_is_named() {
    let mapping = calling(storm(), |calls| {
        calls.moves = Moves {
            maps: 17_300,
            unmaps: 17_100,
            returned_bytes: 17_100 * 118 * 4096,
            ..Moves::default()
        };
    });
    let storm = first(&mapping);
    assert_eq!(storm.id, Id::HeapCallStorm);
    let settings = variants(&storm, RemedyKind::Setting);
    assert_eq!(settings, ["glibc:mmap_threshold=32M,top_pad=64M,trim_threshold=64M"]);
}

#[test]
fn a_static_program_is_offered_no_malloc_and_musl_no_setting() {
    let refusal = Some("it is linked statically".to_owned());
    let fixed = Malloc { name: "unknown".to_owned(), refusal };
    let storm = first(&Facts { malloc: fixed, ..self::storm() });
    assert!(storm.remedies.iter().all(|remedy| remedy.variant.is_none()), "{storm:?}");
    let named = |part: &str| storm.remedies.iter().any(|remedy| remedy.what.contains(part));
    assert!(named("glibc.malloc.trim_threshold=67108864") && named("libmasu.a"), "{storm:?}");
    let musl = Malloc { name: "musl".to_owned(), refusal: None };
    let storm = first(&Facts { malloc: musl, ..self::storm() });
    assert_eq!(variants(&storm, RemedyKind::Setting), [""; 0]);
    assert_eq!(variants(&storm, RemedyKind::Allocator), ["masu"]);
}

#[test]
fn few_returns_of_much_are_a_storm_of_faults() {
    // Sixty blocks of 40 MiB, mapped, touched, unmapped: 600,000 pages.
    let moves = Moves { maps: 66, unmaps: 60, returned_bytes: 60 * 40 * MIB, ..Moves::default() };
    let memory = Memory { refaults: Some(600_000), minor_faults: 610_000, ..quiet().memory };
    let clock = Clock { wall_s: 2.0, user_s: 1.0, sys_s: 1.0, own_sys_s: 1.0, ..Clock::default() };
    let facts = calling(Facts { memory, clock, ..quiet() }, |calls| calls.moves = moves);
    let storm = first(&facts);
    assert_eq!((storm.id, storm.confidence), (Id::FaultStorm, Confidence::High));
    assert!((storm.share.unwrap() - 0.3).abs() < 0.01, "{storm:?}");
    assert_eq!(
        variants(&storm, RemedyKind::Setting),
        ["glibc:mmap_max=0,top_pad=64M,trim_threshold=128M"]
    );
    // Faults of memory that was never given back are first touches.
    let grown = calling(facts, |calls| calls.moves = Moves::default());
    assert_eq!(causes(&grown), [Id::FirstTouch]);
    assert_eq!(variants(&first(&grown), RemedyKind::Setting), [""; 0], "no malloc asked for it");
    let by_malloc = calling(grown, |calls| calls.moves.asked_bytes = 2_000 * MIB);
    assert_eq!(variants(&first(&by_malloc), RemedyKind::Setting), ["glibc:huge_pages=1"]);
    let by_itself = calling(by_malloc, |calls| calls.moves.own.asked_bytes = 1_990 * MIB);
    assert_eq!(variants(&first(&by_itself), RemedyKind::Setting), [""; 0]);
    assert!(first(&by_itself).evidence[1].contains("10.0 MiB at most"), "{by_itself:?}");
}

#[test]
fn mappings_of_the_programs_own_are_offered_no_malloc_and_no_setting_of_one() {
    for (maps, each) in [(17_100, 118 * 4096), (60, 40 * MIB)] {
        let own = OwnMoves {
            maps,
            unmaps: maps,
            asked_bytes: maps * each,
            returned_bytes: maps * each,
            ..OwnMoves::default()
        };
        let (asked_bytes, returned_bytes) = (maps * each, maps * each);
        let moves =
            Moves { maps, unmaps: maps, asked_bytes, returned_bytes, own, ..Moves::default() };
        let facts = calling(storm(), |calls| calls.moves = moves);
        let storm = first(&facts);
        assert!(matches!(storm.id, Id::HeapCallStorm | Id::FaultStorm), "{storm:?}");
        assert!(storm.remedies.iter().all(|remedy| remedy.variant.is_none()), "{storm:?}");
        assert!(storm.remedies[0].what.contains("no malloc can change that"), "{storm:?}");
        // The malloc of a static program lies in the program.
        let refusal = Some("it is linked statically".to_owned());
        let inside = Malloc { name: "unknown".to_owned(), refusal };
        let storm = first(&Facts { malloc: inside, ..facts });
        let threshold = if each < 32 * MIB { "mmap_threshold=33554432" } else { "mmap_max=0" };
        let tunables = format!("GLIBC_TUNABLES=glibc.malloc.{threshold}:glibc.malloc.top_pad=");
        assert!(storm.remedies[1].what.contains(&tunables), "{storm:?}");
    }
}

#[test]
fn eager_purging_is_a_storm_of_faults_whatever_its_calls_return() {
    let moves = Moves { purges: 500_000, returned_bytes: 500_000 * 8192, ..Moves::default() };
    let memory = Memory { refaults: Some(1_000_000), ..quiet().memory };
    let malloc = Malloc { name: "jemalloc".to_owned(), refusal: None };
    let facts = calling(Facts { memory, malloc, ..quiet() }, |calls| calls.moves = moves);
    let storm = first(&facts);
    assert_eq!(storm.id, Id::FaultStorm);
    assert_eq!(variants(&storm, RemedyKind::Setting), ["jemalloc:purge_delay=10000"]);
}

#[test]
fn a_process_whose_calls_are_not_counted_may_have_a_storm_of_faults() {
    let memory = Memory { refaults: Some(2_000_000), ..quiet().memory };
    let facts = Facts { memory, calls: None, ..quiet() };
    let storm = first(&facts);
    assert_eq!((storm.id, storm.confidence), (Id::FaultStorm, Confidence::Medium));
    assert_eq!(ids(&Facts { calls: None, ..quiet() }), [Id::CpuBound]);
}

#[test]
fn small_writes_are_a_storm_unless_they_are_answers() {
    let writing = |small_writes| calling(quiet(), |calls| calls.small_writes = small_writes);
    let lines = SmallWrites { pipes: 3_000_000, bytes: 24_000_000, ..SmallWrites::default() };
    let finding = first(&writing(lines));
    assert_eq!(finding.id, Id::SmallWrites);
    assert!((finding.share.unwrap() - 0.3).abs() < 0.001, "{finding:?}");
    assert_eq!(finding.remedies[0].kind, RemedyKind::NeedsCode);
    // Writes to a terminal cost more, if their price is known; otherwise they cost the same as others.
    let shown = SmallWrites { terminals: 1_000_000, bytes: 8_000_000, ..SmallWrites::default() };
    let mut facts = writing(shown);
    assert!((first(&facts).share.unwrap() - 0.1).abs() < 0.001);
    facts.prices.known.push(price(Service::TerminalWrite, 3_000.0));
    assert!((first(&facts).share.unwrap() - 0.3).abs() < 0.001);
    let answers = SmallWrites { sockets: 3_000_000, ..SmallWrites::default() };
    assert_eq!(causes(&writing(answers)), []);
    let few = SmallWrites { files: 9_000, ..SmallWrites::default() };
    assert_eq!(causes(&writing(few)), []);
}

#[test]
fn a_heap_that_is_mostly_free_is_retention() {
    let heap = Heap { bytes: 240 * MIB, walked_bytes: 64 * MIB, free_bytes: 60 * MIB, at_s: 6.0 };
    let memory = Memory {
        peak_rss_bytes: 250 * MIB,
        late_rss_bytes: 245 * MIB,
        heap: Some(heap),
        ..quiet().memory
    };
    let finding = first(&Facts { memory, ..quiet() });
    assert_eq!((finding.id, finding.confidence), (Id::Retention, Confidence::Medium));
    assert_eq!(variants(&finding, RemedyKind::Allocator), ["masu"]);
    let full = Memory { heap: Some(Heap { free_bytes: 20 * MIB, ..heap }), ..memory };
    assert_eq!(causes(&Facts { memory: full, ..quiet() }), []);
    // The facts from masu count for more than the walk.
    let inside = |live: u64, resident: u64| {
        let (live_late_bytes, resident_late_bytes) = (Some(live * MIB), Some(resident * MIB));
        Some(Inside { live_late_bytes, resident_late_bytes, ..Inside::default() })
    };
    assert_eq!(causes(&Facts { memory, inside: inside(230, 240), ..quiet() }), []);
    let finding = first(&Facts { memory: full, inside: inside(10, 30), ..quiet() });
    assert_eq!((finding.id, finding.confidence), (Id::Retention, Confidence::High));
    // Memory that masu cannot give back either is known by the walk alone; and a compiler that maps its memory itself
    // gains little from any malloc.
    let finding = first(&Facts { memory, inside: inside(10, 240), ..quiet() });
    assert_eq!((finding.id, finding.confidence), (Id::Retention, Confidence::Medium));
    let mapped = Memory { heap: None, ..memory };
    assert_eq!(causes(&Facts { memory: mapped, inside: inside(10, 240), ..quiet() }), []);
}

#[test]
fn huge_pages_of_zeros_are_waste_and_full_ones_are_not() {
    let with = |huge_unused| Memory {
        peak_rss_bytes: 300 * MIB,
        huge_bytes: 256 * MIB,
        huge_unused,
        ..quiet().memory
    };
    let finding = first(&Facts { memory: with(Some(0.99)), ..quiet() });
    assert_eq!(finding.id, Id::HugePageWaste);
    assert!((finding.share.unwrap() - 0.99 * 256.0 / 300.0).abs() < 0.001, "{finding:?}");
    // glibc's own setting would change nothing.
    for (name, advised) in [("glibc", "masu:huge_pages=0"), ("jemalloc", "jemalloc:huge_pages=0")] {
        let malloc = Malloc { name: name.to_owned(), refusal: None };
        let finding = first(&Facts { malloc, memory: with(Some(0.99)), ..quiet() });
        let variants: Vec<&str> =
            finding.remedies.iter().filter_map(|one| one.variant.as_deref()).collect();
        assert_eq!(variants, [advised]);
    }
    for unused in [Some(0.1), None] {
        assert_eq!(causes(&Facts { memory: with(unused), ..quiet() }), []);
    }
}

#[test]
fn memory_on_the_swap_that_comes_back_is_named() {
    let memory = Memory { swapped_bytes: 40 * MIB, major_faults: 20_000, ..quiet().memory };
    assert_eq!(causes(&Facts { memory, ..quiet() }), [Id::Swap]);
    // Swapped memory that is not needed costs nothing.
    let memory = Memory { major_faults: 10, ..memory };
    assert_eq!(causes(&Facts { memory, ..quiet() }), []);
}

#[test]
fn many_requests_are_named_where_they_were_counted() {
    let inside = |requests| Some(Inside { requests: Some((requests, 10.0)), ..Inside::default() });
    assert_eq!(causes(&Facts { inside: inside(90_000_000), ..quiet() }), [Id::ManyAllocations]);
    assert_eq!(causes(&Facts { inside: inside(9_000_000), ..quiet() }), []);
}

/// A malloc that takes a share of two thousand samples.
fn sampled(malloc_share: f64) -> Option<Sampled> {
    let place = |function: Option<&str>, file: &str, share, is_malloc| Place {
        function: function.map(str::to_owned),
        file: PathBuf::from(file),
        share,
        is_malloc,
        caller: is_malloc.then(|| "parse".to_owned()),
    };
    let places = vec![
        place(Some("work"), "/usr/bin/program", 0.5, false),
        place(None, "/lib/libc.so.6", malloc_share, true),
        place(None, "/lib/libz.so.1", 0.1, false),
    ];
    Some(Sampled { samples: 2_000, malloc_share, places, ..Sampled::default() })
}

#[test]
fn a_malloc_that_samples_meet_often_is_many_allocations_with_a_measured_share() {
    let facts = Facts { samples: sampled(0.3), ..quiet() };
    let finding = first(&facts);
    assert_eq!((finding.id, finding.confidence), (Id::ManyAllocations, Confidence::High));
    assert!((finding.share.unwrap() - 0.297).abs() < 0.001, "{finding:?}");
    assert!(finding.evidence.iter().any(|said| said.contains("`parse`")), "{finding:?}");
    // If memory is given back and requested again, that is the reason.
    assert_eq!(causes(&Facts { samples: sampled(0.3), ..storm() }), [Id::HeapCallStorm]);
    // Sites of a run on masu say more than callers.
    let site = Site { function: "read".to_owned(), place: Some("a.c:3".to_owned()), share: 0.8 };
    let inside =
        Inside { requests: Some((90_000_000, 10.0)), sites: vec![site], ..Inside::default() };
    let finding = first(&Facts { inside: Some(inside), ..facts.clone() });
    assert!(finding.title.contains("9,000,000"), "{finding:?}");
    assert!(
        finding.evidence.iter().any(|said| said.contains("`read` (a.c:3) 80 %")),
        "{finding:?}"
    );
    // A few samples say nothing.
    let few = facts.samples.map(|all| Sampled { samples: 20, ..all });
    assert_eq!(causes(&Facts { samples: few, ..quiet() }), []);
    // A few samples are enough if most of them agree.
    let most = sampled(0.8).map(|all| Sampled { samples: 50, ..all });
    assert_eq!(causes(&Facts { samples: most, ..quiet() }), [Id::ManyAllocations]);
}

#[test]
fn a_run_time_that_collects_garbage_is_offered_room_and_a_static_program_a_library() {
    let mut facts = Facts { samples: sampled(0.3), ..quiet() };
    let remedies = |facts: &Facts| -> String {
        let remedies = first(facts).remedies;
        assert!(remedies.iter().all(|one| one.variant.is_none()), "{remedies:?}");
        remedies.into_iter().map(|one| one.what).collect()
    };
    facts.malloc.refusal = Some("it is linked statically, so there is no loader".to_owned());
    assert!(remedies(&facts).contains("libmasu.a"));
    if let Some(sampled) = &mut facts.samples {
        sampled.places[1].function = Some("runtime.scanObject".to_owned());
    }
    assert!(
        first(&facts).title.starts_with("Handing out memory and collecting garbage takes 30 %")
    );
    assert!(remedies(&facts).contains("GOGC"));
}

#[test]
fn a_program_that_maps_its_own_memory_is_no_malloc_s() {
    let asking = |bytes| {
        let facts = Facts { samples: sampled(0.01), ..quiet() };
        let found = judge(&calling(facts, |calls| calls.moves.asked_bytes = bytes));
        found.into_iter().find(|one| one.id == Id::MemoryIsFine).expect("nothing is wrong")
    };
    assert!(asking(MIB).title.ends_with("it maps its own"));
    assert!(asking(40 * MIB).title.ends_with("no other malloc was tried"));
    let said = |finding: Finding| finding.evidence.iter().any(|line| line.contains("TLB"));
    let large = |peak_rss_bytes| {
        let memory = Memory { peak_rss_bytes, ..quiet().memory };
        let facts = Facts { memory, samples: sampled(0.01), ..quiet() };
        let found = judge(&calling(facts, |calls| calls.moves.asked_bytes = 300 * MIB));
        said(found.into_iter().find(|one| one.id == Id::MemoryIsFine).expect("nothing is wrong"))
    };
    assert!(large(300 * MIB) && !large(20 * MIB));
}

#[test]
fn samples_say_where_a_program_computes_and_what_memory_takes_of_it() {
    let findings = judge(&Facts { samples: sampled(0.08), ..quiet() });
    assert_eq!(findings[0].id, Id::CpuBound);
    let expected = "most of it in `work` of program 50 %, the malloc of libc.so.6 8 %, functions of \
                    libz.so.1 without names 10 %";
    assert_eq!(findings[0].evidence[1], expected);
    assert_eq!((findings[1].id, findings[1].confidence), (Id::MemoryIsFine, Confidence::Low));
    let findings = judge(&Facts { samples: sampled(0.01), ..quiet() });
    assert_eq!((findings[1].id, findings[1].confidence), (Id::MemoryIsFine, Confidence::Medium));
    // Without samples a malloc's share is not known, and counts alone show little.
    let findings = judge(&Facts { samples: None, ..quiet() });
    assert_eq!((findings[1].id, findings[1].confidence), (Id::MemoryIsFine, Confidence::Low));
}

#[test]
fn many_small_pieces_of_code_are_scattered() {
    let code = |small| Some(Scatter { small, mappings: small + 10, ..Scatter::default() });
    assert_eq!(causes(&Facts { code: code(1_000), ..quiet() }), [Id::ScatteredCode]);
    assert_eq!(causes(&Facts { code: code(150), ..quiet() }), []);
}

#[test]
fn remarks_stand_behind_causes_and_before_all_clear() {
    let program = |path: &str, cpu_s, is_command| ProgramTime {
        path: PathBuf::from(path),
        cpu_s,
        stops: 0,
        is_command,
    };
    let facts = Facts {
        wrapper: Some("cargo".to_owned()),
        programs: vec![
            program("/tmp/target/debug/parallel", 9.0, false),
            program("/usr/bin/cargo", 0.2, true),
        ],
        build: Build {
            path: PathBuf::from("/tmp/target/debug/parallel"),
            unoptimized: Some("it lies in cargo's folder for debug builds".to_owned()),
            is_certain: false,
        },
        ..storm()
    };
    assert_eq!(ids(&facts), [Id::HeapCallStorm, Id::Wrapper, Id::UnoptimizedBuild]);
    let wrapper = judge(&facts).swap_remove(1);
    assert!(wrapper.title.contains("cargo") && wrapper.title.contains("debug/parallel"));
    let pipeline = vec![program("/usr/bin/yes", 4.0, false), program("/usr/bin/head", 3.0, false)];
    let several = judge(&Facts { programs: pipeline, ..facts.clone() });
    let several = several.iter().find(|finding| finding.id == Id::Wrapper).unwrap();
    assert!(several.title.contains("starts several programs, above all /usr/bin/yes"));
    assert_eq!(several.confidence, Confidence::Medium);
    // Stops for counting are not the wrapper's work: at 20 µs each, all of its time was stops.
    let mut stopped = facts.clone();
    stopped.programs[1] = ProgramTime { stops: 250_000, ..program("/usr/bin/cargo", 5.0, true) };
    assert!(
        !ids(&Facts {
            programs: vec![facts.programs[0].clone(), program("/usr/bin/cargo", 5.0, true)],
            ..facts.clone()
        })
        .contains(&Id::Wrapper)
    );
    stopped.prices.known.push(price(Service::CountedCallCpu, 20_000.0));
    assert!(ids(&stopped).contains(&Id::Wrapper));
    // A shell that does the work itself is the program, in a subshell too.
    for is_command in [true, false] {
        let work = program("/bin/dash", 9.0, is_command);
        let programs = vec![work, program("/bin/dash", 0.1, true), program("/bin/seq", 0.1, false)];
        assert!(!ids(&Facts { programs, ..facts.clone() }).contains(&Id::Wrapper));
    }
}

#[test]
fn a_program_that_waits_gets_the_reason() {
    let mut facts = quiet();
    facts.clock =
        Clock { wall_s: 10.0, user_s: 0.3, sys_s: 0.2, own_sys_s: 0.2, ..Clock::default() };
    facts.threads.idle_for = vec![(Waiting::Data, 9.0), (Waiting::Time, 0.5)];
    facts.threads.idle_s = 9.5;
    let finding = first(&facts);
    assert_eq!(finding.id, Id::IoBound);
    assert!(finding.title.contains("data"), "{finding:?}");
    // The program waited because others had the CPU.
    facts.threads.idle_s = 0.5;
    assert_eq!(ids(&facts), [Id::MemoryIsFine]);
}

#[test]
fn a_program_that_ends_at_once_is_reported_as_that_alone() {
    for (user_s, looks) in [(0.001, 0), (0.0011, 3)] {
        let clock = Clock { wall_s: 0.009, user_s, ..Clock::default() };
        let threads = Threads { looks, looked_s: 0.0, ..Threads::default() };
        let facts = Facts { clock, threads, ..quiet() };
        let found = judge(&facts);
        assert_eq!(ids(&facts), [Id::MemoryIsFine], "{found:?}");
        assert!(found[0].title.contains("ends too soon"), "{found:?}");
        assert_eq!(found[0].confidence, Confidence::Low);
    }
    // A program that sleeps for long is not over too soon.
    let clock = Clock { wall_s: 3.0, user_s: 0.003, ..Clock::default() };
    let found = judge(&Facts { clock, ..quiet() });
    assert!(found[0].title.contains("hardly used a CPU"), "{found:?}");
}

#[test]
fn the_clock_is_free_of_what_counting_took() {
    let clock = Clock {
        wall_s: 10.0,
        user_s: 2.0,
        sys_s: 4.0,
        own_sys_s: 1.0,
        counting_s: 6.0,
        ..Clock::default()
    };
    assert!((clock.own_wall_s(2) - 4.0).abs() < 1e-9);
    assert!((clock.own_cpu_s() - 3.0).abs() < 1e-9);
    // Stops of several threads overlap; the run never took less than its CPU time spread over all CPUs.
    let overlapping = Clock { user_s: 11.0, counting_s: 9.5, ..clock };
    assert!((overlapping.own_wall_s(2) - 6.0).abs() < 1e-9);
    // Waits for a CPU that others had do not count either.
    let waiting = Clock { counting_s: 0.0, queued_s: 5.0, ..clock };
    assert!((waiting.own_wall_s(2) - 5.0).abs() < 1e-9);
}

#[test]
fn every_cause_has_evidence_and_a_remedy() {
    for facts in [storm(), contended(Owner::Malloc, 8), contended(Owner::Program, 8), serial()] {
        for finding in judge(&facts) {
            assert!(!finding.evidence.is_empty(), "{finding:?}");
            let is_cause = finding.id.kind() == Kind::Cause;
            assert_eq!(!finding.remedies.is_empty(), is_cause, "{finding:?}");
        }
    }
}
