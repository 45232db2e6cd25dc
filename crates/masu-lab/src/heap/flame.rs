//! The profile as a flame graph: one SVG file that needs nothing else, and works where scripts do not run.
//!
//! Relies on the stacks. A box is a function, as wide as what was allocated in it and below it;
//! boxes stand on their callers. Hovering says the numbers; a click shows a box at full width, by a few lines
//! of script. In a difference red boxes grew and blue ones shrank, and width is the change's size.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::table::{amount, phrase, share};
use super::{Frame, Profile, What};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 44.0;
/// Narrower boxes are left out, in pixels.
const NARROWEST: f64 = 0.2;
const LETTER: f64 = 6.6;

/// A function on a path of callers.
#[derive(Default)]
struct Node<'a> {
    children: BTreeMap<&'a str, Node<'a>>,
    /// What was allocated here and further in; and its size without regard to sign.
    number: i64,
    size: u64,
}

impl<'a> Node<'a> {
    fn add(&mut self, frames: &'a [Frame], number: i64) {
        self.number += number;
        self.size += number.unsigned_abs();
        if let Some((first, rest)) = frames.split_first() {
            self.children.entry(&first.function).or_default().add(rest, number);
        }
    }

    fn depth(&self) -> usize {
        1 + self.children.values().map(Node::depth).max().unwrap_or(0)
    }
}

struct Drawing {
    boxes: String,
    what: What,
    total: i64,
    /// Pixels for one of what is counted.
    scale: f64,
    height: f64,
}

pub(super) fn svg(profile: &Profile, what: What, title: &str) -> String {
    let mut root = Node::default();
    for (frames, sums) in &profile.stacks {
        root.add(frames, sums.of(what));
    }
    // A path of callers is as deep as the deepest stack; pages end somewhere.
    let height = HEAD + ROW * root.depth().min(200) as f64 + MARGIN;
    let scale = if root.size == 0 { 0.0 } else { (WIDTH - 2.0 * MARGIN) / root.size as f64 };
    let mut drawing = Drawing { boxes: String::new(), what, total: root.number, scale, height };
    drawing.draw("all", &root, MARGIN, 0);
    let heading = escaped(&format!("{title}: {} {}", amount(root.number, what), phrase(what)));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\n\
         <style>rect {{ stroke: #fff; stroke-width: 0.4 }} g.box {{ cursor: pointer }} \
         g.box:hover rect {{ stroke: #000 }}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fdfdfb\"/>\n\
         <text x=\"{MARGIN}\" y=\"18\" font-size=\"14\">{heading}</text>\n\
         <text id=\"said\" x=\"{MARGIN}\" y=\"35\" fill=\"#555\">A box is a function, as wide as what was \
         allocated in it and in what it called. Click to look closer, on the lowest box to go back.</text>\n\
         {}{SCRIPT}</svg>\n",
        drawing.boxes
    )
}

/// Shows a box, what stands on it and what it stands on, and nothing else.
const SCRIPT: &str = "<script><![CDATA[
const boxes = [...document.querySelectorAll('g.box')].map(g => {
  const r = g.querySelector('rect'), t = g.querySelector('text');
  return { g, r, t, x: +r.getAttribute('x'), w: +r.getAttribute('width'), y: +r.getAttribute('y'),
           name: g.dataset.name };
});
function look(at) {
  const zoom = 1180 / at.w;
  for (const b of boxes) {
    const under = b.y > at.y && b.x <= at.x + 0.01 && b.x + b.w >= at.x + at.w - 0.01;
    const above = b.y <= at.y && b.x >= at.x - 0.01 && b.x + b.w <= at.x + at.w + 0.01;
    b.g.style.display = under || above ? '' : 'none';
    const x = under ? 10 : 10 + (b.x - at.x) * zoom, w = under ? 1180 : b.w * zoom;
    b.r.setAttribute('x', x); b.r.setAttribute('width', w); b.t.setAttribute('x', x + 3);
    const letters = Math.floor((w - 6) / 6.6);
    b.t.textContent = letters < 3 ? '' :
      b.name.length <= letters ? b.name : b.name.slice(0, letters - 1) + '\\u2026';
  }
}
for (const b of boxes) b.g.addEventListener('click', () => look(b));
]]></script>
";

impl Drawing {
    fn draw(&mut self, name: &str, node: &Node<'_>, x: f64, depth: usize) {
        let width = node.size as f64 * self.scale;
        let y = self.height - MARGIN - ROW * (depth as f64 + 1.0);
        if width < NARROWEST || y < HEAD {
            return;
        }
        let (fill, shown) = (self.colour(name, node), fitting(name, width));
        let said = format!(
            "{name}: {} ({}%)",
            amount(node.number, self.what),
            share(node.number, self.total)
        );
        let _ = writeln!(
            self.boxes,
            "<g class=\"box\" data-name=\"{}\"><title>{}</title><rect x=\"{x:.2}\" y=\"{y:.1}\" \
             width=\"{width:.2}\" height=\"{:.1}\" rx=\"1\" fill=\"{fill}\"/>\
             <text x=\"{:.2}\" y=\"{:.1}\">{}</text></g>",
            escaped(name),
            escaped(&said),
            ROW - 1.0,
            x + 3.0,
            y + 12.0,
            escaped(&shown),
        );
        let mut x = x;
        for (name, child) in &node.children {
            self.draw(name, child, x, depth + 1);
            x += child.size as f64 * self.scale;
        }
    }

    /// Warm colours that differ by name; in a difference what it tells.
    fn colour(&self, name: &str, node: &Node<'_>) -> String {
        if node.number < 0 {
            return "#8fb4e3".to_owned();
        }
        let hash =
            name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
        let (red, green, blue) = (205 + hash % 50, 90 + (hash >> 8) % 120, 40 + (hash >> 16) % 40);
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// As much of a name as a box has room for.
fn fitting(name: &str, width: f64) -> String {
    let letters = ((width - 6.0) / LETTER) as usize;
    if letters < 3 {
        return String::new();
    }
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    let mut shown: String = name.chars().take(letters - 1).collect();
    shown.push('…');
    shown
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() => escaped.push('?'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
