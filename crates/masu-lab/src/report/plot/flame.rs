//! Flame graphs: a box is a function, as wide as the count in it and in the functions that it called.
//!
//! Boxes stand on their callers. A pointer that rests on a box too narrow for a name shows its number. A difference may
//! hold numbers below zero: a box is as wide as its change, and a box that shrank has another color.

use std::collections::BTreeMap;

use super::Screen;
use super::svg::{Svg, standalone};
use crate::diagnose::Stack;
use crate::heap::{Profile, What, amount, phrase, share};
use masu_run::quantity::{clipped, percent};

const MARGIN: f64 = 8.0;
const ROW: f64 = 18.0;

/// The width below which boxes are left out.
const NARROWEST: f64 = 0.6;

/// The width of a letter in a box's name, and the free width beside the name.
const LETTER: f64 = 7.3;
const FREE: f64 = 6.0;

/// A function on a path of callers.
#[derive(Default)]
struct Node<'a> {
    above: BTreeMap<&'a str, Node<'a>>,
    /// The count in this function and in the functions that it called, and the same count without regard to sign.
    number: i64,
    size: u64,
}

impl<'a> Node<'a> {
    fn add(&mut self, mut frames: impl Iterator<Item = &'a str>, number: i64) {
        self.number += number;
        self.size += number.unsigned_abs();
        if let Some(first) = frames.next() {
            self.above.entry(first).or_default().add(frames, number);
        }
    }

    fn depth(&self) -> usize {
        1 + self.above.values().map(Node::depth).max().unwrap_or(0)
    }
}

struct Drawing<'a> {
    svg: Svg,
    /// The width of one counted unit in the drawing.
    scale: f64,
    bottom: f64,
    deepest: usize,
    words: &'a dyn Fn(i64) -> String,
}

/// The plot of `stacks`, which are a part of `all` samples; none without stacks. `id` must be unique in a page.
pub(in crate::report) fn flame(
    id: &str,
    stacks: &[Stack],
    all: u64,
    screen: Screen,
) -> Option<String> {
    let mut root = Node::default();
    for stack in stacks {
        root.add(stack.frames.iter().map(String::as_str), stack.samples.cast_signed());
    }
    // Samples that are in no stack belong to the whole.
    let all = all.max(root.size);
    (root.number, root.size) = (all.cast_signed(), if root.size == 0 { 0 } else { all });
    let words = |samples: i64| percent(samples as f64 / all.max(1) as f64);
    let svg = draw(&root, "all samples of its own code", screen.width(), 40, &words)?;
    let description = "A box is a function, as wide as the samples of the CPU clock that were in it and in what it called; \
                       it stands on its caller, as far as frame pointers tell. The kernel's time is not in it.";
    Some(svg.finish(id, "CPU time by function", description))
}

/// The profile as a file of its own, in which a click shows a box at full width.
pub(in crate::report) fn heap(profile: &Profile, what: What, title: &str) -> String {
    let mut root = Node::default();
    for (frames, sums) in &profile.stacks {
        root.add(frames.iter().map(|frame| frame.function.as_str()), sums.of(what));
    }
    let words = |number| format!("{} ({} %)", amount(number, what), share(number, root.number));
    let whole = format!("{title}, {}", phrase(what));
    let svg = draw(&root, &whole, 1200.0, 200, &words).unwrap_or_else(|| Svg::new(1200.0, ROW));
    let description = "A box is a function, as wide as what was allocated in it and in what it called. Click to look closer, \
                       on the lowest box to go back.";
    let script = include_str!("../../../templates/flame.js");
    let end = format!("<script><![CDATA[\n{script}]]></script></svg>");
    standalone(&svg.finish("heap", &whole, description)).replace("</svg>", &end)
}

/// The boxes of `root`, called `whole`, and of at most this many rows above it; none if nothing was counted.
fn draw(
    root: &Node<'_>,
    whole: &str,
    width: f64,
    deepest: usize,
    words: &dyn Fn(i64) -> String,
) -> Option<Svg> {
    if root.size == 0 {
        return None;
    }
    let bottom = MARGIN + ROW * root.depth().min(deepest + 1) as f64;
    let scale = (width - 2.0 * MARGIN) / root.size as f64;
    let svg = Svg::new(width, bottom + MARGIN);
    let mut drawing = Drawing { svg, scale, bottom, deepest, words };
    drawing.stack(whole, root, MARGIN, 0);
    Some(drawing.svg)
}

