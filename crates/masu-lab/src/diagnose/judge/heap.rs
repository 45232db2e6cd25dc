//! Memory that is given back and requested again: by many calls, or by many pages.

use super::super::facts::{CallFacts, Facts};
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::{
    CAUSE_SHARE, CERTAIN_SHARE, PAGES_A_THREAD, REFAULTS, STORM_BYTES_A_RETURN, STORM_PAIRS,
};
use super::has;
use masu_run::calls::Moves;
use masu_run::prices::Service;
use masu_run::quantity::{bytes, count, percent, seconds};

/// A storm of calls, or one of page faults; never both, for they are the same seconds.
pub(super) fn storms(facts: &Facts, found: &[Finding]) -> Option<Finding> {
    let Some(calls) = &facts.calls else { return faults_alone(facts) };
    let costs = Costs::of(facts, calls);
    // Threads that come and go map and unmap their stacks, give them back and touch them again.
    let explained = has(found, &[Id::ThreadChurn]);
    if explained && costs.refaults <= PAGES_A_THREAD * calls.threads_started {
        return None;
    }
    if costs.pairs >= STORM_PAIRS && !explained && costs.is_of_calls() {
        return call_storm(facts, calls, &costs);
    }
    fault_storm(facts, calls, &costs)
}

/// The numbers of memory's moves, and their cost in seconds.
#[derive(Default)]
struct Costs {
    /// Times that memory was given back and requested again, by `brk` or mappings.
    pairs: u64,
    /// The part of `pairs` by mappings.
    map_pairs: u64,
    /// Times that contents were given back and addresses stayed.
    purges: u64,
    /// Bytes that were given back.
    returned_bytes: u64,
    /// Pages that were touched again.
    refaults: u64,
    /// Whether most of the memory was moved by the program's own calls.
    are_own: bool,
    calls_s: f64,
    pages_s: f64,
}

impl Costs {
    fn of(facts: &Facts, calls: &CallFacts) -> Costs {
        let moves = &calls.moves;
        let price = |service| facts.price_s(service);
        let (breaks, maps) = (moves.break_pairs(), moves.map_pairs());
        let refaults = touched_again(facts, calls);
        let page_s = price(Service::PageFault) + price(Service::PageReturn);
        Costs {
            pairs: breaks + maps,
            map_pairs: maps,
            purges: moves.purges,
            returned_bytes: moves.returned_bytes,
            refaults,
            are_own: moves.are_own() && !facts.malloc.is_static(),
            calls_s: breaks as f64 * price(Service::BreakPair)
                + maps as f64 * price(Service::MapPair)
                + (moves.purges + moves.grows) as f64 * price(Service::SystemCall),
            pages_s: refaults as f64 * page_s,
        }
    }

    fn all_s(&self) -> f64 {
        self.calls_s + self.pages_s
    }

    /// Whether there are many calls that return little each, and most are of the heap's own kind.
    fn is_of_calls(&self) -> bool {
        self.pairs >= self.purges
            && self.returned_bytes / (self.pairs + self.purges).max(1) < STORM_BYTES_A_RETURN
    }
}

pub(super) fn touched_again(facts: &Facts, calls: &CallFacts) -> u64 {
    // Faults beyond the memory given back are no second touches: they are first touches of more than one process.
    let returned_pages = calls.moves.returned_bytes / facts.memory.os_page_bytes.max(1);
    facts.memory.refaults.unwrap_or(0).min(returned_pages)
}

fn certain(share: f64) -> Confidence {
    if share >= CERTAIN_SHARE { Confidence::High } else { Confidence::Medium }
}

fn call_storm(facts: &Facts, calls: &CallFacts, costs: &Costs) -> Option<Finding> {
    let share = facts.share(costs.all_s());
    if share < CAUSE_SHARE {
        return None;
    }
    let title = format!(
        "It gives memory back to the kernel and asks for it again, {} times",
        count(costs.pairs as f64)
    );
    let finding = Finding::new(Id::HeapCallStorm, certain(share), title).sharing(share);
    let finding = finding
        .seeing(format!("{} = {}", call_counts(&calls.moves), seconds(costs.calls_s)))
        .seeing(again(facts, costs))
        .seeing(whole(facts, costs.all_s()));
    Some(finding.remedied(remedies(facts, costs)))
}

fn fault_storm(facts: &Facts, calls: &CallFacts, costs: &Costs) -> Option<Finding> {
    let share = facts.share(costs.all_s());
    if costs.refaults < REFAULTS || share < CAUSE_SHARE {
        return None;
    }
    let moves = &calls.moves;
    let times = moves.break_downs + moves.unmaps + moves.purges;
    let title = format!(
        "It touches memory again that it had given back: {} page faults",
        count(costs.refaults as f64)
    );
    let finding = Finding::new(Id::FaultStorm, certain(share), title)
        .sharing(share)
        .seeing(format!(
            "{} given back in {} calls, {} each",
            bytes(costs.returned_bytes as f64),
            count(times as f64),
            bytes(costs.returned_bytes as f64 / (times as f64).max(1.0))
        ))
        .seeing(again(facts, costs))
        .seeing(format!("calls: {} = {}", call_counts(moves), seconds(costs.calls_s)))
        .seeing(whole(facts, costs.all_s()));
    Some(finding.remedied(remedies(facts, costs)))
}

