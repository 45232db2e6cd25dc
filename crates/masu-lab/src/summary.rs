//! From runs to a table: medians, ratios, verdicts, warnings.
//!
//! A run counts if it ended by itself, in the way that the reference usually did: a crash is quick, and must not make
//! its variant look fast.

use std::collections::BTreeSet;

use crate::results::{Row, Summary};
use crate::statistics::{self, CONFIDENCE, Estimate, Look, Measure, Ratio, Sorted, Verdict};
use masu_run::execute::{Ending, Run};
use masu_run::once::gathered;

mod decide;
mod gate;
mod neighbors;
mod series;
#[cfg(test)]
pub(crate) mod simulation;
mod warnings;

use series::Series;

pub use decide::{Condition, Criterion, Decision, Held, decide};
pub use gate::{Gate, Standing, gate};

/// Summarizes `runs` of the variants called `labels`, the first of which is the reference. `primary` carries the
/// verdicts, which together err as rarely as `look` allows. Works on the runs made so far, also on a comparison that
/// was stopped.
pub fn summarize(labels: &[String], primary: Measure, look: Look, runs: &[Run]) -> Summary {
    summarize_measures(&Measure::ALL, labels, primary, look, runs)
}

/// The same for `measures` alone; `primary` must be one of them.
pub(crate) fn summarize_measures(
    measures: &[Measure],
    labels: &[String],
    primary: Measure,
    look: Look,
    runs: &[Run],
) -> Summary {
    let valid = valid(runs);
    let there = |measure: &Measure| valid.iter().any(|run| measure.of(run).is_some());
    let table = Table {
        labels,
        primary,
        look,
        measures: measures.iter().copied().filter(there).collect(),
        series: (0..labels.len()).map(|index| series(&valid, index)).collect(),
        rounds: (0..labels.len()).map(|index| rounds(runs, index)).collect(),
    };
    let series: Vec<Series> = labels
        .iter()
        .zip(&table.series)
        .filter_map(|(label, runs)| Series::of(label, primary, runs))
        .collect();
    let rows: Vec<Row> = (0..labels.len()).map(|index| table.row(index)).collect();
    let mut warnings = warnings::of_runs(labels, runs, &valid);
    warnings.extend(neighbors::warnings(labels, runs, &valid));
    warnings.extend(series::warnings(&series, labels.len()));
    warnings.extend(table.missing());
    warnings.extend((1..labels.len()).filter_map(|index| table.zeros(index)));
    let hidden = warnings::hidden_peaks(labels, &table.series);
    let decides = primary == Measure::PeakRss;
    warnings.extend(hidden.clone().filter(|_| decides));
    let mut notes: Vec<String> = hidden.into_iter().filter(|_| !decides).collect();
    notes.extend(neighbors::cpu_beside(&rows, primary, &valid));
    Summary {
        primary,
        rows,
        confidence: CONFIDENCE,
        look,
        warnings,
        notes,
        repeatable: warnings::is_repeatable(runs),
    }
}

pub(crate) fn valid(runs: &[Run]) -> Vec<&Run> {
    let usual = usual_ending(runs);
    let counts = |run: &&Run| !run.replaced && Some(&run.ending) == usual;
    runs.iter().filter(counts).collect()
}

/// The ending of most runs of the reference, which stands for the normal one; of any variant if the reference has no
/// runs.
fn usual_ending(runs: &[Run]) -> Option<&Ending> {
    let own = |run: &&Run| matches!(run.ending, Ending::Exited(_) | Ending::Signalled(_));
    let of_reference: Vec<&Run> = runs.iter().filter(own).filter(|run| run.variant == 0).collect();
    let of_any: Vec<&Run> = runs.iter().filter(own).collect();
    let asked = if of_reference.is_empty() { of_any } else { of_reference };
    let endings = gathered(asked.into_iter().map(|run| (&run.ending, run)));
    // `max_by_key` keeps the last of equals; the first run's ending must win a tie.
    endings.into_iter().rev().max_by_key(|(_, runs)| runs.len()).map(|(ending, _)| ending)
}

/// The part of the rounds that may fail for a variant, as a divisor. If at most a fifth failed, the estimate cannot be
/// far off, wherever the failed values would have been: the center and its interval stand as long as fewer than 29 of
/// 100 differences are arbitrary.
const ROUNDS_A_FAILURE: usize = 5;

struct Table<'a> {
    labels: &'a [String],
    primary: Measure,
    look: Look,
    measures: Vec<Measure>,
    /// The valid runs of each variant, in the order of their rounds.
    series: Vec<Vec<&'a Run>>,
    /// The rounds in which each variant has a run that lasts, valid or not.
    rounds: Vec<BTreeSet<usize>>,
}

