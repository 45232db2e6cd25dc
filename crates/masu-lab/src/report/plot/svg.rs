//! An SVG element under construction. Every text in it is escaped here and nowhere else.

use std::fmt::Write;

use askama::filters::{Html, escape};

use crate::page::visible;

#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// A point, in the drawing's units from its top left corner.
pub(super) type Point = (f64, f64);

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new() }
    }

    /// `text` at the base line `y`; `anchor` is `start`, `middle` or `end`.
    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, anchor: &str, text: &str) {
        let text = escaped(text);
        let (x, y) = (short(x), short(y));
        self.push(&format!(
            "<text x=\"{x}\" y=\"{y}\" class=\"{class}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    pub(super) fn line(&mut self, from: Point, to: Point, class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(short);
        self.push(&format!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>"
        ));
    }

    pub(super) fn rect(&mut self, corner: Point, size: (f64, f64), class: &str) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(short);
        self.push(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"/>"
        ));
    }

    /// A rectangle that shows `name` if a pointer rests on it.
    pub(super) fn named_rect(&mut self, corner: Point, size: (f64, f64), class: &str, name: &str) {
        let [x, y, width, height] = [corner.0, corner.1, size.0, size.1].map(short);
        let name = escaped(name);
        self.push(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"><title>{name}</title></rect>"
        ));
    }

    pub(super) fn circle(&mut self, center: Point, radius: f64, class: &str) {
        let [x, y, radius] = [center.0, center.1, radius].map(short);
        self.push(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" class=\"{class}\"/>"));
    }

    pub(super) fn polygon(&mut self, points: &[Point], class: &str) {
        let points = list(points);
        self.push(&format!("<polygon points=\"{points}\" class=\"{class}\"/>"));
    }

    pub(super) fn polyline(&mut self, points: &[Point], class: &str) {
        let points = list(points);
        self.push(&format!("<polyline points=\"{points}\" class=\"{class}\"/>"));
    }

    /// Many round dots as one element, which keeps a page with thousands of them small. Their size
    /// is the class's `stroke-width`.
    pub(super) fn dots(&mut self, points: &[Point], class: &str) {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(path, "M{} {}h0", short(*x), short(*y));
        }
        if !path.is_empty() {
            self.push(&format!("<path d=\"{path}\" class=\"{class}\"/>"));
        }
    }

    /// The element, with a title and a description for readers who cannot see it. `id` must be unique in the page.
    pub(super) fn finish(self, id: &str, title: &str, description: &str) -> String {
        let [width, height] = [self.width, self.height].map(short);
        let (title, description) = (escaped(title), escaped(description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}</title>\
             <desc id=\"{id}-d\">{description}</desc>{}</svg>",
            self.body
        )
    }

    fn push(&mut self, element: &str) {
        self.body.push_str(element);
    }
}

/// The element `svg` as a file of its own, with the style that a page would give it.
pub fn standalone(svg: &str) -> String {
    const COLORS: &str = include_str!("../../../templates/colors.css");
    const PLOT: &str = include_str!("../../../templates/plot.css");
    let style = format!("<style>\n{COLORS}{PLOT}</style>");
    match svg.find('>') {
        Some(end) => format!("{}{style}{}\n", &svg[..=end], &svg[end + 1..]),
        None => svg.to_owned(),
    }
}

fn list(points: &[Point]) -> String {
    let points: Vec<String> =
        points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
    points.join(" ")
}

/// A coordinate to a tenth of a unit, without a zero at its end.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// `text` as it may stand in an element or an attribute.
fn escaped(text: &str) -> String {
    escape(visible(text), Html).map_or_else(|never| match never {}, |safe| safe.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_cannot_become_an_element() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(0.0, 0.0, "label", "end", "</text><script>alert('\"&')</script>\u{1}");
        svg.dots(&[(1.0, 2.04), (3.26, 4.0)], "dot");
        let text = svg.finish("a", "<b>", "\"c\"");
        let tree = roxmltree::Document::parse(&text).unwrap();
        let names: Vec<&str> = tree
            .descendants()
            .filter(|it| it.is_element())
            .map(|it| it.tag_name().name())
            .collect();
        assert_eq!(names, ["svg", "title", "desc", "text", "path"]);
        assert!(text.contains("M1 2h0M3.3 4h0"), "{text}");
    }

    #[test]
    fn a_plot_is_a_file_of_its_own_with_its_style() {
        let text = standalone(&Svg::new(10.0, 10.0).finish("a", "t", "d"));
        let tree = roxmltree::Document::parse(&text).unwrap();
        let first = tree.root_element().first_element_child().unwrap();
        assert_eq!(first.tag_name().name(), "style");
        assert!(first.text().unwrap().contains("--ink"));
    }
}