/// A storm of page faults in a process whose calls are not counted.
fn faults_alone(facts: &Facts) -> Option<Finding> {
    let refaults = facts.memory.refaults?;
    let cycle = facts.price_s(Service::PageFault) + facts.price_s(Service::PageReturn);
    let costs = Costs { refaults, pages_s: refaults as f64 * cycle, ..Costs::default() };
    let share = facts.share(costs.pages_s);
    if refaults < REFAULTS || share < CAUSE_SHARE {
        return None;
    }
    let title = format!(
        "It touches memory again that it had given back: {} page faults beyond its growth",
        count(refaults as f64)
    );
    let finding = Finding::new(Id::FaultStorm, Confidence::Medium, title)
        .sharing(share)
        .seeing(again(facts, &costs))
        .seeing(whole(facts, costs.pages_s))
        .seeing("by which calls it gives memory back is not seen in a running process");
    Some(finding.remedied(remedies(facts, &costs)))
}

fn call_counts(moves: &Moves) -> String {
    let mut parts = Vec::new();
    let mut tell = |number: u64, what: &str| {
        if number > 0 {
            parts.push(format!("{} {what}", count(number as f64)));
        }
    };
    tell(moves.break_ups + moves.break_downs, "brk, up and down");
    tell(moves.map_pairs(), "mmap + munmap");
    tell(moves.purges, "madvise");
    tell(moves.grows, "mprotect");
    parts.join(", ")
}

fn again(facts: &Facts, costs: &Costs) -> String {
    let cycle = facts.price_s(Service::PageFault) + facts.price_s(Service::PageReturn);
    format!(
        "{} pages touched again × {} = {}",
        count(costs.refaults as f64),
        seconds(cycle),
        seconds(costs.pages_s)
    )
}

/// The cost as a share of the run, in words.
fn whole(facts: &Facts, cost_s: f64) -> String {
    format!(
        "together {}, {} of {}",
        seconds(cost_s),
        percent(facts.share(cost_s).min(1.0)),
        seconds(facts.clock.whole_s(facts.cpus))
    )
}

fn remedies(facts: &Facts, costs: &Costs) -> Vec<Remedy> {
    if costs.are_own {
        return vec![Remedy::code(
            1,
            "the program maps this memory itself (mmap, munmap, madvise), so no malloc can change that: \
             keep a mapping and reuse it",
            "a change of the program, or of the library that maps it",
        )];
    }
    let mut remedies = vec![Remedy::code(
        1,
        "keep large buffers and reuse them instead of freeing and allocating them",
        "a change of the program",
    )];
    // The free memory to keep: the program's peak, as a power of two from 64 MiB to 1 GiB.
    let each = costs.returned_bytes / (costs.pairs + costs.purges).max(1);
    let kept = facts.memory.peak_rss_bytes.max(2 * each);
    let kept = kept.next_power_of_two().clamp(64 << 20, 1 << 30);
    let cost = format!("up to {} stay resident that would go back", bytes(kept as f64));
    let mut sizes = vec![("top_pad", 64 << 20), ("trim_threshold", kept)];
    if 2 * costs.map_pairs > costs.pairs {
        // The largest threshold that glibc allows.
        let most = 32 << 20;
        let is_large = costs.returned_bytes / costs.pairs.max(1) > most;
        let of_maps = if is_large { ("mmap_max", 0) } else { ("mmap_threshold", most) };
        sizes.insert(0, of_maps);
    }
    let all = |each: fn(&(&str, u64)) -> String, between: &str| {
        sizes.iter().map(each).collect::<Vec<_>>().join(between)
    };
    let setting = match facts.malloc.name.as_str() {
        _ if facts.malloc.refusal.is_some() => None,
        // Each of these settings alone turns glibc's adaptation off and makes another storm.
        "glibc" => {
            Some(format!("glibc:{}", all(|(name, size)| format!("{name}={}", written(*size)), ",")))
        }
        "masu" => Some(format!("masu:trim_threshold={}", written(kept))),
        name if name.starts_with("jemalloc") || name.starts_with("mimalloc") => {
            Some(format!("{name}:purge_delay=10000"))
        }
        _ => None,
    };
    let what = "keep free memory instead of giving it back at once; the settings belong together";
    remedies.extend(setting.map(|variant| Remedy::setting(what, variant, &cost)));
    if facts.malloc.is_static() {
        let of_glibc = facts.malloc.is_static_glibc().then(|| {
            let sizes = all(|(name, size)| format!("glibc.malloc.{name}={size}"), ":");
            let what = format!(
                "{what}; a static program of glibc reads them too, unless it has a malloc of its own"
            );
            Remedy::variable(&what, format!("GLIBC_TUNABLES={sizes}"), &cost)
        });
        remedies.extend(of_glibc.into_iter().chain([Remedy::linked()]));
    } else if facts.malloc.name != "masu" && facts.malloc.refusal.is_none() {
        let what = "a malloc that adapts by itself how much free memory it keeps";
        remedies.push(Remedy::allocator(what, "masu", "another malloc under the program"));
    }
    remedies
}

/// Zero or a power of two, as variants take it.
fn written(size: u64) -> String {
    if size == 0 {
        return "0".to_owned();
    }
    if size >= 1 << 30 { format!("{}G", size >> 30) } else { format!("{}M", size >> 20) }
}