impl Drawing<'_> {
    fn stack(&mut self, name: &str, node: &Node<'_>, mut x: f64, row: usize) {
        let width = node.size as f64 * self.scale;
        if width < NARROWEST || row > self.deepest {
            return;
        }
        self.one(name, node.number, (x, width), row);
        // The widest boxes come first, because the eye begins on the left.
        let mut above: Vec<(&&str, &Node<'_>)> = node.above.iter().collect();
        above.sort_by_key(|(_, one)| std::cmp::Reverse(one.size));
        for (name, one) in above {
            self.stack(name, one, x, row + 1);
            x += one.size as f64 * self.scale;
        }
    }

    fn one(&mut self, name: &str, number: i64, (x, width): (f64, f64), row: usize) {
        let y = self.bottom - ROW * (row as f64 + 1.0);
        let said = format!("{name}: {}", (self.words)(number));
        let class = if number < 0 { "flame less" } else { ["flame", "flame other"][row % 2] };
        self.svg.named_rect((x, y), (width, ROW - 1.0), class, &said);
        let shown = fitting(&said, name, width);
        if !shown.is_empty() {
            self.svg.text(x + FREE / 2.0, y + ROW - 5.5, "label", "start", &shown);
        }
    }
}

/// The part of a box's words for which it has room.
fn fitting(said: &str, name: &str, width: f64) -> String {
    let letters = ((width - FREE) / LETTER).max(0.0) as usize;
    match letters {
        _ if said.chars().count() <= letters => said.to_owned(),
        _ if name.chars().count() <= letters => name.to_owned(),
        0..4 => String::new(),
        _ => clipped(name, letters),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{Frame, Sums};

    fn stack(frames: &[&str], samples: u64) -> Stack {
        Stack { frames: frames.iter().map(|it| (*it).to_owned()).collect(), samples }
    }

    #[test]
    fn a_box_is_as_wide_as_what_was_in_it_and_stands_on_its_caller() {
        let stacks =
            [stack(&["main", "work"], 60), stack(&["main", "read"], 20), stack(&["main"], 10)];
        let text = flame("cpu", &stacks, 100, Screen::Wide).unwrap();
        let tree = roxmltree::Document::parse(&text).unwrap();
        let found: Vec<(f64, f64, &str)> = tree
            .descendants()
            .filter(|it| it.tag_name().name() == "rect")
            .map(|it| {
                let number = |name| it.attribute(name).unwrap().parse::<f64>().unwrap();
                (number("y"), number("width"), it.first_element_child().unwrap().text().unwrap())
            })
            .collect();
        let whole = Screen::Wide.width() - 2.0 * MARGIN;
        let expected = [
            (2.0, 1.0, "all samples of its own code: 100 %"),
            (1.0, 0.9, "main: 90 %"),
            (0.0, 0.6, "work: 60 %"),
            (0.0, 0.2, "read: 20 %"),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((y, width, said), (row, share, words)) in found.iter().zip(expected) {
            assert!((y - MARGIN - ROW * row).abs() < 0.1 && (width - whole * share).abs() < 0.1);
            assert_eq!(*said, words);
        }
        assert_eq!(flame("cpu", &[], 100, Screen::Narrow), None);
    }

    #[test]
    fn what_a_name_is_made_of_stays_text() {
        let text =
            flame("cpu", &[stack(&["std::vector<int>::<script>"], 1)], 1, Screen::Narrow).unwrap();
        assert!(roxmltree::Document::parse(&text).is_ok() && !text.contains("<script>"), "{text}");
    }

    #[test]
    fn a_heap_profile_is_one_well_formed_file_with_a_color_for_what_shrank() {
        let frame = |function: &str| Frame { function: function.to_owned(), file: None, line: 0 };
        let sums = |live_bytes| Sums { live_bytes, ..Sums::default() };
        let stacks = [
            (vec![frame("main"), frame("parse<T>")], sums(3 << 20)),
            (vec![frame("main"), frame("a;b")], sums(-(1 << 20) - 100)),
            // This stack is too narrow to be seen.
            (vec![frame("main"), frame("a;b"), frame("main")], sums(100)),
        ];
        let profile = Profile { stacks: stacks.into(), ..Profile::default() };
        let text = heap(&profile, What::LiveBytes, "a & b");
        let tree = roxmltree::Document::parse(&text).unwrap();
        let found: Vec<(&str, &str)> = tree
            .descendants()
            .filter(|it| it.has_tag_name(("http://www.w3.org/2000/svg", "rect")))
            .map(|it| {
                let said = it.first_element_child().unwrap().text().unwrap();
                (said, it.attribute("class").unwrap())
            })
            .collect();
        let expected = [
            ("a & b, live: 2.0 MiB (100.0 %)", "flame"),
            ("main: 2.0 MiB (100.0 %)", "flame other"),
            ("parse<T>: 3.0 MiB (150.0 %)", "flame"),
            ("a;b: -1.0 MiB (-50.0 %)", "flame less"),
        ];
        assert_eq!(found, expected);
        assert!(!text.contains("href") && !text.contains("src="), "it needs no other file");
        let empty = heap(&Profile::default(), What::LiveBytes, "");
        assert!(roxmltree::Document::parse(&empty).is_ok(), "{empty}");
    }
}
