//! The plot: nanoseconds a call by number of functions, both on logarithmic axes, a panel for each
//! size of body.
//!
//! Relies on nothing: SVG is text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Figures, Key};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const MARGIN: f64 = 50.0;

/// The layouts that differ in what a call costs; how an arena was loaded does not.
const SHOWN: [(&str, &str); 4] =
    [("own2m", "#b5179e"), ("own", "#d00000"), ("one", "#333333"), ("arena", "#0077b6")];

/// The range of nanoseconds that the axis shows.
const NS: (f64, f64) = (1.0, 200.0);

/// Draws all panels side by side.
pub(super) fn draw(rows: &BTreeMap<Key, Figures>) -> String {
    let bodies: BTreeSet<u32> = rows.keys().map(|key| key.body).collect();
    let most = rows.keys().map(|key| key.count).max().unwrap_or(1).max(2);
    let width = WIDTH * bodies.len().max(1) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n"
    );
    for (panel, body) in bodies.iter().enumerate() {
        let left = panel as f64 * WIDTH + MARGIN;
        let x = |count: u32| {
            left + f64::from(count).ln() / f64::from(most).ln() * (WIDTH - 2.0 * MARGIN)
        };
        let y = |ns: f64| {
            let share = (ns.clamp(NS.0, NS.1) / NS.0).ln() / (NS.1 / NS.0).ln();
            HEIGHT - MARGIN - share * (HEIGHT - 2.0 * MARGIN)
        };
        let _ = writeln!(
            svg,
            "<text x=\"{left}\" y=\"20\">bodies of about {body} bytes: ns a call</text>"
        );
        for ns in [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0] {
            let (at, end) = (y(ns), left + WIDTH - 2.0 * MARGIN);
            let _ = writeln!(svg, "<path d=\"M{left} {at:.1}H{end}\" stroke=\"#ddd\"/>");
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{ns}</text>",
                left - 5.0,
                at + 4.0
            );
        }
        let counts: BTreeSet<u32> = rows.keys().map(|key| key.count).collect();
        for count in counts {
            let (at, below) = (x(count), HEIGHT - MARGIN + 15.0);
            let _ = writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{count}</text>"
            );
        }
        for (layout, colour) in SHOWN {
            let of_line = |key: &&Key| key.body == *body && key.layout == layout;
            let points: Vec<(f64, f64)> = rows
                .keys()
                .filter(of_line)
                .map(|key| (x(key.count), y(rows[key].call_ns)))
                .collect();
            let Some((end_x, end_y)) = points.last() else { continue };
            let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let path = path.join(" ");
            let _ = writeln!(
                svg,
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
            );
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{layout}</text>",
                end_x + 4.0,
                end_y + 4.0
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}
