//! Remarks that the reader of a table of servers needs besides its figures.

use super::steady::IDLE_SHARE;
use super::{Book, Load, ServerPlan};
use crate::Pace;
use masu_run::execute::Ending;
use masu_run::executor::Remarks;
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
                "the server under `{label}` did not live: it {words}; its bursts stop there"
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
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for (row, book) in rows.iter().zip(books) {
        for note in &book.load_notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, labels)) => labels.push(&row.variant.label),
                None => notes.push((note, vec![&row.variant.label])),
            }
        }
    }
    notes.into_iter().map(|(note, labels)| format!("{}: {note}", labels.join(", "))).collect()
}

/// The allocations per request, each figure once with the variants it was counted for.
pub(super) fn allocations(
    rows: &[Row],
    counted: impl Iterator<Item = Option<f64>>,
) -> Option<String> {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for (row, count) in rows.iter().zip(counted) {
        let Some(count) = count else { continue };
        let figure = format!("{count:.1}");
        match said.iter_mut().find(|(known, _)| *known == figure) {
            Some((_, labels)) => labels.push(&row.variant.label),
            None => said.push((figure, vec![&row.variant.label])),
        }
    }
    let all = match said.as_slice() {
        [] => return None,
        [(figure, _)] => figure.clone(),
        several => {
            let each =
                several.iter().map(|(figure, labels)| format!("{figure} ({})", labels.join(", ")));
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
