//! What is said beside the result: standard error, for people.
//!
//! Relies on nobody: a reader that is gone reads nothing, so failures to write are passed over.
//! That is the difference to `eprintln!`, which would end masu in the middle of a comparison.

use std::fmt::Display;
use std::io::Write;

/// Writes a line to standard error, with colours where it shows them.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}
