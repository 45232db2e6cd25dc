//! `cargo xtask picture`: the page of a real comparison as a drawing, `docs/compare.svg`, for a README or a slide.
//!
//! The build and the comparison are those of [`trial`]. The picture is text in a drawing, so it is sharp at any size, and
//! its colors follow the reader's light or dark setting.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;

use crate::{commands, files, machine, trial};

const PICTURE: &str = "docs/compare.svg";

/// Units of the drawing to a character and a line, and around the text.
const CHARACTER: f64 = 8.4;
const LINE: usize = 19;
const MARGIN: usize = 18;

pub(crate) fn run(root: &Path) -> Result<()> {
    machine::provide_what_there_is(&[machine::PEERS]);
    commands::step("build", || trial::build(root))?;
    let mut command = trial::comparison(root)?;
    println!("$ {}", commands::show(&command));
    let page = commands::output(&mut command)?;
    let shown = format!("$ echo {} | masu compare -- sed -rf primes.sed\n\n{page}", trial::PRIMES);
    files::write(&root.join(PICTURE), drawn(&shown))?;
    println!("{PICTURE}");
    Ok(())
}

/// Lines of text as a drawing; the first is a command.
fn drawn(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width =
        (f64::from(u32::try_from(columns).unwrap_or(0)) * CHARACTER).ceil() as usize + 2 * MARGIN;
    let height = lines.len() * LINE + 2 * MARGIN;
    let mut drawing = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>The page that masu compare prints</title>\n\
         <style>\n\
         rect {{ fill: #f6f8fa; stroke: #d0d7de }}\n\
         text {{ fill: #1f2328; font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre }}\n\
         .command {{ font-weight: bold }}\n\
         @media (prefers-color-scheme: dark) {{ rect {{ fill: #161b22; stroke: #30363d }} text {{ fill: #e6edf3 }} }}\n\
         </style>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        width - 1,
        height - 1
    );
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let class = if index == 0 { " class=\"command\"" } else { "" };
        let baseline = MARGIN + index * LINE + LINE * 3 / 4;
        // A length of its own for each line: columns stay columns in a font of another width.
        let length = f64::from(u32::try_from(line.chars().count()).unwrap_or(0)) * CHARACTER;
        let _ = writeln!(
            drawing,
            "<text{class} xml:space=\"preserve\" x=\"{MARGIN}\" y=\"{baseline}\" textLength=\"{length:.1}\">{}</text>",
            escaped(line)
        );
    }
    drawing.push_str("</svg>\n");
    drawing
}

fn escaped(line: &str) -> String {
    line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_drawn_once_and_marks_are_escaped() {
        let drawing = drawn("$ masu\n\na < b & c\n");
        assert_eq!(drawing.matches("<text").count(), 2);
        assert!(
            drawing.contains(">a &lt; b &amp; c</text>") && drawing.contains("class=\"command\"")
        );
    }
}
