//! First touches of memory, if something saves them and if nothing does.

use super::*;

#[test]
fn huge_pages_are_offered_against_first_touches_where_they_are_cheaper() {
    let touching = |huge_ns| {
        let mut facts = calling(storm(), |calls| {
            calls.moves.break_downs = 100;
            calls.moves.returned_bytes = 100 * 4096;
            calls.moves.asked_bytes = 8192 * MIB;
        });
        facts.prices.known.push(price(Service::HugePageFault, huge_ns));
        first(&facts)
    };
    // 512 small faults take 307 µs.
    let cheap = touching(60_000.0);
    assert_eq!(variants(&cheap, RemedyKind::Setting), ["glibc:huge_pages=1"]);
    assert!(cheap.evidence[1].contains("in huge pages"), "{cheap:?}");
    let costly = touching(300_000.0);
    assert_eq!(variants(&costly, RemedyKind::Setting), Vec::<String>::new(), "{costly:?}");
}

/// Python as it was recorded: it touched 100 MiB, 85 of them in its own mappings of 1 MiB, and hardly any twice.
fn maps_its_own(maps: u64) -> Facts {
    let memory = Memory {
        peak_rss_bytes: 84 * MIB,
        minor_faults: 25_400,
        refaults: Some(3_900),
        ..quiet().memory
    };
    let clock =
        Clock { wall_s: 0.32, user_s: 0.29, sys_s: 0.03, own_sys_s: 0.03, ..Clock::default() };
    let mut facts = calling(Facts { memory, clock, ..quiet() }, |calls| {
        let own = OwnMoves { maps, unmaps: 83, asked_bytes: 85 * MIB, ..OwnMoves::default() };
        calls.moves =
            Moves { maps: 95, unmaps: 87, asked_bytes: 100 * MIB, own, ..Moves::default() };
    });
    facts.prices = Prices {
        known: vec![
            price(Service::PageFault, 1_500.0),
            price(Service::HugePageFault, 123_000.0),
            price(Service::SystemCall, 100.0),
        ],
        unknown: Vec::new(),
    };
    facts
}

#[test]
fn first_touches_are_no_finding_where_nothing_saves_them() {
    let facts = maps_its_own(86);
    assert_eq!(causes(&facts), []);
    let findings = judge(&facts);
    let fine = findings.iter().find(|one| one.id == Id::MemoryIsFine).expect("it is touched once");
    assert_eq!(fine.confidence, Confidence::Low);
    assert!(fine.evidence.iter().any(|said| said.contains("no malloc can change")), "{fine:?}");
    // Large mappings have room for huge pages, but the program itself must ask for them.
    let large = judge(&maps_its_own(2)).remove(0);
    assert_eq!(large.id, Id::FirstTouch, "{large:?}");
    assert!(large.remedies.iter().any(|one| one.what.contains("MADV_HUGEPAGE")), "{large:?}");
    assert!(large.remedies.iter().all(|one| one.kind == RemedyKind::NeedsCode), "{large:?}");
    // Memory that is touched again and again could be kept.
    let mut again = maps_its_own(86);
    again.memory.refaults = Some(20_000);
    assert_eq!(causes(&again), [Id::FirstTouch]);
}

/// LibreOffice as it was recorded: 300,000 page faults, not half of them of memory that it had given back.
#[test]
fn first_touches_beside_a_storm_of_faults_are_a_cause_of_their_own() {
    let memory = Memory {
        peak_rss_bytes: 214 * MIB,
        minor_faults: 300_000,
        refaults: Some(134_000),
        ..quiet().memory
    };
    let clock = Clock { wall_s: 1.3, user_s: 0.7, sys_s: 0.5, own_sys_s: 0.5, ..Clock::default() };
    let facts = |asked_bytes| {
        let mut facts = calling(Facts { memory, clock, ..quiet() }, |calls| {
            calls.moves = Moves {
                break_downs: 34,
                purges: 59,
                asked_bytes,
                returned_bytes: 1_600 * MIB,
                ..Moves::default()
            };
        });
        facts.prices.known.push(price(Service::HugePageFault, 27_000.0));
        facts.prices.known.retain(|one| one.service != Service::PageFault);
        facts.prices.known.push(price(Service::PageFault, 1_200.0));
        facts
    };
    let both = judge(&facts(1_190 * MIB));
    let of = |id| both.iter().find(|one| one.id == id).unwrap_or_else(|| panic!("{both:?}"));
    assert!(variants(of(Id::FaultStorm), RemedyKind::Setting)[0].contains("trim_threshold"));
    let touch = of(Id::FirstTouch);
    assert_eq!(variants(touch, RemedyKind::Setting), ["glibc:huge_pages=1"]);
    assert!(touch.evidence[0].starts_with("166,000 pages"), "{touch:?}");
    // Where the malloc asked for little, huge pages of its own save nothing.
    assert_eq!(causes(&facts(100 * MIB)), [Id::FaultStorm]);
}
