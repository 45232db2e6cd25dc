//! One figure for each row, as a bar from 0: for counts and for the results of an experiment.

use super::axis::Axis;
use super::{LEFT, RIGHT, Rows, Screen};
use masu_run::quantity::bytes;

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub label: String,
    /// The figure of the bar; none if it was not measured.
    pub value: Option<f64>,
}

const THICK: f64 = 12.0;

/// The plot of `bars`; `unit` puts their figures into words. `id` must be unique in a page, and `title` says what the
/// figures are.
pub fn bars(id: &str, title: &str, bars: &[Bar], unit: fn(f64) -> String) -> String {
    drawn(id, title, bars, unit, &axis(bars))
}

/// The same plot for figures in bytes.
pub(crate) fn bars_of_bytes(id: &str, title: &str, bars: &[Bar]) -> String {
    drawn(id, title, bars, bytes, &axis(bars).of_bytes())
}

fn axis(bars: &[Bar]) -> Axis {
    let most = bars.iter().filter_map(|bar| bar.value).fold(0.0_f64, f64::max);
    Axis::linear(0.0, most, LEFT, RIGHT - 10.0)
}

fn drawn(id: &str, title: &str, bars: &[Bar], unit: fn(f64) -> String, axis: &Axis) -> String {
    let rows = Rows::new(bars.iter().map(|bar| bar.label.as_str()), 26.0, Screen::Wide);
    let mut svg = rows.svg(0.0);
    rows.axis(&mut svg, axis, unit);
    for (index, bar) in bars.iter().enumerate() {
        let y = rows.middle(index);
        let text = match bar.value {
            Some(value) => {
                let size = ((axis.at(value) - axis.start()).max(1.0), THICK);
                svg.rect((axis.start(), y - THICK / 2.0), size, "block");
                unit(value)
            }
            None => "not measured".to_owned(),
        };
        svg.text(RIGHT + 12.0, y + 4.0, "figure", "start", &text);
    }
    svg.finish(
        id,
        title,
        "A bar from 0 for each row, its figure beside it; the table has the same figures.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_bar_or_says_why_not() {
        let made = [
            Bar { label: "a".to_owned(), value: Some(3.0) },
            Bar { label: "b & c".to_owned(), value: None },
            Bar { label: "d".to_owned(), value: Some(0.0) },
        ];
        let text = bars("x", "calls", &made, |value| format!("{value:.0} calls"));
        let tree = roxmltree::Document::parse(&text).unwrap();
        let rects = tree.descendants().filter(|it| it.tag_name().name() == "rect").count();
        assert_eq!(rects, 2);
        assert!(text.contains("3 calls") && text.contains("not measured"), "{text}");
        assert!(text.contains("b &#38; c"));
        let memory = [Bar { label: "e".to_owned(), value: Some(1.4 * 1024_f64.powi(3)) }];
        let text = bars_of_bytes("z", "memory", &memory);
        assert!(text.contains(">1.40 GiB<") && text.contains(">512 MiB<"), "{text}");
        assert!(roxmltree::Document::parse(&bars("y", "", &[], |_| String::new())).is_ok());
    }
}
