//! The time that no cause explains, and whether memory has a part in it.

use super::super::facts::{Facts, Waiting};
use super::super::finding::{Confidence, Finding, Id, Kind, Remedy};
use super::super::samples::Sampled;
use super::super::thresholds::{
    CAUSE_SHARE, COMPUTES, CPU_MIN_S, FIRST_TOUCH_SHARE, HUGE_BYTES, HUGE_PAGE, LOCK_WAITS, LONG_S,
    LOOKS_MIN, MEMORY_IS_FINE_SHARE, REACHED_SHARE, USER_SHARE, WAITS,
};
use super::heap::touched_again;
use super::locks::of_few_locks;
use super::program::code_of_memory;
use super::waits::Waits;
use super::{has, is_of_memory};
use masu_run::calls::{OwnMoves, Owner};
use masu_run::prices::Service;
use masu_run::quantity::{bytes, count, percent, seconds};

/// The findings if nothing is wrong.
pub(super) fn clear(facts: &Facts, found: &[Finding]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A program that failed at once has given its reason, and waited for nothing.
    let failed_at_once = facts.failure.is_some() && facts.clock.own_cpu_s() < CPU_MIN_S;
    if !found.iter().any(|finding| finding.id.kind() == Kind::Cause) && !failed_at_once {
        findings.extend(computes(facts).or_else(|| waits(facts)));
    }
    let memory = memory(facts, found);
    // A program that failed is not called healthy.
    let has_failed = facts.failure.as_ref().is_some_and(|failure| !failure.may_be_answer());
    // A program that waits is said to do so, and no more.
    let is_said = facts.clock.own_cpu_s() < CPU_MIN_S && has(&findings, &[Id::IoBound]);
    let is_untried = |one: &Finding| {
        one.id == Id::MemoryIsFine || one.id == Id::MemoryOpen && one.remedies.is_empty()
    };
    let is_denied = |one: &Finding| (has_failed || is_said) && is_untried(one);
    findings.extend(memory.filter(|one| !is_denied(one)));
    findings
}

/// The first touches of `pages` pages take a good part of the run. If no possible change saves enough of that time,
/// there is no finding, and the explanation comes back as evidence.
fn first_touch(facts: &Facts, pages: u64, costs: String) -> Result<Finding, String> {
    let faults_s = pages as f64 * facts.price_s(Service::PageFault);
    let share = facts.share(faults_s).min(1.0);
    let title = format!("Touching memory for the first time takes {} of its time", percent(share));
    let mut remedies = vec![Remedy::code(
        1,
        "touch less memory, or reuse the same memory",
        "a change of the program",
    )];
    let touched = pages * facts.memory.os_page_bytes;
    let moves = facts.calls.as_ref().map(|calls| calls.moves);
    let asked = facts.asked_by_malloc_bytes();
    let mut evidence = vec![costs];
    if facts.reach().is_some_and(|reach| reach < REACHED_SHARE) {
        let why = format!(
            "the malloc asked for {} at most of the {} that were touched: the rest is of files, or of \
             mappings that the program makes itself, which no malloc can change",
            bytes(asked.unwrap_or(0) as f64),
            bytes(touched as f64)
        );
        let own = moves.map_or(OwnMoves::default(), |moves| moves.own);
        // A smaller mapping has no room for a huge page.
        let has_room = own.maps > 0 && own.asked_bytes / own.maps >= HUGE_PAGE;
        let saved_s = if has_room {
            in_huge_pages(facts, own.asked_bytes.min(touched), &mut evidence).unwrap_or(faults_s)
        } else {
            0.0
        };
        let again_s = facts.memory.refaults.unwrap_or(0) as f64 * facts.price_s(Service::PageFault);
        if facts.share(saved_s.max(0.0) + again_s) < CAUSE_SHARE {
            return Err(why);
        }
        evidence.insert(1, why);
        if has_room {
            remedies.push(Remedy::code(
                1,
                "ask for huge pages where it maps its memory: madvise, MADV_HUGEPAGE",
                "a change of the program, and more memory where it touches little of it",
            ));
        }
    } else if facts.is_sparse() {
        evidence.push(format!(
            "{} were touched of the {} that the malloc asked for: huge pages would hold the rest, too",
            bytes(touched as f64),
            bytes(asked.unwrap_or(0) as f64)
        ));
    } else {
        let saved_s = in_huge_pages(facts, asked.unwrap_or(touched).min(touched), &mut evidence);
        let saves = saved_s.is_none_or(|saved_s| facts.share(saved_s) >= CAUSE_SHARE);
        if saves && facts.malloc.name == "glibc" && facts.malloc.refusal.is_none() {
            remedies.push(Remedy::setting(
                "huge pages: one fault for 2 MiB",
                "glibc:huge_pages=1".to_owned(),
                "more memory, where large blocks are touched here and there only",
            ));
        }
    }
    let mut finding = Finding::new(Id::FirstTouch, Confidence::Medium, title).sharing(share);
    finding.evidence = evidence;
    Ok(finding.remedied(remedies))
}