fn rounds(runs: &[Run], variant: usize) -> BTreeSet<usize> {
    let lasts = |run: &&Run| !run.replaced && run.ending != Ending::Stopped;
    let own = runs.iter().filter(|run| run.variant == variant).filter(lasts);
    own.filter_map(|run| run.round).collect()
}

fn series<'a>(runs: &[&'a Run], variant: usize) -> Vec<&'a Run> {
    let mut own: Vec<&Run> = runs.iter().copied().filter(|run| run.variant == variant).collect();
    own.sort_by_key(|run| run.round);
    own
}

impl Table<'_> {
    fn row(&self, index: usize) -> Row {
        let others = self.labels.len().saturating_sub(1);
        let own = &self.series[index];
        let hides_peak = warnings::hides_peak(own) || warnings::hides_peak(&self.series[0]);
        let estimate = |measure: &Measure| {
            let values: Vec<f64> = own.iter().filter_map(|run| measure.of(run)).collect();
            let values = Sorted::new(&values);
            let pairs = if index == 0 { Vec::new() } else { self.pairs(index, *measure) };
            Estimate {
                measure: *measure,
                median: values.quantile(0.5),
                spread: values.spread(),
                range: values.range(),
                ratio: statistics::ratio(&pairs, others, self.look.level)
                    .filter(|_| !hides_peak || *measure != Measure::PeakRss),
            }
        };
        let mut estimates: Vec<Estimate> = self.measures.iter().map(estimate).collect();
        let verdict = self.verdict(index, &estimates);
        if let Verdict::RunsFailed { .. } = verdict {
            // The remaining runs have ratios, but they prove nothing about all runs.
            for ratio in estimates.iter_mut().filter_map(|estimate| estimate.ratio.as_mut()) {
                ratio.interval = None;
            }
        }
        Row {
            variant: self.labels[index].clone(),
            verdict,
            valid_runs: own.len(),
            starved_runs: own.iter().filter(|run| run.starved).count(),
            estimates,
        }
    }

    fn verdict(&self, index: usize, estimates: &[Estimate]) -> Verdict {
        if index == 0 {
            return Verdict::Reference;
        }
        let of = self.rounds[0].intersection(&self.rounds[index]).count();
        // A burst in which no request was answered has no latency: it counts as failed, for the remaining ones may be
        // a selection. A measure that no run has is another matter.
        let has_primary = self.measures.contains(&self.primary);
        let counted = if has_primary { self.primary } else { Measure::Wall };
        let pairs = self.pairs(index, counted).len();
        let failed = of - pairs.min(of);
        if failed * ROUNDS_A_FAILURE > of {
            return Verdict::RunsFailed { failed, of };
        }
        let primary = estimates.iter().find(|estimate| estimate.measure == self.primary);
        let ratio: Option<&Ratio> = primary.and_then(|estimate| estimate.ratio.as_ref());
        let others = self.labels.len().saturating_sub(1);
        statistics::verdict(self.primary, ratio, pairs, others, self.look.level)
    }

    /// The reason why no variant has a ratio of the primary measure: no run has a value of it.
    fn missing(&self) -> Option<String> {
        let is_measured =
            self.measures.contains(&self.primary) || self.series.iter().all(Vec::is_empty);
        (!is_measured).then(|| {
            let name = self.primary.name();
            format!("no run that counts has a value of `{name}`, which decides; let another measure decide")
        })
    }

    /// The reason why variant `index` has no ratio of the primary measure although it was measured.
    fn zeros(&self, index: usize) -> Option<String> {
        let others = self.labels.len().saturating_sub(1);
        let pairs = self.pairs(index, self.primary);
        if pairs.is_empty() || statistics::ratio(&pairs, others, self.look.level).is_some() {
            return None;
        }
        let zeros = pairs.iter().filter(|(reference, value)| *reference == 0.0 || *value == 0.0);
        Some(format!(
            "no ratio for `{}`: what decides was zero in {} of {} rounds, for it or for the \
             reference; let another measure decide, or let a run do more",
            self.labels[index],
            zeros.count(),
            pairs.len(),
        ))
    }

    /// The values of the reference and of variant `index` in every round that has a valid run of both.
    fn pairs(&self, index: usize, measure: Measure) -> Vec<(f64, f64)> {
        let mut partners = self.series[index].iter().peekable();
        let mut pairs = Vec::new();
        for run in &self.series[0] {
            while partners.next_if(|partner| partner.round < run.round).is_some() {}
            let Some(partner) = partners.next_if(|partner| partner.round == run.round) else {
                continue;
            };
            if let (Some(reference), Some(value)) = (measure.of(run), measure.of(partner)) {
                pairs.push((reference, value));
            }
        }
        pairs
    }
}

#[cfg(test)]
mod tests;
