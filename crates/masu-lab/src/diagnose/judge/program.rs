//! What is to be said of the program as a whole: how it was built, who really works, where its code lies, how
//! often it asks for memory.

use super::super::facts::Facts;
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::{
    CAUSE_SHARE, CPU_MIN_S, REQUESTS_A_SECOND, SCATTERED_MAPPINGS, WRAPPER_OWN_SHARE,
};
use crate::report::{bytes, count, percent};

/// Remarks on what was measured, and scattered code.
pub(super) fn about(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(scattered(facts));
    findings.extend(unoptimised(facts));
    findings.extend(wrapper(facts));
    findings
}

/// Asking for memory is itself the work.
pub(super) fn many_allocations(facts: &Facts) -> Option<Finding> {
    let (requests, cpu_s) = facts.inside.as_ref()?.requests?;
    let rate = requests as f64 / cpu_s.max(1e-9);
    if rate < REQUESTS_A_SECOND {
        return None;
    }
    /// What `malloc` and `free` of a small block take at least in today's allocators.
    const PAIR_S: f64 = 20e-9;
    let share = requests as f64 * PAIR_S / cpu_s;
    let title = format!("It asks for memory {} times a second", count(rate));
    let finding = Finding::new(Id::ManyAllocations, Confidence::Medium, title)
        .sharing(share)
        .seeing(format!(
            "{} requests, counted in a run of their own; at 20 ns each with its free, {} of its CPU \
             time",
            count(requests as f64),
            percent(share)
        ));
    let mut remedies =
        vec![Remedy::code(1, "allocate less: use buffers again", "a change of the program")];
    if facts.malloc.name != "masu" && facts.malloc.refusal.is_none() {
        remedies.push(Remedy::allocator(
            "a malloc with a shorter way",
            "masu",
            "another malloc under the program",
        ));
    }
    Some(finding.remedied(remedies))
}

fn scattered(facts: &Facts) -> Option<Finding> {
    let code = facts.code.as_ref()?;
    // Where the program hardly computes, where its code lies is no matter.
    let computes = facts.share(facts.clock.user_s) >= CAUSE_SHARE;
    if code.small < SCATTERED_MAPPINGS || !computes {
        return None;
    }
    let title = format!("Its code lies in {} small pieces", count(code.small as f64));
    let finding = Finding::new(Id::ScatteredCode, Confidence::Medium, title).seeing(format!(
        "{} executable mappings of at most 64 KiB in {} regions of 2 MiB; {} begin at the same offset",
        count(code.small as f64),
        count(code.regions as f64),
        count(code.same_offset as f64)
    ));
    Some(finding.remedied([Remedy::code(
        4,
        "link the pieces into one library, or load objects into a code arena (docs/code.md)",
        "a change of how code is built or loaded",
    )]))
}

fn unoptimised(facts: &Facts) -> Option<Finding> {
    let why = facts.build.unoptimised.as_ref()?;
    if facts.clock.user_s < CPU_MIN_S {
        return None;
    }
    let confidence = if facts.build.is_certain { Confidence::High } else { Confidence::Medium };
    let title = "The program was compiled without optimisation";
    let finding = Finding::new(Id::UnoptimisedBuild, confidence, title)
        .seeing(format!("{}: {why}", facts.build.path.display()));
    Some(finding.remedied([Remedy::code(
        4,
        "measure what is meant to be used: cargo build --release, -O2",
        "compiling takes longer, and debuggers show less",
    )]))
}

fn wrapper(facts: &Facts) -> Option<Finding> {
    let name = facts.wrapper.as_ref()?;
    let whole: f64 = facts.programs.iter().map(|program| program.cpu_s).sum();
    let own: f64 =
        facts.programs.iter().filter(|it| it.is_command).map(|program| program.cpu_s).sum();
    let main = facts.programs.iter().find(|program| !program.is_command)?;
    if whole < CPU_MIN_S || own > WRAPPER_OWN_SHARE * whole {
        return None;
    }
    let real = main.path.display();
    let title = format!("What was measured is {name}, which only starts {real}");
    let share = main.cpu_s / whole;
    let finding = Finding::new(Id::Wrapper, Confidence::High, title).seeing(format!(
        "{} took {} of the CPU time, {name} {}",
        main.path.file_name().unwrap_or_default().to_string_lossy(),
        percent(share),
        percent(own / whole)
    ));
    Some(finding.remedied([Remedy::code(
        4,
        &format!("measure {real} itself, with its own arguments"),
        "none",
    )]))
}

/// How much a program holds, for whoever wants to know.
pub(super) fn size(facts: &Facts) -> String {
    format!("{} resident at the peak", bytes(facts.memory.peak_rss_bytes as f64))
}
