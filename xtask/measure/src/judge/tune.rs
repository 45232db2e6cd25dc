//! Checks that `masu tune` finds the best: the variant that it names, beside all candidates in alternating runs of
//! the lab's engine.

use anyhow::{Context, Result, bail};
use masu_lab::Stop;
use serde_json::Value;

use super::diagnosis::ask;
use super::measured;
use super::verdict::{Effect, effects};
use super::{Bench, Half, Request};

/// Programs with much to gain.
const PROGRAMS: [&str; 6] = ["gawk", "imagemagick", "clang++", "graphviz", "xmllint", "arrays"];

/// The limits of the search.
const SEARCH: [&str; 5] = ["tune", "--primary", "cpu", "--budget", "80s"];

/// Rounds of all candidates then; with so few, luck has a part in which are best.
const ROUNDS: usize = 2;

/// Rounds of the best of them: as many as a verdict on a few takes.
const ROUNDS_OF_BEST: usize = 12;

/// The number of best candidates that go on, beside the named one, into as many rounds as intervals take.
const BEST: usize = 4;

/// The most time that the named variant may take, relative to the best.
const NEAR: f64 = 1.03;

pub(super) fn run(
    bench: &Bench,
    names: Vec<(String, Half)>,
    request: &Request,
    stop: &Stop,
) -> Result<()> {
    let is_wanted = |name: &str| !request.only.is_empty() || PROGRAMS.contains(&name);
    let mut verdicts = Vec::new();
    for (name, _) in names.into_iter().filter(|(name, _)| is_wanted(name)) {
        match judge(bench, &name, stop) {
            Ok(verdict) => verdicts.push(verdict),
            Err(error) => println!("{name}: left out: {error:#}"),
        }
        if stop.requested() {
            bail!("stopped");
        }
    }
    let of = |wanted| verdicts.iter().filter(|one| **one == wanted).count();
    println!(
        "tune named the best or one within 3 % of it: {} of {}, not decided {}",
        of(Verdict::Near),
        verdicts.len(),
        of(Verdict::Open)
    );
    Ok(())
}

fn judge(bench: &Bench, name: &str, stop: &Stop) -> Result<Verdict> {
    let tuning = ask(&bench.masu, &SEARCH, &bench.programs.workload(name)?)?;
    let all = candidates(&tuning);
    let measured = |labels: &[String], rounds, part: &str| -> Result<Vec<Effect>> {
        let plan = bench.programs.plan(name, Some(labels), Some(rounds), false)?;
        let results = bench.folder.join(format!("{name}-{part}.jsonl"));
        // Runs of an earlier search are none beside this one.
        let _ = std::fs::remove_file(&results);
        effects(&[&measured::measure(&plan, Some(rounds), &results, stop)?])
    };
    let effects = measured(&all, ROUNDS, "candidates")?;
    let all = effects.len();
    let named = tuning["change"]["variant"].as_str();
    let labels = best_and(named, effects);
    let effects = measured(&labels, ROUNDS_OF_BEST, "best")?;
    let (verdict, best) = Verdict::of(named, &effects)?;
    let estimate = |effect: Option<&Effect>| effect.map_or(1.0, time);
    println!(
        "{name}: named {} (×{:.3}), best of {} {} (×{:.3}), tried by the search {}: {verdict:?}",
        named.unwrap_or("no change"),
        estimate(effects.iter().find(|one| Some(one.label.as_str()) == named)),
        all,
        best.map_or("no change", |one| &one.label),
        estimate(best),
        tuning["tried"].as_array().map_or(0, Vec::len)
    );
    Ok(verdict)
}

/// The labels of the best variants, and of the named one.
fn best_and(named: Option<&str>, mut all: Vec<Effect>) -> Vec<String> {
    all.sort_by(|one, other| time(one).total_cmp(&time(other)));
    let mut labels: Vec<String> = all.into_iter().map(|one| one.label).take(BEST).collect();
    labels.extend(named.map(str::to_owned).filter(|named| !labels.contains(named)));
    labels
}

/// The variant's time relative to the program as it is; a variant that could not take part is the last.
fn time(effect: &Effect) -> f64 {
    effect.time.as_ref().map_or(f64::INFINITY, |time| time.estimate)
}

fn candidates(tuning: &Value) -> Vec<String> {
    let list = |name: &str| tuning[name].as_array().into_iter().flatten();
    let tried = list("tried").map(|one| &one["variant"]);
    let labels = tried.chain(list("not_tried")).chain(list("passed_over"));
    labels.filter_map(|label| Some(label.as_str()?.to_owned())).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The named variant is the best, or takes at most 3 % more.
    Near,
    /// The named variant seems to take more, but the intervals do not exclude that it takes no more.
    Open,
    Far,
}

impl Verdict {
    /// The verdict on the named variant, and the best variant of all; `None` stands for the program as it is.
    pub(super) fn of<'a>(
        named: Option<&str>,
        all: &'a [Effect],
    ) -> Result<(Verdict, Option<&'a Effect>)> {
        let gains = all.iter().filter(|one| time(one) < 1.0);
        let best = gains.min_by(|one, other| time(one).total_cmp(&time(other)));
        let interval = |effect: Option<&Effect>| {
            let Some(time) = effect.and_then(|one| one.time.as_ref()) else {
                return (1.0, 1.0, 1.0);
            };
            let (low, high) = time.interval.unwrap_or((0.0, f64::INFINITY));
            (low, time.estimate, high)
        };
        let measured = |label: &str| {
            let found = all.iter().find(|one| one.label == label && one.time.is_some());
            found.with_context(|| format!("{label}, which was named, was not measured"))
        };
        let named = named.map(measured).transpose()?;
        let ((low, named, _), (_, least, high)) = (interval(named), interval(best));
        let verdict = if named <= NEAR * least {
            Verdict::Near
        } else if low <= NEAR * high {
            Verdict::Open
        } else {
            Verdict::Far
        };
        Ok((verdict, best))
    }
}
