//! Findings about the program as a whole: how it was built, which program really works, where its code lies, how often
//! it requests memory.

use super::super::facts::{Facts, ProgramTime, Site};
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::samples::{NAME, Sampled};
use super::super::thresholds::{
    CAUSE_SHARE, CPU_MIN_S, EXPLAINS, MALLOC_SHARE, REQUESTS_A_SECOND, SCATTERED_MAPPINGS,
    WRAPPED_SHARE, WRAPPER_OWN_SHARE,
};
use super::explain;
use masu_run::prices::Service;
use masu_run::quantity::{bytes, clipped, count, percent, seconds};

/// Remarks on the measured command, and scattered code.
pub(super) fn about(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(scattered(facts));
    findings.extend(unoptimized(facts));
    findings.extend(wrapper(facts));
    findings
}

/// Allocation is itself the work: there are many requests, or samples often meet the malloc.
pub(super) fn many_allocations(facts: &Facts, found: &[Finding]) -> Option<Finding> {
    /// The least time of `malloc` and `free` for a small block in current allocators.
    const PAIR_S: f64 = 20e-9;
    let requests = facts.inside.as_ref().and_then(|inside| inside.requests);
    let rate = requests.map(|(requests, cpu_s)| requests as f64 / cpu_s.max(1e-9));
    let is_often = rate.is_some_and(|rate| rate >= REQUESTS_A_SECOND);
    // Few samples are enough if most of them meet the malloc.
    let few = facts.samples.as_ref().filter(|few| few.malloc_share_least() >= MALLOC_SHARE);
    let sampled = facts.sampled().or(few);
    let sampled_s = sampled.map(|sampled| sampled.malloc_share * facts.clock.user_s);
    let sampled_share = sampled_s.map(|time_s| facts.share(time_s));
    // If threads wait for the malloc, or memory is given back and requested again, that is why allocation takes long,
    // unless it happens only in a small part of the run, or is little beside the malloc's own time.
    let is_explained = |share: f64| {
        let is_storm = |one: &&Finding| matches!(one.id, Id::HeapCallStorm | Id::FaultStorm);
        let storm = found.iter().find(is_storm).and_then(|storm| storm.share).unwrap_or(0.0);
        storm >= EXPLAINS * share
            || explain(facts, found, &[Id::MallocLock, Id::RemoteFrees, Id::ThreadChurn])
    };
    let is_met = sampled_share.is_some_and(|share| share >= MALLOC_SHARE && !is_explained(share));
    if !is_often && !is_met {
        return None;
    }
    let collects = sampled.is_some_and(collects);
    let share = percent(sampled_share.unwrap_or(0.0));
    let title = match rate.filter(|_| is_often) {
        Some(rate) => format!("It asks for memory {} times a second", count(rate)),
        None if collects => {
            format!("Handing out memory and collecting garbage takes {share} of its time")
        }
        None => format!("Asking for memory and giving it back takes {share} of its time"),
    };
    let confidence = if is_met { Confidence::High } else { Confidence::Medium };
    let mut finding = Finding::new(Id::ManyAllocations, confidence, title);
    if let (Some(sampled), Some(time_s)) = (sampled, sampled_s) {
        finding = finding.sharing(facts.share(time_s)).seeing(format!(
            "{} of {} samples of its own code are in {}: {} of {}",
            percent(sampled.malloc_share),
            count(sampled.samples as f64),
            code_of_memory(sampled),
            seconds(time_s),
            seconds(facts.clock.whole_s(facts.cpus))
        ));
    }
    if let Some((requests, cpu_s)) = requests {
        let share = requests as f64 * PAIR_S / cpu_s.max(1e-9);
        finding.share = finding.share.or(Some(share.clamp(0.0, 1.0)));
        finding = finding.seeing(format!(
            "{} requests, counted in a run of their own; at 20 ns each with its free, {} of its CPU \
             time",
            count(requests as f64),
            percent(share.min(1.0))
        ));
    }
    let sites = facts.inside.as_ref().map_or(&[][..], |inside| &inside.sites);
    if !sites.is_empty() {
        let site_names: Vec<String> = sites.iter().take(3).map(site).collect();
        finding = finding.seeing(format!("blocks are allocated by {}", site_names.join(", ")));
    } else if let Some(callers) = sampled.and_then(callers) {
        finding = finding.seeing(format!("called by {callers}, as far as frame pointers show"));
    }
    let mut remedies =
        vec![Remedy::code(1, "allocate less: reuse buffers", "a change of the program")];
    if collects {
        remedies.push(Remedy::code(
            2,
            "give the collector more room, so that it runs less often: GOGC and GOMEMLIMIT (Go), -Xms and -Xmx \
             (Java), --max-semi-space-size (Node), RUBY_GC_HEAP_GROWTH_FACTOR (Ruby), GC_INITIAL_HEAP_SIZE (libgc)",
            "memory",
        ));
    } else if facts.malloc.is_static() {
        remedies.push(Remedy::linked());
    } else if facts.malloc.name != "masu" && facts.malloc.refusal.is_none() {
        remedies.push(Remedy::allocator(
            "a faster malloc",
            "masu",
            "another malloc under the program",
        ));
    }
    Some(finding.remedied(remedies))
}