/// First touches beside a storm of faults: keeping free memory saves none of them, and huge pages save both.
fn touched_beside_a_storm(facts: &Facts, found: &[Finding]) -> Option<Finding> {
    let calls = facts.calls.as_ref().filter(|_| has(found, &[Id::FaultStorm]))?;
    let pages = facts.memory.minor_faults.saturating_sub(touched_again(facts, calls));
    let price_s = facts.price_s(Service::PageFault);
    let faults_s = pages as f64 * price_s;
    if facts.share(faults_s) < FIRST_TOUCH_SHARE {
        return None;
    }
    let costs = format!(
        "{} pages besides those touched again × {} = {}",
        count(pages as f64),
        seconds(price_s),
        seconds(faults_s)
    );
    let touch = first_touch(facts, pages, costs).ok()?;
    touch.remedies.iter().any(|remedy| remedy.variant.is_some()).then_some(touch)
}

/// Threads wait for the malloc's locks so often that the waits would be a cause if all of them slept.
fn waits_open(facts: &Facts, waits: &Waits, costs: String) -> Finding {
    let title = "Whether waiting for the malloc's locks slows it down could not be seen";
    let finding =
        Finding::new(Id::MemoryOpen, Confidence::Low, title).seeing(costs).seeing(format!(
            "{} waits: {} of the run if each of them slept, and how many did is not known",
            count(waits.count as f64),
            percent(facts.share(waits.most_s).min(1.0))
        ));
    let may_try = facts.malloc.name != "masu" && facts.malloc.refusal.is_none();
    finding.remedied(may_try.then(of_few_locks))
}

/// The time that huge pages would save at first touches of `touched` bytes, in seconds; none if their price is not
/// known.
fn in_huge_pages(facts: &Facts, touched: u64, evidence: &mut Vec<String>) -> Option<f64> {
    facts.prices.of(Service::HugePageFault)?;
    let (huge, small) = (touched.div_ceil(HUGE_PAGE), touched / facts.memory.os_page_bytes.max(1));
    let (huge_s, small_s) =
        (facts.price_s(Service::HugePageFault), facts.price_s(Service::PageFault));
    let saved_s = small as f64 * small_s - huge as f64 * huge_s;
    evidence.push(format!(
        "in huge pages {} faults × {} = {} instead of {}: {} of the run less, and fewer misses of the TLB, \
         which were not counted",
        count(huge as f64),
        seconds(huge_s),
        seconds(huge as f64 * huge_s),
        seconds(small as f64 * small_s),
        percent(facts.share(saved_s).clamp(0.0, 1.0))
    ));
    Some(saved_s)
}

fn computes(facts: &Facts) -> Option<Finding> {
    let clock = &facts.clock;
    let (wall_s, cpu_s) = (clock.own_wall_s(facts.cpus), clock.own_cpu_s());
    let is_over_at_once = cpu_s < CPU_MIN_S;
    if is_over_at_once || cpu_s < COMPUTES * wall_s || clock.user_s < USER_SHARE * cpu_s {
        return None;
    }
    let places = facts.sampled().map(Sampled::listing).filter(|listing| !listing.is_empty());
    let where_to_look = match places {
        Some(places) => format!("above all in {places}"),
        None => "a profiler says where: perf record, or valgrind --tool=callgrind".to_owned(),
    };
    let title = "It computes: its own code takes the time";
    let finding = Finding::new(Id::CpuBound, Confidence::High, title)
        .sharing(clock.user_s / cpu_s.max(1e-9))
        .seeing(format!(
            "{} in its own code, {} in the kernel",
            seconds(clock.user_s),
            seconds(cpu_s - clock.user_s)
        ))
        .seeing(where_to_look);
    Some(finding)
}

fn waits(facts: &Facts) -> Option<Finding> {
    let clock = &facts.clock;
    let (wall_s, cpu_s) = (clock.own_wall_s(facts.cpus), clock.own_cpu_s());
    // On a busy machine, a program with little CPU time may have waited only for a CPU.
    let looks = &facts.threads;
    // The time must be as long as the fewest looks that say anything take; on a busy machine it contains fewer looks.
    let is_long = looks.looked_s >= LOOKS_MIN as f64 * 0.01;
    if cpu_s > WAITS * wall_s || !is_long || !facts.is_idle() {
        return None;
    }
    let for_what = facts.threads.idle_for.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let listing = match for_what.map(|(waiting, _)| *waiting) {
        Some(Waiting::Data) => "It waits for data: a disk, the network, another program",
        Some(Waiting::Requests) => "It waits for requests or other events",
        Some(Waiting::Time) => "It sleeps for a set time",
        Some(Waiting::Lock | Waiting::Itself) => "It waits for its own threads or children",
        Some(Waiting::Other) | None => "It waits, and hardly uses a CPU",
    };
    let share = (1.0 - cpu_s / wall_s.max(1e-9)).max(0.0);
    let finding = Finding::new(Id::IoBound, Confidence::High, listing)
        .sharing(share)
        .seeing(format!("{} of CPU time in {}", seconds(cpu_s), seconds(wall_s)));
    Some(finding)
}

