//! The terminal as lines of text: keys come at once, and lines that changed are sent.
//!
//! The terminal gets its own screen and its mode back when the canvas goes, and before a panic is shown.

use std::io;
use std::panic;

use anstyle::Style;
use console::{Key, Term, truncate_str};
use masu_lab::terminal::Mode;

/// The sequences that switch to a screen of masu's own, without a cursor, and back to the shell's.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

#[derive(Default)]
pub(super) struct Line(Vec<(Style, String)>);

impl Line {
    pub(super) fn new(style: Style, text: impl Into<String>) -> Line {
        Line(vec![(style, text.into())])
    }

    pub(super) fn push(&mut self, style: Style, text: String) {
        self.0.push((style, text));
    }

    /// The line as it is sent, cut to `columns`.
    fn painted(&self, columns: usize) -> String {
        let parts = self.0.iter().map(|(style, text)| format!("{style}{text}{style:#}"));
        truncate_str(&parts.collect::<String>(), columns, "").into_owned()
    }
}

pub(super) struct Canvas {
    terminal: Term,
    mode: Mode,
    shown: Vec<String>,
    size: Option<Size>,
}

impl Canvas {
    /// Takes the terminal over.
    pub(super) fn open() -> io::Result<Canvas> {
        let mode = Mode::of_output()?;
        let (shown, before) = (panic::take_hook(), mode.clone());
        panic::set_hook(Box::new(move |why| {
            restore(&before);
            shown(why);
        }));
        mode.clone().key_by_key().set()?;
        let canvas =
            Canvas { terminal: Term::buffered_stdout(), mode, shown: Vec::new(), size: None };
        canvas.terminal.write_str(ENTER)?;
        Ok(canvas)
    }

    /// Shows these lines, which fit the size that they are asked for.
    pub(super) fn draw(&mut self, lines: impl FnOnce(Size) -> Vec<Line>) -> io::Result<()> {
        let (rows, columns) = self.terminal.size();
        let size = Size { rows: rows.into(), columns: columns.into() };
        if self.size.replace(size) != Some(size) {
            self.terminal.clear_screen()?;
            self.shown.clear();
        }
        let mut lines: Vec<String> =
            lines(size).iter().take(size.rows).map(|line| line.painted(size.columns)).collect();
        lines.resize(size.rows, String::new());
        self.shown.resize(size.rows, String::new());
        for (row, line) in lines.iter().enumerate().filter(|(row, line)| **line != self.shown[*row])
        {
            self.terminal.move_cursor_to(0, row)?;
            self.terminal.clear_line()?;
            self.terminal.write_str(line)?;
        }
        self.shown = lines;
        self.terminal.flush()
    }

    pub(super) fn key(&self) -> io::Result<Key> {
        self.terminal.read_key_raw()
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        let _ = self.terminal.flush();
        restore(&self.mode);
    }
}

/// Gives the terminal its mode and its own screen back. A terminal that is gone needs neither.
fn restore(mode: &Mode) {
    let _ = Term::stdout().write_str(LEAVE);
    let _ = mode.set();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_edge_and_keeps_its_styles() {
        let mut line = Line::new(Style::new().bold(), "añb");
        line.push(Style::new(), "cd".to_owned());
        assert_eq!(line.painted(4), "\x1b[1mañb\x1b[0mc");
        assert_eq!(line.painted(2), "\x1b[1mañ\x1b[0m");
        assert_eq!(Line::new(Style::new(), "枡枡").painted(3), "枡", "it is two columns wide");
    }
}
