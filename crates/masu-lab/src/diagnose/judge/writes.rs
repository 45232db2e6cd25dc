//! Writes of few bytes.

use super::super::facts::Facts;
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::{CAUSE_SHARE, CERTAIN_SHARE, SMALL_WRITES};
use masu_run::quantity::{bytes, count, percent, seconds};

/// A system call for a few bytes, although a buffer would have gathered many.
pub(super) fn small(facts: &Facts) -> Option<Finding> {
    let writes = &facts.calls.as_ref()?.small_writes;
    let small = writes.buffered();
    let cost_s = facts.small_writes_s();
    let share = facts.share(cost_s);
    if small < SMALL_WRITES || share < CAUSE_SHARE {
        return None;
    }
    let confidence = if share >= CERTAIN_SHARE { Confidence::High } else { Confidence::Medium };
    let title = format!("It writes in small pieces: {} system calls", count(small as f64));
    let mean = writes.bytes as f64 / small as f64;
    let mut finding = Finding::new(Id::SmallWrites, confidence, title)
        .sharing(share)
        .seeing(format!(
            "{} writes of {} on average × {} = {}, {} of {}",
            count(small as f64),
            bytes(mean),
            seconds(cost_s / small as f64),
            seconds(cost_s),
            percent(share.min(1.0)),
            seconds(facts.clock.whole_s(facts.cpus))
        ))
        .seeing(format!(
            "to pipes {}, to files {}, to terminals {}",
            count(writes.pipes as f64),
            count(writes.files as f64),
            count(writes.terminals as f64)
        ));
    if writes.pipes > 0 {
        finding =
            finding.seeing("a terminal in the pipe's place costs more: see it with --terminal");
    }
    Some(finding.remedied([Remedy::code(
        4,
        "put a buffer in between (BufWriter, setvbuf, no flush after each line)",
        "what is in the buffer is lost when the program is killed",
    )]))
}
