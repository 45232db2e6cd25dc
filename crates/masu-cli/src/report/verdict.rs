//! What a comparison says about one variant, in plain words.
//!
//! The lab's ratios are of time, lower is better; people speak of speed. So the words for a faster
//! variant turn the ratio over, ends of the interval included.

use anstyle::{AnsiColor, Style};
use masu_lab::results::Row;
use masu_lab::statistics::Ratio;
use masu_lab::{Measure, Verdict};

use super::quantity;

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const DIM: Style = Style::new().dimmed();

/// The words for `row`, and the style they are shown in.
pub(super) fn words(row: &Row, primary: Measure) -> (String, Style) {
    match row.verdict {
        Verdict::Reference => ("the reference".to_owned(), DIM),
        Verdict::Faster => (faster(ratio_of(row, primary)), GOOD),
        Verdict::Slower => (slower(ratio_of(row, primary)), BAD),
        Verdict::NoDifferenceShown { could_have_seen } => {
            let seen = quantity::percent(could_have_seen);
            (format!("no difference shown; could have seen {seen}"), Style::new())
        }
        Verdict::TooFewRuns { pairs, needed } => {
            (format!("too few runs for a verdict: {pairs}, it takes {needed} (-n {needed})"), DIM)
        }
        // The lab may learn verdicts that this version has no words for.
        _ => ("no verdict".to_owned(), DIM),
    }
}

fn faster(ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else {
        return "faster".to_owned();
    };
    let times = format!("{}× as fast", quantity::ratio(1.0 / ratio.estimate));
    let Some((low, high)) = ratio.interval else {
        return times;
    };
    let (low, high) = (quantity::ratio(1.0 / high), quantity::ratio(1.0 / low));
    format!("{times}, surely between {low} and {high}")
}

fn slower(ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else {
        return "slower".to_owned();
    };
    let times = format!("takes {}× the time", quantity::ratio(ratio.estimate));
    let Some((low, high)) = ratio.interval else {
        return times;
    };
    format!("{times}, surely between {} and {}", quantity::ratio(low), quantity::ratio(high))
}

fn ratio_of(row: &Row, measure: Measure) -> Option<Ratio> {
    row.estimates.iter().find(|estimate| estimate.measure == measure)?.ratio
}
