//! The result of a comparison for one variant, in plain words.
//!
//! People speak of speed, but the lab has a ratio of times: for a variant that takes less time, the ratio and its
//! interval are inverted.

use super::measure;
use crate::page::Tone;
use crate::results::Row;
use crate::statistics::Ratio;
use crate::summary::{Condition, Decision, Held};
use crate::{Measure, Verdict};
use masu_run::quantity;

pub(super) fn words(row: &Row, primary: Measure) -> (String, Tone) {
    match row.verdict {
        Verdict::Reference => ("the reference".to_owned(), Tone::Dim),
        Verdict::Faster => (difference(ratio_of(row, primary), primary, "better"), Tone::Better),
        Verdict::Slower => (difference(ratio_of(row, primary), primary, "worse"), Tone::Worse),
        Verdict::NoDifferenceShown { could_have_seen } => {
            let seen = quantity::percent(could_have_seen);
            (format!("no difference shown; could have seen {seen}"), Tone::Plain)
        }
        Verdict::RunsFailed { failed, of } => (
            format!("no verdict: in {failed} of {of} rounds its run or the reference's failed"),
            Tone::Plain,
        ),
        Verdict::NoRatio => {
            ("no verdict: there is no ratio; below it says why".to_owned(), Tone::Plain)
        }
        Verdict::TooFewRuns { pairs, needed } => (
            format!("too few runs for a verdict: {pairs}, it takes {needed} (-n {needed})"),
            Tone::Dim,
        ),
    }
}

/// The decision by a criterion that was fixed in advance, as a sentence, with its tone.
pub(super) fn decided(decision: &Decision) -> (String, Tone) {
    let Decision { variant, holds, conditions, .. } = decision;
    let said = |(condition, ratio, held): &(Condition, Option<Ratio>, Held)| {
        let name = measure::heading(condition.measure);
        let bound = format!("{} {}", condition.sign(), condition.bound);
        let Some(ratio) = ratio else {
            return format!("no ratio of {}, asked {bound}", measure::name(condition.measure));
        };
        let times = format!("{name} {}", ratio.written());
        match held {
            Held::Yes => format!("{times} is {bound}"),
            Held::No => format!("{times} is not {bound}"),
            Held::Open => format!("{times} is not shown to be {bound}"),
            Held::Unknown => format!("{times}, too few runs that count for {bound}"),
        }
    };
    let said: Vec<String> = conditions.iter().map(said).collect();
    let said = said.join("; ");
    match holds {
        Held::Yes => (format!("{variant}: {said}"), Tone::Good),
        Held::No => (format!("not {variant}: {said}"), Tone::Bad),
        Held::Open => {
            (format!("not {variant}, as far as was shown: {said}; more runs tell more"), Tone::Bad)
        }
        Held::Unknown => (format!("none: {variant} could not be judged: {said}"), Tone::Bad),
    }
}

/// `1.120× as fast, surely between 1.100 and 1.140`.
fn difference(ratio: Option<Ratio>, primary: Measure, plainly: &str) -> String {
    let Some(ratio) = ratio else {
        return plainly.to_owned();
    };
    let is_turned_over = is_time(primary) && ratio.estimate < 1.0;
    let turned = |value: f64| quantity::ratio(if is_turned_over { 1.0 / value } else { value });
    let times = turned(ratio.estimate);
    if times == quantity::ratio(1.0) {
        return format!("{plainly}, by less than 0.1 %");
    }
    let text = match primary {
        _ if is_turned_over => format!("{times}× as fast"),
        _ if is_time(primary) => format!("takes {times}× the time"),
        Measure::Throughput => format!("{times}× the answers a second"),
        other => format!("{times}× the {}", measure::name(other)),
    };
    let Some((low, high)) = ratio.interval else {
        return text;
    };
    let (low, high) = if is_turned_over { (high, low) } else { (low, high) };
    format!("{text}, surely between {} and {}", turned(low), turned(high))
}

/// Whether a smaller value of the measure means more speed.
fn is_time(measure: Measure) -> bool {
    matches!(
        measure,
        Measure::Wall | Measure::LatencyP50 | Measure::LatencyP99 | Measure::LatencyP999
    )
}

fn ratio_of(row: &Row, primary: Measure) -> Option<Ratio> {
    row.estimate(primary)?.ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_time_is_more_speed_and_everything_else_is_said_as_it_was_measured() {
        let ratio = Ratio { estimate: 0.8, interval: Some((0.5, 0.9)), pairs: 20 };
        let said = |measure| difference(Some(ratio), measure, "");
        assert_eq!(said(Measure::Wall), "1.250× as fast, surely between 1.111 and 2.00");
        let throughput = "0.800× the answers a second, surely between 0.500 and 0.900";
        assert_eq!(said(Measure::Throughput), throughput);
        let memory = "0.800× the peak resident memory, surely between 0.500 and 0.900";
        assert_eq!(said(Measure::PeakRss), memory);
        let slower = Ratio { estimate: 1.2, interval: None, pairs: 20 };
        assert_eq!(difference(Some(slower), Measure::Wall, ""), "takes 1.200× the time");
        assert_eq!(difference(None, Measure::Wall, "better"), "better");
        let tiny = Ratio { estimate: 0.9997, interval: Some((0.9996, 0.9998)), pairs: 20 };
        let said = difference(Some(tiny), Measure::PeakRss, "better");
        assert_eq!(said, "better, by less than 0.1 %");
    }

    #[test]
    fn a_condition_without_a_ratio_names_its_measure_as_a_reader_knows_it() {
        let criterion: crate::summary::Criterion = "b if major_faults <= 1".parse().unwrap();
        let unknown = Held::Unknown;
        let conditions = vec![(criterion.conditions[0], None, unknown)];
        let (criterion, variant) = (criterion.to_string(), criterion.variant);
        let (text, _) = decided(&Decision { criterion, variant, holds: unknown, conditions });
        assert!(
            text.ends_with(": no ratio of page faults that read from disk, asked <= 1"),
            "{text}"
        );
    }
}
