//! Remarks that the reader of a table of servers needs besides its figures.

use super::steady::IDLE_SHARE;
use super::{Book, Load, ServerPlan};
use crate::Pace;
use masu_run::execute::Ending;
use masu_run::executor::{Remarks, once_each};
use masu_run::{Row, kernel};

pub(super) fn of(
    rows: &[Row],
    books: &[Book],
    plan: &ServerPlan,
    latency_rate: Option<f64>,
) -> Remarks {
    let mut warnings = of_servers(rows, books);
    warnings.extend(load_notes(rows, books));
    let mut notes = Vec::new();
    match idle(rows, books) {
        Some((text, true)) => warnings.push(text),
        Some((text, false)) => notes.push(text),
        None => {}
    }
    if plan.one_at_a_time {
        notes.push(
            "one server ran at a time: each run is a new start, so that differences between \
             starts are in the intervals, and runs lie farther apart in time"
                .to_owned(),
        );
    }
    if let Some(rate) = latency_rate {
        notes.push(format!(
            "each burst has two halves: back to back, which gives the throughput, and {rate} requests a \
             second whether answered or not, which gives the latencies"
        ));
    } else if let Load::Http { pace: Pace::Closed, .. } = plan.load {
        notes.push(
            "latencies of a closed loop: a connection that waits for an answer asks nothing, so \
             stalls are counted once; give a rate for percentiles that count them whole"
                .to_owned(),
        );
    }
    Remarks { warnings, notes }
}

fn of_servers(rows: &[Row], books: &[Book]) -> Vec<String> {
    let mut remarks = Vec::new();
    for (row, book) in rows.iter().zip(books) {
        let label = &row.variant.label;
        if let Some((_, words)) = &book.fate {
            remarks.push(format!(
                "the server under `{label}` did not stay up: it {words}; its bursts stop there"
            ));
        }
        if let Some(trend) = &book.trend {
            remarks.push(format!(
                "the server under `{label}` was not steady after its warm-up: {trend}; \
                 let bursts last longer, or read its figures as those of a server that warms up"
            ));
        }
        if book.failures.total() > 0 {
            remarks.push(format!(
                "`{label}`: of {} requests {} failed: {}",
                book.requests,
                book.failures.total(),
                book.failures
            ));
        }
        if let Some(ending @ Ending::Signalled(signal)) = &book.goodbye
            && kernel::is_crash(*signal)
        {
            remarks.push(format!(
                "the server under `{label}` crashed when it was asked to end: it {ending}"
            ));
        }
    }
    remarks
}

fn load_notes(rows: &[Row], books: &[Book]) -> Vec<String> {
    let said = rows.iter().zip(books).flat_map(|(row, book)| {
        book.load_notes.iter().map(|note| (row.variant.label.as_str(), note.clone()))
    });
    once_each(said).iter().map(|(note, labels)| format!("{labels}: {note}")).collect()
}

/// The allocations per request, each figure once with the variants it was counted for.
pub(super) fn allocations(
    rows: &[Row],
    counted: impl Iterator<Item = Option<f64>>,
) -> Option<String> {
    let said = rows.iter().zip(counted);
    let said = said
        .filter_map(|(row, count)| Some((row.variant.label.as_str(), format!("{:.1}", count?))));
    let all = match once_each(said).as_slice() {
        [] => return None,
        [(figure, _)] => figure.clone(),
        several => {
            let each = several.iter().map(|(figure, labels)| format!("{figure} ({labels})"));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    Some(format!("allocations a request: {all}, counted apart from the bursts shown"))
}

/// The CPU use of the servers without load, and whether it is enough to disturb the others.
fn idle(rows: &[Row], books: &[Book]) -> Option<(String, bool)> {
    let shares = rows
        .iter()
        .zip(books)
        .filter_map(|(row, book)| Some((row.variant.label.as_str(), book.idle_cpu?)));
    let shares: Vec<(&str, f64)> = shares.collect();
    let disturb = shares.iter().any(|(_, share)| *share > IDLE_SHARE);
    let said: Vec<String> =
        shares.iter().map(|(label, share)| format!("{label} {:.1} %", share * 100.0)).collect();
    let advice = if disturb { "; that disturbs the others, see --one-at-a-time" } else { "" };
    let text = format!("CPU without load: {}{advice}", said.join(", "));
    (!said.is_empty()).then_some((text, disturb))
}
