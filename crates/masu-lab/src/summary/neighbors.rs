//! Other use of the machine during the runs: waits for a CPU, time the hypervisor took, other processes, load.
//!
//! These widen the intervals but tip no verdict, because they hit the variants of a round alike.

use crate::results::Row;
use crate::statistics::{self, Measure};
use masu_run::execute::Run;

/// The share of a table's runs that must be starved for a warning.
const STARVED_SHARE: f64 = 0.1;

/// The CPU time taken by the hypervisor that is worth a warning, as a share of the runs' CPU time.
const STEAL_SHARE: f64 = 0.02;

/// The mean number of CPUs kept busy by others that is worth a warning.
const OTHERS_CPUS: f64 = 0.25;

/// The load, beyond that of the runs themselves, that is worth a warning.
const LOAD_BEYOND: f64 = 1.0;

/// The warnings about all `runs` of the variants called `labels`; `valid` are the runs that the table rests on.
pub(super) fn warnings(labels: &[String], runs: &[Run], valid: &[&Run]) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(starved(labels, runs, valid));
    warnings.extend(steal(valid));
    warnings.extend(others(valid));
    warnings
}

/// Starved runs: their variants, their number, and whether they were made again or kept.
fn starved(labels: &[String], runs: &[Run], valid: &[&Run]) -> Option<String> {
    let kept = valid.iter().filter(|run| run.starved).count();
    let repeated = runs.iter().filter(|run| run.replaced).count();
    if (kept + repeated) as f64 <= STARVED_SHARE * (valid.len() + repeated) as f64 {
        return None;
    }
    // Runs that failed are neither.
    let replaced = runs.iter().filter(|run| run.replaced);
    let said: Vec<&Run> = replaced.chain(valid.iter().copied().filter(|run| run.starved)).collect();
    let of = |variant: usize| said.iter().filter(|run| run.variant == variant).count();
    let whose: Vec<String> = labels
        .iter()
        .enumerate()
        .filter(|(variant, _)| of(*variant) > 0)
        .map(|(variant, label)| format!("{} of `{label}`", of(variant)))
        .collect();
    Some(format!(
        "starved: {} of {} runs waited long for a CPU ({}); {repeated} made again, {kept} counted; \
         other programs, or more threads than CPUs: a quieter machine gives narrower intervals",
        kept + repeated,
        valid.len() + repeated,
        whose.join(", "),
    ))
}

/// The share of a table's runs that must be starved for the clock to say little.
const NEARLY_ALL_STARVED: f64 = 0.5;

/// Ratios of CPU time, if most runs waited for a CPU and the clock decides: waits lengthen the clock's time, not CPU
/// time.
pub(super) fn cpu_beside(rows: &[Row], primary: Measure, valid: &[&Run]) -> Option<String> {
    let starved = valid.iter().filter(|run| run.starved).count();
    if primary != Measure::Wall || starved as f64 <= NEARLY_ALL_STARVED * valid.len() as f64 {
        return None;
    }
    let of = |row: &Row| {
        let ratio = row.estimate(Measure::Cpu)?.ratio.filter(|ratio| ratio.interval.is_some())?;
        Some(format!("`{}` {}", row.variant, ratio.written()))
    };
    let ratios: Vec<String> = rows.iter().skip(1).filter_map(of).collect();
    let beside = if ratios.is_empty() {
        String::new()
    } else {
        format!(" Of CPU time: {}.", ratios.join(", "))
    };
    Some(format!(
        "{starved} of {} runs waited long for a CPU, which lengthens wall-clock time and not CPU time: \
         `masu compare --primary cpu` lets that decide.{beside}",
        valid.len()
    ))
}

fn steal(valid: &[&Run]) -> Option<String> {
    let with_count = || valid.iter().filter(|run| run.steal_s.is_some());
    let stolen: f64 = with_count().filter_map(|run| run.steal_s).sum();
    let used: f64 = with_count().map(|run| run.user_s + run.sys_s).sum();
    let share = stolen / used;
    (used > 0.0 && share > STEAL_SHARE).then(|| {
        format!(
            "steal: the hypervisor gave others {stolen:.2} s of CPU in that time, {:.0} % of what the \
             runs used; measure at a quieter hour, or on a machine whose CPUs are its own",
            share * 100.0
        )
    })
}

/// Other processes at work, by their CPU time or, if that is not known, by the load.
fn others(valid: &[&Run]) -> Option<String> {
    let with_count = || valid.iter().filter(|run| run.others_s.is_some());
    let wall: f64 = with_count().map(|run| run.wall_s).sum();
    let cpus = with_count().filter_map(|run| run.others_s).sum::<f64>() / wall;
    let loads: Vec<f64> = valid.iter().filter_map(|run| run.load).collect();
    let load = statistics::median(&loads);
    let advice = "stop what need not run, or measure at a quieter hour";
    if wall > 0.0 {
        let load = load.map(|load| format!(" (load {load:.1})")).unwrap_or_default();
        return (cpus > OTHERS_CPUS).then(|| {
            format!(
                "busy: other processes used {cpus:.1} CPUs on average while the runs were made{load}; \
                 {advice}"
            )
        });
    }
    let all: f64 = valid.iter().map(|run| run.wall_s).sum();
    let wanted: f64 =
        valid.iter().map(|run| run.user_s + run.sys_s + run.queued_s.unwrap_or(0.0)).sum();
    let own = wanted / all;
    let load = load.filter(|load| *load > own + LOAD_BEYOND)?;
    Some(format!("busy: the load is {load:.1} where the runs themselves make {own:.1}; {advice}"))
}

#[cfg(test)]
mod tests;
