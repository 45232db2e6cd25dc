//! A proof: the result of each remedy, in plain words, each ratio with its interval.

use super::measure;
use crate::Measure;
use crate::page::{Block, Page, Statement, Tone};
use crate::prove::{Medians, Proof, Proved, Shown};
use masu_run::quantity;

/// The results of the reference and of each remedy, called as `name` says; the remarks stand below.
pub(super) fn statements(page: &mut Page, proof: &Proof, name: impl Fn(&str) -> String) {
    let reference = &proof.reference;
    let as_it_is = as_it_is(reference, proof.primary);
    let first = Statement::new(&name(&reference.label), as_it_is, Tone::Dim);
    let remedies = proof.remedies.iter().map(|remedy| {
        let (words, tone) = words(remedy, proof);
        Statement::new(&name(&remedy.medians.label), words, tone)
    });
    page.push(Block::Statements(std::iter::once(first).chain(remedies).collect()));
    remarks(page, proof);
}

fn remarks(page: &mut Page, proof: &Proof) {
    if proof.stopped {
        page.note("Stopped", "not all runs were made; what there is was judged", Tone::Plain);
    }
    proof.warnings.iter().for_each(|warning| page.note("Warning", warning.as_str(), Tone::Plain));
}

/// The cost of the reference's runs: `the reference: 1.20 s, 27.3 MiB`.
fn as_it_is(reference: &Medians, primary: Measure) -> String {
    let (time, time_s) = match primary {
        Measure::Cpu => (Measure::Cpu, reference.cpu_s),
        _ => (Measure::Wall, reference.wall_s),
    };
    let figures = [(time, time_s), (Measure::PeakRss, reference.peak_rss_bytes)];
    let figures_text: Vec<String> = figures
        .into_iter()
        .filter_map(|(measure, figure)| Some(measure::value(measure, figure?)))
        .collect();
    if figures_text.is_empty() {
        return "the reference".to_owned();
    }
    format!("the reference: {}", figures_text.join(", "))
}

fn words(remedy: &Proved, proof: &Proof) -> (String, Tone) {
    let (verdict, style) = match &remedy.shown {
        Shown::Gain => ("gain shown".to_owned(), Tone::Better),
        Shown::Worse => ("worse".to_owned(), Tone::Worse),
        Shown::NoDifference { could_have_seen } => {
            let seen = quantity::percent(*could_have_seen);
            (format!("no difference shown, could have seen {seen}"), Tone::Plain)
        }
        Shown::NoRatio => ("no verdict, there is no ratio".to_owned(), Tone::Plain),
        Shown::TooFewRuns { pairs, needed } => {
            (format!("too few runs for a verdict, {pairs} where it takes {needed}"), Tone::Dim)
        }
        Shown::RunsFailed { failed, of } => (
            format!("no verdict, in {failed} of {of} rounds its run or the reference's failed"),
            Tone::Plain,
        ),
        Shown::LeftOut { reason } => return (format!("left out: {reason}"), Tone::Dim),
    };
    let time = if proof.primary == Measure::Cpu { Measure::Cpu } else { Measure::Wall };
    let figures: Vec<String> = [time, Measure::PeakRss]
        .into_iter()
        .filter_map(|it| Some(format!("{} {}", measure::heading(it), remedy.ratio(it)?.written())))
        .collect();
    if figures.is_empty() {
        (verdict, style)
    } else {
        (format!("{verdict}: {}", figures.join(", ")), style)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures;
    use crate::results::LeftOut;
    use crate::statistics::Ratio;

    /// A proof with one remedy for each kind of result.
    fn fixture() -> Proof {
        let labels = ["glibc", "glibc:top_pad=64M,trim_threshold=64M", "masu", "jemalloc", "gone"];
        let labels = labels.map(str::to_owned);
        let left_out =
            [LeftOut { label: "gone".to_owned(), reason: "it did not take effect".to_owned() }];
        let mut proof = Proof::of(&labels, Measure::Wall, None, &left_out);
        let ratio = |low: f64, high: f64| {
            Some(Ratio { estimate: (low * high).sqrt(), interval: Some((low, high)), pairs: 20 })
        };
        proof.reference.wall_s = Some(1.2);
        proof.reference.peak_rss_bytes = Some(28.6e6);
        let shown = [
            (Shown::Gain, ratio(0.59, 0.61), ratio(0.89, 0.91)),
            (Shown::NoDifference { could_have_seen: 0.03 }, ratio(0.98, 1.02), ratio(1.2, 1.25)),
            (Shown::Worse, ratio(1.2, 1.3), None),
        ];
        for (remedy, (shown, wall, peak_rss)) in proof.remedies.iter_mut().zip(shown) {
            (remedy.shown, remedy.wall, remedy.peak_rss) = (shown, wall, peak_rss);
        }
        proof.warnings = vec!["not repeatable: made up".to_owned()];
        proof
    }

    #[test]
    fn each_remedy_has_its_verdict_and_its_ratios() {
        let mut page = Page::default();
        statements(&mut page, &fixture(), str::to_owned);
        snapbox::assert_data_eq!(
            fixtures::plain(&page),
            snapbox::file!["proof/tests/page.txt"].raw()
        );
    }
}