/// Whether most samples in the code of memory are in a language's run-time.
fn collects(sampled: &Sampled) -> bool {
    let share = |of_run_time| -> f64 {
        let places = sampled.places.iter().filter(|place| place.is_malloc);
        places.filter(|place| place.is_collector() == of_run_time).map(|place| place.share).sum()
    };
    share(true) > share(false)
}

/// The code that samples call the malloc's, in words.
pub(super) fn code_of_memory(sampled: &Sampled) -> &'static str {
    if collects(sampled) { "its run-time's collector, malloc and free" } else { "malloc and free" }
}

/// A function that requests memory, in words: `parse (work.c:12) 43 %`.
pub(super) fn site(site: &Site) -> String {
    let place = site.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
    format!("`{}`{place} {}", clipped(&site.function, NAME), percent(site.share))
}

/// The functions that called the malloc in samples, each once.
fn callers(sampled: &Sampled) -> Option<String> {
    let of_malloc = sampled.places.iter().filter(|place| place.is_malloc);
    let mut names: Vec<String> = of_malloc
        .filter_map(|place| place.caller.as_ref())
        .map(|name| format!("`{name}`"))
        .collect();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

fn scattered(facts: &Facts) -> Option<Finding> {
    let code = facts.code.as_ref()?;
    // If the program hardly computes, the place of its code does not matter.
    let computes = facts.share(facts.clock.user_s) >= CAUSE_SHARE;
    if code.small < SCATTERED_MAPPINGS || !computes {
        return None;
    }
    let title = format!("Its code lies in {} small pieces", count(code.small as f64));
    let mut seen = format!(
        "{} executable mappings of at most 64 KiB in {} regions of 2 MiB; {} begin at the same offset",
        count(code.small as f64),
        count(code.regions as f64),
        count(code.same_offset as f64)
    );
    if code.deleted > 0 {
        let deleted = count(code.deleted as f64);
        seen.push_str(&format!(
            "; {deleted} are of deleted files, most called {}",
            code.deleted_as
        ));
    }
    let finding = Finding::new(Id::ScatteredCode, Confidence::Medium, title).seeing(seen);
    Some(finding.remedied([Remedy::code(
        4,
        "link the pieces into one library, or load objects into a code arena (docs/code.md)",
        "a change of how code is built or loaded",
    )]))
}

fn unoptimized(facts: &Facts) -> Option<Finding> {
    let why = facts.build.unoptimized.as_ref()?;
    if facts.clock.user_s < CPU_MIN_S {
        return None;
    }
    let confidence = if facts.build.is_certain { Confidence::High } else { Confidence::Medium };
    let title = "The program was compiled without optimization";
    let finding = Finding::new(Id::UnoptimizedBuild, confidence, title)
        .seeing(format!("{}: {why}", facts.build.path.display()));
    Some(finding.remedied([Remedy::code(
        4,
        "measure the build that will be used: cargo build --release, -O2",
        "compiling takes longer, and debuggers show less",
    )]))
}

fn wrapper(facts: &Facts) -> Option<Finding> {
    // Shares of CPU time say little of a command that waits.
    let name = facts.wrapper.as_ref().filter(|_| !facts.is_idle())?;
    // A wrapper makes many calls, and the program that it starts may make few: stops are the work of neither.
    let stop_s = facts.price_s(Service::CountedCallCpu);
    let all: f64 = facts.programs.iter().map(|program| program.cpu_s).sum();
    let whole = all - (facts.clock.stops as f64 * stop_s).min(all / 2.0);
    let commands: Vec<&ProgramTime> = facts.programs.iter().filter(|it| it.is_command).collect();
    // A part of a pipeline that the shell itself works at is a process of the same program.
    let is_own = |program: &&ProgramTime| commands.iter().any(|it| it.path == program.path);
    let (own, started): (Vec<&ProgramTime>, Vec<_>) = facts.programs.iter().partition(is_own);
    let own_s = |program: &&ProgramTime| (program.cpu_s - program.stops as f64 * stop_s).max(0.0);
    let own: f64 = own.iter().map(own_s).sum();
    let main = started.first()?;
    let started_s: f64 = started.iter().map(|it| it.cpu_s).sum();
    // Where what was started did nothing, whatever was not stops was the command's own work.
    if whole < CPU_MIN_S || started_s < CPU_MIN_S || own > WRAPPER_OWN_SHARE * whole {
        return None;
    }
    let real = main.path.display();
    // Counting stops all of them alike.
    let share = main.cpu_s / started_s;
    let (confidence, what) = if share >= WRAPPED_SHARE {
        (Confidence::High, "only starts")
    } else {
        (Confidence::Medium, "starts several programs, above all")
    };
    let title = format!("The command measured is {name}, which {what} {real}");
    let own_name = main.path.file_name().unwrap_or_default();
    let finding = Finding::new(Id::Wrapper, confidence, title).seeing(format!(
        "{} took {} of the CPU time of what was started, {name} {} of all",
        if main.path.ends_with(name) { main.path.as_os_str() } else { own_name }.display(),
        percent(share),
        percent(own / whole)
    ));
    Some(finding.remedied([Remedy::code(
        4,
        &format!("measure {real} itself, with its own arguments"),
        "none",
    )]))
}

/// The memory that a program holds, for readers who want to know.
pub(super) fn size(facts: &Facts) -> String {
    format!("{} resident at the peak", bytes(facts.memory.peak_rss_bytes as f64))
}
