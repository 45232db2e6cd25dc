//! Memory that is held and not used: by the malloc, in huge pages, in swap.

use super::super::facts::Facts;
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::{
    HUGE_BYTES, HUGE_UNUSED_SHARE, MAJOR_FAULTS_A_SECOND, RETAINED_BYTES, RETAINED_SHARE,
    SWAPPED_SHARE,
};
use masu_run::quantity::{bytes, count, percent, seconds};

/// The findings about memory that is held and not used. Their shares are of memory.
pub(super) fn held(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(retention(facts));
    findings.extend(huge_pages(facts));
    findings.extend(swap(facts));
    findings
}

fn retention(facts: &Facts) -> Option<Finding> {
    let memory = &facts.memory;
    let held = memory.late_rss_bytes as f64;
    let inside = facts.inside.as_ref();
    // Resident memory is not only the malloc's: a program maps files, and memory for its own use.
    let on_masu = inside.and_then(|inside| inside.resident_late_bytes);
    let by_run = on_masu.map(|on_masu| {
        let why = format!(
            "{} resident in the second half of the run; in a run on masu {} then",
            bytes(held),
            bytes(on_masu as f64)
        );
        ((held - on_masu as f64).max(0.0), why, Confidence::High)
    });
    // Live memory is not free, even if a walk that went wrong says so.
    let live = inside.and_then(|inside| inside.live_late_bytes).unwrap_or(0);
    let by_walk = memory.heap.as_ref().map(|heap| {
        let free = heap.free().min((held - live as f64).max(0.0));
        let why = format!(
            "glibc's heap of {} was walked through after {}: {} of it is free blocks, {} were resident in \
             all",
            bytes(heap.bytes as f64),
            seconds(heap.at_s),
            percent(heap.free_bytes as f64 / (heap.walked_bytes as f64).max(1.0)),
            bytes(held)
        );
        (free, why, Confidence::Medium)
    });
    let is_much =
        |free: f64| free >= RETAINED_BYTES as f64 && free / held.max(1.0) >= RETAINED_SHARE;
    let (free, why, confidence) =
        by_run.into_iter().chain(by_walk).find(|(free, _, _)| is_much(*free))?;
    let share = free / held.max(1.0);
    let title = format!(
        "The malloc holds {} that the program has freed: live blocks are scattered among it",
        bytes(free)
    );
    let finding = Finding::new(Id::Retention, confidence, title).sharing(share).seeing(why);
    let mut remedies = vec![Remedy::code(
        1,
        "keep what lives long apart from what does not: an arena or a heap for each phase; or call \
         malloc_trim(0) after one",
        "a change of the program",
    )];
    if facts.malloc.name != "masu" && facts.malloc.refusal.is_none() {
        let what = "a malloc that gives back free pages wherever they lie";
        remedies.push(Remedy::allocator(what, "masu", "another malloc under the program"));
    }
    Some(finding.remedied(remedies))
}

fn huge_pages(facts: &Facts) -> Option<Finding> {
    let memory = &facts.memory;
    let unused = memory.huge_unused.filter(|unused| *unused >= HUGE_UNUSED_SHARE)?;
    if memory.huge_bytes < HUGE_BYTES {
        return None;
    }
    let wasted = memory.huge_bytes as f64 * unused;
    let share = wasted / (memory.peak_rss_bytes as f64).max(1.0);
    if share < SWAPPED_SHARE {
        return None;
    }
    let title = format!("Huge pages hold {} that was never written to", bytes(wasted));
    let finding = Finding::new(Id::HugePageWaste, Confidence::High, title)
        .sharing(share)
        .seeing(format!(
            "{} of {} at the peak are in huge pages; {} of the OS pages in those that were read are \
             all zeros",
            bytes(memory.huge_bytes as f64),
            bytes(memory.peak_rss_bytes as f64),
            percent(unused)
        ));
    let mut remedies = vec![Remedy::code(
        4,
        "ask for huge pages only where all of them is used (MADV_HUGEPAGE, or `madvise` in place of \
         `always` in /sys/kernel/mm/transparent_hugepage/enabled)",
        "more page faults, and more entries of the TLB, where memory is used densely",
    )];
    // glibc asks for none as it comes, and cannot refuse those that the kernel's `always` brings.
    let name = facts.malloc.name.as_str();
    if facts.malloc.refusal.is_some() {
        // No variable and no preload reaches the malloc.
    } else if name.starts_with("glibc") {
        let what = "a malloc that refuses them; does nothing where the program itself brings them";
        remedies.push(Remedy::allocator(what, "masu:huge_pages=0", "more page faults"));
    } else if ["jemalloc", "mimalloc", "masu"].iter().any(|known| name.starts_with(known)) {
        remedies.push(Remedy::setting(
            "have the malloc ask for none; does nothing where the program itself or the kernel's \
             setting brings them",
            format!("{name}:huge_pages=0"),
            "more page faults",
        ));
    }
    Some(finding.remedied(remedies))
}

fn swap(facts: &Facts) -> Option<Finding> {
    let memory = &facts.memory;
    let whole = memory.peak_rss_bytes + memory.swapped_bytes;
    let share = memory.swapped_bytes as f64 / (whole as f64).max(1.0);
    let rate = memory.major_faults as f64 / facts.clock.own_wall_s(facts.cpus).max(1e-9);
    if share < SWAPPED_SHARE || rate < MAJOR_FAULTS_A_SECOND {
        return None;
    }
    let title = "Its memory does not fit: the kernel swaps it to disk and back";
    let finding = Finding::new(Id::Swap, Confidence::High, title)
        .sharing(share)
        .seeing(format!(
            "{} of it was swapped out, {} resident at the peak",
            bytes(memory.swapped_bytes as f64),
            bytes(memory.peak_rss_bytes as f64)
        ))
        .seeing(format!(
            "{} page faults read from disk, {} a second",
            count(memory.major_faults as f64),
            count(rate)
        ));
    Some(finding.remedied([
        Remedy::code(1, "hold less at once", "a change of the program"),
        Remedy::code(4, "give it more memory, or leave less to other programs", "memory"),
    ]))
}
