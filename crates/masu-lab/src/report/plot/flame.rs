//! CPU time by function: a box is a function, as wide as the samples in it and in what it called.
//!
//! Boxes stand on their callers. The numbers of boxes too narrow for a name are read by hovering.

use std::collections::BTreeMap;

use super::Screen;
use super::svg::Svg;
use crate::diagnose::Stack;
use crate::quantity::percent;

const MARGIN: f64 = 8.0;
const ROW: f64 = 18.0;

/// Narrower boxes are left out, and deeper ones.
const NARROWEST: f64 = 0.6;
const DEEPEST: usize = 40;

/// What a letter of a box's name takes, and what is left free beside the name.
const LETTER: f64 = 7.3;
const FREE: f64 = 6.0;

#[derive(Default)]
struct Node<'a> {
    above: BTreeMap<&'a str, Node<'a>>,
    samples: u64,
}

impl<'a> Node<'a> {
    fn add(&mut self, frames: &'a [String], samples: u64) {
        self.samples += samples;
        if let Some((first, rest)) = frames.split_first() {
            self.above.entry(first).or_default().add(rest, samples);
        }
    }

    fn depth(&self) -> usize {
        1 + self.above.values().map(Node::depth).max().unwrap_or(0)
    }
}

struct Drawing {
    svg: Svg,
    /// Units for one sample.
    scale: f64,
    bottom: f64,
    all: u64,
}

/// The plot of `stacks`, which are of `all` samples; none without stacks. `id` must be unique in a page.
pub(in crate::report) fn flame(
    id: &str,
    stacks: &[Stack],
    all: u64,
    screen: Screen,
) -> Option<String> {
    let mut root = Node::default();
    stacks.iter().for_each(|stack| root.add(&stack.frames, stack.samples));
    if root.samples == 0 {
        return None;
    }
    let all = all.max(root.samples);
    let rows = root.depth().min(DEEPEST + 1) as f64;
    let bottom = MARGIN + ROW * rows;
    let scale = (screen.width() - 2.0 * MARGIN) / all as f64;
    let mut drawing =
        Drawing { svg: Svg::new(screen.width(), bottom + MARGIN), scale, bottom, all };
    // What is not in the stacks belongs to the whole.
    let whole = Node { samples: all, ..Node::default() };
    drawing.one("all samples of its own code", &whole, MARGIN, 0);
    drawing.above(&root, MARGIN, 1);
    let description = "A box is a function, as wide as the samples of the CPU clock that were in it and in what it called; \
                       it stands on its caller, as far as frame pointers tell. The kernel's time is not in it.";
    Some(drawing.svg.finish(id, "CPU time by function", description))
}

impl Drawing {
    fn above(&mut self, node: &Node<'_>, x: f64, row: usize) {
        if row > DEEPEST {
            return;
        }
        let mut x = x;
        // The widest first: the eye begins on the left.
        let mut above: Vec<(&&str, &Node<'_>)> = node.above.iter().collect();
        above.sort_by_key(|(_, one)| std::cmp::Reverse(one.samples));
        for (name, one) in above {
            let width = one.samples as f64 * self.scale;
            if width < NARROWEST {
                break;
            }
            self.one(name, one, x, row);
            self.above(one, x, row + 1);
            x += width;
        }
    }

    fn one(&mut self, name: &str, node: &Node<'_>, x: f64, row: usize) {
        let width = node.samples as f64 * self.scale;
        let y = self.bottom - ROW * (row as f64 + 1.0);
        let said = format!("{name}: {}", percent(node.samples as f64 / self.all.max(1) as f64));
        let class = ["flame", "flame other"][row % 2];
        self.svg.named_rect((x, y), (width, ROW - 1.0), class, &said);
        let shown = fitting(&said, name, width);
        if !shown.is_empty() {
            self.svg.text(x + FREE / 2.0, y + ROW - 5.5, "label", "start", &shown);
        }
    }
}

/// As much of a box's words as it has room for.
fn fitting(said: &str, name: &str, width: f64) -> String {
    let letters = ((width - FREE) / LETTER).max(0.0) as usize;
    match letters {
        _ if said.chars().count() <= letters => said.to_owned(),
        _ if name.chars().count() <= letters => name.to_owned(),
        0..4 => String::new(),
        _ => format!("{}…", name.chars().take(letters - 1).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
