//! Notices beside the result, on standard error.
//!
//! Failures to write are passed over, so that a reader that is gone does not end a comparison.

use std::fmt::Display;
use std::io::Write;

use masu_lab::page::visible;

/// Writes a line to standard error.
pub(crate) fn say(line: impl Display) {
    say_behind("", line);
}

/// Writes a line behind `head`, which may have colors. Control characters that the user or a program wrote into the
/// line are shown, never obeyed.
pub(crate) fn say_behind(head: impl Display, line: impl Display) {
    let line = line.to_string();
    let lines: Vec<_> = line.split('\n').map(visible).collect();
    let _ = writeln!(anstream::stderr(), "{head}{}", lines.join("\n"));
}
