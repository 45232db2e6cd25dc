//! The warnings that the reader of a table must know before trusting it, each with advice.

use std::collections::HashSet;

use crate::statistics;
use masu_run::execute::{Ending, Run};

/// Below this many seconds a run is mostly the start of the program.
const SHORT_S: f64 = 0.005;

/// Whether every run that ended by itself wrote the same bytes to standard output and ended in the
/// same way. Standard error is left out: it carries times and process ids in too many programs.
pub(super) fn is_repeatable(runs: &[Run]) -> bool {
    let ended_itself = |run: &&Run| matches!(run.ending, Ending::Exited(_) | Ending::Signalled(_));
    let mut own = runs.iter().filter(ended_itself);
    let Some(first) = own.next() else { return true };
    let same = |run: &Run| {
        let (ours, theirs) = (&run.stdout, &first.stdout);
        run.ending == first.ending && ours.bytes == theirs.bytes && ours.hash == theirs.hash
    };
    own.all(same)
}

/// All warnings about `runs`; `valid` are the runs that the table rests on.
pub(super) fn of_runs(labels: &[String], runs: &[Run], valid: &[&Run]) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(endings(labels, runs, valid));
    warnings.extend(outputs(labels, valid));
    warnings.extend(failures(valid));
    warnings.extend(left_behind(runs));
    warnings.extend(short(valid));
    warnings
}

fn label(labels: &[String], run: &Run) -> String {
    labels.get(run.variant).cloned().unwrap_or_else(|| format!("variant {}", run.variant))
}

/// Runs that ended differently from the reference's, one line for each variant and ending.
fn endings(labels: &[String], runs: &[Run], valid: &[&Run]) -> Vec<String> {
    let Some(usual) = valid.first().map(|run| &run.ending) else { return Vec::new() };
    let is_server = valid.iter().any(|run| run.burst.is_some());
    // Each variant and ending once, with the words of its first run.
    let mut known: Vec<(&Run, usize)> = Vec::new();
    for run in runs {
        if run.ending == *usual || run.ending == Ending::Stopped {
            continue;
        }
        let same = |(first, _): &&mut (&Run, usize)| {
            first.variant == run.variant && is_alike(&first.ending, &run.ending)
        };
        match known.iter_mut().find(same) {
            Some((_, times)) => *times += 1,
            None => known.push((run, 1)),
        }
    }
    let line = |(run, times): (&Run, usize)| {
        let said = run.stderr.said();
        let said = if said.is_empty() { said } else { format!(" and said: {said}") };
        let other = if run.variant == 0 { "another run of it" } else { "the reference" };
        let text = format!(
            "not repeatable: `{}` {} where {other} {usual}{said}; it does not count{}",
            label(labels, run),
            run.ending,
            advice(&run.ending, is_server),
        );
        if times == 1 { text } else { format!("{text} ({times} runs)") }
    };
    known.into_iter().map(line).collect()
}

/// Whether two endings are one to a reader: each run over the memory limit has another process and other bytes.
fn is_alike(one: &Ending, other: &Ending) -> bool {
    let is_over = |ending: &Ending| matches!(ending, Ending::OutOfMemory { .. });
    one == other || is_over(one) && is_over(other)
}

fn advice(ending: &Ending, is_server: bool) -> &'static str {
    match ending {
        // A server that died has a warning of its own.
        Ending::Exited(_) if is_server => "",
        Ending::TimedOut => "; allow more time or a smaller input",
        Ending::OutOfMemory { .. } => "; allow more memory or a smaller input",
        Ending::Signalled(_) => "; run it alone under this variant to see why",
        _ => "; a run may depend on what the last one left, so let each start from the same state",
    }
}

/// Different bytes on standard output: within a variant, and between variants.
fn outputs(labels: &[String], valid: &[&Run]) -> Option<String> {
    let advice = "what differs may be a time, a process id, a file left by the run before, or \
                  what a parameter asks for; the verdicts hold only if every run did the same work";
    let mut hashes: Vec<HashSet<&str>> = vec![HashSet::new(); labels.len()];
    for run in valid {
        if let Some(own) = hashes.get_mut(run.variant) {
            own.insert(&run.stdout.hash);
        }
    }
    let named = |differs: &dyn Fn(&HashSet<&str>) -> bool| -> Vec<&str> {
        let differing = labels.iter().zip(&hashes).filter(|(_, own)| differs(own));
        differing.map(|(label, _)| label.as_str()).collect()
    };
    let within = named(&|own| own.len() > 1);
    if !within.is_empty() {
        let all = within.join(", ");
        return Some(format!("not repeatable: output differs between runs of {all}; {advice}"));
    }
    let reference = hashes.first()?;
    let between = named(&|own| !own.is_empty() && own != reference);
    if between.is_empty() || reference.is_empty() {
        return None;
    }
    Some(format!(
        "not repeatable: the output of {} differs from that of {}; {advice}",
        between.join(", "),
        labels[0]
    ))
}

/// Every run failed in the same way: perhaps the user meant another run.
fn failures(valid: &[&Run]) -> Option<String> {
    let first = valid.first()?;
    if first.ending == Ending::Exited(0) {
        return None;
    }
    let said = first.stderr.said();
    let said = if said.is_empty() { String::new() } else { format!(" and says: {said}") };
    Some(format!(
        "every run that counts {}{said}; make sure this is the work you want measured",
        first.ending
    ))
}

fn left_behind(runs: &[Run]) -> Option<String> {
    let run = runs.iter().find(|run| !run.left_behind.is_empty())?;
    Some(format!(
        "when the program ended, processes it had started still ran and were killed: {}; \
         their work is not in the times, let the command wait for them",
        run.left_behind.join(", ")
    ))
}

fn short(valid: &[&Run]) -> Option<String> {
    // Where others gain much, their runs are short, and the work is not.
    let of_reference = valid.iter().filter(|run| run.variant == 0);
    let walls: Vec<f64> = of_reference.map(|run| run.wall_s).collect();
    let median = statistics::median(&walls)?;
    (median < SHORT_S).then(|| {
        format!(
            "a run takes {:.1} ms, most of it the program's start; measure a larger input",
            median * 1e3
        )
    })
}

/// The part of a variant's runs whose peak RSS may be at its floor, as a divisor.
const RUNS_PER_HIDDEN: usize = 10;

/// Whether the peak RSS of a variant's `runs` may be that of the lab's process before it became the program.
pub(super) fn hides_peak(runs: &[&Run]) -> bool {
    let is_hidden =
        |run: &&&Run| run.rss_floor_bytes.is_some_and(|floor| run.peak_rss_bytes <= floor);
    runs.iter().filter(is_hidden).count() * RUNS_PER_HIDDEN > runs.len()
}

/// Variants that need less memory than the lab can see; `series` are their runs.
pub(super) fn hidden_peaks(labels: &[String], series: &[Vec<&Run>]) -> Option<String> {
    let hidden = || labels.iter().zip(series).filter(|(_, runs)| hides_peak(runs));
    let floors = hidden().flat_map(|(_, runs)| runs.iter().filter_map(|run| run.rss_floor_bytes));
    let floor = floors.max()? as f64 / f64::from(1 << 20);
    let names: Vec<String> = hidden().map(|(label, _)| format!("`{label}`")).collect();
    Some(format!(
        "peak RSS: the value of {} may be that of masu's process before it started the program (up to {floor:.1} MiB), \
         and less than that cannot be seen; there is no ratio of it",
        names.join(", ")
    ))
}