/// The cost of memory by counts and prices, and whether it is too little to matter. Counts alone never show that for
/// certain: only runs beside another malloc do (`diagnose/trial.rs`).
fn memory(facts: &Facts, found: &[Finding]) -> Option<Finding> {
    if is_of_memory(facts, found) {
        return touched_beside_a_storm(facts, found);
    }
    let calls = facts.calls.as_ref()?;
    let price = |service| facts.price_s(service);
    let moves = &calls.moves;
    let faults_s = facts.memory.minor_faults as f64 * price(Service::PageFault);
    let calls_s = moves.break_ups.max(moves.break_downs) as f64 * price(Service::BreakPair)
        + moves.maps.max(moves.unmaps) as f64 * price(Service::MapPair)
        + (moves.purges + moves.offers + moves.grows) as f64 * price(Service::SystemCall);
    let waits = Waits::of(facts, calls.lock_waits(Owner::Malloc));
    let waits_s = waits.cost_s;
    let share = facts.share(faults_s + calls_s + waits_s);
    let sizes = super::program::size(facts);
    let listing = format!(
        "page faults {}, calls for memory {}, waits for the malloc's lock {}: {} of the run; {sizes}",
        seconds(faults_s),
        seconds(calls_s),
        seconds(waits_s),
        percent(share.min(1.0))
    );
    let sampled_s = facts.sampled().map(|sampled| sampled.malloc_share * facts.clock.user_s);
    let malloc_share = sampled_s.map(|time_s| facts.share(time_s));
    let is_long_enough = facts.clock.own_cpu_s() >= CPU_MIN_S;
    if is_long_enough && waits.count >= LOCK_WAITS && facts.share(waits.most_s) >= CAUSE_SHARE {
        return Some(waits_open(facts, &waits, listing));
    }
    let mut beyond = None;
    if is_long_enough && facts.share(faults_s) >= FIRST_TOUCH_SHARE {
        match first_touch(facts, facts.memory.minor_faults, listing.clone()) {
            Ok(finding) => return Some(finding),
            Err(why) => beyond = Some(why),
        }
    }
    // The malloc's own time is no sign that memory is fine: another may take less of it.
    let is_open = is_long_enough && malloc_share.is_some_and(|share| share >= MEMORY_IS_FINE_SHARE);
    let (title, confidence) = if !is_long_enough && facts.clock.wall_s >= LONG_S {
        (
            "It hardly used a CPU: too little for memory to matter, or for a cause to be seen",
            Confidence::Low,
        )
    } else if !is_long_enough {
        ("It ends too soon for memory to matter, or for a cause to be seen", Confidence::Low)
    } else if is_open {
        ("Some of its time goes into malloc; whether another gains was not tried", Confidence::Low)
    } else if share >= MEMORY_IS_FINE_SHARE {
        ("Its memory is touched once, as it must be; no other malloc was tried", Confidence::Low)
    } else if facts.is_beyond_mallocs() {
        (
            "No sign that memory is its problem, and hardly any is its malloc's: it maps its own",
            Confidence::Medium,
        )
    } else if malloc_share.is_some() {
        ("No sign that memory is its problem, but no other malloc was tried", Confidence::Medium)
    } else {
        (
            "No sign that memory is its problem, but samples are missing, and no other malloc was tried",
            Confidence::Low,
        )
    };
    let id = if is_open { Id::MemoryOpen } else { Id::MemoryIsFine };
    let mut finding = Finding::new(id, confidence, title).seeing(listing);
    if let (Some(share), Some(sampled)) = (malloc_share, &facts.samples) {
        let (code, share) = (code_of_memory(sampled), percent(share));
        finding = finding.seeing(format!("{code}, by samples: {share} of the run"));
    }
    finding.evidence.extend(beyond);
    let asked = facts.asked_by_malloc_bytes().unwrap_or(0);
    if asked.min(facts.memory.peak_rss_bytes) >= HUGE_BYTES && facts.memory.huge_bytes == 0 {
        finding = finding.seeing(
            "so much memory in small pages may cost misses of the TLB, which were not counted: huge pages cause fewer",
        );
    }
    Some(finding)
}
